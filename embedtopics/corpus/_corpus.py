"""The corpus: texts with identifiers and metadata, row by row as the caller gave them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.display import html_table, spell_count
from embedtopics.corpus._columns import as_table, is_frame, is_records, read_list, read_table
from embedtopics.corpus._dates import read_dates
from embedtopics.corpus._readers import SUFFIXES, read_file
from embedtopics.corpus._texts import (
    EMPTY,
    MISSING,
    TEXT,
    ArrowTexts,
    as_column,
    below,
    content_ids,
    find_distinct,
    normalize_text,
    read_texts,
    rows_of,
)
from embedtopics.corpus._windows import PASSAGE_COLUMNS, split_into_passages
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.protocols import RandomState


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Corpus:
    """Texts with what is known about each, aligned with the caller's rows.

    Rows without text stay in place and are marked.

    Parameters
    ----------
    data : sequence of str, frame, str, path-like or Corpus
        A list, array, Series or column of texts (None, NaN, NaT and pandas.NA are missing texts);
        a pandas or polars frame, Arrow table, ``datasets.Dataset``, dict of lists or list of dicts;
        or the path of a file. Never changed.
    text : str, optional
        Column of texts, in a frame or a file. By default it is chosen by name or length, which is
        noted.
    id, time, group : str, optional
        Columns of identifiers, of dates (see `parse_dates`) and of groups. With a list of texts,
        `time` and `group` are columns of `metadata`.
    ids : iterable, optional
        With a list of texts: a different identifier for each.
    metadata : frame or dict of lists, optional
        With a list of texts: what is known about each of them.
    index : pandas.Index or sequence, optional
        With a list of texts: row labels; by default those of a Series, else 0, 1, 2 ...
    encoding : str, default="utf-8"
        Of a file; a byte-order mark is obeyed.
    limit : int, optional
        Read only so many rows of a file.

    Attributes
    ----------
    texts : tuple of str, or a sequence that reads them from Arrow
        As given, one a row; "" where missing. Lone surrogates are replaced by U+FFFD. What comes
        in Arrow (a table, a parquet or an Arrow file, strings of pandas) stays there.
    ids : tuple of str, or such a sequence
        From the id column, else made from the content of the text.
    status : int8 ndarray of shape (n_rows,)
        0: text, 1: empty (nothing visible), 2: missing (None, NaN).
    metadata : pandas.DataFrame
        The other columns, with the caller's index; dates parsed, numerals of csv files as numbers.
    text_column, time_column, group_column : str or None
    source : str
        Name of the file, or the type that was given.
    notes : tuple of Decision
        What the reader guessed or repaired.

    Raises
    ------
    InputError
        The file is missing, empty or broken, a column does not exist or does not hold what it
        should, ids are missing or repeated, a text is no string: the message names the row.

    Examples
    --------
    >>> corpus = Corpus(["A text.", None, "Another  one.", "Another one."])
    >>> corpus
    Corpus(4 rows from list: 3 with text, 0 empty, 1 missing)
    >>> len(corpus.distinct()), corpus[0], len(corpus[2:])
    (2, 'A text.', 2)
    """

    texts: Sequence[str]
    ids: Sequence[str]
    status: npt.NDArray[np.int8]
    metadata: pd.DataFrame
    text_column: str | None
    time_column: str | None
    group_column: str | None
    source: str
    notes: tuple[Decision, ...]

    def __init__(
        self,
        data: Any,
        text: str | None = None,
        id: str | None = None,
        time: str | None = None,
        group: str | None = None,
        *,
        ids: Iterable[object] | None = None,
        metadata: Any = None,
        index: Any = None,
        encoding: str = "utf-8",
        limit: int | None = None,
    ) -> None:
        of_list = {"ids": ids, "metadata": metadata, "index": index}
        if isinstance(data, Corpus):
            vars(self).update(vars(data))
            return
        if isinstance(data, os.PathLike) or (isinstance(data, str) and _is_path(data)):
            table = read_file(Path(data), encoding, limit)
        elif is_frame(data) or is_records(data):
            table = as_table(data)
        else:
            if text is not None or id is not None:
                name = "text" if text is not None else "id"
                raise InputError(name, "left out where the texts are a list", text or id)
            vars(self).update(read_list(data, ids, index, metadata, time, group))
            return
        for name, value in of_list.items():
            if value is not None:
                expected = f"left out where the texts are a column of a {table.source}"
                raise InputError(
                    name, expected, remedy="name columns with text=, id=, time=, group="
                )
        vars(self).update(read_table(table, text, id, time, group))

    @classmethod
    def from_texts(
        cls,
        texts: Any,
        ids: Iterable[object] | None = None,
        index: Any = None,
        metadata: Any = None,
    ) -> Corpus:
        """Make a corpus of a list of strings; see `Corpus`."""
        return cls.of_fields(**read_list(texts, ids, index, metadata))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        text: str | None = None,
        id: str | None = None,
        time: str | None = None,
        group: str | None = None,
    ) -> Corpus:
        """Make a corpus of a table; see `Corpus`."""
        return cls.of_fields(**read_table(as_table(frame), text, id, time, group))

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        text: str | None = None,
        id: str | None = None,
        time: str | None = None,
        group: str | None = None,
        encoding: str = "utf-8",
        limit: int | None = None,
    ) -> Corpus:
        """Read a file of documents.

        Parameters
        ----------
        path : path-like
            A csv, tsv, jsonl (ndjson), json, parquet or Arrow (arrow, feather) file; a .txt file
            of one document a line; each may be gzipped. Or a folder of .txt files, one document
            each. For millions of texts take parquet, or Arrow without compression, which is
            mapped as it is.
        text, id, time, group, encoding, limit
            See `Corpus`. Cells such as "NA" in the text column of a csv or tsv file are missing
            texts, which is noted.
        """
        return cls(Path(path), text, id, time, group, encoding=encoding, limit=limit)

    @classmethod
    def of(cls, data: Any) -> Corpus:
        """Return a corpus as it is, and make one of anything else that holds texts."""
        return data if isinstance(data, Corpus) else cls(data)

    @classmethod
    def of_fields(cls, **fields: Any) -> Corpus:
        """Make a corpus of its attributes, as they were read or saved."""
        corpus = cls.__new__(cls)
        defaults = {"text_column": None, "time_column": None, "group_column": None, "notes": ()}
        vars(corpus).update({"source": "list", **defaults, **fields})
        lengths = {name: len(fields[name]) for name in ("texts", "ids", "status", "metadata")}
        if len(set(lengths.values())) > 1:
            raise InputError("texts, ids, status and metadata", "of one length", lengths)
        return corpus

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the texts."""
        return iter(self.texts)

    def __getitem__(self, rows: Any) -> Any:
        """Return the text of one row, or the corpus of a slice, a mask or an array of rows."""
        if isinstance(rows, int | np.integer) and not isinstance(rows, bool):
            return self.texts[int(rows)]
        if isinstance(rows, slice):
            return self.take(np.arange(len(self))[rows])
        chosen = np.asarray(rows)
        if chosen.dtype == bool and chosen.shape == (len(self),):
            chosen = np.flatnonzero(chosen)
        return self.take(chosen)

    def __repr__(self) -> str:
        n_text, n_empty, n_missing = (
            int((self.status == kind).sum()) for kind in (TEXT, EMPTY, MISSING)
        )
        return (
            f"Corpus({len(self)} rows from {self.source}: {n_text} with text, "
            f"{n_empty} empty, {n_missing} missing)"
        )

    def _repr_html_(self) -> str:
        return html_table(self.head(10).to_frame(), repr(self))

    def head(self, n: int = 5) -> Corpus:
        """Return the corpus of the first rows."""
        return self.take(np.arange(min(checked_count(n, "n"), len(self))))

    def sample(self, n: int = 5, random_state: RandomState = None) -> Corpus:
        """Return the corpus of some rows with text, drawn at random, in their order."""
        rows = np.flatnonzero(self.status == TEXT)
        rng = np.random.default_rng(resolve_seed(random_state))
        return self.take(np.sort(rng.permutation(rows)[: checked_count(n, "n")]))

    def to_frame(self) -> pd.DataFrame:
        """Return a table with the columns id, text and those of the metadata."""
        own = {"id": as_column(self.ids), "text": as_column(self.texts)}
        frame = pd.DataFrame(own, index=self.index)
        others = [name for name in self.metadata.columns if name not in own]
        return pd.concat([frame, self.metadata[others]], axis=1)

    @property
    def index(self) -> pd.Index:
        """The caller's row labels."""
        return self.metadata.index

    @property
    def time(self) -> pd.Series | None:
        """Date of each row (datetime64, NaT where missing), or None without a time column."""
        return None if self.time_column is None else self.metadata[self.time_column]

    @property
    def group(self) -> pd.Series | None:
        """Group of each row, or None without a group column."""
        return None if self.group_column is None else self.metadata[self.group_column]

    @cached_property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """128-bit hash of each normalised text, shape (n_rows, 2)."""
        return read_texts(self.texts, "texts").hashes

    @cached_property
    def _is_normal(self) -> npt.NDArray[np.bool_]:
        """Whether each text is known to be its own normal form."""
        return np.zeros(len(self), dtype=np.bool_)

    @cached_property
    def _distinct(self) -> DistinctDocuments:
        return find_distinct(self.hashes, self.status)

    def distinct(self) -> DistinctDocuments:
        """Return which rows share a text: equal after `normalize_text`.

        Documents are ordered by their hash, so that nothing computed from them depends on the
        order of the rows.
        """
        return self._distinct

    def document_texts(self) -> Sequence[str]:
        """Return the normalised text of each distinct document, in the order of `distinct`.

        A list, or where the texts are in Arrow a sequence that reads them there.
        """
        rows = self.distinct().first_rows
        if isinstance(self.texts, ArrowTexts):
            return self.texts.take(rows, self._is_normal[rows])
        return [
            self.texts[row] if is_normal else normalize_text(self.texts[row])
            for row, is_normal in zip(rows.tolist(), self._is_normal[rows].tolist(), strict=True)
        ]

    def take(self, rows: npt.ArrayLike) -> Corpus:
        """Return the corpus of some rows, with their ids, metadata and index labels.

        Parameters
        ----------
        rows : int array of shape (n_taken,)
            Positions, from 0, each at most once.

        Raises
        ------
        InputError
            A position is repeated or does not exist, or `rows` is not made of integers.
        """
        chosen = np.atleast_1d(np.asarray(rows))
        if chosen.size == 0:
            chosen = chosen.astype(np.int64)
        if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
            found = f"an array of {chosen.dtype} with shape {chosen.shape}"
            raise InputError(
                "rows", "integer positions", found=found, remedy="use np.flatnonzero(mask)"
            )
        outside = chosen[(chosen < 0) | (chosen >= len(self))]
        if len(outside):
            raise InputError("rows", f"positions from 0 to {len(self) - 1}", int(outside[0]))
        if len(np.unique(chosen)) < len(chosen):
            raise InputError("rows", "distinct", remedy="use np.unique(rows)")
        message = f"{len(chosen)} of {len(self)} rows were taken."
        return self._with(
            Decision("corpus", "rows_taken", len(chosen), message),
            texts=rows_of(self.texts, chosen),
            ids=rows_of(self.ids, chosen),
            status=self.status[chosen],
            metadata=self.metadata.iloc[chosen],
            hashes=self.hashes[chosen],
            _is_normal=self._is_normal[chosen],
        )

    def _with(self, *notes: Decision, **fields: Any) -> Corpus:
        """Return a corpus of other fields, with further notes."""
        kept = ("text_column", "time_column", "group_column", "source")
        own = {name: getattr(self, name) for name in kept}
        fields["status"].flags.writeable = False
        return Corpus.of_fields(**{**own, **fields, "notes": (*self.notes, *notes)})

    def passages(
        self, encoder: Any = None, *, most: int | None = None, overlap: int | None = None
    ) -> Corpus:
        """Return a corpus of passages, so that a long text may hold several topics.

        A passage is a window of whole sentences, which overlaps the next. The row that it comes
        from, its number there, and where it lies are the columns ``passage_of`` (an id),
        ``passage``, ``passage_start`` and ``passage_stop``.

        Parameters
        ----------
        encoder : SentenceEncoder, optional
            Passages are as long as it reads. Without one, words are counted.
        most : int, optional
            Words of a passage, punctuation marks counted; 180 by default.
        overlap : int, optional
            Words that a passage shares with the next at most; an eighth by default.

        Raises
        ------
        InputError
            A column of such a name is there already, or a parameter is bad.
        """
        taken = [name for name in PASSAGE_COLUMNS if name in self.metadata]
        if taken:
            raise InputError(f"the corpus has a column {taken[0]!r} already; rename it")
        texts, rows, spans = split_into_passages(self, encoder, most=most, overlap=overlap)
        metadata = self.metadata.iloc[rows].reset_index(drop=True)
        numbers = metadata.groupby(np.array(rows)).cumcount().to_numpy() + 1
        ids = [self.ids[row] for row in rows]
        begins, ends = ([span[side] for span in spans] for side in (0, 1))
        for name, column in zip(PASSAGE_COLUMNS, (ids, numbers, begins, ends), strict=True):
            metadata[name] = pd.Series(column, dtype=str if column is ids else np.int64)
        message = spell_count(len(self), "row was", "rows were")
        message += f" cut into {spell_count(len(rows), 'passage', 'passages')}."
        return self._with(
            Decision("corpus", "passages", len(rows), message),
            texts=tuple(texts),
            ids=tuple(f"{name}#{number}" for name, number in zip(ids, numbers, strict=True)),
            status=self.status[rows],
            metadata=metadata,
        )


