"""From labels as people have them to numbers of classes, and what cannot be learned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_choice
from embedtopics.corpus._texts import normalize_text
from embedtopics.encoders._base import check_texts
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Float64Array, Int64Array

if TYPE_CHECKING:
    import pandas as pd

HEADS = ("softmax", "ordinal", "multilabel")
MISSING = -1
"""Code of a text without label."""

MOST_CLASSES = 500
"""More are almost surely a column of names, numbers or texts, and no label."""

FEWEST_TEXTS = 2
"""Texts of a class: one to learn from and one to see whether it was learned."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Labels as numbers: `MISSING` where there is none; 0 and 1 for several labels a text."""

    codes: Int64Array  # (n,) or (n, n_classes)
    known: BoolArray  # (n,), which texts have labels
    classes: npt.NDArray[Any]


def read_targets(y: Any, head: str, classes: Any = None, *, learned: bool = False) -> Targets:
    """Read labels, one a row; `classes` in their order, or as they were `learned`."""
    order = None if classes is None else list(classes)
    if head == "multilabel":
        return _several(y, order, learned)
    values = _listed(y)
    known = np.array([not _is_missing(value) for value in values], dtype=np.bool_)
    plain = [_plain(value, row) if known[row] else None for row, value in enumerate(values)]
    found = sorted(_of_one_type(plain))
    codes = np.full(len(values), MISSING, dtype=np.int64)
    rows = np.flatnonzero(known).tolist()
    codes[known] = _numbered([plain[row] for row in rows], order or found, rows, learned)
    return Targets(codes, known, _array(order or found))


def require_learnable(targets: Targets) -> None:
    """Refuse labels that nothing can be learned from."""
    n_classes = len(targets.classes)
    if n_classes > MOST_CLASSES:
        remedy = "name the column of labels, not one of ids or texts"
        found = f"{n_classes:,} different labels, such as {targets.classes[0]!r}"
        raise InputError("y", f"labels of at most {MOST_CLASSES} classes", remedy=remedy,
                         found=found)  # fmt: skip
    if n_classes < 2 and targets.codes.ndim == 1:
        found = f"one class: {targets.classes.tolist()}" if n_classes else "no label at all"
        raise InputError("y", "labels of at least 2 classes", found=found)
    counts = class_counts(targets)
    few = np.flatnonzero(counts < FEWEST_TEXTS)
    if len(few):
        name, n = targets.classes[few[0]].item(), int(counts[few[0]])
        codes = targets.codes
        rows = np.flatnonzero(codes == few[0] if codes.ndim == 1 else codes[:, few[0]] == 1)
        raise InputError(
            "y", f"at least {FEWEST_TEXTS} texts of every class", row=int(rows[0]) if n else None,
            found=f"{n} of the class {name!r}", remedy="label more texts of it, or leave it out",
        )  # fmt: skip


def class_counts(targets: Targets) -> Int64Array:
    """Return the texts of each class, (n_classes,)."""
    if targets.codes.ndim == 2:
        return np.asarray(targets.codes[targets.known].sum(axis=0))
    return np.bincount(targets.codes[targets.known], minlength=len(targets.classes))


def balanced_weights(targets: Targets, class_weight: str | None) -> Float64Array | None:
    """Return the weight of each class, (n_classes,), or None where all are the same."""
    if checked_choice(class_weight, "class_weight", (None, "balanced")) is None:
        return None
    counts = class_counts(targets).astype(np.float64)
    return np.asarray(counts.sum() / (len(counts) * np.maximum(counts, 1)))


def label_conflicts(texts: Sequence[str], y: Any) -> pd.DataFrame:
    """Return the texts that occur with different labels, a row for each text and label.

    Parameters
    ----------
    texts : sequence of str
    y : sequence
        A label for each; None or NaN where there is none.

    Returns
    -------
    DataFrame
        Columns text, label, n_rows and rows (positions, from 0). Texts are equal when they are so
        after Unicode normalization and without repeated spaces.
    """
    import pandas as pd

    codes = read_targets(y, "softmax")
    groups: dict[str, dict[int, list[int]]] = {}
    for row, text in enumerate(one_length(check_texts(texts), codes.codes)):
        if codes.known[row]:
            labels = groups.setdefault(normalize_text(text), {})
            labels.setdefault(int(codes.codes[row]), []).append(row)
    found = [
        (text, codes.classes[code].item(), len(rows), rows)
        for text, labels in groups.items()
        if len(labels) > 1
        for code, rows in sorted(labels.items())
    ]
    return pd.DataFrame(found, columns=["text", "label", "n_rows", "rows"])


