"""Label propagation along the neighbor graph, and outliers assigned by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from embedtopics._utils.checks import is_number
from embedtopics._utils.machine import in_parts
from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.errors import InputError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import BoolArray, Float64Array, FloatArray, Int32Array, Int64Array
from embedtopics.topics._clusters import ClusterCut
from embedtopics.topics.results import Reason, TopicConstraints

NOWHERE = -2
"""Label of documents that absorb propagated mass without a topic."""

STEPS = 30
"""Steps of propagation; after them all but a few percent of the mass has been absorbed."""

SLOTS = 16
"""Topics stored per document; the mass of the others is given to these in proportion. Smaller
shares are dropped at the end or, if documents and topics are many, at each step."""

MOST_CELLS = 2**26
"""Documents times topics up to which all shares are stored at each step, which is faster."""

ENOUGH_FOR_THREADS = 4_000
"""Documents below which a step is too short for several threads."""

OWN_SHARE = 0.6
"""Share of a document's own label; above a half, so that it is the largest."""

MIN_MARGIN = 1.2
"""Smallest ratio of a document's best share to the next for the document to be assigned."""

NONE_WEIGHT = 1 / 3
"""Weight of the share of no topic. At full weight, groups of documents that are each other's
nearest neighbors could never be assigned."""

FAR = 0.99
"""Share of documents: one that is farther from its neighbors than these are from theirs is
assigned to no topic."""

LARGEST_MARGIN = 1e6
"""Margin of a document with a single topic."""


@dataclass(frozen=True, eq=False)
class Propagation:
    """Propagated topics by descending share, (n_documents, 16) each; -1 and 0 fill the rest."""

    topics: Int32Array
    shares: FloatArray

    @property
    def none(self) -> FloatArray:
        """Share of no topic, shape (n_documents,)."""
        rest: FloatArray = np.float32(1.0) - self.shares.sum(axis=1, dtype=np.float32)
        return np.clip(rest, 0.0, 1.0)


def propagate_labels(graph: NeighborGraph, labels: Int32Array, n_topics: int) -> Propagation:
    """Propagate labels along random paths that end at the first labelled document.

    Every document takes the first of at most 30 steps, so the shares of a labelled document come
    from its neighbors. The limit is the harmonic solution of Zhu, Ghahramani and Lafferty (2003).
    """
    n_documents = len(labels)
    topics = np.full((n_documents, SLOTS), -1, dtype=np.int32)
    shares = np.zeros((n_documents, SLOTS), dtype=np.float32)
    if n_topics == 0 or graph.k == 0:
        return Propagation(topics, shares)
    from embedtopics.topics import _kernels

    weights = np.ascontiguousarray(_unit_sums(graph.similarities), dtype=np.float32)
    passing = np.flatnonzero(labels == NOISE).astype(np.int32)
    all_rows = np.arange(n_documents, dtype=np.int32)
    steps = [passing] * (STEPS - 1) + [all_rows]
    if n_documents * n_topics <= MOST_CELLS:
        labels = np.ascontiguousarray(labels, dtype=np.int32)
        all_shares = np.zeros((n_documents, n_topics), dtype=np.float32)
        new_all = np.zeros_like(all_shares)
        for rows in steps:
            arrays = graph.indices, weights, rows, labels, all_shares, new_all
            in_parts(_kernels.mix, len(rows), *arrays, few=ENOUGH_FOR_THREADS)
            all_shares, new_all = new_all, all_shares
        _kernels.keep_largest(all_shares, topics, shares)
        return Propagation(topics, shares)
    is_labeled = labels >= 0
    topics[is_labeled, 0] = labels[is_labeled]
    shares[is_labeled, 0] = 1.0
    new_topics, new_shares = topics.copy(), shares.copy()
    for rows in steps:
        before, after = (topics, shares), (new_topics, new_shares)
        arguments = graph.indices, weights, rows, *before, *after, n_topics
        in_parts(_kernels.step_of_many(), len(rows), *arguments, few=ENOUGH_FOR_THREADS)
        topics, new_topics, shares, new_shares = new_topics, topics, new_shares, shares
    return Propagation(topics, shares)


