"""One version of a collection with its indexes open."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._once import computed_once
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.retrieval.collection.segments import damage
from embedtopics.retrieval.collection.views import SegmentView, Snapshot
from embedtopics.retrieval.dense import DenseSegment, merge_nearest, open_dense
from embedtopics.retrieval.lexical import (
    LexicalSearcher,
    LexicalSegment,
    LexicalSettings,
    open_lexical,
)

__all__ = [
    "Allowed",
    "Opened",
    "allow",
    "nearest_passages",
    "open_snapshot",
    "stored_vectors",
    "vectors_at",
    "write_sum",
]

SUM = "sum.npy"
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Opened:
    """A version of a collection that can be searched; nothing in it changes.

    Parameters
    ----------
    snapshot : Snapshot
    dense : tuple of DenseSegment
    postings : tuple of LexicalSegment
    lexical : LexicalSearcher
        Of all segments together.
    findable : tuple of (bool ndarray or None)
        For each segment the passages that are there and have text; None where all are.
    sums : tuple of float64 ndarray of shape (n_dimensions,)
        Of all vectors of each segment.
    """

    snapshot: Snapshot
    dense: tuple[DenseSegment, ...]
    postings: tuple[LexicalSegment, ...]
    lexical: LexicalSearcher
    findable: tuple[Mask | None, ...]
    sums: tuple[npt.NDArray[np.float64], ...]

    @computed_once
    def mean_vector(self) -> npt.NDArray[np.float64]:
        """Mean of the vectors of all passages that can be found; not of unit length."""
        total, n = np.zeros(self.snapshot.settings["n_dimensions"]), 0
        for whole, dense, mask in zip(self.sums, self.dense, self.findable, strict=True):
            total += whole
            n += len(dense)
            gone = np.flatnonzero(~mask) if mask is not None else np.empty(0, np.int64)
            total -= stored_vectors(dense.vectors, gone).sum(axis=0, dtype=np.float64)
            n -= len(gone)
        return total / max(n, 1)

    @property
    def segments(self) -> tuple[SegmentView, ...]:
        """As in the snapshot."""
        return self.snapshot.segments


@dataclass(frozen=True, eq=False)
class Allowed:
    """The passages that a search may return.

    Parameters
    ----------
    rows : tuple of (int64 ndarray, bool ndarray or None)
        For each segment its rows or a mask of them; None for all.
    n : int
        How many there are, in all segments.
    """

    rows: tuple[Int64Array | Mask | None, ...]
    n: int

    def masks(self, segments: tuple[SegmentView, ...]) -> list[Mask | None]:
        """Return a mask for each segment."""
        made: list[Mask | None] = []
        for segment, rows in zip(segments, self.rows, strict=True):
            if rows is None or rows.dtype == np.bool_:
                made.append(rows)  # type: ignore[arg-type]
                continue
            mask = np.zeros(len(segment.documents), dtype=np.bool_)
            mask[rows] = True
            made.append(mask)
        return made


def open_snapshot(snapshot: Snapshot, mmap: bool, before: Opened | None = None) -> Opened:
    """Open the segments of a version; those that an earlier version had are open already.

    Raises
    ------
    CorruptFileError
        If a file is not as it was written.
    """
    # By content, not by name: another collection may have taken the folder's place.
    known: dict[str, _Parts] = {}
    if before is not None:
        opened = map(_Parts, before.dense, before.postings, before.sums)
        known = {view.content: own for view, own in zip(before.segments, opened, strict=True)}
    parts = [known.get(view.content) or _open_parts(view, mmap) for view in snapshot.segments]
    postings = tuple(part.postings for part in parts)
    findable = tuple(map(_findable, snapshot.segments))
    return Opened(
        snapshot=snapshot,
        dense=tuple(part.dense for part in parts),
        postings=postings,
        lexical=LexicalSearcher.of(
            postings,
            findable,  # what has no text counts nowhere
            LexicalSettings.of_json(snapshot.settings["lexical"]),
        ),
        findable=findable,
        sums=tuple(part.total for part in parts),
    )


class _Parts(NamedTuple):
    dense: DenseSegment
    postings: LexicalSegment
    total: npt.NDArray[np.float64]


def _open_parts(view: SegmentView, mmap: bool) -> _Parts:
    dense = open_dense(view.folder, mmap)
    postings = open_lexical(view.folder / "lexical", mmap)
    return _Parts(dense, postings, _read_sum(view.folder / SUM, dense.vectors.shape[1]))


def _read_sum(path: Path, width: int) -> npt.NDArray[np.float64]:
    try:
        # Opened here, because NumPy leaves a file open that it finds damaged.
        with path.open("rb") as file:
            total = np.load(file, allow_pickle=False)
        if total.shape != (width,) or total.dtype != np.float64 or not np.isfinite(total).all():
            raise ValueError(f"{total.dtype} of shape {total.shape}")
    except (OSError, ValueError, EOFError) as error:
        raise damage(path, str(error)) from error
    return np.asarray(total)


def _findable(view: SegmentView) -> Mask | None:
    has_text: Mask = view.spans[:, 1] > view.spans[:, 0]
    findable: Mask = view.alive & has_text
    return None if findable.all() else findable


def allow(opened: Opened, documents: Int64Array | None) -> Allowed:
    """Return the passages of documents, or all that can be found.

    Parameters
    ----------
    opened : Opened
    documents : int64 ndarray or None
        Numbers, ascending; None for all of the collection.
    """
    if documents is None:
        n = sum(
            len(view.documents) if mask is None else int(mask.sum())
            for view, mask in zip(opened.segments, opened.findable, strict=True)
        )
        return Allowed(opened.findable, n)
    rows = []
    for view, mask in zip(opened.segments, opened.findable, strict=True):
        # The passages of a document stand together.
        begin = np.searchsorted(view.documents, documents, "left")
        end = np.searchsorted(view.documents, documents, "right")
        sizes = end - begin
        first = np.repeat(begin - (np.cumsum(sizes) - sizes), sizes)
        own = (first + np.arange(len(first))).astype(np.int64)
        rows.append(own if mask is None else own[mask[own]])
    return Allowed(tuple(rows), sum(map(len, rows)))


def nearest_passages(
    opened: Opened, queries: FloatArray, k: int, allowed: Allowed
) -> tuple[FloatArray, Int64Array, Int64Array]:
    """Return the nearest passages of each query, over all segments.

    Returns
    -------
    similarities : float32 ndarray of shape (n_queries, k)
    segments, rows : int64 ndarray of the same shape
        -1 where there is none.
    """
    found = [
        segment.search(queries, k, rows)
        for segment, rows in zip(opened.dense, allowed.rows, strict=True)
    ]
    if not found:
        none = np.full((len(queries), k), -1, dtype=np.int64)
        return np.full((len(queries), k), -np.inf, dtype=np.float32), none, none.copy()
    return merge_nearest(found, k)


def vectors_at(opened: Opened, segments: Int64Array, rows: Int64Array) -> FloatArray:
    """Return the vectors of given passages, float32 of shape (n, n_dimensions)."""
    vectors = np.empty((len(rows), opened.snapshot.settings["n_dimensions"]), dtype=np.float32)
    for number in np.unique(segments).tolist():
        here = np.flatnonzero(segments == number)
        vectors[here] = stored_vectors(opened.dense[number].vectors, rows[here])
    return vectors


def stored_vectors(stored: npt.NDArray[Any], rows: npt.NDArray[Any]) -> FloatArray:
    """Return rows of a segment's vectors as float32, however they are stored."""
    chosen = stored[rows]
    if chosen.dtype == np.uint16:  # the bits of float16
        chosen = chosen.view(np.float16)
    return np.asarray(chosen, dtype=np.float32)


def write_sum(folder: Path, vectors: FloatArray) -> None:
    """Keep the sum of a segment's vectors, so that their mean costs no pass over them."""
    total = np.zeros(vectors.shape[1])
    for start in range(0, len(vectors), 65_536):
        total += vectors[start : start + 65_536].sum(axis=0, dtype=np.float64)
    np.save(folder / SUM, total)
