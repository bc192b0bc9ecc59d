"""What merged topics are about, from the sums of their counts."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, TermWeighting
from embedtopics.results import TopicResult
from embedtopics.terms import ClassTfidf, count_by_topic, select_keywords
from embedtopics.topics.recorded import languages_of, weighting_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["fitted_weighting", "merged_terms"]

MERGES_AT_ONCE = 64
CANDIDATES = 30
"""Terms by weight among which the keywords of a merge are chosen."""

EXCLUSIVITY = 0.15
"""Exponent of the share that a merge has of a term, as for the keywords of topics."""

Terms = list[tuple[str, float]]
Floats = npt.NDArray[np.float64]


class _Best(NamedTuple):
    """The terms of one merge with the highest weights, and its share of all their occurrences."""

    terms: npt.NDArray[np.int64]
    weights: Floats
    shares: Floats


def fitted_weighting(
    result: TopicResult, given: TermWeighting | None, topic_counts: csr_matrix
) -> Any:
    """Return the weighting of a result, fitted to its topics, with ``transform(counts)``.

    Raises
    ------
    InputError
        If it can only weigh the counts that it is fitted to.
    """
    weighting: Any = copy.deepcopy(weighting_of(result, given))
    if not (hasattr(weighting, "fit") and hasattr(weighting, "transform")):
        raise InputError(
            f"expected a weighting with fit and transform, to weigh other counts than those of "
            f"the topics; got {weighting!r}"
        )
    if isinstance(weighting, ClassTfidf):
        return weighting.fit(topic_counts, terms=result.term_counts.terms)
    return weighting.fit(topic_counts)


def merged_terms(
    result: TopicResult,
    merges: Int32Array,
    n_terms: int,
    *,
    diverse: bool = True,
    weighting: TermWeighting | None = None,
) -> list[Terms]:
    """Return the best terms of every merge.

    The counts of a merge are the sum of those of its two parts; they are weighed with the factors
    that the terms have among the topics themselves.

    Parameters
    ----------
    result : TopicResult
    merges : int32 ndarray of shape (n_merges, 2)
    n_terms : int
        Terms of each merge at most.
    diverse : bool
        Whether keywords are chosen: no stem comes twice, and terms make way that a few documents
        say over and over, or that the topics outside the merge say as well. Otherwise the
        highest weights count alone.
    weighting : object with ``fit`` and ``transform``, optional

    Returns
    -------
    list of list of (str, float)
        For each merge its terms with their weights, best first.
    """
    if not len(merges):
        return []
    counts = result.term_counts
    topic_counts = count_by_topic(
        counts.counts, result.clustering.labels, result.n_topics, result.documents.weights
    )
    if not topic_counts.nnz:
        return [[] for _ in merges]
    fitted = fitted_weighting(result, weighting, topic_counts)
    frequencies = np.asarray(topic_counts.sum(axis=0), dtype=np.float64).ravel()
    n_best = max(CANDIDATES, n_terms) if diverse else n_terms
    best: list[_Best] = []
    for block in _sums(topic_counts, merges):
        best += _highest(block, fitted.transform(block), frequencies, n_best)
    if diverse:
        return _chosen(result, best, n_terms)
    return [
        [(counts.terms[i], float(w)) for i, w in zip(of_merge.terms, of_merge.weights, strict=True)]
        for of_merge in best
    ]


def _sums(topic_counts: csr_matrix, merges: Int32Array) -> Iterator[csr_matrix]:
    """Yield the counts of the merges in their order, some at a time.

    Every node is part of one merge only, so its counts are let go there.
    """
    from scipy.sparse import csr_matrix, vstack

    n_topics = topic_counts.shape[0]
    open_nodes: dict[int, csr_matrix] = {}
    block = []
    for merge, (left, right) in enumerate(merges.tolist()):
        parts = [
            open_nodes.pop(node) if node >= n_topics else topic_counts[node : node + 1]
            for node in (left, right)
        ]
        merged = csr_matrix(parts[0] + parts[1])
        open_nodes[n_topics + merge] = merged
        block.append(merged)
        if len(block) == MERGES_AT_ONCE or merge == len(merges) - 1:
            yield csr_matrix(vstack(block, format="csr"))
            block = []


def _highest(counts: csr_matrix, weights: Any, frequencies: Floats, n: int) -> list[_Best]:
    """Return the terms with the highest positive weights of each row, ties by their columns."""
    from scipy.sparse import csr_matrix

    rows = csr_matrix(weights)
    rows.sort_indices()
    counts.sort_indices()
    found = []
    for row, (begin, end) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        terms = rows.indices[begin:end]
        values = np.asarray(rows.data[begin:end], dtype=np.float64)
        least = np.partition(values, -n)[-n] if len(values) > n else 0.0
        near = np.flatnonzero((values >= least) & (values > 0))
        order = near[np.lexsort((terms[near], -values[near]))[:n]]
        highest = terms[order].astype(np.int64)
        counted = slice(counts.indptr[row], counts.indptr[row + 1])
        inside = _entries(counts.indices[counted], counts.data[counted], highest)
        found.append(_Best(highest, values[order], inside / frequencies[highest]))
    return found


def _entries(
    columns: npt.NDArray[Any], values: npt.NDArray[Any], wanted: npt.NDArray[np.int64]
) -> Floats:
    """Return the values of some columns of a sparse row, whose columns ascend; 0 for others."""
    if not len(columns):
        return np.zeros(len(wanted))
    place = np.minimum(np.searchsorted(columns, wanted), len(columns) - 1)
    return np.where(columns[place] == wanted, values[place], 0.0).astype(np.float64)


def _chosen(result: TopicResult, best: Sequence[_Best], n_terms: int) -> list[Terms]:
    """Choose keywords among the terms with the highest weights."""
    counts = result.term_counts
    pool = np.unique(np.concatenate([of_merge.terms for of_merge in best]))
    holders = np.bincount(counts.counts.indices, minlength=len(counts.terms))[pool]
    occurrences = np.asarray(counts.counts.sum(axis=0)).ravel()[pool]
    spread = np.sqrt(holders / np.maximum(occurrences, 1))
    languages = languages_of(result)
    no_vectors = np.empty((0, 0))  # select_keywords reads them for a diversity above 0 alone
    chosen = []
    for terms, weights, shares in best:
        place = np.searchsorted(pool, terms)
        names = [counts.terms[i] for i in terms]
        relevance = weights * spread[place] * shares**EXCLUSIVITY
        picked = select_keywords(relevance, no_vectors, names, n=n_terms, languages=languages)
        chosen.append([(names[i], float(weights[i])) for i in picked])
    return chosen
