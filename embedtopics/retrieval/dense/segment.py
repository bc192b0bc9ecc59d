"""Searching one segment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.retrieval.dense._threads import parts_of, work_on_parts
from embedtopics.retrieval.dense.codes import Codes, open_codes
from embedtopics.retrieval.dense.exact import SPARE, nearest_among, nearest_exactly
from embedtopics.retrieval.dense.files import read_about, read_vectors
from embedtopics.retrieval.dense.graph import Graph, open_graph
from embedtopics.retrieval.dense.settings import KINDS

__all__ = ["DenseSegment", "allowed_rows", "open_dense", "open_index"]

QUERIES_AT_ONCE = 16
"""Queries that are given to FAISS together; from twenty on it would sum in another order."""

FEW_ROWS = 20_000
"""Rows that are sooner compared one by one, in one to two milliseconds, than found by an index
that has to pass over all others."""

FEW_SHARE = 0.02
"""Share of rows that are compared one by one, however many these are: exact where few pass."""


@dataclass(frozen=True, eq=False)
class DenseSegment:
    """The vectors of one segment, and a way to find the nearest.

    Nothing in it changes by a search: several threads may search at once.

    Parameters
    ----------
    kind : {"flat", "hnsw", "ivf", "ivfpq", "sq"}
    vectors : ndarray of shape (n, d)
        float32, or the bits of float16 as uint16; read-only.
    index : Codes, Graph or None
        Where candidates come from; None compares every vector.
    breadth : int
        How far the index looks, so that enough of the ten nearest are found: lists of "ivf" and
        "ivfpq", or the breadth of the walk of "hnsw".
    n_candidates : int
        Vectors that are compared in full where ten are wanted.
    about : mapping
        What `build_dense` returned.
    """

    kind: str
    vectors: npt.NDArray[Any]
    index: Codes | Graph | None
    breadth: int
    n_candidates: int
    about: dict[str, Any]

    def __len__(self) -> int:
        return len(self.vectors)

    def search(
        self, queries: npt.ArrayLike, k: int, rows: npt.ArrayLike | None = None
    ) -> tuple[FloatArray, Int64Array]:
        """Find the nearest vectors to each query.

        Every similarity is the inner product of the query and the vector as it is stored, summed
        in float32 in one order: it depends neither on other queries nor on the kind of index, and
        only "flat" or "hnsw" against "sq" or "ivfpq" differ, by the rounding to float16.

        Parameters
        ----------
        queries : float32 array of shape (n_queries, d)
            Finite; of length 1 if similarities are to be cosines.
        k : int
        rows : int64 array of rows, or bool array of shape (n,), optional
            Those that may be found; by default all. Where at most 20,000 are allowed, or 2 % of
            all, each is compared, whatever the kind of index.

        Returns
        -------
        similarities : float32 ndarray of shape (n_queries, k)
            Descending. -inf where there is none: that is so only if fewer than k are allowed.
        found : int64 ndarray of shape (n_queries, k)
            Ties ascending. -1 where there is none.

        Raises
        ------
        InputError
            If k is below 1, queries have another number of dimensions or are not finite, or rows
            are not of this segment.
        """
        k = checked_count(k, "k")
        asked = self._checked_queries(queries)
        allowed = allowed_rows(rows, len(self))
        n_allowed = len(self) if allowed is None else len(allowed)
        near = np.full((len(asked), k), -np.inf, dtype=np.float32)
        found = np.full((len(asked), k), -1, dtype=np.int64)
        n_wanted = min(k, n_allowed)
        if n_wanted and len(asked):
            part = slice(0, n_wanted)
            if self._is_few(n_allowed, n_wanted):
                every = np.arange(len(self)) if allowed is None else allowed
                answer = nearest_exactly(asked, self.vectors, every, n_wanted)
            else:
                answer = self._look(asked, allowed, n_wanted)
            near[:, part], found[:, part] = answer
        return near, found

    def _checked_queries(self, queries: npt.ArrayLike) -> FloatArray:
        asked = np.asarray(queries)
        d = self.vectors.shape[1]
        if asked.ndim != 2 or asked.shape[1] != d or asked.dtype.kind not in "fiu":
            raise InputError(
                f"expected queries as an array of shape (n_queries, {d}); got {asked.dtype} of "
                f"shape {asked.shape}; encode them by the encoder of the collection"
            )
        asked = np.asarray(asked, dtype=np.float32, order="C")
        if not np.isfinite(asked).all():
            row = int(np.argmin(np.isfinite(asked).all(axis=1)))
            raise InputError(f"expected finite queries; query {row} is not; encode it again")
        return asked

    def _is_few(self, n_allowed: int, n_wanted: int) -> bool:
        """Tell whether it is best to compare every allowed vector."""
        if self.index is None or 2 * self._n_candidates(n_wanted) >= n_allowed:
            return True
        is_all = n_allowed == len(self)
        return not is_all and n_allowed <= max(FEW_ROWS, FEW_SHARE * len(self))

    def _n_candidates(self, n_wanted: int) -> int:
        """Return how many vectors are compared in full; the graph compares all that it meets."""
        if isinstance(self.index, Graph):
            return n_wanted + SPARE
        return self.n_candidates * max(10, n_wanted) // 10

    def _look(
        self, queries: FloatArray, allowed: Int64Array | None, k: int
    ) -> tuple[FloatArray, Int64Array]:
        """Find candidates, compare them in full, and compare all where candidates were too few."""
        index = self.index
        assert index is not None
        n_allowed = len(self) if allowed is None else len(allowed)
        # The nearest that are allowed, or that are more than ten, lie further away.
        further = (len(self) / n_allowed) * max(1.0, k / 10.0) ** 0.5
        breadth = min(index.widest, int(np.ceil(self.breadth * further)))
        n_candidates = min(n_allowed, self._n_candidates(k))
        selector, _bits = _selector(allowed, len(self))
        near = np.empty((len(queries), k), dtype=np.float32)
        found = np.empty((len(queries), k), dtype=np.int64)

        def work(part: slice) -> None:
            candidates = index.candidates(queries[part], n_candidates, breadth, selector)
            near[part], found[part] = nearest_among(queries[part], self.vectors, candidates, k)

        work_on_parts(work, parts_of(len(queries), QUERIES_AT_ONCE))
        short = np.flatnonzero(found[:, -1] < 0)
        if len(short):
            every = np.arange(len(self)) if allowed is None else allowed
            near[short], found[short] = nearest_exactly(queries[short], self.vectors, every, k)
        return near, found


def allowed_rows(rows: npt.ArrayLike | None, n: int) -> Int64Array | None:
    """Return rows ascending, each once; None for all of them.

    Raises
    ------
    InputError
        If they are neither rows below n nor a mask of n truth values.
    """
    if rows is None:
        return None
    given = np.asarray(rows)
    if given.dtype == np.bool_:
        if given.shape != (n,):
            raise InputError(
                f"expected a mask of shape ({n},), one truth value a row; got {given.shape}"
            )
        return None if given.all() and n else np.flatnonzero(given)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InputError(
            "expected allowed rows as a one-dimensional array of whole numbers, or a mask; got "
            f"{given.dtype} of shape {given.shape}"
        )
    allowed = given.astype(np.int64)
    if (np.diff(allowed) <= 0).any():
        allowed = np.unique(allowed)
    if allowed.size and (allowed[0] < 0 or allowed[-1] >= n):
        bad = allowed[0] if allowed[0] < 0 else allowed[-1]
        raise InputError(f"expected allowed rows from 0 to {n - 1}; got {bad}")
    return None if allowed.size == n and n else allowed


def _selector(allowed: Int64Array | None, n: int) -> tuple[Any, Any]:
    """Return FAISS's selector of rows, and the bits that must live as long as it."""
    import faiss

    if allowed is None:
        return None, None
    mask = np.zeros(n, dtype=np.bool_)
    mask[allowed] = True
    bits = np.packbits(mask, bitorder="little")
    return faiss.IDSelectorBitmap(bits), bits


