"""Read training and test examples from files, frames and lists."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.checks import is_number
from embedtopics.corpus._columns import find_column, first_named, list_names, read_id
from embedtopics.corpus._files import read_file
from embedtopics.corpus._readers import DocumentTable, as_table, is_frame
from embedtopics.corpus._texts import MISSING_MARKERS, TEXT, TextRows, read_texts
from embedtopics.errors import InputError, Remedy, name_rows
from embedtopics.results import Decision, counted
from embedtopics.training._examples import COLUMNS_OF_KIND, KINDS, Examples, names_of_columns

NLI_NAMES = ("entailment", "neutral", "contradiction")
"""The classes of inference, in the order in which they are numbered."""

_SPELLINGS = {
    "entailment": ("entailment", "entailed", "entails", "entail", "e"),
    "neutral": ("neutral", "n"),
    "contradiction": (
        "contradiction", "contradictory", "contradicted", "contradicts", "contradict", "c",
    ),
}  # fmt: skip
_CLASS_OF = {spelling: name for name, known in _SPELLINGS.items() for spelling in known}
_NO_GOLD = {"-", "-1"}  # how SNLI and its copies mark pairs on which the annotators disagreed
_MISSING, _DISAGREED = -1, -2  # in place of the number of a class
_MOST_LISTED = 12


def read_examples(
    source: Any,
    kind: str,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    label_order: Sequence[str] | None = None,
    scale: tuple[float, float] | None = None,
    drop_invalid: bool = False,
    encoding: str = "utf-8",
) -> Examples:
    """Read training or test examples.

    A row that cannot be used is named in the error. Rows that are left out are counted in the
    `decisions` of the examples.

    Parameters
    ----------
    source : path, frame, list or Examples
        A csv, tsv, jsonl, json or parquet file (each also .gz); a pandas or polars frame, an Arrow
        table, a `datasets.Dataset`, a dict of lists; a list of tuples (texts first, the label
        last) or of dicts; for "texts", a list of strings. Examples of the kind are returned as they
        are.
    kind : {"nli", "graded", "classed", "pairs", "triplets", "texts"}
        See `Examples`.
    columns : sequence of str, optional
        Columns of texts: premise and hypothesis; two texts; anchor and positive; anchor, positive
        and the negatives; text. By default columns of the usual names.
    label : str, optional
        Column of the labels of "nli" or "classed", or of the scores of "graded".
    label_order : sequence of str, optional
        Meaning of 0, 1 and 2 in "nli", such as ("entailment", "neutral", "contradiction").
        Required for numbers, because data sets number the classes differently; a
        `datasets.Dataset` that names its classes needs none.
    scale : (float, float), optional
        Lowest and highest possible score of "graded"; by default (0, 1).
    drop_invalid : bool
        Leave out rows with an empty or missing text, label or score; by default they are refused.
    encoding : str

    Returns
    -------
    read : Examples

    Raises
    ------
    InputError
        If a column is missing (the message lists those that exist), a text or label is missing or
        out of range, all examples have one label, or nothing is left.

    Examples
    --------
    >>> import embedtopics as et
    >>> rows = [("A dog runs.", "An animal moves.", "Entailment"),
    ...         ("A dog runs.", "The dog sleeps.", "contradiction")]
    >>> et.training.read_examples(rows, "nli").labels.tolist()
    [0, 2]
    """
    if isinstance(source, Examples):
        if source.kind != kind:
            raise InputError("examples", f"of kind {kind!r}", found=f"kind {source.kind!r}")
        if not len(source):
            raise InputError("examples", "one or more", found="none")
        return source
    if kind not in COLUMNS_OF_KIND or kind == "labelled":
        raise InputError("kind", f"one of {', '.join(KINDS[:-1])}", kind)
    table = _as_table(source, kind, encoding)
    if not len(table.frame):
        raise InputError("examples", "one or more", found=f"no rows in {table.source}")
    text_columns, label_column = _choose_columns(table, kind, columns, label)
    sides = {name: _read_side(table, name) for name in text_columns}
    if label_order is None and kind == "nli":
        # A datasets.Dataset names its numbers.
        features = getattr(source, "features", None)
        feature = features.get(label_column) if isinstance(features, Mapping) else None
        label_order = getattr(feature, "names", None)
    labels = _read_labels(table, kind, label_column, label_order, scale)
    rows, left_out = _usable_rows(table, sides, label_column, labels, drop_invalid)
    named = [*text_columns, *([] if label_column is None else [label_column])]
    message = f"Examples are read from the columns {', '.join(map(repr, named))}."
    decisions = [*table.notes, Decision("training", "columns", named, message)]
    values = None
    if labels is not None:
        values = labels.values[rows]
        if (values == values[0]).all():
            one = labels.names[int(values[0])] if labels.names else f"{float(values[0]):g}"
            got, expected = f"{one} in all {len(values):,} usable rows", "of two different values"
            raise InputError("label", f"{expected} at least in {table.source}", found=got)
        decisions += labels.decisions
    decisions += left_out
    n_repaired = sum(side.n_repaired for side in sides.values())
    repaired = "texts held half characters (lone surrogates), which were replaced by U+FFFD."
    decisions += counted("training", "replaced_characters", n_repaired, repaired)
    decisions += _describe_repeats([side.hashes[rows] for side in sides.values()], values, kind)
    return Examples(
        kind=kind,
        columns=tuple(tuple(side.texts[row] for row in rows.tolist()) for side in sides.values()),
        labels=values,
        rows=rows,
        names=() if labels is None else labels.names,
        source=table.source,
        decisions=tuple(decisions),
    )


def _as_table(source: Any, kind: str, encoding: str) -> DocumentTable:
    if isinstance(source, (str, os.PathLike)):
        return read_file(Path(source).expanduser(), encoding)
    if is_frame(source):
        return as_table(source)
    if not isinstance(source, Iterable) or isinstance(source, bytes):
        raise InputError("examples", "the path of a file, a frame, or a list of rows", source)
    rows = source.tolist() if hasattr(source, "tolist") else list(source)
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        rows = _unnamed_columns(rows, kind)
    return replace(as_table(rows), source=type(source).__name__)


def _unnamed_columns(rows: list[Any], kind: str) -> dict[str, list[Any]]:
    """Name the values of tuples."""
    if kind == "texts":
        return {"text": [row[0] if _is_row(row) and len(row) == 1 else row for row in rows]}
    layout = COLUMNS_OF_KIND[kind]
    n_columns = len(layout.columns)
    if kind == "triplets" and rows and _is_row(rows[0]):
        n_columns = max(n_columns, len(rows[0]))
    names = [*names_of_columns(layout, n_columns), *layout.labels[:1]]
    for number, row in enumerate(rows):
        if not _is_row(row) or len(row) != len(names):
            got = f"{len(row)} values" if _is_row(row) else f"a {type(row).__name__}"
            expected = f"tuples ({', '.join(names)}) or dicts"
            raise InputError("examples", expected, found=got, row=number)
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _is_row(row: object) -> bool:
    return isinstance(row, (tuple, list, np.ndarray))


def _choose_columns(
    table: DocumentTable, kind: str, columns: Sequence[str] | None, label: str | None
) -> tuple[list[str], str | None]:
    """Return the columns of texts and of labels, by default those with a usual name."""
    usual = COLUMNS_OF_KIND[kind]
    if columns is None:
        text_columns = [
            _guess(table, *each) for each in zip(usual.columns, usual.roles, strict=True)
        ]
        for name in map(str, table.frame.columns if usual.more_columns else ()):
            stem, _, number = name.casefold().rpartition("_")
            if stem in ("negative", "neg") and number.isdecimal() and name not in text_columns:
                text_columns.append(name)
    else:
        names = [columns] if isinstance(columns, str) else list(columns)
        n_roles = len(usual.roles)
        if len(names) != n_roles and not (usual.more_columns and len(names) > n_roles):
            hint = 'negatives make "triplets" of pairs' if kind == "pairs" else ""
            expected = f"{n_roles} columns ({', '.join(usual.roles)})"
            raise InputError("columns", expected, names, hint)
        roles = [*usual.roles, *["negative"] * (len(names) - n_roles)]
        text_columns = [find_column(table, n, role) for n, role in zip(names, roles, strict=True)]
    if not usual.labels:
        if label is not None:
            raise InputError("label", f"left out for {kind!r}, which has none", label)
        label_column = None
    elif label is None:
        label_column = _guess(table, usual.labels, "label", text_columns)
    else:
        label_column = find_column(table, label, "label")
    used = [*text_columns, *([] if label_column is None else [label_column])]
    if len(set(used)) < len(used):
        raise InputError("columns", "different columns", used)
    return text_columns, label_column


def _guess(
    table: DocumentTable, usual: Sequence[str], role: str, exclude: Sequence[str] = ()
) -> str:
    columns = list(table.frame.columns)
    name = first_named(columns, usual, lambda got: got not in exclude)
    if name is None:
        expected = f"given where no {role} column has a usual name, such as {usual[0]!r}"
        got = f"the columns {list_names(columns)} in {table.source}"
        raise InputError("label" if role == "label" else "columns", expected, found=got)
    return str(name)


def _cells(table: DocumentTable, column: str) -> list[Any]:
    values: list[Any] = table.frame[column].tolist()
    if table.cells_only:
        return [None if value in MISSING_MARKERS else value for value in values]
    return values


def _read_side(table: DocumentTable, name: str) -> TextRows:
    values = _cells(table, name)
    for row, value in enumerate(values):
        if _is_row(value):
            row_name = name_rows([row], table.lines)
            got = f"a list of {len(value)} texts in {table.source}, {row_name}"
            raise InputError(name, "one text per row", found=got)
    return read_texts(values, f"{table.source}: column {name!r}", table.lines)


def _read_labels(
    table: DocumentTable, kind: str, column: str | None, order: Sequence[str] | None, scale: Any
) -> _Labels | None:
    for name, of, value in (("label_order", "nli", order), ("scale", "graded", scale)):
        if kind != of and value is not None:
            raise InputError(name, f"left out for {kind!r}", value)
    if column is None:
        return None
    values, where = _cells(table, column), f"{table.source}, column {column!r}"
    if kind == "nli":
        return _read_classes(values, order, where)
    if kind == "classed":
        return _read_zero_or_one(values, where, table.lines)
    return _read_scores(values, scale, where, table.lines)


@dataclass(frozen=True, eq=False)
class _Labels:
    """A column of labels that was read."""

    values: npt.NDArray[Any]  # (n_rows,), int64 or float64; NaN or below 0 if there is none
    names: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()


def _read_classes(values: Sequence[object], order: Sequence[str] | None, source: str) -> _Labels:
    numbered: tuple[str, ...] = ()
    if order is not None:
        names = [] if isinstance(order, str) else order
        numbered = tuple(_CLASS_OF.get(_spelled(name), "") for name in names)
        if sorted(numbered) != sorted(NLI_NAMES):
            raise InputError("label_order", f"{', '.join(NLI_NAMES)}, each once", order)
    codes, unknown, changed = [], False, 0
    for value in values:
        spelled = _spelled(value)
        name = _CLASS_OF.get(spelled)
        if name is None and spelled.isdecimal() and int(spelled) < len(numbered):
            name = numbered[int(spelled)]
        changed += name is not None and name != value
        if name is not None:
            codes.append(NLI_NAMES.index(name))
        else:
            unknown |= spelled not in {"", *_NO_GOLD}
            codes.append(_DISAGREED if spelled in _NO_GOLD else _MISSING)
    if unknown:
        numbers = all(_spelled(value) in {"", "-1", "0", "1", "2"} for value in values)
        remedy: str | Remedy = "rename them, or leave those rows out"
        if numbers and not numbered:
            remedy = Remedy("label_order", alternative="write these words instead of the numbers")
        expected = f"{', '.join(NLI_NAMES)} in {source}"
        raise InputError("label", expected, found=_listed(values), remedy=remedy)
    message = f"labels were read as one of {', '.join(NLI_NAMES)}."
    decisions = counted("training", "label_spellings", changed, message)
    absent = [name for code, name in enumerate(NLI_NAMES) if code not in codes]
    if absent:
        message = f"No example has the label {absent[0]}."
        decisions.append(Decision("training", "absent_label", absent[0], message))
    return _Labels(np.array(codes, np.int64), NLI_NAMES, tuple(decisions))


def _read_zero_or_one(
    values: Sequence[object], source: str, lines: Sequence[int] | None
) -> _Labels:
    """Read 1 for pairs that belong together and 0 for others."""
    numbers = []
    for row, value in enumerate(values):
        if isinstance(value, (bool, np.bool_)):
            numbers.append(float(value))
        else:
            numbers.append(_number(value, row, source, lines))
    labels = np.array(numbers)

    others = np.flatnonzero(~np.isnan(labels) & (labels != 0) & (labels != 1))
    if len(others):
        found = f"{labels[others[0]]:g} in {source}, {name_rows([int(others[0])], lines)}"
        remedy = 'scores are of kind "graded"'
        raise InputError("label", "0 or 1", found=found, remedy=remedy)
    return _Labels(np.where(np.isnan(labels), _MISSING, labels).astype(np.int64))


def _read_scores(
    values: Sequence[object], scale: Any, source: str, lines: Sequence[int] | None
) -> _Labels:
    """Read scores, and bring them from their scale to the one from 0 to 1."""
    low, high = 0.0, 1.0
    expected = "the lowest and highest score that could be given, such as (0, 5)"
    if scale is not None:
        is_pair = isinstance(scale, (tuple, list)) and len(scale) == 2
        if not (is_pair and all(map(is_number, scale)) and -np.inf < scale[0] < scale[1] < np.inf):
            raise InputError("scale", expected, scale)
        low, high = float(scale[0]), float(scale[1])
    scores = np.array([_number(value, row, source, lines) for row, value in enumerate(values)])
    rows = ~np.isnan(scores)
    outside = np.flatnonzero(rows & ~((scores >= low) & (scores <= high)))
    if len(outside):
        lowest, highest = scores[rows].min(), scores[rows].max()
        row_name = name_rows([int(outside[0])], lines)
        got = (
            f"{scores[outside[0]]:g} in {source}, {row_name}, where scores go from "
            f"{lowest:g} to {highest:g}, and the scale from {low:g} to {high:g}"
        )
        raise InputError("scale", expected, found=got)
    message = f"Scores are on a scale from {low:g} to {high:g}."
    decision = Decision("training", "scale", [str(low), str(high)], message)
    return _Labels((scores - low) / (high - low), decisions=(decision,))


def _spelled(value: object) -> str:
    """Return a label in lower case, whole numbers without a fraction; "" if missing."""
    return read_id(value).casefold()


def _listed(values: Sequence[object]) -> str:
    counts = Counter(str(value)[:40] if _spelled(value) else "none" for value in values)
    parts = [f"{shown!r} ({count:,})" for shown, count in counts.most_common(_MOST_LISTED)]
    return ", ".join([*parts, *["..."] * (len(counts) > _MOST_LISTED)])


def _number(value: object, row: int, source: str, lines: Sequence[int] | None) -> float:
    if not _spelled(value):
        return math.nan
    try:
        if isinstance(value, (bool, np.bool_)):
            raise ValueError
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        where = f"{value!r} in {source}, {name_rows([row], lines)}"
        raise InputError("label", "a number as score", found=where) from None


def _usable_rows(
    table: DocumentTable,
    sides: Mapping[str, TextRows],
    label_column: str | None,
    labels: _Labels | None,
    drop_invalid: bool,
) -> tuple[npt.NDArray[np.int64], list[Decision]]:
    """Return the usable rows, and decisions about the others."""
    keep = np.ones(len(table.frame), dtype=bool)
    decisions: list[Decision] = []
    bad = {f"text in column {name!r}": side.status != TEXT for name, side in sides.items()}
    if labels is not None:
        values = labels.values
        bad[f"label in column {label_column!r}"] = np.isnan(values) | (values == _MISSING)
        keep = values != _DISAGREED
        message = "examples without a gold label were left out."
        decisions += counted("training", "no_gold_label", int((~keep).sum()), message)
    for what, where in bad.items():
        rows = np.flatnonzero(where & keep).tolist()
        if rows and not drop_invalid:
            got = f"none in {name_rows(rows, table.lines)} of {table.source}"
            remedy = Remedy("drop_invalid", True)
            raise InputError("examples", f"rows with a {what}", found=got, remedy=remedy)
        message = f"rows without a {what} were left out."
        decisions += counted("training", "dropped_invalid", len(rows), message)
        keep &= ~where
    if not keep.any():
        raise InputError("examples", "usable", found=f"no usable row in {table.source}")
    return np.flatnonzero(keep), decisions


def _describe_repeats(
    hashes: Sequence[npt.NDArray[np.uint64]], labels: npt.NDArray[Any] | None, kind: str
) -> list[Decision]:
    """Count repeats and contradictions; `hashes` has shape (n_examples, 2) for each column."""
    halves = {f"{side}.{half}": h[:, half] for side, h in enumerate(hashes) for half in (0, 1)}
    texts = pd.DataFrame(halves)
    with_label = texts if labels is None else texts.assign(label=labels)
    n_conflicting = len(with_label.drop_duplicates()) - len(texts.drop_duplicates())
    counts = [
        ("repeated_examples", with_label.duplicated().sum(), "repeat an earlier one"),
        ("conflicting_labels", n_conflicting, "have the texts of another and a different label"),
    ]
    if kind in ("pairs", "triplets"):
        same = (hashes[0] == hashes[1]).all(axis=1).sum()
        counts.append(("identical_sides", same, "have an anchor equal to its positive"))
    if kind == "triplets":
        wrong = np.logical_or.reduce([(h == hashes[1]).all(axis=1) for h in hashes[2:]]).sum()
        counts.append(("negative_is_positive", wrong, "have their positive as a negative too"))
    return [
        decision
        for name, n, what in counts
        for decision in counted("training", name, int(n), f"examples {what}; they are kept.")
    ]
