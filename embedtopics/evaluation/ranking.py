"""The nearest documents of each query, exactly, and the same whatever the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation.vector_pairs import checked_vectors, pair_similarities
from embedtopics.protocols import Int64Array

__all__ = ["rank_documents"]

ENTRIES_AT_ONCE = 8_000_000
"""Similarities of queries and documents that are held at a time."""

Float64Array = npt.NDArray[np.float64]


def rank_documents(
    queries: Any,
    documents: Any,
    k: int,
    *,
    similarity: str = "cosine",
    tie_order: npt.ArrayLike | None = None,
) -> tuple[Int64Array, Float64Array]:
    """Return the nearest documents of each query, the nearest first.

    A product of matrices in float32 finds those that may be among the nearest, with room for its
    rounding; these are then compared in float64, one by one. So the answer depends neither on
    blocks nor on threads, and documents with equal vectors are equally near.

    Parameters
    ----------
    queries : array_like or csr_matrix of shape (n_queries, n_dimensions)
    documents : array_like or csr_matrix of shape (n_documents, n_dimensions)
    k : int
        Documents for each query; all of them where there are fewer.
    similarity : {"cosine", "dot"}
    tie_order : array_like of int, shape (n_documents,), optional
        Of equally near documents, the lowest comes first; by default, that which stands first.

    Returns
    -------
    ranked : int64 ndarray of shape (n_queries, min(k, n_documents))
        Places of the documents.
    similarities : float64 ndarray of the same shape

    Raises
    ------
    InputError
        Where the dimensions differ, there is nothing to rank, or k is below 1.

    Examples
    --------
    >>> rank_documents([[1.0, 0.0]], [[0.0, 1.0], [2.0, 0.1], [1.0, 1.0]], 2)[0].tolist()
    [[1, 2]]
    """
    from threadpoolctl import threadpool_limits

    if similarity not in ("cosine", "dot"):
        raise InputError(f"documents are ranked by cosine or dot; got {similarity!r}")
    asked, found = checked_vectors(queries, "query"), checked_vectors(documents, "document")
    n_queries, n_documents = asked.shape[0], found.shape[0]
    if k < 1 or n_documents == 0 or asked.shape[1] != found.shape[1]:
        raise InputError(
            "expected some documents with as many dimensions as the queries, and k from 1 up; got "
            f"shapes {asked.shape} and {found.shape}, k = {k}"
        )
    order = np.arange(n_documents) if tie_order is None else np.asarray(tie_order)
    if order.shape != (n_documents,):
        raise InputError(
            f"tie_order must be a number for each of the {n_documents} documents; got shape "
            f"{order.shape}"
        )
    k = min(k, n_documents)
    ranked = np.empty((n_queries, k), dtype=np.int64)
    similarities = np.empty((n_queries, k))
    rough, slack = _rough(asked, found, similarity)
    at_once = max(1, ENTRIES_AT_ONCE // n_documents)
    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        for begin in range(0, n_queries, at_once):
            part = slice(begin, begin + at_once)
            near = rough(part)
            least = np.partition(near, n_documents - k, axis=1)[:, n_documents - k]
            rows, columns = np.nonzero(near >= (least - slack[part])[:, None])
            exact = pair_similarities(asked[part][rows], found[columns], similarity)
            places = np.lexsort((order[columns], -exact, rows))
            counts = np.bincount(rows, minlength=len(near))
            starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
            first = places[starts[:, None] + np.arange(k)]
            ranked[part], similarities[part] = columns[first], exact[first]
    return ranked, similarities


def _rough(asked: Any, found: Any, similarity: str) -> tuple[Any, Float64Array]:
    """Return what computes a block of similarities, and twice the error that it may have."""
    from scipy.sparse import issparse

    lengths = [_lengths(asked), _lengths(found)]
    if similarity == "cosine":
        asked, found = _scaled(asked, lengths[0]), _scaled(found, lengths[1])
        lengths = [np.ones(asked.shape[0]), np.ones(1)]
    is_sparse = bool(issparse(found))
    if is_sparse:
        turned = found.T.tocsr().astype(np.float32)
        block = asked.astype(np.float32)
        n_terms = int(np.diff(block.indptr).max(initial=1))
        one: Any = lambda part: np.asarray((block[part] @ turned).toarray())  # noqa: E731
    else:
        block, turned = asked.astype(np.float32), np.ascontiguousarray(found.astype(np.float32).T)
        n_terms = found.shape[1]
        one = lambda part: block[part] @ turned  # noqa: E731
    # Higham (2002), "Accuracy and Stability of Numerical Algorithms", section 3.1; the rounding
    # of the entries to float32 counts as some terms more.
    unit = np.finfo(np.float32).eps
    longest = float(lengths[1].max(initial=0.0))
    return one, 2 * (n_terms + 4) * unit * lengths[0] * longest


def _lengths(vectors: Any) -> Float64Array:
    from scipy.sparse import issparse

    is_sparse = bool(issparse(vectors))
    if is_sparse:
        squares = vectors.astype(np.float64).multiply(vectors).sum(axis=1)
    else:
        squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    return np.sqrt(np.asarray(squares, dtype=np.float64).ravel())


def _scaled(vectors: Any, lengths: Float64Array) -> Any:
    from scipy.sparse import diags_array, issparse

    factors = np.zeros(len(lengths))
    np.divide(1.0, lengths, out=factors, where=lengths > 0)
    is_sparse = bool(issparse(vectors))
    if is_sparse:
        return (diags_array(factors) @ vectors).tocsr()
    return vectors * factors[:, None]