def open_dense(folder: str | Path, mmap: bool = True) -> DenseSegment:
    """Open what `build_dense` wrote.

    Parameters
    ----------
    folder : str or Path
        Of the segment.
    mmap : bool
        Map the vectors (and a graph) into memory instead of reading them; the answers are the
        same. Codes are always read.

    Returns
    -------
    DenseSegment

    Raises
    ------
    CorruptFileError
        If a file is missing, of another size than the one that was written, or not of these
        vectors. That bytes were changed in place is told by the checksums of the collection.
    """
    folder = Path(folder)
    about = read_about(folder)
    n, d, kind = int(about["n"]), int(about["d"]), str(about["kind"])
    if kind not in KINDS:
        raise CorruptFileError(f"{folder} holds an index of unknown kind {kind!r}; build again")
    vectors = read_vectors(folder, str(about["vectors"]), n, d, mmap)
    parameters = about["parameters"]
    return DenseSegment(
        kind, vectors, open_index(folder, kind, vectors, mmap),
        int(parameters.get("breadth") or 1), int(parameters.get("n_candidates") or 1), about,
    )  # fmt: skip


def open_index(
    folder: Path, kind: str, vectors: npt.NDArray[Any], mmap: bool
) -> Codes | Graph | None:
    """Open what finds the candidates of a kind."""
    if kind == "flat":
        return None
    if kind == "hnsw":
        return open_graph(folder / "dense", vectors, mmap)
    return open_codes(folder / "dense", *vectors.shape)
