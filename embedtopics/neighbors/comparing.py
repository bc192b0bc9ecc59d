"""Candidates -> nearest neighbours: every similarity is computed here, in one fixed order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int32Array, Int64Array

__all__ = [
    "NOBODY", "Neighbors", "Short", "exact_neighbors", "keep_nearest", "no_neighbors", "shorten",
]  # fmt: skip

SPARE = 16
"""Extra candidates fetched, so that ties and last-bit differences at the k-th place are settled
by the recomputed similarities and not by FAISS."""

NOBODY = -1
"""Stands where a list of neighbours, or of candidates, has no more."""

LARGEST = 127
"""Largest absolute value in a short form."""

DEVIATIONS = 6.0
"""Standard deviations of what is lost in a short form that are allowed for."""

ROUNDING = 1e-6
"""More than what the rounding of sums in float32 adds to that."""

ROWS_AT_ONCE = 8192
"""Vectors that are shortened at a time."""

Neighbors = tuple[Int32Array, FloatArray]
"""Indices and similarities, both of shape (n_queries, k), descending, ties by name."""


class Short(NamedTuple):
    """Vectors in a quarter of their space.

    Parameters
    ----------
    values : int8 ndarray of shape (n, n_dimensions)
    scale : float32 ndarray of shape (n, 2)
        What a step of one is worth in each row, and what rounding the row may do to a similarity:
        that of two vectors is not above the product of their short forms by more than the sum of
        the two.
    """

    values: npt.NDArray[np.int8]
    scale: FloatArray

    def take(self, rows: Int64Array | slice) -> Short:
        """Return some rows."""
        return Short(self.values[rows], self.scale[rows])


def shorten(vectors: FloatArray) -> Short:
    """Return the short forms of unit vectors.

    What is lost of each entry is taken for random and independent of the rest. Rounding then
    changes an inner product with another unit vector by a sum of standard deviation |r| / sqrt(d),
    r being what is lost of all d entries.

    Parameters
    ----------
    vectors : float32 ndarray of shape (n, n_dimensions)

    Returns
    -------
    Short
    """
    values = np.empty(vectors.shape, dtype=np.int8)
    scale = np.empty((len(vectors), 2), dtype=np.float32)
    for begin in range(0, len(vectors), ROWS_AT_ONCE):
        part = slice(begin, begin + ROWS_AT_ONCE)
        rows = vectors[part]
        largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
        step = np.maximum(largest, np.finfo(np.float32).tiny) / np.float32(LARGEST)
        whole = np.rint(rows / step)
        values[part] = whole
        rest = rows - whole * step
        scale[part, :1] = step
        lost = np.sqrt(np.einsum("ij,ij->i", rest, rest) / max(1, vectors.shape[1]))
        scale[part, 1] = DEVIATIONS * lost + ROUNDING
    return Short(values, scale)


def exact_neighbors(
    queries: FloatArray,
    embeddings: FloatArray,
    k: int,
    *,
    itself: Int64Array | None = None,
    names: Int64Array | None = None,
) -> Neighbors:
    """Compare every query with every document.

    Parameters
    ----------
    queries : float32 ndarray of shape (n_queries, n_dimensions)
        Unit vectors.
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
        Unit vectors.
    k : int
        At most the number of documents other than the query itself.
    itself, names : int64 ndarray, optional
        See `keep_nearest`.

    Returns
    -------
    indices : int32 ndarray of shape (n_queries, k)
    similarities : float32 ndarray of shape (n_queries, k)
    """
    import faiss

    n_candidates = min(k + 1 + SPARE, len(embeddings))
    candidates = faiss.knn(queries, embeddings, n_candidates, faiss.METRIC_INNER_PRODUCT)[1]
    found = no_neighbors(len(queries), k)
    keep_nearest(found, queries, embeddings, candidates, itself=itself, names=names)
    return found


def no_neighbors(n_queries: int, k: int) -> Neighbors:
    """Return lists without any neighbour yet."""
    return (
        np.full((n_queries, k), NOBODY, dtype=np.int32),
        np.full((n_queries, k), -np.inf, dtype=np.float32),
    )


def keep_nearest(
    found: Neighbors,
    queries: FloatArray,
    embeddings: FloatArray,
    candidates: npt.NDArray[np.integer[Any]],
    *,
    itself: Int64Array | None = None,
    names: Int64Array | None = None,
    short: tuple[Short, Short] | None = None,
) -> None:
    """Put candidates into the lists of neighbours, where they are near enough.

    Parameters
    ----------
    found : Neighbors
        Contiguous lists of the queries; changed in place.
    queries, embeddings : float32 ndarray of shape (n, n_dimensions)
        Unit vectors.
    candidates : int ndarray of shape (n_queries, n_candidates)
        Rows of `embeddings`, all different and none in the list yet; `NOBODY` is passed over.
    itself : int64 ndarray of shape (n_queries,), optional
        The row of each query, which is not its own neighbour.
    names : int64 ndarray of shape (n_documents,), optional
        Numbers of the documents, by which ties are broken; by default their rows.
    short : (Short, Short), optional
        Short forms of queries and documents. They spare what is not near enough the full
        comparison; the answer is the same with them as without.
    """
    from embedtopics.neighbors import _kernels

    if short is None:
        short = shorten(queries[:, :0]), shorten(embeddings[:, :0])
    _kernels.keep_nearest(
        queries,
        embeddings,
        np.full(len(queries), NOBODY, dtype=np.int64) if itself is None else itself,
        np.arange(len(embeddings)) if names is None else names,
        np.ascontiguousarray(candidates, dtype=np.int32),
        *short[0],
        *short[1],
        *found,
    )
