"""Convert labels to class codes and reject labels that cannot be learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_choice, is_number
from embedtopics._utils.display import spell_count
from embedtopics.corpus._alignment import align_values, as_series
from embedtopics.corpus._classes import read_class, read_classes, with_types_of
from embedtopics.corpus._texts import normalize_text
from embedtopics.encoders._base import check_texts
from embedtopics.errors import InputError, name_rows
from embedtopics.protocols import BoolArray, Float64Array, Int64Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd

HEADS = ("softmax", "ordinal", "multilabel")
MISSING = -1
"""Code of a text without a label."""

MAX_CLASSES = 500
"""More classes almost always mean a column of ids, numbers or texts."""

MIN_TEXTS = 2
"""Texts of each class: one to learn from and one to test on."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Labels as class codes, `MISSING` for no label; 0 and 1 for multilabel."""

    codes: Int64Array  # (n,) or (n, n_classes)
    has_label: BoolArray  # (n,)
    classes: npt.NDArray[Any]
    notes: tuple[Decision, ...] = ()


class LabelledTexts(NamedTuple):
    """The texts that have a label, and their class codes."""

    texts: list[str]
    codes: Int64Array  # (n_texts,) or (n_texts, n_classes)
    classes: npt.NDArray[Any]
    rows: Int64Array  # (n_texts,), of the caller's texts
    notes: tuple[Decision, ...] = ()

    def take(self, places: Int64Array) -> LabelledTexts:
        """Return some of the texts."""
        texts = [self.texts[place] for place in places.tolist()]
        return self._replace(texts=texts, codes=self.codes[places], rows=self.rows[places])


def labelled_texts(
    X: Any, y: Any, head: str, classes: Any = None, *, learned: bool = False
) -> LabelledTexts:
    """Return the texts that have a label, without texts of contradicting ones; refuse empty texts.

    Rows with equal texts and different labels are left out, all of them: nothing says which label
    is right. A note names them.
    """
    targets = read_targets(aligned_labels(X, y), head, classes, learned=learned)
    texts = check_lengths(check_texts(X), targets.codes)
    rows = np.flatnonzero(targets.has_label)

    rows_of_text: dict[str, list[int]] = {}
    for row in rows.tolist():
        text = normalize_text(texts[row])
        if not text:
            remedy = "leave rows without text out"
            raise InputError("texts", "not empty if they have a label", "", remedy, row=row)
        rows_of_text.setdefault(text, []).append(row)

    codes = targets.codes
    conflicts = [same for same in rows_of_text.values() if (codes[same] != codes[same[0]]).any()]
    left_out = sorted(chain.from_iterable(conflicts))
    notes = targets.notes
    if conflicts:
        notes = (*notes, _conflict_note(left_out, len(conflicts), head))
        rows = np.setdiff1d(rows, left_out)
    has_labels = [texts[row] for row in rows.tolist()]
    return LabelledTexts(has_labels, codes[rows], targets.classes, rows, notes)


def _conflict_note(rows: list[int], n_texts: int, head: str) -> Decision:
    """Return the note on rows that were left out, because equal texts have different labels."""
    message = (
        f"{spell_count(n_texts, 'text has', 'texts have')} different labels in different rows; "
        f"these {len(rows):,} rows were left out: {name_rows(rows)}."
    )
    if head != "multilabel":
        message += " label_conflicts(texts, y) lists them."
    return Decision("classification", "label_conflicts", rows, message)


