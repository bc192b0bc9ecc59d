"""Read gold values and predictions as columns; combine several predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.checks import checked_choice, is_number
from embedtopics.corpus._alignment import align_values
from embedtopics.corpus._classes import read_classes, with_types_of
from embedtopics.errors import InputError
from embedtopics.inference._sample import Sample
from embedtopics.protocols import BoolArray, Float64Array, Int64Array
from embedtopics.results import Decision

KINDS = ("auto", "class", "number")

N_FOLDS = 5
MOST_CLASSES = 10
"""Largest number of distinct whole numbers that are classes."""

RIDGE = 1.0
"""Penalty of the proxy's regression on standardized predictions, in rows."""

_ASK = (
    'say sampling="random" if the gold rows were drawn at random, pass probability= or strata= if '
    "some were likelier than others; rows that were picked otherwise allow no correction"
)


def refuse_infinite(values: list[Any], parameter: str) -> None:
    for row, value in enumerate(values):
        if isinstance(value, float | np.floating) and np.isinf(value):
            raise InputError(parameter, "finite", float(value), row=row)


def read_gold_classes(values: list[Any], is_gold: BoolArray, kind: str) -> tuple[Any, ...] | None:
    """Return the classes in ascending order, or None for numbers."""
    distinct = set(value for value, is_used in zip(values, is_gold, strict=True) if is_used)
    numeric = all(map(is_number, distinct))
    if kind == "auto" and numeric:
        whole = all(float(value).is_integer() for value in distinct)
        kind = "class" if whole and len(distinct) <= MOST_CLASSES else "number"
    if kind == "number":
        return None
    if len(distinct) < 2:
        found = f"{next(iter(distinct))!r} in all of them"
        raise InputError("gold", "of at least two classes", found=found)
    if all(isinstance(value, int | float | np.number) for value in distinct):
        return tuple(sorted({_plain(value) for value in distinct}))
    return tuple(sorted(distinct, key=str))


def _plain(value: Any) -> Any:
    """Return a number as Python's own, whole ones as integers; other values as they are."""
    if is_number(value):
        return int(value) if float(value).is_integer() else float(value)
    return bool(value) if isinstance(value, np.bool_) else value


def read_codes(values: Any, rows: Any, parameter: str) -> Int64Array:
    """Return codes of units or strata; a missing one is refused with its row."""
    cells = read_classes(align_values(values, rows, parameter)).values
    codes = np.asarray(pd.factorize(pd.Series(cells, dtype=object))[0], dtype=np.int64)
    if (codes < 0).any():
        raise InputError(parameter, "present in every row", None, row=int((codes < 0).argmax()))
    return codes


def read_chances(
    is_gold: BoolArray, sampling: str | None, probability: Any, stratum: Int64Array | None
) -> Float64Array:
    """Return the probability of each row to be drawn for gold."""
    n = len(is_gold)
    if probability is not None:
        chance = pd.Series(list(probability)).to_numpy(dtype=np.float64, na_value=np.nan)
        wrong = ~((chance > 0) & (chance <= 1))
        if wrong.any():
            row = int(wrong.argmax())
            remedy = "leave out rows that could not be drawn, or give them a gold value"
            raise InputError("probability", "above 0, up to 1", float(chance[row]), remedy, row=row)
        return np.asarray(chance)
    if stratum is not None:
        drawn, sizes = np.bincount(stratum, is_gold), np.bincount(stratum)
        if (drawn < 2).any():
            row = int(np.isin(stratum, np.flatnonzero(drawn < 2)).argmax())
            raise InputError("strata", "groups with at least two gold rows", row=row, found="less")
        return np.asarray((drawn / sizes)[stratum])
    if sampling is None:
        raise InputError("sampling", "stated", None, _ASK)
    checked_choice(sampling, "sampling", ("random",))
    return np.full(n, is_gold.mean())


def columns_of(values: Sequence[Any], classes: tuple[Any, ...] | None, used: BoolArray) -> Any:
    """Return indicators of classes, or numbers, (n_rows, n_columns); 0 for rows not used."""
    rows = np.flatnonzero(used)
    out = np.zeros((len(values), 1 if classes is None else len(classes)))
    if classes is None:
        out[rows, 0] = [float(values[row]) for row in rows.tolist()]
        return out
    codes, distinct = pd.factorize(pd.Series([values[row] for row in rows.tolist()], dtype=object))
    place = {one: column for column, one in enumerate(classes)}
    columns = np.array([place.get(_plain(one), -1) for one in distinct.tolist()])[codes]
    if (columns < 0).any():
        row = int(rows[(columns < 0).argmax()])
        expected = f"classes with a gold row ({', '.join(map(repr, classes))})"
        remedy = "code more rows, or merge classes"
        raise InputError("predictions", expected, values[row], remedy, row=row)
    out[rows, columns] = 1.0
    return out


