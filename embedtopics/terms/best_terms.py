"""The terms of highest weight in each topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.results import TermCounts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["best_terms", "largest"]


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
        in_order = np.argsort(ids)
        usable = in_order[allowed[ids[in_order]]]
        chosen = usable[largest(weights[usable], n)]
        best.append((ids[chosen], weights[chosen]))
    return best


def largest(values: npt.NDArray[np.float64], n: int, floor: float = 0.0) -> npt.NDArray[np.int64]:
    """Return the places of the `n` largest values above 0, largest first; ties to the earlier.

    A `floor` that is known to be at or below the last of them saves looking at the others.
    """
    usable = np.flatnonzero(values >= floor if floor > 0 else values > 0)
    if len(usable) > n > 0:
        # Sort only what can be among the largest, ties at the limit included.
        limit = np.partition(values[usable], -n)[-n]
        usable = usable[values[usable] >= limit]
    found: npt.NDArray[np.int64] = usable[np.argsort(-values[usable], kind="stable")[:n]]
    return found