def check_rows(texts: Sequence[str], targets: Targets) -> list[str]:
    """Return the texts, or refuse those that are empty or have labels that contradict."""
    read = one_length(check_texts(texts), targets.codes)
    labels: dict[str, tuple[int, bytes]] = {}
    for row in np.flatnonzero(targets.known).tolist():
        text = normalize_text(read[row])
        if not text:
            remedy = "leave rows without text out"
            raise InputError("texts", "not empty where they have a label", "", remedy, row=row)
        first, label = labels.setdefault(text, (row, targets.codes[row].tobytes()))
        if label != targets.codes[row].tobytes():
            raise InputError(
                "y", "the same for equal texts", row=row,
                found=f"a text with other labels than in row {first}",
                remedy="label_conflicts(texts, y) lists them; decide, and keep one row of each",
            )  # fmt: skip
    return read


def one_length(texts: list[str], codes: npt.NDArray[Any]) -> list[str]:
    if len(texts) != len(codes):
        found = f"{len(codes):,} labels and {len(texts):,} texts"
        raise InputError("y", "one label for each text", found=found)
    return texts


def _listed(y: Any, wanted: str = "a sequence of labels") -> list[Any]:
    if y is None:
        raise InputError("y", "a label for each text, None where there is none", None)
    if isinstance(y, (str, bytes, Mapping)) or not hasattr(y, "__len__"):
        raise InputError("y", wanted, found=type(y).__name__)
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        y = np.asarray(y).ravel()
    if getattr(y, "ndim", 1) != 1:
        remedy = 'give one column, or head="multilabel" for several labels a text'
        raise InputError("y", "one label a text", found=f"shape {y.shape}", remedy=remedy)
    return list(y)


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return value is None or (np.ndim(value) == 0 and bool(pd.isna(value)))


def _plain(value: Any, row: int) -> Any:
    """Return a label as a string, an integer or a bool of Python."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and value.is_integer():
        return int(value)  # integers in a column with missing values
    if isinstance(value, (str, int)):
        return value
    remedy = "put numbers into classes first" if isinstance(value, float) else ""
    if isinstance(value, (list, tuple, Set, np.ndarray)):
        remedy = 'take head="multilabel" for several labels a text'
    raise InputError("y", "strings or integers", value, remedy, row=row)


def _of_one_type(values: Sequence[Any]) -> set[Any]:
    found = [(row, value) for row, value in enumerate(values) if value is not None]
    for row, value in found:
        if isinstance(value, str) != isinstance(found[0][1], str):
            raise InputError("y", "all strings or all integers", value, row=row)
    return {value for _, value in found}


def _numbered(
    values: Sequence[Any], order: list[Any], rows: Sequence[int], learned: bool
) -> list[int]:
    place = {value: code for code, value in enumerate(order)}
    for row, value in zip(rows, values, strict=True):
        if value not in place:
            remedy = "it is in no training text" if learned else "name all of them in classes="
            raise InputError("y", f"one of the classes {order}", value, remedy, row=row)
    return [place[value] for value in values]


def _array(values: list[Any]) -> npt.NDArray[Any]:
    made = np.array(values)
    if made.ndim != 1 or len(set(values)) != len(values) or made.dtype.kind not in "Uibf":
        raise InputError("classes", "different strings or integers", values)
    return made


def _several(y: Any, order: list[Any] | None, learned: bool) -> Targets:
    """Read several labels a text: 0 and 1, a column a class, or a list of labels for each text."""
    if getattr(y, "ndim", 1) == 2:
        values = np.asarray(y, dtype=np.float64)
        known = np.asarray(~np.isnan(values).any(axis=1))
        wrong = np.flatnonzero(known & ~np.isin(values, (0, 1)).all(axis=1))
        if len(wrong):
            raise InputError("y", "0 or 1 for each class", values[wrong[0]], row=int(wrong[0]))
        classes = list(getattr(y, "columns", order or range(values.shape[1])))
        if (order is not None and classes != order) or len(classes) != values.shape[1]:
            raise InputError("y", f"columns of the classes {order}", found=f"{classes}")
        codes = np.where(known[:, None], np.nan_to_num(values), 0).astype(np.int64)
        return Targets(codes, known, _array(classes))
    sets: list[set[Any] | None] = []
    for row, value in enumerate(_listed(y, "a list of labels for each text")):
        several = isinstance(value, (list, tuple, Set))
        if not several and not _is_missing(value):
            raise InputError("y", "a list of labels, empty for none", value, row=row)
        sets.append({_plain(one, row) for one in value} if several else None)
    known = np.array([one is not None for one in sets], dtype=np.bool_)
    classes = order or sorted(_of_one_type([one for each in sets if each for one in each]))
    codes = np.zeros((len(sets), len(classes)), dtype=np.int64)
    for row, each in enumerate(sets):
        given = sorted(each or ())
        codes[row, _numbered(given, classes, [row] * len(given), learned)] = 1
    return Targets(codes, known, _array(classes))