def require_text(corpus: Corpus) -> None:
    """Raise InputError where no row of a corpus has text."""
    if (corpus.status == TEXT).any():
        return
    n_missing = int((corpus.status == MISSING).sum())
    column = f" in column {corpus.text_column!r}" if corpus.text_column else ""
    raise InputError(
        f"{corpus.source} has no text{column}: of {len(corpus)} rows {len(corpus) - n_missing} are "
        f"empty and {n_missing} missing; check the text column"
    )


def _is_path(text: str) -> bool:
    """Return whether a string names a file, by its ending or because there is one."""
    if "\n" in text or len(text) > 1000:
        return False
    return text.lower().removesuffix(".gz").endswith(SUFFIXES) or Path(text).exists()


def recall_hashes(corpus: Corpus, documents: DistinctDocuments) -> Corpus:
    """Return a corpus that knows its documents from before, so that no text is hashed again."""
    if "hashes" not in vars(corpus):
        hashes = documents.hashes[np.maximum(documents.of_row, 0)]
        others = np.flatnonzero(documents.of_row < 0)
        read = read_texts(rows_of(corpus.texts, others), "texts")
        hashes[others] = read.hashes
        hashes.flags.writeable = False
        vars(corpus)["hashes"] = hashes
    vars(corpus)["_distinct"] = documents
    return corpus