def read_targets(y: Any, head: str, classes: Any = None, *, learned: bool = False) -> Targets:
    """Read the labels of each row; `classes` gives their order, `learned` those of a fit.

    Whether "101" is a text or a number may differ between files. If the classes are known, labels
    of the other type are those with the same spelling.
    """
    order = None if classes is None else [_python_value(one) for one in classes]
    if head == "multilabel":
        return _multilabel_targets(y, order, learned)

    column = read_classes(_as_list(y), known=order or ())
    notes = column.notes("classification", "y")
    has_label = np.array([label is not None for label in column.values], dtype=np.bool_)
    rows = np.flatnonzero(has_label).tolist()
    labels = [_python_label(column.values[row], row) for row in rows]
    if order is None:
        order = sorted(_distinct_of_one_type(labels, rows))
    else:
        labels, of_other_type = _with_known_types(labels, order)
        notes += of_other_type

    codes = np.full(len(column.values), MISSING, dtype=np.int64)
    codes[has_label] = _class_codes(labels, order, rows, learned)
    return Targets(codes, has_label, _class_array(order), notes)


def require_learnable(labelled: LabelledTexts) -> None:
    """Refuse labels with too many classes, one class, or classes of too few texts."""
    classes, codes = labelled.classes, labelled.codes
    if len(classes) > MAX_CLASSES:
        remedy = "name the column of labels, not one of ids or texts"
        number = f"{len(classes):,} different labels, such as {classes[0].item()!r}"
        expected = f"labels of at most {MAX_CLASSES} classes"
        raise InputError("y", expected, remedy=remedy, found=number)
    if len(classes) < 2 and codes.ndim == 1:
        number = f"one class: {classes.tolist()}" if len(classes) else "no label at all"
        raise InputError("y", "labels of at least 2 classes", found=number)
    counts = class_counts(labelled)
    rare = np.flatnonzero(counts < MIN_TEXTS)
    if len(rare):
        name, n = classes[rare[0]].item(), int(counts[rare[0]])
        members = labelled.rows[codes == rare[0] if codes.ndim == 1 else codes[:, rare[0]] == 1]
        raise InputError(
            "y",
            f"at least {MIN_TEXTS} texts of every class",
            found=f"{n} of the class {name!r}",
            remedy="label more texts of it, or leave it out",
            row=int(members[0]) if n else None,
        )


def without_rare_labels(
    labels: Sequence[Sequence[str]], names: Sequence[str], is_multilabel: bool
) -> tuple[list[Any], tuple[str, ...], tuple[Decision, ...]]:
    """Return targets, names and decisions without the labels of too few texts.

    A text whose only label is rare gets None, which a fit leaves out.
    """
    counts = Counter(name for one in labels for name in one)
    common = tuple(name for name in names if counts[name] >= MIN_TEXTS)
    remaining = [[name for name in one if name in common] for one in labels]
    targets = remaining if is_multilabel else [one[0] if one else None for one in remaining]
    rare = [name for name in names if name not in common]
    message = f"Labels of fewer than {MIN_TEXTS} texts were left out: {', '.join(rare)}."
    decisions = (Decision("classification", "rare_labels", rare, message),) if rare else ()
    return targets, common, decisions


def class_counts(
    labelled: LabelledTexts, text_weights: Float64Array | None = None
) -> npt.NDArray[Any]:
    """Return the number, or the sum of the weights, of the texts of each class, (n_classes,)."""
    codes = labelled.codes
    if codes.ndim == 2:
        return np.asarray(codes.sum(axis=0) if text_weights is None else text_weights @ codes)
    return np.bincount(codes, text_weights, minlength=len(labelled.classes))


def read_class_weights(
    labelled: LabelledTexts, class_weight: Any, text_weights: Float64Array | None = None
) -> Float64Array | None:
    """Return the weight of each class, (n_classes,), or None for equal weights."""
    if class_weight is None:
        return None
    if isinstance(class_weight, Mapping):
        return _mapped_weights(class_weight, labelled.classes)
    checked_choice(class_weight, "class_weight", (None, "balanced"))
    counts = class_counts(labelled, text_weights).astype(np.float64)
    return np.asarray(counts.sum() / (len(counts) * np.where(counts > 0, counts, 1.0)))


