"""The corpus: texts with identifiers and metadata, row by row as the caller gave them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics.corpus.building import Parts, read_list, read_table
from embedtopics.corpus.hashing import (
    EMPTY,
    MISSING,
    TEXT,
    find_distinct,
    normalize_text,
    read_texts,
    replace_surrogates,
)
from embedtopics.corpus.passages import PASSAGE_COLUMNS, split_into_passages
from embedtopics.corpus.readers import read_file
from embedtopics.corpus.tables import as_table, is_frame, name_row, note
from embedtopics.errors import InputError
from embedtopics.results import Decision, DistinctDocuments

__all__ = ["Corpus", "require_text"]


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Texts, with what is known about each, aligned with the caller's rows for ever.

    Rows without text stay in place and are marked. Make one with `Corpus.of`, `from_file`,
    `from_frame` or `from_texts` rather than by hand.

    Parameters
    ----------
    texts : tuple of str
        As given, one a row; "" where missing. Lone surrogates are replaced by U+FFFD, so that
        every text can be written as UTF-8.
    ids : tuple of str
        A different one in each row: from the id column where there is one, else made from the
        content, so that they depend on other rows only where a text is repeated.
    status : int8 ndarray of shape (n_rows,)
        `TEXT` (0), `EMPTY` (1: nothing visible) or `MISSING` (2: None, NaN).
    metadata : pandas.DataFrame
        The other columns, with the caller's index. The time column holds parsed dates.
    text_column, time_column, group_column : str, optional
        Where they came from.
    source : str
        Name of the file, or the type that was given.
    notes : tuple of Decision
        What the reader guessed or repaired.

    Examples
    --------
    >>> corpus = Corpus.of(["A text.", None, "Another  one.", "Another one."])
    >>> corpus
    Corpus(4 rows from list: 3 with text, 0 empty, 1 missing)
    >>> len(corpus.distinct())
    2
    """

    texts: tuple[str, ...]
    ids: tuple[str, ...]
    status: npt.NDArray[np.int8]
    metadata: pd.DataFrame
    text_column: str | None = None
    time_column: str | None = None
    group_column: str | None = None
    source: str = "list"
    notes: tuple[Decision, ...] = ()

    def __post_init__(self) -> None:
        lengths = [len(self.texts), len(self.ids), len(self.status), len(self.metadata)]
        if len(set(lengths)) > 1:
            raise InputError(
                "texts, ids, status and metadata must have one entry a row, got lengths "
                f"{lengths}; use Corpus.of to build a corpus"
            )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.texts)

    def __repr__(self) -> str:
        n_text, n_empty, n_missing = (
            int((self.status == kind).sum()) for kind in (TEXT, EMPTY, MISSING)
        )
        return (
            f"Corpus({len(self)} rows from {self.source}: {n_text} with text, "
            f"{n_empty} empty, {n_missing} missing)"
        )

    @classmethod
    def from_texts(
        cls, texts: Any, ids: Iterable[object] | None = None, index: Any = None
    ) -> Corpus:
        """Make a corpus of a list of strings.

        Parameters
        ----------
        texts : sequence of str
            A list, tuple, one-dimensional array, or a Series or column of any library. None,
            NaN, NaT and pandas.NA are missing texts.
        ids : iterable, optional
            A different one for each text.
        index : pandas.Index or sequence, optional
            Row labels; by default those of a pandas Series, else 0, 1, 2 ...

        Raises
        ------
        InputError
            `texts` is one string or no list; a value is no string; ids are missing or repeated.
        """
        return cls._of_parts(read_list(texts, ids, index))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        text: str | None = None,
        id: str | None = None,
        time: str | None = None,
        group: str | None = None,
    ) -> Corpus:
        """Make a corpus of a table.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame, pyarrow.Table, datasets.Dataset, dict of lists
            Never changed.
        text : str, optional
            Column of texts. By default it is chosen by name or length, which is noted.
        id, time, group : str, optional
            Columns of identifiers, of dates (see `parse_dates`) and of groups; unused unless
            named.

        Raises
        ------
        InputError
            A column does not exist or does not hold what it should.
        """
        return cls._of_parts(read_table(as_table(frame), text, id, time, group))

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
            A csv, tsv, jsonl (ndjson), json or parquet file; a .txt file of one document a
            line; each may be gzipped. Or a folder of .txt files, one document each.
        text, id, time, group : str, optional
            Columns, as in `from_frame`. Cells such as "NA" in the text column of a csv or tsv
            file are missing texts, which is noted.
        encoding : str, default="utf-8"
            A byte-order mark is obeyed.
        limit : int, optional
            Read only this many rows, the first.

        Raises
        ------
        InputError
            The file is missing, empty, unreadable or broken; the message names the row.
        """
        table = read_file(Path(path), encoding, limit)
        return cls._of_parts(read_table(table, text, id, time, group))

    @classmethod
    def of(cls, data: Any) -> Corpus:
        """Make a corpus of whatever holds texts.

        Parameters
        ----------
        data : Corpus, sequence of str, frame, dataset or pathlib.Path
            See `from_texts`, `from_frame` and `from_file`; a corpus is returned as it is.

        Raises
        ------
        InputError
            As the three; and for a single str, which might be a text as well as a path.
        """
        if isinstance(data, Corpus):
            return data
        if isinstance(data, os.PathLike):
            return cls.from_file(data)
        if is_frame(data):
            return cls.from_frame(data)
        return cls.from_texts(data)

    @classmethod
    def _of_parts(cls, parts: Parts) -> Corpus:
        rows = parts.rows
        corpus = cls(
            texts=rows.texts,
            ids=parts.ids,
            status=rows.status,
            metadata=parts.metadata,
            text_column=parts.text_column,
            time_column=parts.time_column,
            group_column=parts.group_column,
            source=replace_surrogates(parts.source),
            notes=parts.notes,
        )
        # They were needed for the ids; a cached property keeps its value under its name.
        vars(corpus).update(hashes=rows.hashes, _is_normal=rows.is_normal)
        return corpus

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
        return read_texts(self.texts, "texts", name_row).hashes

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

    def document_texts(self) -> list[str]:
        """Return the normalised text of each distinct document, in the order of `distinct`."""
        rows = self.distinct().first_rows
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
            raise InputError(
                f"rows must be integer positions, got an array of {chosen.dtype} with shape "
                f"{chosen.shape}; give np.flatnonzero(mask) instead of a mask"
            )
        outside = chosen[(chosen < 0) | (chosen >= len(self))]
        if len(outside):
            raise InputError(
                f"rows must be from 0 to {len(self) - 1}, got {outside[0]}; count rows from 0"
            )
        if len(np.unique(chosen)) < len(chosen):
            raise InputError("rows must be distinct, got a row more than once; use np.unique(rows)")
        positions = chosen.tolist()
        status = self.status[chosen]
        status.flags.writeable = False
        message = f"{len(chosen)} of {len(self)} rows were taken."
        taken = Corpus(
            texts=tuple(self.texts[row] for row in positions),
            ids=tuple(self.ids[row] for row in positions),
            status=status,
            metadata=self.metadata.iloc[chosen],
            text_column=self.text_column,
            time_column=self.time_column,
            group_column=self.group_column,
            source=self.source,
            notes=(*self.notes, note("rows_taken", len(chosen), message)),
        )
        vars(taken).update(hashes=self.hashes[chosen], _is_normal=self._is_normal[chosen])
        return taken

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
            raise InputError(f"expected no column named {taken[0]!r} yet, got one; rename it")
        texts, rows, spans = split_into_passages(self, encoder, most=most, overlap=overlap)
        metadata = self.metadata.iloc[rows].reset_index(drop=True)
        numbers = metadata.groupby(np.array(rows)).cumcount().to_numpy() + 1
        ids = [self.ids[row] for row in rows]
        begins, ends = ([span[side] for span in spans] for side in (0, 1))
        for name, column in zip(PASSAGE_COLUMNS, (ids, numbers, begins, ends), strict=True):
            metadata[name] = pd.Series(column, dtype=str if column is ids else np.int64)
        status = self.status[rows]
        status.flags.writeable = False
        message = f"{len(self):,} rows were cut into {len(rows):,} passages."
        return Corpus(
            texts=tuple(texts),
            ids=tuple(f"{name}#{number}" for name, number in zip(ids, numbers, strict=True)),
            status=status,
            metadata=metadata,
            text_column=self.text_column,
            time_column=self.time_column,
            group_column=self.group_column,
            source=self.source,
            notes=(*self.notes, note("passages", len(rows), message)),
        )


def require_text(corpus: Corpus) -> None:
    """Raise InputError where no row of a corpus has text.

    Such a corpus may exist, and be looked at; nothing can be learnt from it.
    """
    if (corpus.status == TEXT).any():
        return
    n_missing = int((corpus.status == MISSING).sum())
    column = f" in column {corpus.text_column!r}" if corpus.text_column else ""
    raise InputError(
        f"{corpus.source}: expected at least one text{column}, got {len(corpus)} rows of which "
        f"{len(corpus) - n_missing} are empty and {n_missing} missing; check the text column"
    )
