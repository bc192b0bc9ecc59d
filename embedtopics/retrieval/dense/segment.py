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
from embedtopics.retrieval.dense.filtering import Allowed, allowed_rows
from embedtopics.retrieval.dense.graph import Graph, open_graph
from embedtopics.retrieval.dense.settings import KINDS

__all__ = ["DenseSegment", "open_dense", "open_index"]

QUERIES_AT_ONCE = 16
"""Queries that are given to FAISS together; from twenty on it would sum in another order."""

FEW_ROWS = 20_000
"""Allowed rows that are compared one by one, in a few milliseconds, instead of letting the index
pass over all others."""

FEW_SHARE = 0.05
"""Share of rows that are compared one by one, however many these are: up to about a tenth that was
as fast as to look into all lists."""

FEW_SHARE_OF_GRAPH = 0.2
"""The same for a graph, on which one would walk for long among rows that may not be found."""

HALF = 0.5


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
            Those that may be found; by default all. Where at most 20,000 are allowed, or 5 % of
            all (with "hnsw", 20 %), each is compared, whatever the kind of index.

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
        near = np.full((len(asked), k), -np.inf, dtype=np.float32)
        found = np.full((len(asked), k), -1, dtype=np.int64)
        n_wanted = min(k, allowed.n_rows)
        if n_wanted and len(asked):
            if self._is_few(allowed, n_wanted):
                answer = nearest_exactly(asked, self.vectors, allowed.rows(), n_wanted)
            else:
                answer = self._look(asked, allowed, n_wanted)
            near[:, :n_wanted], found[:, :n_wanted] = answer
        return near, found

    def _checked_queries(self, queries: npt.ArrayLike) -> FloatArray:
        asked = np.asarray(queries)
        d = self.vectors.shape[1]
        if asked.ndim != 2 or asked.shape[1] != d or asked.dtype.kind not in "fiu":
            raise InputError(
                f"expected queries as an array of shape (n_queries, {d}); got {asked.dtype} of "
                f"shape {asked.shape}; encode them by the encoder of the collection"
            )
        with np.errstate(over="ignore"):  # too large is not finite, and refused as such
            asked = np.asarray(asked, dtype=np.float32, order="C")
        if not np.isfinite(asked).all():
            row = int(np.argmin(np.isfinite(asked).all(axis=1)))
            raise InputError(f"expected finite queries; query {row} is not; encode it again")
        return asked

    def _is_few(self, allowed: Allowed, n_wanted: int) -> bool:
        """Tell whether it is best to compare every allowed vector."""
        if self.index is None or 2 * self._n_candidates(n_wanted) >= allowed.n_rows:
            return True
        few_share = FEW_SHARE_OF_GRAPH if isinstance(self.index, Graph) else FEW_SHARE
        return not allowed.is_all and (allowed.n_rows <= FEW_ROWS or allowed.share <= few_share)

    def _n_candidates(self, n_wanted: int) -> int:
        """Return how many vectors are compared in full; the graph compares all that it meets."""
        if isinstance(self.index, Graph):
            return n_wanted + SPARE
        return self.n_candidates * max(10, n_wanted) // 10

    def _look(self, queries: FloatArray, allowed: Allowed, k: int) -> tuple[FloatArray, Int64Array]:
        """Find candidates, compare them in full, and compare all where candidates were too few."""
        index = self.index
        assert index is not None
        breadth = min(index.widest, int(np.ceil(self.breadth * self._further(allowed, k))))
        n_candidates = min(allowed.n_rows, self._n_candidates(k))
        selector, _bits = allowed.selector()
        near = np.empty((len(queries), k), dtype=np.float32)
        found = np.empty((len(queries), k), dtype=np.int64)

        def work(part: slice) -> None:
            candidates = index.candidates(queries[part], n_candidates, breadth, selector)
            near[part], found[part] = nearest_among(queries[part], self.vectors, candidates, k)

        work_on_parts(work, parts_of(len(queries), QUERIES_AT_ONCE))
        short = np.flatnonzero(found[:, -1] < 0)
        if len(short):
            near[short], found[short] = nearest_exactly(
                queries[short], self.vectors, allowed.rows(), k
            )
        return near, found

    def _further(self, allowed: Allowed, k: int) -> float:
        """Return how many times further than for the ten nearest of all the index looks.

        Those that are allowed may all lie far away, as with a filter by subject. Where less than
        half are, all lists are looked into: with their short codes that costs little.
        """
        if allowed.share < HALF and isinstance(self.index, Codes):
            return float(self.index.widest)
        return float(max(1.0, k / 10.0) ** 0.5 / allowed.share)


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