def _mapped_weights(class_weight: Mapping[Any, Any], classes: npt.NDArray[Any]) -> Float64Array:
    """Return the weights of a mapping; classes that it leaves out weigh 1."""
    names = classes.tolist()
    weights = np.ones(len(names))
    for name, weight in class_weight.items():
        name = _python_value(name)
        if name not in names:
            raise InputError("class_weight", f"of the classes {', '.join(map(repr, names))}", name)
        if not is_number(weight) or not 0 < weight < np.inf:
            raise InputError("class_weight", "of positive numbers", weight)
        weights[names.index(name)] = weight
    return weights


def read_text_weights(sample_weight: Any, X: Any, rows: Int64Array) -> Float64Array:
    """Return the weights of some rows, (n_rows,)."""
    expected = "one weight for each text, from 0 up"
    values = as_series(sample_weight, X, "sample_weight", expected).to_numpy(
        dtype=np.float64, na_value=np.nan
    )
    wrong = ~((values >= 0) & (values < np.inf))
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError("sample_weight", expected, float(values[row]), row=row)
    return np.asarray(values[rows])


def label_conflicts(texts: Sequence[str], y: Any) -> pd.DataFrame:
    """Return the texts that occur with different labels, one row for each text and label.

    Parameters
    ----------
    texts : sequence of str
    y : sequence
        One label for each text; None or NaN for none.

    Returns
    -------
    DataFrame
        Columns text, label, n_rows and rows (positions, from 0). Texts are compared after Unicode
        normalization, with repeated spaces removed.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["ripe plums", "late trains", "ripe plums"]
    >>> et.classification.label_conflicts(texts, ["fruit", "rail", "rail"])
             text  label  n_rows rows
    0  ripe plums  fruit       1  [0]
    1  ripe plums   rail       1  [2]
    """
    import pandas as pd

    targets = read_targets(aligned_labels(texts, y), "softmax")
    read = check_lengths(check_texts(texts), targets.codes)
    names = {"text": list(map(normalize_text, read)), "code": targets.codes}
    table = pd.DataFrame(names).assign(row=range(len(read)))[targets.has_label]
    table = table[table.groupby("text")["code"].transform("nunique") > 1]
    first = table.groupby("text")["row"].transform("min")
    groups: Any = table.assign(first=first).groupby(["first", "code", "text"])["row"].agg(list)
    conflicts = [
        (text, targets.classes[code].item(), len(rows), rows)
        for (_, code, text), rows in groups.items()
    ]
    return pd.DataFrame(conflicts, columns=["text", "label", "n_rows", "rows"])


def aligned_labels(X: Any, y: Any) -> Any:
    """Return labels in the order of the texts: a Series by its index, if the texts have one."""
    is_indexed = hasattr(y, "iloc") and hasattr(X, "__len__")
    if not is_indexed:
        return y
    return align_values(y, X, "y", "one label for each text").reset_index(drop=True)


def check_lengths(texts: list[str], codes: npt.NDArray[Any]) -> list[str]:
    """Return the texts, or refuse them if there is not one label for each."""
    if len(texts) != len(codes):
        lengths = f"{len(codes):,} labels and {len(texts):,} texts"
        raise InputError("y", "one label for each text", found=lengths)
    return texts


def _as_list(y: Any, expected: str = "a sequence of labels") -> list[Any]:
    if isinstance(y, (str, Mapping)) or getattr(y, "ndim", 1) != 1:
        raise InputError("y", expected, y)
    return list(y)


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return value is None or (np.ndim(value) == 0 and bool(pd.isna(value)))


