"""How good rankings of documents are, where the relevant documents are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation.bootstrap import resampled_means
from embedtopics.evaluation.estimates import estimate
from embedtopics.results import Estimate

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["score_rankings", "scores_by_query"]

CUTS = (1, 5, 10, 100)
Float64Array = npt.NDArray[np.float64]


def score_rankings(
    ranked: npt.ArrayLike,
    relevance: csr_matrix,
    ks: Sequence[int] = CUTS,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> dict[str, Estimate]:
    """Measure rankings against the documents that are known to be relevant.

    Parameters
    ----------
    ranked : array_like of int, shape (n_queries, n_ranked)
        Places of documents, the best first, each once in a row; negative entries are none.
    relevance : csr_matrix of shape (n_queries, n_documents)
        Grades of relevance; what is not stored, 0 or below is not relevant.
    ks : sequence of int
        Ranks down to which is looked.
    n_resamples, seed, confidence
        Of the intervals, over queries drawn with replacement.

    Returns
    -------
    dict of str to Estimate
        "ndcg@k", "mrr@k", "map@k", "recall@k", "precision@k" and "success@k" for each k; see
        `scores_by_query`. Queries without a relevant document are left out, and not in n.

    Raises
    ------
    InputError
        As `scores_by_query`, and where no query has a relevant document.
    """
    by_query = scores_by_query(ranked, relevance, ks)
    columns = np.column_stack(list(by_query.values()))
    known = ~np.isnan(columns[:, 0])
    if not known.any():
        raise InputError(
            f"expected a relevant document for some query; none of {len(known)} has any"
        )
    columns = columns[known]
    n = len(columns)
    drawn = resampled_means(columns, n_resamples, seed) if n_resamples else None
    return {
        name: estimate(
            columns[:, place].mean(),
            [] if drawn is None else drawn[:, place],
            n,
            confidence=confidence,
        )
        for place, name in enumerate(by_query)
    }


def scores_by_query(
    ranked: npt.ArrayLike, relevance: csr_matrix, ks: Sequence[int] = CUTS
) -> dict[str, Float64Array]:
    """Measure the ranking of each query.

    With g_i the grade of the document at rank i, r_i = 1 where it is above 0, and R relevant
    documents in all: precision is ``sum r_i / k``, recall ``sum r_i / R``, success 1 where any
    r_i is; mrr is one over the first rank with r_i; map is ``sum_i r_i precision@i / min(k, R)``;
    ndcg is ``sum_i g_i / log2(i + 1)``, divided by what the best ranking would have.

    Parameters
    ----------
    ranked : array_like of int, shape (n_queries, n_ranked)
    relevance : csr_matrix of shape (n_queries, n_documents)
    ks : sequence of int

    Returns
    -------
    dict of str to float64 ndarray of shape (n_queries,)
        NaN for queries without a relevant document.

    Raises
    ------
    InputError
        Where the shapes do not fit, a rank holds no document, or a document twice.

    References
    ----------
    Järvelin and Kekäläinen (2002), "Cumulated gain-based evaluation of IR techniques"; grades are
    gains as they are.
    """
    places = _checked(ranked, relevance, ks)
    gains = _gains(places, relevance)
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


def _gains(places: npt.NDArray[Any], relevance: csr_matrix) -> Float64Array:
    """Return the grade at each rank, 0 where it is negative or there is no document."""
    rows = np.repeat(np.arange(len(places)), places.shape[1])
    grades = np.asarray(relevance[rows, np.maximum(places, 0).ravel()]).reshape(places.shape)
    return np.where(places >= 0, np.maximum(grades, 0), 0).astype(np.float64)


def _best_grades(relevance: csr_matrix, k: int) -> Float64Array:
    """Return the highest grades of each query, falling, 0 where there are no more."""
    best = np.zeros((relevance.shape[0], k))
    for row in range(relevance.shape[0]):
        grades = relevance.data[relevance.indptr[row] : relevance.indptr[row + 1]]
        grades = np.sort(np.maximum(grades, 0))[::-1][:k]
        best[row, : len(grades)] = grades
    return best


def _checked(
    ranked: npt.ArrayLike, relevance: csr_matrix, ks: Sequence[int]
) -> npt.NDArray[np.int64]:
    places = np.asarray(ranked)
    if places.ndim != 2 or places.dtype.kind not in "iu" or places.shape[1] == 0:
        raise InputError(
            "expected ranked places of documents, integers of shape (n_queries, n_ranked); got "
            f"shape {places.shape} of {places.dtype}"
        )
    if len(places) != relevance.shape[0] or places.max(initial=-1) >= relevance.shape[1]:
        raise InputError(
            f"expected rankings of {relevance.shape[0]} queries among {relevance.shape[1]} "
            f"documents; got {len(places)} rankings and the place {places.max(initial=-1)}"
        )
    if not len(ks) or min(ks) < 1:
        raise InputError(f"expected ranks to look down to, from 1 up; got {list(ks)}")
    ordered = np.sort(places, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    if twice.any():
        raise InputError(f"a document is ranked twice in row {int(np.argmax(twice))}")
    return places.astype(np.int64)
