"""Who joins a topic beside its dense core, who does not and why, and every topic's shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import is_number
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.results import NOISE, Clustering, NeighborGraph, Reason
from embedtopics.topics.walking import NOWHERE, Walk, walk

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "FAR", "LEAST_RATIO", "OWN_SHARE", "Joined", "checked_coverage", "clearness", "closeness",
    "join", "rank", "vote",
]  # fmt: skip

OWN_SHARE = 0.6
"""Share of a document that is its own label's; being more than half, it is the largest."""

LEAST_RATIO = 1.2
"""How many times larger than the next one a document's best share must be for it to join."""

NONE_WEIGHT = 1 / 3
"""What the share of none counts against a topic's; full, groups of documents that are one
another's nearest neighbours could join nothing."""

FAR = 0.99
"""A document farther from its neighbours than this share of all documents are from theirs joins
no topic, whatever its neighbours are."""


CLEAREST = 1e6
"""Ratio of a document that is led to one topic alone."""


@dataclass(frozen=True, eq=False)
class Joined:
    """Documents with their topics, those of the cores and those that joined.

    Parameters
    ----------
    clustering : Clustering
        Topics numbered anew, from the largest down; strengths and reasons filled in.
    memberships : csr_matrix of float32, shape (n_documents, n_topics)
    least_ratio : float
        See `clearness`; what was set, or what the wanted coverage asked for.
    """

    clustering: Clustering
    memberships: csr_matrix
    least_ratio: float


def join(
    graph: NeighborGraph,
    cores: Clustering,
    is_subject: npt.NDArray[np.bool_],
    weights: Int64Array,
    coverage: float | str = "auto",
    *,
    is_held: npt.NDArray[np.bool_] | None = None,
    amend: Callable[[Int32Array, Int32Array, Walk], Int32Array] | None = None,
) -> Joined:
    """Let documents outside the dense cores join a topic, or tell why they do not.

    A document that is like no other, without any neighbour of a similarity above 0, is in no
    topic, wherever a layout put it.

    Parameters
    ----------
    graph : NeighborGraph
    cores : Clustering
        Dense cores of topics.
    is_subject : bool ndarray of shape (n_cores,)
        Cores that are about something; the others become noise, and lead nowhere.
    weights : int64 ndarray of shape (n_documents,)
        Rows that share each document.
    coverage : "auto" or float
        Share of the rows with text that is to be in a topic, from 0 (the cores alone) to 1 (every
        document that its neighbours lead to any topic). "auto" lets join whose best share is
        `LEAST_RATIO` times the next.
    is_held : bool ndarray of shape (n_documents,), optional
        Documents that stay in their core though they are like no other.
    amend : callable, optional
        Changes the labels of documents after they have joined, given these, those of the cores
        and the walk, all in the numbering of the walk.

    Returns
    -------
    Joined
    """
    is_lonely = _lonely(graph) if is_held is None else _lonely(graph) & ~is_held
    of_cores = np.where(is_lonely, NOISE, cores.labels)
    # A core of such documents alone is no topic.
    emptied = np.setdiff1d(cores.labels, of_cores)
    is_subject = is_subject & ~np.isin(np.arange(len(is_subject)), emptied)
    number = np.full(len(is_subject) + 1, NOWHERE, dtype=np.int32)
    number[:-1][is_subject] = np.arange(int(is_subject.sum()), dtype=np.int32)
    number[-1] = NOISE
    seeds = number[of_cores]
    n_topics = int(is_subject.sum())
    walked = walk(graph, seeds, n_topics)
    near = closeness(graph.similarities)
    is_far = rank(near, near) > FAR
    ratios = clearness(walked.shares[:, 0], walked.shares[:, 1], walked.none)
    outside = seeds == NOISE
    if coverage == "auto":
        least_ratio = LEAST_RATIO
        joins = outside & (ratios >= least_ratio) & ~is_far
    else:
        missing = float(coverage) * weights.sum() - weights[seeds >= 0].sum()
        joins = _clearest(missing, np.where(outside, ratios, 0.0), near, weights)
        least_ratio = _ratio_for(float(coverage), missing, ratios, joins)
    labels = np.where(joins, walked.topics[:, 0], np.maximum(seeds, NOISE)).astype(np.int32)
    reasons = _reasons(labels, seeds, walked, ratios, is_far)
    if amend is not None:
        amended = amend(labels, seeds, walked)
        reasons[(amended == NOISE) & (labels != NOISE)] = Reason.KEPT_APART
        reasons[amended != NOISE] = Reason.IN_TOPIC
        labels = amended
    in_core = (seeds >= 0) & (labels == seeds)
    labels, order = _number_by_size(labels, n_topics, weights)
    kept = np.flatnonzero(is_subject)[order]
    strengths = np.where(in_core, cores.strengths, 0.0).astype(np.float32)
    return Joined(
        Clustering(labels, strengths, cores.persistence[kept], reasons),
        _memberships(labels, walked, order),
        least_ratio,
    )


