"""The terms of highest weight in each topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.results import TermCounts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["best_terms"]


def best_terms(
    topic_terms: csr_matrix,
    term_counts: TermCounts,
    n: int,
    ngram_range: tuple[int, int] | None = None,
) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    """Return for each topic the terms of highest weight and these weights, best first.

    Parameters
    ----------
    topic_terms : csr_matrix of shape (n_topics, n_terms)
        Terms without a positive weight are left out.
    term_counts : TermCounts
    n : int
        Terms of each topic at most.
    ngram_range : (int, int) or None
        Fewest and most words of a term; None takes all lengths that were counted.

    Returns
    -------
    list of (int64 ndarray, float64 ndarray)
        Columns and weights; ties in the order of the columns.
    """
    if ngram_range is None:
        allowed = np.ones(len(term_counts.terms), dtype=bool)
    else:
        lengths = term_counts.lengths
        allowed = (lengths >= ngram_range[0]) & (lengths <= ngram_range[1])
    best = []
    for start, end in zip(topic_terms.indptr[:-1], topic_terms.indptr[1:], strict=True):
        ids = topic_terms.indices[start:end].astype(np.int64)
        weights = np.asarray(topic_terms.data[start:end], dtype=np.float64)
        usable = np.flatnonzero(allowed[ids] & (weights > 0))
        ids, weights = ids[usable], weights[usable]
        if len(ids) > n:
            # Sort only what can be among the best, ties at the limit included.
            limit = np.partition(weights, -n)[-n]
            near = np.flatnonzero(weights >= limit)
            ids, weights = ids[near], weights[near]
        order = np.lexsort((ids, -weights))[:n]
        best.append((ids[order], weights[order]))
    return best
