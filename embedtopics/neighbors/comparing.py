"""Candidates -> nearest neighbours: every similarity is computed here, in one fixed order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int32Array, Int64Array

__all__ = ["NOBODY", "Neighbors", "exact_neighbors", "keep_nearest"]

SPARE = 16
"""Extra candidates fetched, so that ties and last-bit differences at the k-th place are settled
by the recomputed similarities and not by FAISS."""

NOBODY = -1
"""Stands where a list of neighbours, or of candidates, has no more."""

Neighbors = tuple[Int32Array, FloatArray]
"""Indices and similarities, both of shape (n_queries, k), descending, ties by name."""


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

    index: Any = faiss.IndexFlatIP(embeddings.shape[1])
    index.add(embeddings)
    candidates = index.search(queries, min(k + 1 + SPARE, len(embeddings)))[1]
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
    """
    from embedtopics.neighbors import _kernels

    _kernels.keep_nearest(
        queries,
        embeddings,
        np.full(len(queries), NOBODY, dtype=np.int64) if itself is None else itself,
        np.arange(len(embeddings)) if names is None else names,
        np.ascontiguousarray(candidates, dtype=np.int32),
        *found,
    )