def _unit_sums(similarities: FloatArray) -> Float64Array:
    """Return similarities scaled to a sum of one in each row; negative ones become 0."""
    weights = np.maximum(similarities.astype(np.float64), 0.0)
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))


@dataclass(frozen=True, eq=False)
class OutlierAssignment:
    """Documents in topics numbered from the largest down, and the smallest margin required."""

    clustering: Clustering
    memberships: csr_matrix
    min_margin: float


def assign_outliers(
    graph: NeighborGraph,
    cut: ClusterCut,
    weights: Int64Array,
    coverage: float | str = "auto",
    constraints: TopicConstraints | None = None,
) -> OutlierAssignment:
    """Assign documents outside the clusters to a topic, or record the reason why not.

    An assigned document goes to its cluster in the partition of the cut if there is one (its mean
    is nearest), otherwise to the topic with the largest propagated share. A document without any
    neighbor of a similarity above 0 is in no topic, unless the constraints fix its topic.
    """
    clusters = cut.clustering
    is_lonely = graph.similarities[:, 0] <= 0 if graph.k else np.zeros(len(graph), dtype=np.bool_)
    if constraints is not None and constraints.is_fixed:
        is_lonely = is_lonely & (constraints.groups < 0)
    cluster_labels = np.where(is_lonely, NOISE, clusters.labels)
    # A cluster of lonely documents alone is no topic.
    emptied = np.setdiff1d(clusters.labels, cluster_labels)
    is_topic = cut.is_informative & ~np.isin(np.arange(len(cut.is_informative)), emptied)
    n_topics = int(is_topic.sum())
    number = np.full(len(is_topic) + 1, NOWHERE, dtype=np.int32)
    number[:-1][is_topic] = np.arange(n_topics, dtype=np.int32)
    number[-1] = NOISE
    seeds = number[cluster_labels]
    propagated = propagate_labels(graph, seeds, n_topics)
    near = closeness(graph.similarities)
    is_far = rank(near, near) > FAR
    margins = margin(propagated.shares[:, 0], propagated.shares[:, 1], propagated.none)
    outside = seeds == NOISE
    if coverage == "auto":
        min_margin = MIN_MARGIN
        is_assigned = outside & (margins >= min_margin) & ~is_far
    else:
        missing = float(coverage) * weights.sum() - weights[seeds >= 0].sum()
        is_assigned = _clearest(missing, np.where(outside, margins, 0.0), near, weights)
        min_margin = _margin_for(float(coverage), missing, margins, is_assigned)
    best = propagated.topics[:, 0]
    if constraints is None and cut.partition is not None:
        in_partition = number[cut.partition]
        best = np.where(in_partition >= 0, in_partition, best)
    is_complete = constraints is not None and constraints.is_complete
    is_assigned &= not is_complete
    labels = np.where(is_assigned, best, np.maximum(seeds, NOISE)).astype(np.int32)
    is_isolated = is_far | (NONE_WEIGHT * propagated.none >= propagated.shares[:, 1])
    reasons = np.where(is_isolated, Reason.ISOLATED, Reason.BETWEEN).astype(np.int8)
    reasons[(margins >= MIN_MARGIN) & ~is_far] = Reason.BEYOND_COVERAGE
    reasons[seeds == NOWHERE] = Reason.UNINFORMATIVE
    if is_complete:
        reasons[:] = Reason.NOT_LABELED
    reasons[labels != NOISE] = Reason.IN_TOPIC
    in_cluster = (seeds >= 0) & (labels == seeds)
    inside = labels != NOISE
    sizes = np.bincount(labels[inside], weights[inside], minlength=n_topics)
    order = np.argsort(-sizes, kind="stable")
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
    """Return the ratio of each document's best share to its closest rival."""
    best = best.astype(np.float64)
    rival = np.maximum(np.maximum(second, NONE_WEIGHT * none), best / LARGEST_MARGIN)
    margins = np.zeros(len(best))
    np.divide(best, rival, out=margins, where=best > 0)
    return margins


