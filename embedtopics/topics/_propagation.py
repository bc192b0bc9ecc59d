"""Label propagation along the neighbour graph: outliers assigned, and every document's shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from embedtopics._utils.checks import is_number
from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.errors import InputError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import BoolArray, Float64Array, FloatArray, Int32Array, Int64Array
from embedtopics.topics.results import Reason

NOWHERE = -2
"""Label of documents at which propagation ends without a topic."""

STEPS = 30
"""Steps of propagation; after them all but a few percent of the mass has arrived, or never will."""

SLOTS = 16
"""Topics of a document that are kept; those with less are given to the kept ones in proportion.
They are left out at the end or, where documents and topics are many, at each step."""

MOST_CELLS = 2**26
"""Documents times topics up to which all shares are kept on the way, which is faster."""

ENOUGH_FOR_THREADS = 4_000
"""Documents below which a step is too short to share among threads."""

OWN_SHARE = 0.6
"""Share of a document that its own label gets; being more than half, it is the largest."""

MIN_MARGIN = 1.2
"""How many times larger than the next a document's best share must be for it to be assigned."""

NONE_WEIGHT = 1 / 3
"""Weight of the share of none against a topic's; in full, groups of documents that are one
another's nearest neighbours could never be assigned."""

FAR = 0.99
"""A document farther from its neighbours than this share of all documents are from theirs is
assigned to no topic."""

LARGEST_MARGIN = 1e6
"""Margin of a document that leads to one topic alone."""


@dataclass(frozen=True, eq=False)
class Propagation:
    """Topics that neighbours lead to by descending share, (n_documents, 16); -1 and 0 for fewer."""

    topics: Int32Array
    shares: FloatArray

    @property
    def none(self) -> FloatArray:
        """Share that ends in no topic, shape (n_documents,)."""
        rest: FloatArray = np.float32(1.0) - self.shares.sum(axis=1, dtype=np.float32)
        return np.clip(rest, 0.0, 1.0)


def propagate_labels(graph: NeighborGraph, labels: Int32Array, n_topics: int) -> Propagation:
    """Propagate labels along the graph: a random path to the first labelled document.

    Steps are taken in proportion to similarity, 30 at most; the first is always taken, so that the
    shares of a labelled document come from its neighbours. Cut after them, this is the harmonic
    solution of Zhu, Ghahramani and Lafferty (2003), "Semi-Supervised Learning Using Gaussian
    Fields and Harmonic Functions", section 2.
    """
    n_documents = len(labels)
    topics = np.full((n_documents, SLOTS), -1, dtype=np.int32)
    shares = np.zeros((n_documents, SLOTS), dtype=np.float32)
    if n_topics == 0 or graph.k == 0:
        return Propagation(topics, shares)
    from embedtopics.topics import _kernels

    weights = np.ascontiguousarray(_unit_sums(graph.similarities), dtype=np.float32)
    passing = np.flatnonzero(labels == NOISE).astype(np.int32)
    everyone = np.arange(n_documents, dtype=np.int32)
    steps = [passing] * (STEPS - 1) + [everyone]
    if n_documents * n_topics <= MOST_CELLS:
        labels = np.ascontiguousarray(labels, dtype=np.int32)
        all_shares = np.zeros((n_documents, n_topics), dtype=np.float32)
        new_all = np.zeros_like(all_shares)
        for rows in steps:
            _on_threads(_kernels.mix, graph.indices, weights, rows, labels, all_shares, new_all)
            all_shares, new_all = new_all, all_shares
        _kernels.keep_largest(all_shares, topics, shares)
        return Propagation(topics, shares)
    is_labeled = labels >= 0
    topics[is_labeled, 0] = labels[is_labeled]
    shares[is_labeled, 0] = 1.0
    new_topics, new_shares = topics.copy(), shares.copy()
    for rows in steps:
        _on_threads(
            _kernels.step, graph.indices, weights, rows, topics, shares, new_topics, new_shares,
            np.int64(n_topics),
        )  # fmt: skip
        topics, new_topics, shares, new_shares = new_topics, topics, new_shares, shares
    return Propagation(topics, shares)


def _unit_sums(similarities: FloatArray) -> Float64Array:
    """Return similarities scaled to sum to one in each row; negative ones become 0."""
    weights = np.maximum(similarities.astype(np.float64), 0.0)
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))


