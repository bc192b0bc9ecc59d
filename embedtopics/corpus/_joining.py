"""Corpora made of other corpora: rows below rows, texts left out, hashes kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._dates import read_dates
from embedtopics.corpus._hashing import TEXT, content_ids, read_texts
from embedtopics.corpus._tables import name_row, note
from embedtopics.corpus.results import Decision, DistinctDocuments
from embedtopics.errors import InputError


def recall_hashes(corpus: Corpus, documents: DistinctDocuments) -> Corpus:
    """Return a corpus that knows its documents from before, so that no text is hashed again."""
    if "hashes" not in vars(corpus):
        hashes = documents.hashes[np.maximum(documents.of_row, 0)]
        others = np.flatnonzero(documents.of_row < 0)
        read = read_texts([corpus.texts[row] for row in others.tolist()], "texts", name_row)
        hashes[others] = read.hashes
        hashes.flags.writeable = False
        vars(corpus)["hashes"] = hashes
    vars(corpus)["_distinct"] = documents
    return corpus


def blank_corpus(corpus: Corpus, columns: Sequence[Any] = ()) -> Corpus:
    """Return a corpus of as many rows, without texts, ids, labels, notes and most columns.

    Its documents are still those of the texts, known by their hashes.
    """
    for name in columns:
        if name not in corpus.metadata.columns:
            there = list(corpus.metadata.columns)
            raise InputError(f"expected columns of the corpus, got {name!r}; there are {there}")
    is_text = corpus.status == TEXT
    nothing = read_texts([""], "texts", name_row).hashes
    hashes = np.where(is_text[:, None], corpus.hashes, nothing)
    hashes.flags.writeable = False
    blank = Corpus.of_fields(
        texts=("",) * len(corpus),
        ids=content_ids(hashes),
        status=corpus.status,
        metadata=corpus.metadata[list(columns)].reset_index(drop=True),
        text_column=None,
        time_column=corpus.time_column if corpus.time_column in columns else None,
        group_column=corpus.group_column if corpus.group_column in columns else None,
        source="texts left out",
    )
    vars(blank).update(hashes=hashes, _distinct=corpus.distinct())
    return blank


def join_corpora(first: Corpus, second: Corpus) -> Corpus:
    """Put the rows of a corpus below those of another.

    Columns are aligned by name; what a corpus does not have is missing in its rows. The columns of
    dates and of groups need not have the same name: those of the second get the name in the first.
    An id that is taken gets "-2", "-3" ... at its end. Where neither corpus has row labels of its
    own, the rows are numbered on; else labels stay as they are.
    """
    notes: list[Decision] = []
    table = second.metadata
    roles = {}
    for role in ("time", "group"):
        table, roles[role] = _same_role(first, second, table, role, notes)
    ids, n_renamed = _apart(first.ids, second.ids)
    if n_renamed:
        message = f'{n_renamed:,} ids of added rows were taken; they got "-2", "-3" ... at the end.'
        notes.append(note("ids_renamed", n_renamed, message))
    metadata = _below(first.metadata, table)
    lacking = [
        str(name) for name in metadata.columns
        if (name not in first.metadata.columns) != (name not in table.columns)
    ]  # fmt: skip
    if lacking:
        message = f"Columns that not all rows have are missing in the others: {lacking}."
        notes.append(note("columns_missing", lacking, message))
    status = np.concatenate([first.status, second.status])
    status.flags.writeable = False
    message = f"{len(second):,} rows from {second.source} were put below {len(first):,}."
    joined = Corpus.of_fields(
        texts=first.texts + second.texts,
        ids=first.ids + ids,
        status=status,
        metadata=metadata,
        text_column=first.text_column,
        time_column=roles["time"],
        group_column=roles["group"],
        source=first.source,
        notes=(*first.notes, *second.notes, *notes, note("rows_added", len(second), message)),
    )
    # Hashing is the slow part of reading; what is known already is not worked out again.
    vars(joined).update(
        hashes=np.concatenate([first.hashes, second.hashes]),
        _is_normal=np.concatenate([first._is_normal, second._is_normal]),
    )
    return joined


def _same_role(
    first: Corpus, second: Corpus, table: pd.DataFrame, role: str, notes: list[Decision]
) -> tuple[pd.DataFrame, str | None]:
    """Return the second table with the first's name for a role, and the name."""
    ours, theirs = (getattr(corpus, f"{role}_column") for corpus in (first, second))
    if ours is None:
        # A column of the first that has this name was not read as one of dates or groups.
        return table, None if theirs in first.metadata.columns else theirs
    if theirs == ours:
        return table, ours
    if theirs is not None:
        if ours in table.columns:
            raise InputError(
                f"expected one column of {role}s in the added rows, got {theirs!r}, which would "
                f"get the name {ours!r} of the rows that are there, and another of that name; "
                "rename one of them"
            )
        message = f"The column {theirs!r} of added rows became {ours!r}."
        notes.append(note(f"{role}_renamed", str(theirs), message))
        return table.rename(columns={theirs: ours}), ours
    if role == "time" and ours in table.columns:
        dates, found = read_dates(table[ours], f"added rows, column {ours!r}", None)
        notes.extend(found)
        return table.assign(**{ours: dates}) if isinstance(ours, str) else table, ours
    return table, ours


def _below(upper: pd.DataFrame, lower: pd.DataFrame) -> pd.DataFrame:
    """Return one table below another, the columns of the first first."""
    if _is_numbered(upper.index) and _is_numbered(lower.index):
        lower = lower.set_axis(pd.RangeIndex(len(upper), len(upper) + len(lower)))
    index = upper.index.append(lower.index)
    columns: dict[Any, pd.Series] = {}
    for name in [*upper.columns, *(name for name in lower.columns if name not in upper.columns)]:
        parts = [
            table[name] if name in table.columns else _nothing(len(table), other[name])
            for table, other in ((upper, lower), (lower, upper))
        ]
        if 0 in map(len, parts):  # whose type says nothing
            parts = [part for part in parts if len(part)] or parts[:1]
        columns[name] = pd.concat(parts, ignore_index=True)
    made = pd.DataFrame(columns, index=pd.RangeIndex(len(index)))
    made.columns = pd.Index(list(columns), dtype=object if not columns else None)
    return made.set_axis(index)


def _nothing(n_rows: int, like: pd.Series) -> pd.Series:
    """Return missing values of the type that pandas gives a column where some are missing."""
    return like.set_axis(pd.RangeIndex(len(like))).reindex(range(-n_rows, 0))


def _is_numbered(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _apart(taken: tuple[str, ...], ids: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
    """Return ids of which none is taken, and how many had to change."""
    used, wanted = set(taken), set(ids)
    found: list[str] = []
    n_renamed = 0
    for name in ids:
        unique, number = name, 2
        while unique in used or (unique != name and unique in wanted):
            unique, number = f"{name}-{number}", number + 1
        n_renamed += unique != name
        used.add(unique)
        found.append(unique)
    return tuple(found), n_renamed