def clearness(
    best: npt.NDArray[Any], second: npt.NDArray[Any], none: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Tell how clearly a document's best topic is the best.

    Parameters
    ----------
    best, second, none : ndarray of shape (n_documents,)
        The two largest shares of topics, and the share of none.

    Returns
    -------
    float64 ndarray of shape (n_documents,)
        The best share over the second, or over a third of the share of none if that is larger.
        At most 1e6; 0 where no topic has a share.
    """
    best = best.astype(np.float64)
    rival = np.maximum(np.maximum(second, NONE_WEIGHT * none), best / CLEAREST)
    ratios = np.zeros(len(best))
    np.divide(best, rival, out=ratios, where=best > 0)
    return ratios


def _clearest(
    missing: float,
    ratios: npt.NDArray[np.float64],
    near: npt.NDArray[np.float64],
    weights: Int64Array,
) -> npt.NDArray[np.bool_]:
    """Choose documents until the missing rows are found, the clearest first, then the closest."""
    joins = np.zeros(len(ratios), dtype=bool)
    candidates = np.flatnonzero(ratios > 0)
    candidates = candidates[np.lexsort((-near[candidates], -ratios[candidates]))]
    before = np.cumsum(weights[candidates]) - weights[candidates]
    joins[candidates[before < missing - 1e-9]] = True
    return joins


def _ratio_for(
    coverage: float,
    missing: float,
    ratios: npt.NDArray[np.float64],
    joins: npt.NDArray[np.bool_],
) -> float:
    """Return how clear a new text must be, so that as many are in a topic as in the fit."""
    if coverage == 1.0:
        return 0.0
    if missing <= 0:  # the cores alone: what is led to one topic, but for rounding
        return CLEAREST / 2
    return float(ratios[joins].min(initial=CLEAREST / 2))


def _reasons(
    labels: Int32Array,
    seeds: Int32Array,
    walked: Walk,
    ratios: npt.NDArray[np.float64],
    is_far: npt.NDArray[np.bool_],
) -> npt.NDArray[np.int8]:
    """Return why each document is in no topic."""
    lost = is_far | (NONE_WEIGHT * walked.none >= walked.shares[:, 1])
    reasons = np.where(lost, Reason.ISOLATED, Reason.BETWEEN)
    reasons[(ratios >= LEAST_RATIO) & ~is_far] = Reason.NOT_ASKED_FOR
    reasons[seeds == NOWHERE] = Reason.NO_SUBJECT
    reasons[labels != NOISE] = Reason.IN_TOPIC
    return reasons.astype(np.int8)


def _number_by_size(
    labels: Int32Array, n_topics: int, weights: Int64Array
) -> tuple[Int32Array, Int64Array]:
    """Return labels numbered from the heaviest topic down, and the old number of each topic."""
    inside = labels != NOISE
    total = np.bincount(labels[inside], weights[inside], minlength=n_topics)
    order = np.argsort(-total, kind="stable")
    number = np.full(n_topics + 1, NOISE, dtype=np.int32)
    number[order] = np.arange(n_topics, dtype=np.int32)
    return number[labels], order


def _memberships(labels: Int32Array, walked: Walk, order: Int64Array) -> csr_matrix:
    """Mix each document's own label with the ends of the walks from it."""
    from scipy.sparse import csr_matrix

    n_documents, n_topics = len(labels), len(order)
    number = np.empty(n_topics, dtype=np.int32)
    number[order] = np.arange(n_topics, dtype=np.int32)
    rows, slots = np.nonzero(walked.topics >= 0)
    inside = np.flatnonzero(labels != NOISE)
    # Without neighbours, or with none alike, a document is wholly its own label's.
    own = np.where(walked.shares[:, 0] > 0, OWN_SHARE, 1.0)
    shares = csr_matrix(
        (
            np.concatenate([own[inside], (1 - own[rows]) * walked.shares[rows, slots]]),
            (
                np.concatenate([inside, rows]),
                np.concatenate([labels[inside], number[walked.topics[rows, slots]]]),
            ),
        ),
        shape=(n_documents, n_topics),
    )
    shares.sum_duplicates()
    return csr_matrix(shares, dtype=np.float32)


def _lonely(graph: NeighborGraph) -> npt.NDArray[np.bool_]:
    """Tell which documents are like no other; none where there are no neighbours at all."""
    if graph.k == 0:
        return np.zeros(len(graph), dtype=np.bool_)
    return graph.similarities[:, 0] <= 0


def closeness(similarities: FloatArray) -> npt.NDArray[np.float64]:
    """Return the mean similarity to the neighbours; 1 where there are none."""
    if similarities.shape[1] == 0:
        return np.ones(len(similarities))
    return np.asarray(similarities.mean(axis=1, dtype=np.float64))


def rank(fitted: npt.NDArray[np.float64], near: npt.NDArray[np.float64]) -> FloatArray:
    """Return the share of the fitted documents that are closer to their neighbours.

    Parameters
    ----------
    fitted : float64 ndarray of shape (n_documents,)
        `closeness` of the documents of the fit.
    near : float64 ndarray of shape (n_texts,)
        `closeness` of any texts.

    Returns
    -------
    float32 ndarray of shape (n_texts,)
    """
    ordered = np.sort(fitted)
    above = len(ordered) - np.searchsorted(ordered, near, side="right")
    return (above / len(ordered)).astype(np.float32)


def vote(
    indices: Int32Array, similarities: FloatArray, labels: Int32Array, n_topics: int
) -> csr_matrix:
    """Let neighbours vote for their topics, weighted by similarity.

    Parameters
    ----------
    indices : int32 ndarray of shape (n_queries, k)
        Neighbours of each query.
    similarities : float32 ndarray of shape (n_queries, k)
        Cosine similarities; negative ones have no vote.
    labels : int32 ndarray of shape (n_documents,)
        Topics of the neighbours; noise is -1 and votes for no topic.
    n_topics : int

    Returns
    -------
    csr_matrix of float32, shape (n_queries, n_topics)
        Shares; a row sums to the share of votes that went to any topic.
    """
    from scipy.sparse import csr_matrix

    n_queries, k = indices.shape
    weights = np.maximum(similarities.astype(np.float64), 0.0)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    topics = labels[indices]
    rows = np.repeat(np.arange(n_queries), k).reshape(n_queries, k)
    voted = (topics != NOISE) & (weights > 0)
    shares = csr_matrix((weights[voted], (rows[voted], topics[voted])), shape=(n_queries, n_topics))
    shares.sum_duplicates()
    return csr_matrix(shares, dtype=np.float32)


def checked_coverage(coverage: float | str) -> float | str:
    """Return a coverage after making sure that it is "auto" or a share.

    Raises
    ------
    InputError
    """
    if coverage == "auto":
        return coverage
    if not is_number(coverage) or not 0.0 <= float(coverage) <= 1.0:
        raise InputError(f'coverage must be "auto" or a share from 0 to 1; got {coverage!r}')
    return float(coverage)
