"""The corpus: texts with ids and metadata, in the rows of the caller."""

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

from embedtopics._utils.display import html_table, spell_count
from embedtopics._utils.habits import Habits
from embedtopics._utils.keywords import names_keywords
from embedtopics.corpus._columns import read_list, read_table
from embedtopics.corpus._files import DEMO, DEMO_COLUMNS, is_path, read_file
from embedtopics.corpus._readers import as_table, is_frame, is_records
from embedtopics.corpus._texts import (
    MISSING,
    TEXT,
    find_distinct,
    normalize_text,
    read_texts,
)
from embedtopics.corpus._windows import (
    PASSAGE_COLUMNS,
    WORDS_A_PASSAGE,
    split_into_passages,
)
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.errors import InputError
from embedtopics.results import Decision


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Corpus(Habits):
    """Texts with ids and metadata, aligned with the rows of the caller.

    Rows without text stay in place; `status` marks them.

    Parameters
    ----------
    data : sequence of str, frame, str, path-like or Corpus
        A list, array, Series or column of texts, in which None, NaN, NaT and pandas.NA are missing;
        a pandas or polars frame, Arrow table, ``datasets.Dataset``, dict of lists or list of dicts;
        or a path of files, see the notes. "embedtopics:demo" is the bundled corpus: 670 short texts
        on thirteen themes, with their dates and sources. The data are never changed.
    text : str or list of str, optional
        Text column of a frame or a file, or several, which are joined. By default it is chosen by
        name or length, and `decisions` report the choice.
    id, time, group : str, optional
        Columns of ids, dates and groups. Dates have one format in a column: ISO 8601 ("2021-05-17
        10:20", "2021-05", 2021), day and month in either order before the year, "17 May 2021",
        "20210517" or Unix time. A time with a zone keeps its clock. With a list of texts, `time`
        and `group` are columns of `metadata`.
    ids : iterable, optional
        Distinct ids of a list of texts.
    metadata : frame or dict of lists, optional
        Metadata of a list of texts, a row for each.
    encoding : str, default="utf-8"
        Encoding of a file, unless it has a byte-order mark.
    limit : int, optional
        Maximum number of rows to read of a file.

    Attributes
    ----------
    texts : tuple of str
        Texts of the rows, "" where missing, with lone surrogates replaced by U+FFFD.
    ids : tuple of str, or such a sequence
        From the id column or the names of files, else derived from the texts.
    status : int8 ndarray of shape (n_rows,)
        0: text, 1: empty (nothing visible), 2: missing (None, NaN).
    metadata : pandas.DataFrame
        The other columns, with the index of the caller; dates are parsed, and so are columns of
        numerals of files in one notation, such as "1e-05", "0,75" or "1,234.5" (see `decisions`).
    text_column, time_column, group_column : str or None, or a list of several text columns
    source : str
        Name of the file, or type of the data.
    decisions : tuple of Decision
        Guesses and repairs of the reader.

    Raises
    ------
    InputError
        If the file is missing, empty or damaged, a column does not exist or has unsuitable values,
        ids are missing or repeated, or a text is not a string. The message names the row.

    Notes
    -----
    A path is a file, a folder or a .zip archive of files, or a pattern of names:
    ``talks/{speaker}_{date}.txt`` reads columns from the names of the files. A table has a document
    in each row: csv, tsv, xlsx (its first sheet), jsonl (ndjson), json or parquet (for millions of
    texts); its header may stand below titles, and cells such as "NA" are missing texts. A txt file
    has a document on each line; docx, pdf, html and xml (TEI) files have one in each paragraph. In
    a folder or an archive, each file that is no table is one document. ``hub:org/dataset/split``
    downloads a dataset of the Hugging Face hub. Deletions are left out; of the alternatives of an
    edition, one is read. Packed files may unpack to a gigabyte, or to 20 times their size.

    Examples
    --------
    >>> corpus = Corpus(["A text.", None, "Another  one.", "Another one."])
    >>> corpus
    Corpus(4 rows from list: 3 with text, 0 empty, 1 missing)
    >>> len(corpus.distinct()), corpus[0], len(corpus[2:])
    (2, 'A text.', 2)
    >>> Corpus("embedtopics:demo").metadata.columns.tolist()
    ['date', 'source', 'language', 'theme']
    """

    _kind = "corpus"

    texts: Sequence[str]
    ids: Sequence[str]
    status: npt.NDArray[np.int8]
    metadata: pd.DataFrame
    text_column: str | list[str] | None
    time_column: str | None
    group_column: str | None
    source: str
    decisions: tuple[Decision, ...]

    @names_keywords
    def __init__(
        self,
        data: Any,
        text: str | Sequence[str] | None = None,
        *,
        id: str | None = None,
        time: str | None = None,
        group: str | None = None,
        ids: Iterable[object] | None = None,
        metadata: Any = None,
        encoding: str = "utf-8",
        limit: int | None = None,
    ) -> None:
        if isinstance(data, Corpus):
            vars(self).update(vars(data))
            return
        if isinstance(data, str) and data == DEMO:
            text = text or DEMO_COLUMNS["text"]
            id = id or DEMO_COLUMNS["id"]
            time = time or DEMO_COLUMNS["time"]
            group = group or DEMO_COLUMNS["group"]
        table = None
        if isinstance(data, os.PathLike) or (isinstance(data, str) and is_path(data)):
            table = read_file(Path(data), encoding, limit)
        elif is_frame(data) or is_records(data):
            table = as_table(data)
        unsuitable: dict[str, Any] = {"text": text, "id": id}
        expected = "left out where the texts are a list"
        if table is not None:
            unsuitable = {"ids": ids, "metadata": metadata}
            expected = f"left out where the texts are a column of a {table.source}"
        for name, value in unsuitable.items():
            if value is not None:
                raise InputError(name, expected)
        if table is None:
            fields = read_list(data, ids, metadata, time, group)
        else:
            fields = read_table(table, text, id, time, group)
        vars(self).update(fields)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the texts."""
        return iter(self.texts)

    def __getitem__(self, rows: Any) -> Any:
        """Return the text of one row, or the corpus of a slice, a mask or an array of rows."""
        is_row = isinstance(rows, int | np.integer)
        return self.texts[int(rows)] if is_row else self.take(np.arange(len(self))[rows])

    def __repr__(self) -> str:
        n_text, n_empty, n_missing = np.bincount(self.status, minlength=3)
        return (
            f"Corpus({len(self)} rows from {self.source}: {n_text} with text, "
            f"{n_empty} empty, {n_missing} missing)"
        )

    def _repr_html_(self) -> str:
        return html_table(self[:10].to_frame(), repr(self))

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the columns id, text and the metadata.

        Examples
        --------
        >>> Corpus({"text": ["One.", "Two."], "year": [2020, 2021]}, text="text").to_frame().shape
        (2, 3)
        """
        columns = {"id": [*self.ids], "text": [*self.texts]}
        frame = pd.DataFrame(columns, index=self.index)
        others = [name for name in self.metadata.columns if name not in columns]
        return pd.concat([frame, self.metadata[others]], axis=1)

    @property
    def index(self) -> pd.Index:
        """Row labels of the caller."""
        return self.metadata.index

    @property
    def time(self) -> pd.Series | None:
        """Date of each row (datetime64, NaT if missing), or None without a time column."""
        return None if self.time_column is None else self.metadata[self.time_column]

    @property
    def group(self) -> pd.Series | None:
        """Group of each row, or None without a group column."""
        return None if self.group_column is None else self.metadata[self.group_column]

    @cached_property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """128-bit hash of each normalized text, (n_rows, 2)."""
        return read_texts(self.texts, "texts").hashes

    @cached_property
    def _distinct(self) -> DistinctDocuments:
        return find_distinct(self.hashes, self.status)

    def distinct(self) -> DistinctDocuments:
        """Group the rows by normalized text, in the order of hashes, whatever that of rows.

        Examples
        --------
        >>> len(Corpus(["A text.", "A  text.", "Another one."]).distinct())
        2
        """
        return self._distinct

    def document_texts(self) -> Sequence[str]:
        """Return the normalized text of each distinct document, in the order of `distinct`."""
        rows = self.distinct().first_rows
        return [normalize_text(self.texts[row]) for row in rows.tolist()]

    def take(self, rows: npt.ArrayLike) -> Corpus:
        """Return the corpus of some rows, distinct positions from 0, with all that they have.

        Examples
        --------
        >>> Corpus(["One.", "Two.", "Three."]).take([2, 0]).texts
        ('Three.', 'One.')
        """
        positions = np.arange(len(self))[np.asarray(rows, dtype=np.int64)]
        if len(np.unique(positions)) < len(positions):
            raise InputError("rows", "distinct", remedy="use np.unique(rows)")
        message = f"{len(positions)} of {len(self)} rows were taken."
        return self._with(
            Decision("corpus", "rows_taken", len(positions), message),
            texts=tuple(self.texts[row] for row in positions.tolist()),
            ids=tuple(self.ids[row] for row in positions.tolist()),
            status=self.status[positions],
            metadata=self.metadata.iloc[positions],
            hashes=self.hashes[positions],
        )

    def _with(self, *decisions: Decision, **fields: Any) -> Corpus:
        """Return a corpus of other fields, with further decisions."""
        names = ("text_column", "time_column", "group_column", "source")
        unchanged = {name: getattr(self, name) for name in names}
        return corpus_of_fields(
            **{**unchanged, **fields, "decisions": (*self.decisions, *decisions)}
        )

    def passages(
        self,
        encoder: Any = None,
        *,
        max_words: int = WORDS_A_PASSAGE,
        max_overlap: int | None = None,
    ) -> Corpus:
        """Split texts into passages, so that a long text can have several topics.

        A passage is a window of whole sentences that overlaps the next. Columns hold its row, its
        number and its characters: ``passage_of``, ``passage``, ``passage_start``, ``passage_stop``.

        Parameters
        ----------
        encoder : SentenceEncoder, optional
            Passages have the maximum length of the encoder. By default words are counted.
        max_words : int
            Largest number of words and punctuation marks of a passage, without an encoder.
        max_overlap : int, optional
            Largest number of words in the overlap of two passages, without an encoder; by default
            an eighth of `max_words`.

        Returns
        -------
        Corpus
            A row for each passage.

        Raises
        ------
        InputError
            If the corpus has such a column, or a parameter is invalid.

        Examples
        --------
        >>> corpus = Corpus(["One two three. Four five six. Seven eight nine."])
        >>> corpus.passages(max_words=8, max_overlap=0).texts
        ('One two three. Four five six.', 'Seven eight nine.')
        """
        clashes = [name for name in PASSAGE_COLUMNS if name in self.metadata]
        if clashes:
            raise InputError(f"the corpus already has a column {clashes[0]!r}; rename it")
        texts, rows, spans = split_into_passages(
            self, encoder, max_words=max_words, max_overlap=max_overlap
        )
        metadata = self.metadata.iloc[rows].reset_index(drop=True)
        numbers = metadata.groupby(np.array(rows)).cumcount().to_numpy() + 1
        ids = [self.ids[row] for row in rows]
        begins, ends = ([span[side] for span in spans] for side in (0, 1))
        for name, column in zip(PASSAGE_COLUMNS, (ids, numbers, begins, ends), strict=True):
            metadata[name] = pd.Series(column, dtype=str if column is ids else np.int64)
        message = spell_count(len(self), "row was cut into", "rows were cut into")
        message += f" {spell_count(len(rows), 'passage', 'passages')}."
        return self._with(
            Decision("corpus", "passages", len(rows), message),
            texts=tuple(texts),
            ids=tuple(f"{name}#{number}" for name, number in zip(ids, numbers, strict=True)),
            status=self.status[rows],
            metadata=metadata,
        )


def as_corpus(data: Any) -> Corpus:
    """Return a corpus unchanged, or make one of other data."""
    return data if isinstance(data, Corpus) else Corpus(data)


def corpus_of_fields(**fields: Any) -> Corpus:
    """Make a corpus from its attributes."""
    corpus = Corpus.__new__(Corpus)
    fields["status"].flags.writeable = False
    defaults = {"text_column": None, "time_column": None, "group_column": None, "decisions": ()}
    vars(corpus).update({"source": "list", **defaults, **fields})
    return corpus


def require_text(corpus: Corpus) -> None:
    """Raise InputError if no row of a corpus has text."""
    if (corpus.status == TEXT).any():
        return
    n_missing = int((corpus.status == MISSING).sum())
    column = f" in column {corpus.text_column!r}" if corpus.text_column else ""
    raise InputError(
        f"{corpus.source} has no text{column}: of {len(corpus)} rows {len(corpus) - n_missing} are "
        f"empty and {n_missing} missing; check the text column"
    )