def predictions_by_name(
    predictions: Any, rows: Any, classes: tuple[Any, ...] | None
) -> dict[str, Any]:
    """Return each prediction by its name, those of a table in the order of the rows."""
    if isinstance(predictions, pd.DataFrame):
        predictions = align_values(predictions, rows, "predictions")
        if classes is not None and set(predictions.columns) == set(classes):
            return {"probability": predictions[list(classes)].to_numpy(dtype=np.float64)}
        return {str(column): predictions[column] for column in predictions}

    if isinstance(predictions, Mapping):
        if not predictions:
            raise InputError("predictions", "at least one", predictions)
        return {str(name): values for name, values in predictions.items()}
    return {"prediction": predictions}


def with_types_of_gold(
    values: Any, classes: tuple[Any, ...] | None, name: str
) -> tuple[Any, list[Decision]]:
    """Return predicted classes in their one spelling, with the types of the gold classes.

    Numbers other than the classes are probabilities or scores, and stay as they are.
    """
    array = np.asarray(values)
    if classes is None or array.ndim != 1:
        return values, []
    if array.dtype.kind in "iufb":
        spelled = {str(_plain(value)) for value in np.unique(array).tolist()}
        if not spelled <= {str(label) for label in classes if isinstance(label, str)}:
            return values, []

    column = read_classes(array.tolist(), known=classes)
    rows = [row for row, label in enumerate(column.values) if label is not None]
    typed, changed = with_types_of(classes, [column.values[row] for row in rows])
    labels = np.full(len(array), None, dtype=object)
    labels[rows] = typed

    decisions = list(column.notes("inference", name))
    if changed:
        message = f"Predictions by {name} have the type of the gold classes: {changed[0]}."
        decisions.append(Decision("inference", "types_of_predictions", changed, message))
    return labels, decisions


def is_missing(values: npt.NDArray[Any]) -> BoolArray:
    """Return whether the prediction of each row is missing, (n_rows,)."""
    return np.asarray(pd.isna(values).reshape(len(values), -1).any(axis=1))


def read_prediction(
    values: Any, classes: tuple[Any, ...] | None, n: int, name: str
) -> npt.NDArray[np.float64]:
    """Return one prediction as columns of classes, or as one column of numbers."""
    array = np.asarray(values)
    missing = is_missing(array)
    if missing.any():
        if classes is None or np.issubdtype(array.dtype, np.number) or missing.all():
            row = int(missing.argmax())
            raise InputError("predictions", "present in every row", None, row=row)
        present = read_prediction(array[~missing], classes, n - int(missing.sum()), name)
        filled = np.tile(present.mean(axis=0), (n, 1))
        filled[~missing] = present
        return filled
    if array.ndim == 2:
        if classes is None or array.shape[1] != len(classes):
            expected = "classes, numbers, or one column of probabilities for each class"
            raise InputError("predictions", expected, found=f"{array.shape[1]} columns in {name!r}")
        return array.astype(np.float64)
    is_number = np.issubdtype(array.dtype, np.number)
    if classes is None:
        return array.astype(np.float64)[:, None]
    if is_number and not {_plain(value) for value in np.unique(array).tolist()} <= set(classes):
        numbers = array.astype(np.float64)
        if len(classes) == 2 and numbers.min() >= 0 and numbers.max() <= 1:
            return np.column_stack([1 - numbers, numbers])
        return numbers[:, None]  # a score, which is calibrated with the gold values
    return np.asarray(columns_of(array.tolist(), classes, np.ones(n, dtype=np.bool_)))


def combine_predictions(
    features: Float64Array, truth: Float64Array, sample: Sample, seed: int
) -> Float64Array:
    """Regress the gold values on all predictions, without the fold of the row's unit."""
    n_units = int(sample.unit.max()) + 1
    folds = (np.random.default_rng(seed).permutation(n_units) % N_FOLDS)[sample.unit]
    middle, spread = features.mean(axis=0), features.std(axis=0)
    scaled = (features - middle) / np.where(spread > 0, spread, 1.0)
    proxy = np.zeros_like(truth)
    for fold in range(N_FOLDS):
        rows = np.flatnonzero(sample.is_gold & (folds != fold))
        if not len(rows):
            continue
        share = sample.weight[rows] / sample.weight[rows].sum()
        mean_y, mean_x = share @ truth[rows], share @ scaled[rows]
        x, y = scaled[rows] - mean_x, truth[rows] - mean_y
        square = (x * share[:, None]).T @ x + RIDGE / len(rows) * np.eye(x.shape[1])
        slope = np.linalg.solve(square, (x * share[:, None]).T @ y)
        inside = folds == fold
        proxy[inside] = mean_y + (scaled[inside] - mean_x) @ slope
    return proxy
