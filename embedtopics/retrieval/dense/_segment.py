"""Searching one segment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.retrieval.dense._codes import Codes, open_codes
from embedtopics.retrieval.dense._exact import (
    Allowed,
    allowed_rows,
    nearest_among,
    nearest_exactly,
    parts_of,
    work_on_parts,
)
from embedtopics.retrieval.dense._files import KINDS, read_about, read_vectors

QUERIES_AT_ONCE = 16
"""Queries that are given to FAISS together; from twenty on it would sum in another order."""

FEW_ROWS = 20_000
"""Allowed rows that are compared one by one, in a few milliseconds, instead of letting the index
pass over all others."""

FEW_SHARE = 0.05
"""Share of rows that are compared one by one, however many these are: up to about a tenth that was
as fast as to look into all lists."""

HALF = 0.5


@dataclass(frozen=True, eq=False)
class DenseSegment:
    """The vectors of one segment, and a way to find the nearest; several threads may search.

    `vectors` (n, d) are float32, or the bits of float16 as uint16. Candidates come from `index`,
    which looks into `n_probe` lists for `n_candidates` where ten vectors are wanted; without one
    every vector is compared. `about` is what `build_dense` returned.
    """

    kind: str
    vectors: npt.NDArray[Any]
    index: Codes | None
    n_probe: int
    n_candidates: int
    about: dict[str, Any]

    def __len__(self) -> int:
        return len(self.vectors)

    def search(
        self, queries: npt.ArrayLike, k: int, rows: npt.ArrayLike | None = None
    ) -> tuple[FloatArray, Int64Array]:
        """Find the nearest vectors to each query.

        Every similarity is the inner product of the query and the vector as it is stored, summed
        in float32 in one order: it depends neither on other queries nor on the kind of index, but
        for the rounding of vectors that are kept in float16.
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
                "queries", f"vectors of shape (n_queries, {d})",
                found=f"{asked.dtype} of {asked.shape}",
            )  # fmt: skip
        with np.errstate(over="ignore"):  # too large is not finite, and refused as such
            asked = np.asarray(asked, dtype=np.float32, order="C")
        if not np.isfinite(asked).all():
            row = int(np.argmin(np.isfinite(asked).all(axis=1)))
            raise InputError("queries", "finite", found="NaN or infinity", row=row)
        return asked

    def _is_few(self, allowed: Allowed, n_wanted: int) -> bool:
        """Return whether it is best to compare every allowed vector."""
        if self.index is None or 2 * self._n_candidates(n_wanted) >= allowed.n_rows:
            return True
        return not allowed.is_all and (allowed.n_rows <= FEW_ROWS or allowed.share <= FEW_SHARE)

    def _n_candidates(self, n_wanted: int) -> int:
        """Return how many vectors are compared in full."""
        return self.n_candidates * max(10, n_wanted) // 10

    def _look(self, queries: FloatArray, allowed: Allowed, k: int) -> tuple[FloatArray, Int64Array]:
        """Find candidates, compare them in full, and compare all where candidates were too few."""
        index = self.index
        assert index is not None
        n_probe = min(index.n_lists, int(np.ceil(self.n_probe * self._further(allowed, k))))
        n_candidates = min(allowed.n_rows, self._n_candidates(k))
        selector, _bits = allowed.selector()
        near = np.empty((len(queries), k), dtype=np.float32)
        found = np.empty((len(queries), k), dtype=np.int64)

        def work(part: slice) -> None:
            candidates = index.candidates(queries[part], n_candidates, n_probe, selector)
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
        if allowed.share < HALF:
            return float(self.index.n_lists if self.index else 1)
        return float(max(1.0, k / 10.0) ** 0.5 / allowed.share)


def open_dense(folder: str | Path, mmap: bool = True) -> DenseSegment:
    """Open what `build_dense` wrote."""
    folder = Path(folder)
    about = read_about(folder)
    n, d, kind = int(about["n"]), int(about["d"]), str(about["kind"])
    if kind not in KINDS:
        raise CorruptFileError(f"{folder} holds an index of unknown kind {kind!r}; build again")
    vectors = read_vectors(folder, str(about["vectors"]), n, d, mmap)
    parameters = about["parameters"]
    is_flat = kind in ("flat", "hnsw")
    index = None if is_flat else open_codes(folder / "dense", n, d)
    n_probe, n_candidates = parameters.get("breadth"), parameters.get("n_candidates")
    return DenseSegment(kind, vectors, index, int(n_probe or 1), int(n_candidates or 1), about)