def _on_threads(
    step: Callable[..., None],
    indices: Int32Array,
    weights: FloatArray,
    rows: Int32Array,
    *arrays: Any,
) -> None:
    import numba

    threads = numba.get_num_threads()
    numba.set_num_threads(threads if len(rows) >= ENOUGH_FOR_THREADS else 1)
    try:
        step(indices, weights, rows, *arrays)
    finally:
        numba.set_num_threads(threads)


@dataclass(frozen=True, eq=False)
class OutlierAssignment:
    """Documents with topics numbered from the largest down, and the `min_margin` that decided."""

    clustering: Clustering
    memberships: csr_matrix
    min_margin: float


def assign_outliers(
    graph: NeighborGraph,
    clusters: Clustering,
    is_informative: BoolArray,
    weights: Int64Array,
    coverage: float | str = "auto",
    *,
    cells: Int32Array | None = None,
    is_held: BoolArray | None = None,
    amend: Callable[[Int32Array, Int32Array, Propagation], Int32Array] | None = None,
) -> OutlierAssignment:
    """Assign documents outside the clusters to a topic, or record why not.

    A document without any neighbour of a similarity above 0 is in no topic, unless it is held. One
    that is assigned goes to its cluster in `cells`, or else where its neighbours lead to.
    """
    # Without neighbours at all nothing is known of any document.
    is_lonely = graph.similarities[:, 0] <= 0 if graph.k else np.zeros(len(graph), dtype=np.bool_)
    if is_held is not None:
        is_lonely = is_lonely & ~is_held
    kept_labels = np.where(is_lonely, NOISE, clusters.labels)
    # A cluster of such documents alone is no topic.
    emptied = np.setdiff1d(clusters.labels, kept_labels)
    is_topic = is_informative & ~np.isin(np.arange(len(is_informative)), emptied)
    n_topics = int(is_topic.sum())
    number = np.full(len(is_topic) + 1, NOWHERE, dtype=np.int32)
    number[:-1][is_topic] = np.arange(n_topics, dtype=np.int32)
    number[-1] = NOISE
    seeds = number[kept_labels]
    propagated = propagate_labels(graph, seeds, n_topics)
    near = closeness(graph.similarities)
    is_far = rank(near, near) > FAR
    margins = margin(propagated.shares[:, 0], propagated.shares[:, 1], propagated.none)
    outside = seeds == NOISE
    if coverage == "auto":
        min_margin = MIN_MARGIN
        joins = outside & (margins >= min_margin) & ~is_far
    else:
        missing = float(coverage) * weights.sum() - weights[seeds >= 0].sum()
        joins = _clearest(missing, np.where(outside, margins, 0.0), near, weights)
        min_margin = _margin_for(float(coverage), missing, margins, joins)
    joined = propagated.topics[:, 0]
    if cells is not None:
        # The cluster whose mean is nearest agrees better with classes than the one led to.
        joined = np.where(number[cells] >= 0, number[cells], joined)
    labels = np.where(joins, joined, np.maximum(seeds, NOISE)).astype(np.int32)
    lost = is_far | (NONE_WEIGHT * propagated.none >= propagated.shares[:, 1])
    reasons = np.where(lost, Reason.ISOLATED, Reason.BETWEEN).astype(np.int8)
    reasons[(margins >= MIN_MARGIN) & ~is_far] = Reason.BEYOND_COVERAGE
    reasons[seeds == NOWHERE] = Reason.UNINFORMATIVE
    reasons[labels != NOISE] = Reason.IN_TOPIC
    if amend is not None:
        amended = amend(labels, seeds, propagated)
        reasons[(amended == NOISE) & (labels != NOISE)] = Reason.CANNOT_LINK
        reasons[amended != NOISE] = Reason.IN_TOPIC
        labels = amended
    in_cluster = (seeds >= 0) & (labels == seeds)
    inside = labels != NOISE
    order = np.argsort(
        -np.bincount(labels[inside], weights[inside], minlength=n_topics), kind="stable"
    )
    new_id = np.full(n_topics + 1, NOISE, dtype=np.int32)
    new_id[order] = np.arange(n_topics, dtype=np.int32)
    labels = new_id[labels]
    probabilities = np.where(in_cluster, clusters.probabilities, 0.0).astype(np.float32)
    persistence = clusters.persistence[np.flatnonzero(is_topic)[order]]
    return OutlierAssignment(
        Clustering(labels, probabilities, persistence, reasons),
        _memberships(labels, propagated, new_id[:-1]),
        min_margin,
    )