def _python_value(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _with_known_types(
    labels: Sequence[Any], order: Sequence[Any]
) -> tuple[list[Any], tuple[Decision, ...]]:
    """Return labels with the type of the classes of the same spelling, and report changes."""
    typed, changed = with_types_of(order, labels)
    if not changed:
        return typed, ()
    message = f"Labels have the type of the classes: {', '.join(changed[:3])}."
    return typed, (Decision("classification", "types_of_labels", changed, message),)


def _python_label(value: Any, row: int) -> Any:
    """Return a label as a Python string, integer or bool."""
    value = _python_value(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)  # integers in a column with missing values
    if isinstance(value, (str, int)):
        return value
    remedy = "bin numbers into classes first" if isinstance(value, float) else ""
    if isinstance(value, (list, tuple, Set, np.ndarray)):
        remedy = 'use head="multilabel" for several labels per text'
    raise InputError("y", "strings or integers", value, remedy, row=row)


def _distinct_of_one_type(labels: Sequence[Any], rows: Sequence[int]) -> set[Any]:
    """Return the distinct labels; refuse strings beside integers."""
    for row, label in zip(rows, labels, strict=True):
        if isinstance(label, str) != isinstance(labels[0], str):
            raise InputError("y", "all strings or all integers", label, row=row)
    return set(labels)


def _class_codes(
    labels: Sequence[Any], order: list[Any], rows: Sequence[int], learned: bool
) -> list[int]:
    code_of = {label: code for code, label in enumerate(order)}
    for row, label in zip(rows, labels, strict=True):
        if label not in code_of:
            remedy = "no training text has it" if learned else "name all of them in classes="
            raise InputError("y", f"one of the classes {order}", label, remedy, row=row)
    return [code_of[label] for label in labels]


def _class_array(labels: list[Any]) -> npt.NDArray[Any]:
    classes = np.array(labels)
    if classes.ndim != 1 or len(set(labels)) != len(labels) or classes.dtype.kind not in "Uibf":
        raise InputError("classes", "different strings or integers", labels)
    return classes


def _multilabel_targets(y: Any, order: list[Any] | None, learned: bool) -> Targets:
    """Read a table of 0 and 1, one column per class, or a list of labels for each text."""
    if getattr(y, "ndim", 1) == 2:
        values = np.asarray(y, dtype=np.float64)
        has_label = np.asarray(~np.isnan(values).any(axis=1))
        wrong = np.flatnonzero(has_label & ~np.isin(values, (0, 1)).all(axis=1))
        if len(wrong):
            raise InputError("y", "0 or 1 for each class", values[wrong[0]], row=int(wrong[0]))

        classes = list(getattr(y, "columns", order or range(values.shape[1])))
        if (order is not None and classes != order) or len(classes) != values.shape[1]:
            raise InputError("y", f"columns of the classes {order}", found=f"{classes}")
        codes = np.where(has_label[:, None], np.nan_to_num(values), 0).astype(np.int64)
        return Targets(codes, has_label, _class_array(classes))

    label_sets: list[set[Any] | None] = []
    for row, value in enumerate(_as_list(y, "a list of labels for each text")):
        is_list = isinstance(value, (list, tuple, Set))
        if not is_list and not _is_missing(value):
            raise InputError("y", "a list of labels, empty for none", value, row=row)
        labels = {_listed_label(label, row) for label in value} if is_list else None
        label_sets.append(labels)

    has_label = np.array([labels is not None for labels in label_sets], dtype=np.bool_)
    rows = [row for row, labels in enumerate(label_sets) for _ in labels or ()]
    every = [label for labels in label_sets for label in sorted(labels or (), key=str)]

    notes: tuple[Decision, ...] = ()
    if order is None:
        order = sorted(_distinct_of_one_type(every, rows))
    else:
        every, notes = _with_known_types(every, order)

    codes = np.zeros((len(label_sets), len(order)), dtype=np.int64)
    codes[rows, _class_codes(every, order, rows, learned)] = 1
    return Targets(codes, has_label, _class_array(order), notes)


def _listed_label(value: Any, row: int) -> Any:
    """Return one of several labels of a text in its one spelling."""
    label = _python_label(value, row)
    spelled = read_class(label)
    return label if spelled is None else spelled
