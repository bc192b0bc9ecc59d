"""A variable that people measured for some rows and machines predicted for all."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.checks import checked_choice, is_number, resolve_seed
from embedtopics._utils.display import spell_count
from embedtopics.corpus._alignment import VALUE_OF_ROW, align_values, as_series
from embedtopics.corpus._classes import read_classes, with_types_of
from embedtopics.errors import InputError
from embedtopics.inference._sample import Sample, balance_notes
from embedtopics.inference.results import PredictedLabel
from embedtopics.protocols import BoolArray, Float64Array, Int64Array, RandomState
from embedtopics.results import Decision

if TYPE_CHECKING:
    from embedtopics.topics.results import TopicResult

N_FOLDS = 5
MOST_CLASSES = 10
"""Largest number of distinct whole numbers that are classes."""

RIDGE = 1.0
"""Penalty of the proxy's regression on standardized predictions, in rows."""

FEW_GOLD = 30

_ASK = (
    'say sampling="random" if the gold rows were drawn at random, pass probability= or strata= if '
    "some were likelier than others; rows that were picked otherwise allow no correction"
)


@dataclass(frozen=True, eq=False, init=False)
class Measurement:
    """A variable with gold values of some rows and predictions of all rows.

    The gold values are those of people, for rows drawn with known probabilities. The predictions
    can come from any classifier, dictionary or language model, or be the membership in a topic.
    They may err; what is estimated from a measurement holds all the same, and the better the
    predictions, the narrower its intervals.

    Parameters
    ----------
    gold : array_like of shape (n_rows,)
        Classes, or numbers; None or NaN for rows without a gold value.
    predictions : array_like, DataFrame, or mapping of str to array_like
        One prediction of every row, or several by name, so that nobody has to choose one. Each is
        of shape (n_rows,): classes, numbers, or with two classes the probability of the larger one;
        or of shape (n_rows, n_classes): probabilities, with the classes in ascending order. A
        DataFrame with one column a class holds probabilities; other DataFrames hold one prediction
        a column. Predictions must not come from a model that was trained on the gold rows. A row
        whose class in words is missing counts as the mean of the other rows' predictions.
    sampling : {"random"}, optional
        Says that the gold rows were drawn at random, all with the same probability.
    probability : array_like of shape (n_rows,), optional
        Probability of each row to be drawn for gold, if they differ.
    strata : array_like of shape (n_rows,), optional
        Stratum of each row; the gold rows were drawn at random within strata.
    units : array_like of shape (n_rows,), optional
        Independent unit of each row, such as its author; by default each row.
    data : DataFrame, optional
        Other columns of the rows: groups, dates and covariates.
    kind : {"auto", "class", "number"}
        What is measured. "auto" takes fractions, and more than ten whole numbers, as numbers.
    name : str
        Name of the variable in tables and formulas.
    random_state : int, numpy.random.Generator or None
        Seed of the folds of units in which several predictions are combined.

    Attributes
    ----------
    classes : tuple or None
        None for numbers.
    decisions : tuple of Decision
    draws : float64 ndarray of shape (n_rows, n_draws) or None
        Values that the gold numbers could have had, whose spread adds to the errors of `regress`.

    Raises
    ------
    InputError
        If it is not said how the gold rows were drawn, a probability is 0, a predicted class has no
        gold row, or lengths differ.

    Notes
    -----
    Several predictions are combined by ridge regression of the gold values, cross-fitted over
    units (Egami, Hinck, Stewart and Wei 2023, "Using imperfect surrogates for downstream
    inference").
    """

    name: str
    classes: tuple[Any, ...] | None
    truth: Float64Array
    proxy: Float64Array
    naive: Float64Array
    sample: Sample
    data: pd.DataFrame
    decisions: tuple[Decision, ...]
    draws: Float64Array | None = None

    def __init__(
        self,
        gold: Any,
        predictions: Any,
        *,
        sampling: str | None = None,
        probability: Any = None,
        strata: Any = None,
        units: Any = None,
        data: pd.DataFrame | None = None,
        kind: str = "auto",
        name: str = "measured",
        random_state: RandomState = 0,
    ) -> None:
        values = list(gold)
        n = len(values)

        # All have the order of the gold values, whose rows are named by their index, or by data.
        rows: Any = gold if isinstance(gold, pd.Series) else values
        if data is not None:
            data = align_values(data, rows, "data", "a row for each gold value")
            rows = data

        for row, value in enumerate(values):
            if isinstance(value, PredictedLabel):
                remedy = "pass the labels of a language model as predictions"
                raise InputError("gold", "given by people", value, remedy, row=row)

        column = read_classes(values)
        values = column.values
        decisions = list(column.notes("inference", "gold"))
        is_gold = np.array([value is not None for value in values], dtype=np.bool_)
        _refuse_infinite(values, "gold")
        if is_gold.sum() < 2:
            raise InputError("gold", "given for at least two rows", found=f"{is_gold.sum()}")
        classes = _classes(values, is_gold, checked_choice(kind, "kind", _KINDS))

        unit = np.arange(n) if units is None else _codes(units, rows, "units")
        stratum = None if strata is None else _codes(strata, rows, "strata")
        if probability is not None:
            probability = align_values(probability, rows, "probability", VALUE_OF_ROW)
        chance = _chances(is_gold, sampling, probability, stratum)
        weight = np.where(is_gold, 1 / chance, 0.0)
        sample = Sample.of(weight, np.zeros(n) if stratum is None else stratum, unit)
        truth = _columns(values, classes, is_gold)

        expected = f"{n:,} rows, one for each gold value"
        by_name: dict[str, Any] = {}
        for key, given in _by_name(predictions, rows, classes).items():
            aligned = align_values(given, rows, "predictions", expected)
            by_name[key], notes = _with_types_of_gold(aligned, classes, key)
            decisions += notes
        columns = [_prediction(given, classes, n, key) for key, given in by_name.items()]
        _refuse_infinite(np.hstack(columns).sum(axis=1).tolist(), "predictions")
        is_absent = {key: _is_absent(np.asarray(given)) for key, given in by_name.items()}
        for key, absent in is_absent.items():
            if n_absent := int(absent.sum()):
                message = spell_count(n_absent, "row has", "rows have")
                message += f" no prediction by {key}; the mean of its other predictions is used."
                decisions.append(Decision("inference", "no_prediction", n_absent, message))

        proxy = columns[0]
        if len(columns) > 1 or proxy.shape[1] != truth.shape[1]:
            proxy = _combined(np.hstack(columns), truth, sample, resolve_seed(random_state))
            message = (
                f"{len(columns)} predictions are combined by a regression on the gold values, "
                "which is fitted without the unit of the row."
            )
            decisions.append(Decision("inference", "predictions_combined", len(columns), message))

        # Scores have no classes of their own; those of the combined regression stand for them.
        naive = columns[0] if columns[0].shape[1] == truth.shape[1] else proxy
        if classes is not None:
            absent = next(iter(is_absent.values()))[:, None]
            naive = np.where(absent, naive, np.eye(len(classes))[naive.argmax(axis=1)])

        if is_gold.sum() < FEW_GOLD:
            n_gold = int(is_gold.sum())
            few = f"Intervals from fewer than {FEW_GOLD} gold rows"
            message = f"{few} are too narrow at times; there are {n_gold}."
            decisions.append(Decision("inference", "few_gold", n_gold, message))
        decisions += balance_notes(naive, classes, sample, chance, next(iter(by_name)))

        frame = pd.DataFrame(index=range(n)) if data is None else data.reset_index(drop=True)
        self._set(
            name=name,
            classes=classes,
            truth=truth,
            proxy=proxy,
            naive=naive,
            sample=sample,
            data=frame,
            decisions=tuple(decisions),
        )

    def _set(self, **fields: Any) -> None:
        """Set fields, which are frozen for callers."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_columns(
        cls,
        *,
        name: str,
        classes: tuple[Any, ...] | None,
        truth: Float64Array,
        proxy: Float64Array,
        naive: Float64Array,
        sample: Sample,
        data: pd.DataFrame,
        decisions: tuple[Decision, ...] = (),
    ) -> Measurement:
        """Make a measurement of its fields, which are not checked."""
        measurement = cls.__new__(cls)
        measurement._set(
            name=name,
            classes=classes,
            truth=truth,
            proxy=proxy,
            naive=naive,
            sample=sample,
            data=data,
            decisions=decisions,
        )
        return measurement

    def with_draws(self, draws: Float64Array) -> Measurement:
        """Return the measurement with values that its gold numbers could have had.

        Parameters
        ----------
        draws : float64 ndarray of shape (n_rows, n_draws)
        """
        measurement = copy.copy(self)
        measurement._set(draws=draws)
        return measurement

    def at_draw(self, draw: int) -> Measurement:
        """Return the measurement with the values of a draw; itself if it has none."""
        if self.draws is None:
            return self
        values = self.draws[:, [draw % self.draws.shape[1]]]
        return Measurement.of_columns(
            name=self.name,
            classes=None,
            truth=values,
            proxy=values,
            naive=values,
            sample=self.sample,
            data=self.data,
        )

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        gold: str,
        predictions: str | Sequence[str],
        *,
        units: str | None = None,
        strata: str | None = None,
        probability: str | None = None,
        **options: Any,
    ) -> Measurement:
        """Make a measurement of columns of a table.

        Parameters
        ----------
        frame : DataFrame
        gold, predictions, units, strata, probability : str
            Columns, of `predictions` one or several; see the class.
        **options
            `sampling`, `kind`, `name` (by default that of the column `gold`), `random_state`.
        """
        names = [predictions] if isinstance(predictions, str) else list(predictions)
        asked = [gold, *names, *(one for one in (units, strata, probability) if one is not None)]
        if missing := [one for one in asked if one not in frame]:
            raise InputError("frame", f"a table with the column {missing[0]!r}", list(frame))
        picked = {"units": units, "strata": strata, "probability": probability}
        options |= {key: frame[one] for key, one in picked.items() if one is not None}
        of_rows = {one: frame[one] for one in names}
        return cls(frame[gold], of_rows, data=frame, **{"name": gold} | options)

    @classmethod
    def from_topics(
        cls, result: TopicResult, topics: int | Sequence[int], gold: Any, **options: Any
    ) -> Measurement:
        """Take the membership in topics, which split and merge concepts, as prediction of one.

        Parameters
        ----------
        result : TopicResult
        topics : int or sequence of int
            Ids of the topics that belong to the concept.
        gold : sequence of bool or None
            Whether each row of the corpus is about the concept, None for rows that nobody read.
        **options
            `sampling`, `probability` or `strata`, which say how the rows that people read were
            drawn; `units` (by default equal texts are one unit), `name`.
        """
        ids = [topics] if isinstance(topics, int | np.integer) else list(topics)
        if not ids or not all(topic in range(result.n_topics) for topic in ids):
            raise InputError("topics", f"ids of topics, 0 to {result.n_topics - 1}", topics)

        rows = np.flatnonzero(result.documents.of_row >= 0)
        document = result.documents.of_row[rows]
        values = list(
            align_values(gold, result.corpus, "gold", "one value for each row of the corpus")
        )

        predictions = {
            "topic": np.isin(result.clustering.labels, ids)[document].astype(np.float64),
            "share": np.asarray(result.memberships[:, ids].sum(axis=1)).ravel()[document],
        }

        for key in ("probability", "strata", "units"):
            if options.get(key) is not None:
                options[key] = as_series(options[key], result.corpus, key).to_numpy()[rows]

        options.setdefault("units", document)
        options["data"] = result.corpus.metadata.iloc[rows]
        return cls([values[row] for row in rows.tolist()], predictions, **options)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.truth)

    def __repr__(self) -> str:
        """Return the name, the classes and the numbers of rows."""
        of = "a number" if self.classes is None else ", ".join(map(str, self.classes))
        n_gold = self.sample.is_gold.sum()
        return f"Measurement({self.name!r}: {of}; {n_gold:,} of {len(self):,} gold)"


_KINDS = ("auto", "class", "number")


def _refuse_infinite(values: list[Any], parameter: str) -> None:
    for row, value in enumerate(values):
        if isinstance(value, float | np.floating) and np.isinf(value):
            raise InputError(parameter, "finite", float(value), row=row)


def _classes(values: list[Any], is_gold: BoolArray, kind: str) -> tuple[Any, ...] | None:
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


def _codes(values: Any, rows: Any, parameter: str) -> Int64Array:
    """Return codes of units or strata; a missing one is refused with its row."""
    cells = read_classes(align_values(values, rows, parameter)).values
    codes = np.asarray(pd.factorize(pd.Series(cells, dtype=object))[0], dtype=np.int64)
    if (codes < 0).any():
        raise InputError(parameter, "present in every row", None, row=int((codes < 0).argmax()))
    return codes


def _chances(
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


def _columns(values: Sequence[Any], classes: tuple[Any, ...] | None, used: BoolArray) -> Any:
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


def _by_name(predictions: Any, rows: Any, classes: tuple[Any, ...] | None) -> dict[str, Any]:
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


def _with_types_of_gold(
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


def _is_absent(values: npt.NDArray[Any]) -> BoolArray:
    """Return whether the prediction of each row is missing, (n_rows,)."""
    return np.asarray(pd.isna(values).reshape(len(values), -1).any(axis=1))


def _prediction(
    values: Any, classes: tuple[Any, ...] | None, n: int, name: str
) -> npt.NDArray[np.float64]:
    """Return one prediction as columns of classes, or as one column of numbers."""
    array = np.asarray(values)
    missing = _is_absent(array)
    if missing.any():
        if classes is None or np.issubdtype(array.dtype, np.number) or missing.all():
            row = int(missing.argmax())
            raise InputError("predictions", "present in every row", None, row=row)
        present = _prediction(array[~missing], classes, n - int(missing.sum()), name)
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
    return np.asarray(_columns(array.tolist(), classes, np.ones(n, dtype=np.bool_)))


def _combined(
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