def blank_corpus(corpus: Corpus, columns: Sequence[Any] = ()) -> Corpus:
    """Return a corpus of as many rows, without texts, ids, labels, notes and most columns."""
    for name in columns:
        if name not in corpus.metadata.columns:
            there = list(corpus.metadata.columns)
            raise InputError(f"expected columns of the corpus, got {name!r}; there are {there}")
    is_text = corpus.status == TEXT
    nothing = read_texts([""], "texts").hashes
    hashes = np.where(is_text[:, None], corpus.hashes, nothing)
    hashes.flags.writeable = False
    return Corpus.of_fields(
        texts=("",) * len(corpus),
        ids=tuple(content_ids(hashes)),
        status=corpus.status,
        metadata=corpus.metadata[list(columns)].reset_index(drop=True),
        time_column=corpus.time_column if corpus.time_column in columns else None,
        group_column=corpus.group_column if corpus.group_column in columns else None,
        source="texts left out",
        hashes=hashes,
        _distinct=corpus.distinct(),
    )


def join_corpora(first: Corpus, second: Corpus) -> Corpus:
    """Put the rows of a corpus below those of another."""
    notes: list[Decision] = []
    table = second.metadata
    roles = {}
    for role in ("time", "group"):
        table, roles[role] = _same_role(first, second, table, role, notes)
    ids, n_renamed = _apart(first.ids, second.ids)
    if n_renamed:
        message = f'{n_renamed:,} ids of added rows were taken; they got "-2", "-3" ... at the end.'
        notes.append(Decision("corpus", "ids_renamed", n_renamed, message))
    metadata = _below(first.metadata, table)
    shared = first.metadata.columns.intersection(table.columns)
    lacking = [str(name) for name in metadata.columns if name not in shared]
    if lacking:
        message = f"Columns that not all rows have are missing in the others: {lacking}."
        notes.append(Decision("corpus", "columns_missing", lacking, message))
    message = spell_count(len(second), "row", "rows")
    message += f" from {second.source} put below {len(first):,}."
    notes.append(Decision("corpus", "rows_added", len(second), message))
    return first._with(
        *second.notes,
        *notes,
        texts=below(first.texts, second.texts),
        ids=below(first.ids, ids),
        status=np.concatenate([first.status, second.status]),
        metadata=metadata,
        time_column=roles["time"],
        group_column=roles["group"],
        # Hashing is the slow part of reading; what is known already is not worked out again.
        hashes=np.concatenate([first.hashes, second.hashes]),
        _is_normal=np.concatenate([first._is_normal, second._is_normal]),
    )


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
        notes.append(Decision("corpus", f"{role}_renamed", str(theirs), message))
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
        # What a table lacks is missing, of the type that pandas gives a column with gaps.
        parts = []
        for table, other in ((upper, lower), (lower, upper)):
            if name in table.columns:
                parts.append(table[name])
            else:
                like = other[name].set_axis(range(len(other)))
                parts.append(like.reindex(range(-len(table), 0)))
        if 0 in map(len, parts):  # whose type says nothing
            parts = [part for part in parts if len(part)] or parts[:1]
        columns[name] = pd.concat(parts, ignore_index=True)
    made = pd.DataFrame(columns, index=pd.RangeIndex(len(index)))
    made.columns = pd.Index(list(columns), dtype=object if not columns else None)
    return made.set_axis(index)


def _is_numbered(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _apart(taken: Sequence[str], ids: Sequence[str]) -> tuple[tuple[str, ...], int]:
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