def _clearest(
    missing: float, margins: Float64Array, near: Float64Array, weights: Int64Array
) -> BoolArray:
    """Return which documents make up the missing rows, by margin, then by closeness."""
    is_assigned = np.zeros(len(margins), dtype=bool)
    candidates = np.flatnonzero(margins > 0)
    candidates = candidates[np.lexsort((-near[candidates], -margins[candidates]))]
    before = np.cumsum(weights[candidates]) - weights[candidates]
    is_assigned[candidates[before < missing - 1e-9]] = True
    return is_assigned


def _margin_for(
    coverage: float, missing: float, margins: Float64Array, is_assigned: BoolArray
) -> float:
    """Return the smallest margin of new texts that gives the coverage of the fit."""
    if coverage == 1.0:
        return 0.0
    if missing <= 0:  # the clusters alone: only texts that lead to a single topic
        return LARGEST_MARGIN / 2
    return float(margins[is_assigned].min(initial=LARGEST_MARGIN / 2))


def _memberships(labels: Int32Array, propagated: Propagation, new_id: Int32Array) -> csr_matrix:
    """Mix each document's own label with its propagated shares, (n_documents, n_topics)."""
    rows, slots = np.nonzero(propagated.topics >= 0)
    inside = np.flatnonzero(labels != NOISE)
    # Without a similar neighbor, the label's own share is 1.
    label_share = np.where(propagated.shares[:, 0] > 0, OWN_SHARE, 1.0)
    of_neighbors = (1 - label_share[rows]) * propagated.shares[rows, slots]
    values = np.concatenate([label_share[inside], of_neighbors])
    columns = np.concatenate([labels[inside], new_id[propagated.topics[rows, slots]]])
    places = (np.concatenate([inside, rows]), columns)
    shares = csr_matrix((values, places), shape=(len(labels), len(new_id)))
    shares.sum_duplicates()
    return csr_matrix(shares, dtype=np.float32)


def closeness(similarities: FloatArray) -> Float64Array:
    """Return the mean similarity to the neighbors; 1 without neighbors."""
    if similarities.shape[1] == 0:
        return np.ones(len(similarities))
    return np.asarray(similarities.mean(axis=1, dtype=np.float64))


def rank(fitted: Float64Array, near: Float64Array) -> FloatArray:
    """Return the share of the fitted documents that are closer to their neighbors, (n_texts,)."""
    ordered = np.sort(fitted)
    above = len(ordered) - np.searchsorted(ordered, near, side="right")
    return (above / len(ordered)).astype(np.float32)


def vote(
    indices: Int32Array, similarities: FloatArray, labels: Int32Array, n_topics: int
) -> csr_matrix:
    """Return the topics of the neighbors weighted by similarity, shape (n_queries, n_topics)."""
    n_queries, k = indices.shape
    weights = _unit_sums(similarities)
    topics = labels[indices]
    rows = np.repeat(np.arange(n_queries), k).reshape(n_queries, k)
    counts = (topics != NOISE) & (weights > 0)
    votes = weights[counts], (rows[counts], topics[counts])
    shares = csr_matrix(votes, shape=(n_queries, n_topics))
    shares.sum_duplicates()
    return csr_matrix(shares, dtype=np.float32)


def checked_coverage(coverage: float | str) -> float | str:
    """Return "auto" or a share from 0 to 1, or raise InputError."""
    if coverage == "auto":
        return coverage
    if not is_number(coverage) or not 0.0 <= float(coverage) <= 1.0:
        raise InputError("coverage", '"auto" or a share from 0 to 1', coverage)
    return float(coverage)
