"""Exact rankings of documents, and how good they are where the relevant documents are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import means_of_columns
from embedtopics.evaluation._pairs import SIMILARITIES, checked_vectors, pair_similarities, row_dots
from embedtopics.evaluation.results import Estimate
from embedtopics.protocols import Float64Array, Int64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


ENTRIES_AT_ONCE = 8_000_000
"""Similarities of queries and documents that are held at a time."""

CUTS = (1, 5, 10, 100)


def rank_documents(
    queries: Any,
    documents: Any,
    k: int,
    *,
    similarity: str = "cosine",
    tie_order: npt.ArrayLike | None = None,
) -> tuple[Int64Array, Float64Array]:
    """Return the k nearest documents of each query and their similarities, the nearest first.

    A product in float32 finds those that may be among the nearest, with a margin for its rounding;
    these are compared in float64, one by one: the answer depends neither on blocks nor on threads.
    Of documents equally near, the lowest `tie_order` comes first, by default the row.
    """
    from threadpoolctl import threadpool_limits

    if similarity not in SIMILARITIES:
        raise InputError("similarity", f"one of {', '.join(SIMILARITIES)}", similarity)
    asked, found = checked_vectors(queries, "queries"), checked_vectors(documents, "documents")
    n_queries, n_documents = asked.shape[0], found.shape[0]
    checked_count(k, "k")
    if n_documents == 0 or asked.shape[1] != found.shape[1]:
        raise InputError(
            "documents", "some, with as many dimensions as the queries",
            found=f"shapes {asked.shape} and {found.shape}",
        )  # fmt: skip
    order = np.arange(n_documents) if tie_order is None else np.asarray(tie_order)
    if order.shape != (n_documents,):
        raise InputError("tie_order", f"of shape ({n_documents},)", found=f"shape {order.shape}")
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
    lengths = [_lengths(asked), _lengths(found)]
    if similarity == "cosine":
        asked, found = _scaled(asked, lengths[0]), _scaled(found, lengths[1])
        lengths = [np.ones(asked.shape[0]), np.ones(1)]
    block = asked.astype(np.float32)
    if isinstance(found, np.ndarray):
        turned: Any = np.ascontiguousarray(found.astype(np.float32).T)
        n_terms = found.shape[1]
    else:
        turned = found.T.tocsr().astype(np.float32)
        n_terms = int(np.diff(block.indptr).max(initial=1))

    def rough(part: slice) -> Any:
        product = block[part] @ turned
        return product if isinstance(product, np.ndarray) else np.asarray(product.toarray())

    # Higham (2002), "Accuracy and Stability of Numerical Algorithms", section 3.1; the rounding
    # of the entries to float32 counts as some terms more.
    unit = np.finfo(np.float32).eps
    longest = float(lengths[1].max(initial=0.0))
    return rough, 2 * (n_terms + 4) * unit * lengths[0] * longest


def _lengths(vectors: Any) -> Float64Array:
    wide = vectors if isinstance(vectors, np.ndarray) else vectors.astype(np.float64)
    return np.sqrt(row_dots(wide, vectors))


def _scaled(vectors: Any, lengths: Float64Array) -> Any:
    from scipy.sparse import diags_array

    factors = np.zeros(len(lengths))
    np.divide(1.0, lengths, out=factors, where=lengths > 0)
    if isinstance(vectors, np.ndarray):
        return vectors * factors[:, None]
    return (diags_array(factors) @ vectors).tocsr()


def score_rankings(
    ranked: npt.ArrayLike,
    relevance: csr_matrix,
    ks: Sequence[int] = CUTS,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> dict[str, Estimate]:
    """Return the means of `scores_by_query` over the queries that have a relevant document."""
    by_query = scores_by_query(ranked, relevance, ks)
    known = ~np.isnan(next(iter(by_query.values())))
    if not known.any():
        raise InputError(
            f"expected a relevant document for some query; none of {len(known)} has any"
        )
    known_scores = {name: values[known] for name, values in by_query.items()}
    return means_of_columns(known_scores, n_resamples, seed, confidence)


def scores_by_query(
    ranked: npt.ArrayLike, relevance: csr_matrix, ks: Sequence[int] = CUTS
) -> dict[str, Float64Array]:
    """Return "ndcg@k", "mrr@k", "map@k", "recall@k", "precision@k" and "success@k" by query."""
    places = _checked(ranked, relevance, ks)
    rows = np.repeat(np.arange(len(places)), places.shape[1])
    grades = np.asarray(relevance[rows, np.maximum(places, 0).ravel()]).reshape(places.shape)
    gains = np.where(places >= 0, np.maximum(grades, 0), 0).astype(np.float64)
    hits = (gains > 0).astype(np.float64)
    sorted_grades = _best_grades(relevance, max(ks))
    n_relevant = np.asarray((relevance > 0).sum(axis=1), dtype=np.float64).ravel()
    has_any = n_relevant > 0
    total = np.maximum(n_relevant, 1)
    found = np.cumsum(hits, axis=1)
    ranks = np.arange(1, gains.shape[1] + 1)
    discounts = 1 / np.log2(ranks + 1)
    precisions = np.cumsum(hits * found / ranks, axis=1)
    first = np.where(hits.any(axis=1), hits.argmax(axis=1), gains.shape[1])
    made: dict[str, Float64Array] = {}
    for k in ks:
        last = min(k, gains.shape[1]) - 1
        best = sorted_grades[:, :k] / np.log2(np.arange(2, sorted_grades[:, :k].shape[1] + 2))
        gained = (gains * discounts)[:, : last + 1].sum(axis=1)
        figures = {
            "ndcg": gained / np.where(has_any, best.sum(axis=1), 1.0),
            "mrr": np.where(first <= last, 1 / (first + 1), 0.0),
            "map": precisions[:, last] / np.minimum(total, k),
            "recall": found[:, last] / total,
            "precision": found[:, last] / k,
            "success": (found[:, last] > 0).astype(np.float64),
        }
        for name, values in figures.items():
            made[f"{name}@{k}"] = np.where(has_any, values, np.nan)
    return made


def _best_grades(relevance: csr_matrix, k: int) -> Float64Array:
    """Return the highest grades of each query, falling, 0 where there are no more."""
    best = np.zeros((relevance.shape[0], k))
    for row in range(relevance.shape[0]):
        grades = relevance.data[relevance.indptr[row] : relevance.indptr[row + 1]]
        grades = np.sort(np.maximum(grades, 0))[::-1][:k]
        best[row, : len(grades)] = grades
    return best


def _checked(ranked: npt.ArrayLike, relevance: csr_matrix, ks: Sequence[int]) -> Int64Array:
    places = np.asarray(ranked)
    if places.ndim != 2 or places.dtype.kind not in "iu" or places.shape[1] == 0:
        raise InputError(
            "ranked", "integers of shape (n_queries, n_ranked)",
            found=f"shape {places.shape} of {places.dtype}",
        )  # fmt: skip
    if len(places) != relevance.shape[0] or places.max(initial=-1) >= relevance.shape[1]:
        raise InputError(
            "ranked", f"rankings of {relevance.shape[0]} queries, {relevance.shape[1]} documents",
            found=f"{len(places)} rankings and the document {places.max(initial=-1)}",
        )  # fmt: skip
    if not len(ks) or min(ks) < 1:
        raise InputError("ks", "some ranks from 1 up", list(ks))
    ordered = np.sort(places, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    if twice.any():
        raise InputError(
            "ranked", "different documents", found="one twice", row=int(np.argmax(twice))
        )
    return places.astype(np.int64)
