"""Exact rankings of documents, and measures of rankings with known relevant documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation._pairs import checked_vectors, pair_similarities, row_dots
from embedtopics.protocols import Float64Array, Int64Array

ENTRIES_AT_ONCE = 8_000_000
"""Similarities of queries and documents that are held at a time."""

CUTS = (1, 5, 10, 100)


def rank_documents(
    queries: Any, documents: Any, k: int, *, tie_order: npt.ArrayLike | None = None
) -> tuple[Int64Array, Float64Array]:
    """Return the k nearest documents of each query by cosine, and the cosines, nearest first.

    A product in float32 selects candidates, with a margin for its rounding; these are compared in
    float64, one by one, so that the answer depends neither on blocks nor on threads. Of equally
    near documents, the lowest `tie_order` comes first, by default the row.
    """
    from threadpoolctl import threadpool_limits

    of_queries = checked_vectors(queries, "queries")
    of_documents = checked_vectors(documents, "documents")
    n_queries, n_documents = of_queries.shape[0], of_documents.shape[0]
    if n_documents == 0 or of_queries.shape[1] != of_documents.shape[1]:
        raise InputError(
            "documents", "some, with as many dimensions as the queries",
            found=f"shapes {of_queries.shape} and {of_documents.shape}",
        )  # fmt: skip
    order = np.arange(n_documents) if tie_order is None else np.asarray(tie_order)
    k = min(k, n_documents)
    ranked = np.empty((n_queries, k), dtype=np.int64)
    similarities = np.empty((n_queries, k))
    narrow, turned, slack = _in_single_precision(of_queries, of_documents)
    at_once = max(1, ENTRIES_AT_ONCE // n_documents)
    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        for begin in range(0, n_queries, at_once):
            part = slice(begin, begin + at_once)
            product = narrow[part] @ turned
            near = product if isinstance(product, np.ndarray) else product.toarray()
            least = np.partition(near, n_documents - k, axis=1)[:, n_documents - k]
            rows, columns = np.nonzero(near >= (least.astype(np.float64) - slack)[:, None])
            exact = pair_similarities(of_queries[part][rows], of_documents[columns])
            places = np.lexsort((order[columns], -exact, rows))
            counts = np.bincount(rows, minlength=len(near))
            starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
            first = places[starts[:, None] + np.arange(k)]
            ranked[part], similarities[part] = columns[first], exact[first]
    return ranked, similarities


def _in_single_precision(queries: Any, documents: Any) -> tuple[Any, Any, float]:
    """Return unit vectors, those of documents transposed, and twice the error of their products."""
    narrow = _scaled(queries).astype(np.float32)
    documents = _scaled(documents).astype(np.float32)
    turned: Any
    if isinstance(documents, np.ndarray):
        turned, n_terms = np.ascontiguousarray(documents.T), documents.shape[1]
    else:
        turned = documents.T.tocsr()
        n_terms = int(np.diff(narrow.indptr).max(initial=1))
    # Higham (2002), "Accuracy and Stability of Numerical Algorithms", section 3.1; the rounding
    # of the entries to float32 counts as some terms more.
    return narrow, turned, 2 * (n_terms + 4) * float(np.finfo(np.float32).eps)


def _scaled(vectors: Any) -> Any:
    from scipy.sparse import diags_array

    wide = vectors if isinstance(vectors, np.ndarray) else vectors.astype(np.float64)
    lengths = np.sqrt(row_dots(wide, vectors))
    factors = np.zeros(len(lengths))
    np.divide(1.0, lengths, out=factors, where=lengths > 0)
    if isinstance(vectors, np.ndarray):
        return vectors * factors[:, None]
    return (diags_array(factors) @ vectors).tocsr()


def measure_rankings(
    grades: Float64Array,
    judged: Sequence[Float64Array],
    cuts: Sequence[int] = CUTS,
    relevant_from: float | None = None,
) -> dict[str, Float64Array]:
    """Measure the ranking of each query.

    Parameters
    ----------
    grades : float64 ndarray of shape (n_queries, n_ranked)
        Grade of each ranked document; 0 without a judgement and behind the last one.
    judged : sequence of float64 ndarray
        For each query the grades of all judged documents.
    cuts : sequence of int
    relevant_from : float, optional
        Lowest grade that counts as relevant in all measures but nDCG; by default any above 0.

    Returns
    -------
    dict of str to float64 ndarray of shape (n_queries,)
        "ndcg@k" with grades as gains, "mrr@k", "map@k", "recall@k", "precision@k" and "success@k"
        for each cut, and "map" and "mrr" over the whole ranking; 0 without a relevant document.
    """

    def is_relevant(values: Float64Array) -> npt.NDArray[np.bool_]:
        return values > 0 if relevant_from is None else values >= relevant_from

    n_ranked, deepest = grades.shape[1], max(cuts)
    gains, hits = np.maximum(grades, 0), is_relevant(grades).astype(np.float64)
    best = np.zeros((len(judged), deepest))
    for row, values in enumerate(judged):
        top = np.sort(np.maximum(values, 0))[::-1][:deepest]
        best[row, : len(top)] = top
    n_relevant = np.array([is_relevant(values).sum() for values in judged], dtype=np.float64)
    total = np.maximum(n_relevant, 1)
    n_hits = np.cumsum(hits, axis=1)
    ranks = np.arange(1, n_ranked + 1)
    discounts = 1 / np.log2(ranks + 1)
    precisions = np.cumsum(hits * n_hits / ranks, axis=1)
    first = np.where(hits.any(axis=1), hits.argmax(axis=1), n_ranked)
    measures: dict[str, Float64Array] = {}
    for k in cuts:
        last = min(k, n_ranked) - 1
        ideal = (best[:, :k] / np.log2(np.arange(2, k + 2))).sum(axis=1)
        gained = (gains * discounts)[:, : last + 1].sum(axis=1)
        measures[f"ndcg@{k}"] = gained / np.where(best[:, 0] > 0, ideal, 1.0)
        measures[f"mrr@{k}"] = np.where(first <= last, 1 / (first + 1), 0.0)
        measures[f"map@{k}"] = precisions[:, last] / np.minimum(total, k)
        measures[f"recall@{k}"] = n_hits[:, last] / total
        measures[f"precision@{k}"] = n_hits[:, last] / k
        measures[f"success@{k}"] = (n_hits[:, last] > 0).astype(np.float64)
    measures["map"] = precisions[:, -1] / total
    measures["mrr"] = np.where(first < n_ranked, 1 / (first + 1), 0.0)
    return measures
