"""Files, frames and lists become `Examples`, checked row by row."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from embedtopics.corpus.columns import find_column
from embedtopics.corpus.hashing import TextRows, read_texts
from embedtopics.corpus.readers import read_file
from embedtopics.corpus.tables import MISSING_MARKERS, Table, as_table, is_frame, name_rows
from embedtopics.errors import InputError
from embedtopics.results import Decision
from embedtopics.training.checking import describe_repeats, usable_rows
from embedtopics.training.examples import KINDS, Examples
from embedtopics.training.labels import (
    ReadLabels,
    read_binary,
    read_classes,
    read_scores,
    require_difference,
)

__all__ = ["read_examples"]

_FIRST = (
    "sentence1", "sentence_1", "sentence_a", "sentence_A", "text1", "text_1", "text_a", "question1",
)  # fmt: skip
_SECOND = (
    "sentence2", "sentence_2", "sentence_b", "sentence_B", "text2", "text_2", "text_b", "question2",
)  # fmt: skip
_ANCHOR = ("anchor", "query", "question")
_POSITIVE = ("positive", "pos", "answer", "paraphrase")
_TEXTS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "nli": (("premise", "premises", *_FIRST), ("hypothesis", *_SECOND)),
    "graded": (_FIRST, _SECOND),
    "binary": (_FIRST, _SECOND),
    "pairs": ((*_ANCHOR, *_FIRST), (*_POSITIVE, *_SECOND)),
    "triplets": ((*_ANCHOR, *_FIRST), (*_POSITIVE, *_SECOND), ("negative", "neg", "negative_1")),
    "texts": (("text", "sentence", "texts", "body", "content"),),
}
_ROLES: Mapping[str, tuple[str, ...]] = {
    "nli": ("premise", "hypothesis"),
    "graded": ("first text", "second text"),
    "binary": ("first text", "second text"),
    "pairs": ("anchor", "positive"),
    "triplets": ("anchor", "positive", "negative"),
    "texts": ("text",),
}
_LABELS: Mapping[str, tuple[str, ...]] = {
    "nli": ("label", "gold_label", "labels", "entailment_judgment"),
    "graded": (
        "score",
        "similarity",
        "similarity_score",
        "relatedness",
        "relatedness_score",
        "label",
    ),
    "binary": ("label", "is_duplicate", "paraphrase", "quality", "same"),
}


def read_examples(
    source: Any,
    kind: str,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    label_order: Sequence[str] | None = None,
    scale: tuple[float, float] | None = None,
    drop_invalid: bool = False,
    join_lists: bool = False,
    encoding: str = "utf-8",
) -> Examples:
    """Read what an encoder shall learn from, or be measured on.

    Nothing is repaired by guesswork: a row that cannot be used is named in the error, and what is
    left out all the same is counted in the examples' `decisions`.

    Parameters
    ----------
    source : path-like, frame, list or Examples
        A csv, tsv, jsonl, json or parquet file (or one of these and .gz); a pandas or polars
        frame, an Arrow table, a datasets.Dataset, a dict of lists; a list of tuples (texts first,
        the label last) or of dicts; for "texts", a list of strings. Examples are returned as they
        are if they have the kind.
    kind : {"nli", "graded", "binary", "pairs", "triplets", "texts"}
        See `Examples`.
    columns : sequence of str, optional
        Columns of texts: premise and hypothesis; two texts; anchor and positive; anchor, positive
        and the negatives; text. By default, the usual names are looked for.
    label : str, optional
        Column of the labels of "nli" and "binary", or of the scores of "graded".
    label_order : sequence of str, optional
        What 0, 1 and 2 stand for in "nli", such as ("entailment", "neutral", "contradiction").
        Without it numbers are refused, because data sets number the classes differently; a
        datasets.Dataset that names its classes needs none.
    scale : (float, float), optional
        Lowest and highest score that could be given, of "graded"; (0, 1) if all lie inside.
    drop_invalid : bool
        Leave out rows with an empty or missing text, label or score, instead of refusing them.
    join_lists : bool
        Join a list of texts in a cell, such as several premises, with spaces.
    encoding : str

    Returns
    -------
    read : Examples

    Raises
    ------
    InputError
        A column is missing (the message lists those that exist), a text or label is missing, a
        label is none of the three, a score is outside its scale, all examples have one label, or
        nothing is left.

    Examples
    --------
    >>> rows = [("A dog runs.", "An animal moves.", "Entailment"),
    ...         ("A dog runs.", "The dog sleeps.", "contradiction")]
    >>> read_examples(rows, "nli").labels.tolist()
    [0, 2]
    """
    if isinstance(source, Examples):
        return _checked_kind(source, kind)
    if kind not in _TEXTS:
        made = ", which is not read but made" if kind in KINDS else ""
        raise InputError(f"expected a kind among {', '.join(_TEXTS)}; got {kind!r}{made}")
    table = _as_table(source, kind, encoding)
    if not len(table.frame):
        raise InputError(f"{table.source}: expected examples, got no rows")
    chosen, label_column = _choose_columns(table, kind, columns, label)
    sides = [_read_side(table, name, join_lists) for name in chosen]
    order = label_order
    if order is None and kind == "nli":
        order = _named_classes(source, label_column)
    labels = _read_labels(table, kind, label_column, order, scale)
    kept, decisions = usable_rows(table, chosen, sides, label_column, labels, drop_invalid)
    named = [*chosen, *([] if label_column is None else [label_column])]
    message = f"Examples are read from the columns {', '.join(map(repr, named))}."
    if labels is not None:
        require_difference(labels, kept, table.source)
    repaired = sum(side.n_repaired for side in sides)
    if repaired:
        told = f"Half characters (lone surrogates) were replaced by U+FFFD in {repaired} texts."
        decisions.append(Decision("training", "replaced_characters", repaired, told))
    values = None if labels is None else labels.values[kept]
    decisions += describe_repeats([side.hashes[kept] for side in sides], values, kind)
    return Examples(
        kind=kind,
        columns=tuple(tuple(side.texts[row] for row in kept.tolist()) for side in sides),
        labels=values,
        rows=kept,
        names=() if labels is None else labels.names,
        source=table.source,
        decisions=(
            *table.notes,
            Decision("training", "columns", named, message),
            *(() if labels is None else labels.decisions),
            *decisions,
        ),
    )


def _checked_kind(examples: Examples, kind: str) -> Examples:
    if examples.kind != kind:
        raise InputError(
            f"{examples.source or 'examples'}: expected examples of the kind {kind!r}, got "
            f"{examples.kind!r}; read them again as that kind"
        )
    if not len(examples):
        raise InputError(f"{examples.source or 'examples'}: expected examples, got none")
    return examples


def _as_table(source: Any, kind: str, encoding: str) -> Table:
    if isinstance(source, (str, os.PathLike)):
        return read_file(Path(source).expanduser(), encoding)
    if is_frame(source):
        return as_table(source)
    if not isinstance(source, Iterable) or isinstance(source, bytes):
        raise InputError(
            f"expected the path of a file, a frame, or a list of rows; got {type(source).__name__}"
        )
    rows = source.tolist() if hasattr(source, "tolist") else list(source)
    if rows and all(isinstance(row, Mapping) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        data = {name: [row.get(name) for row in rows] for name in names}
    else:
        data = _unnamed_columns(rows, kind)
    frame = pd.DataFrame({name: pd.Series(data[name], dtype=object) for name in data})
    return Table(frame, type(source).__name__, untyped=True)


def _unnamed_columns(rows: list[Any], kind: str) -> dict[str, list[Any]]:
    """Give the values of tuples the names that are looked for."""
    if kind == "texts":
        return {"text": [row[0] if _is_row(row) and len(row) == 1 else row for row in rows]}
    names = [known[0] for known in _TEXTS[kind]]
    if kind in _LABELS:
        names.append(_LABELS[kind][0])
    width = len(rows[0]) if rows and _is_row(rows[0]) else len(names)
    if kind == "triplets":
        names += [f"negative_{number}" for number in range(2, width - 1)]
    for number, row in enumerate(rows):
        if not _is_row(row) or len(row) != len(names):
            got = f"{len(row)} values" if _is_row(row) else f"a {type(row).__name__}"
            raise InputError(
                f"row {number + 1}: expected a tuple ({', '.join(names)}) or a dict, got {got}"
            )
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _is_row(row: object) -> bool:
    return isinstance(row, (tuple, list, np.ndarray))


def _choose_columns(
    table: Table, kind: str, columns: Sequence[str] | None, label: str | None
) -> tuple[list[str], str | None]:
    """Return the columns of texts and of labels: those asked for, else those of usual names."""
    roles = _ROLES[kind]
    if columns is None:
        chosen = [
            _guess(table, known, role) for known, role in zip(_TEXTS[kind], roles, strict=True)
        ]
        if kind == "triplets":
            chosen += _more_negatives(table, chosen)
    else:
        names = [columns] if isinstance(columns, str) else list(columns)
        if len(names) != len(roles) and not (kind == "triplets" and len(names) > len(roles)):
            hint = '; negatives make "triplets" of pairs' if kind == "pairs" else ""
            raise InputError(
                f"expected columns to name {len(roles)} columns ({', '.join(roles)}), got "
                f"{len(names)}{hint}"
            )
        padded = [*roles, *["negative"] * (len(names) - len(roles))]
        chosen = [find_column(table, n, role) for n, role in zip(names, padded, strict=True)]
    if kind not in _LABELS:
        if label is not None:
            raise InputError(f"examples of the kind {kind!r} have no labels; leave out label")
        label_column = None
    elif label is None:
        label_column = _guess(table, _LABELS[kind], "label", "label", chosen)
    else:
        label_column = find_column(table, label, "label")
    used = [*chosen, *([] if label_column is None else [label_column])]
    repeated = next((name for name in used if used.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"expected different columns, got {repeated!r} more than once")
    return chosen, label_column


def _guess(
    table: Table,
    known: Sequence[str],
    role: str,
    parameter: str = "columns",
    taken: Collection[str] = (),
) -> str:
    by_lower = {str(name).strip().casefold(): name for name in reversed(list(table.frame.columns))}
    for name in known:
        found = by_lower.get(name.casefold())
        if found is not None and found not in taken:
            return str(found)
    exist = ", ".join(repr(str(name)) for name in table.frame.columns[:30])
    raise InputError(
        f"{table.source}: expected a {role} column, such as {known[0]!r}; got the columns {exist}; "
        f"name it with {parameter}="
    )


def _more_negatives(table: Table, chosen: list[str]) -> list[str]:
    def is_more(name: str) -> bool:
        stem, _, number = name.casefold().rpartition("_")
        return stem in ("negative", "neg") and number.isdecimal()

    return [str(n) for n in table.frame.columns if is_more(str(n)) and str(n) not in chosen]


def _read_side(table: Table, name: str, join_lists: bool) -> TextRows:
    values: list[object] = table.frame[name].tolist()
    if table.cells_only:
        values = [None if value in MISSING_MARKERS else value for value in values]
    for row, value in enumerate(values):
        if _is_row(value):
            if not join_lists:
                raise InputError(
                    f"{table.source}, {table.name_row(row)}: expected one text in column {name!r}, "
                    f"got a list of {len(value)}; join_lists=True joins them with spaces"  # type: ignore[arg-type]
                )
            values[row] = " ".join(str(part) for part in value)  # type: ignore[attr-defined]
    return read_texts(values, f"{table.source}: column {name!r}", table.name_row)


def _named_classes(source: Any, label_column: str | None) -> Sequence[str] | None:
    """Return the names that a datasets.Dataset gives to its numbers."""
    features = getattr(source, "features", None)
    if label_column is None or not isinstance(features, Mapping):
        return None
    names: Sequence[str] | None = getattr(features.get(label_column), "names", None)
    return names


def _read_labels(
    table: Table, kind: str, column: str | None, order: Sequence[str] | None, scale: Any
) -> ReadLabels | None:
    if kind != "nli" and order is not None:
        raise InputError(f"examples of the kind {kind!r} have no classes; leave out label_order")
    if kind != "graded" and scale is not None:
        raise InputError(f"examples of the kind {kind!r} have no scores; leave out scale")
    if column is None:
        return None
    values: list[object] = table.frame[column].tolist()
    where = f"{table.source}, column {column!r}"
    if table.cells_only:
        values = [None if value in MISSING_MARKERS or value == "" else value for value in values]
    if kind == "nli":
        return read_classes(values, order, where)
    if kind == "binary":
        return read_binary(values, where)
    return read_scores(values, scale, where, lambda rows: name_rows(rows, table.lines))