def margin(
    best: npt.NDArray[Any], second: npt.NDArray[Any], none: npt.NDArray[Any]
) -> Float64Array:
    """Return how many times larger each document's best share is than its closest rival."""
    best = best.astype(np.float64)
    rival = np.maximum(np.maximum(second, NONE_WEIGHT * none), best / LARGEST_MARGIN)
    margins = np.zeros(len(best))
    np.divide(best, rival, out=margins, where=best > 0)
    return margins


def _clearest(
    missing: float, margins: Float64Array, near: Float64Array, weights: Int64Array
) -> BoolArray:
    """Choose documents until the missing rows are found, by margin, then by closeness."""
    chosen = np.zeros(len(margins), dtype=bool)
    candidates = np.flatnonzero(margins > 0)
    candidates = candidates[np.lexsort((-near[candidates], -margins[candidates]))]
    before = np.cumsum(weights[candidates]) - weights[candidates]
    chosen[candidates[before < missing - 1e-9]] = True
    return chosen


def _margin_for(coverage: float, missing: float, margins: Float64Array, chosen: BoolArray) -> float:
    """Return the least margin of new texts that gives the coverage of the fit."""
    if coverage == 1.0:
        return 0.0
    if missing <= 0:  # the clusters alone: what leads to one topic, but for rounding
        return LARGEST_MARGIN / 2
    return float(margins[chosen].min(initial=LARGEST_MARGIN / 2))


def _memberships(labels: Int32Array, propagated: Propagation, new_id: Int32Array) -> csr_matrix:
    """Mix each document's own label with its propagated shares, (n_documents, n_topics)."""
    rows, slots = np.nonzero(propagated.topics >= 0)
    inside = np.flatnonzero(labels != NOISE)
    # Without neighbours, or with none that is similar, a document is wholly its own label's.
    own = np.where(propagated.shares[:, 0] > 0, OWN_SHARE, 1.0)
    values = np.concatenate([own[inside], (1 - own[rows]) * propagated.shares[rows, slots]])
    columns = np.concatenate([labels[inside], new_id[propagated.topics[rows, slots]]])
    at = (np.concatenate([inside, rows]), columns)
    shares = csr_matrix((values, at), shape=(len(labels), len(new_id)))
    shares.sum_duplicates()
    return csr_matrix(shares, dtype=np.float32)


def closeness(similarities: FloatArray) -> Float64Array:
    """Return the mean similarity to the neighbours; 1 where there are none."""
    if similarities.shape[1] == 0:
        return np.ones(len(similarities))
    return np.asarray(similarities.mean(axis=1, dtype=np.float64))


def rank(fitted: Float64Array, near: Float64Array) -> FloatArray:
    """Return the share of the fitted documents that are closer to their neighbours, (n_texts,)."""
    ordered = np.sort(fitted)
    above = len(ordered) - np.searchsorted(ordered, near, side="right")
    return (above / len(ordered)).astype(np.float32)


def vote(
    indices: Int32Array, similarities: FloatArray, labels: Int32Array, n_topics: int
) -> csr_matrix:
    """Return the topics of the neighbours weighted by similarity, shape (n_queries, n_topics)."""
    n_queries, k = indices.shape
    weights = _unit_sums(similarities)
    topics = labels[indices]
    rows = np.repeat(np.arange(n_queries), k).reshape(n_queries, k)
    voted = (topics != NOISE) & (weights > 0)
    shares = csr_matrix((weights[voted], (rows[voted], topics[voted])), shape=(n_queries, n_topics))
    shares.sum_duplicates()
    return csr_matrix(shares, dtype=np.float32)


def checked_coverage(coverage: float | str) -> float | str:
    """Return "auto" or a share from 0 to 1, or refuse it."""
    if coverage == "auto":
        return coverage
    if not is_number(coverage) or not 0.0 <= float(coverage) <= 1.0:
        raise InputError("coverage", '"auto" or a share from 0 to 1', coverage)
    return float(coverage)
