"""Constraints applied: to the fuzzy graph, and to the clusters cut from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_matrix, diags_array

from embedtopics._utils.display import spell_count
from embedtopics.clustering.results import NOISE
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.decisions import Decision
from embedtopics.neighbors._graph import build_graph
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.topics._clusters import ClusterCut, owners
from embedtopics.topics._propagation import (
    MIN_MARGIN,
    OutlierAssignment,
    Propagation,
    assign_outliers,
    margin,
)
from embedtopics.topics.constraints._protocol import first_of, note, partners_of
from embedtopics.topics.results import Reason, Topic, TopicConstraints

UNKNOWN_DISTANCE = 1.0
FAR_DISTANCE = 2.5
"""Distances between classes of umap-learn: that of an unknown class, and that of another at no
weight."""

SMALL_GROUP = 128
"""Documents of a group up to which all pairs are compared here: there may be thousands of such
groups, for each of which a search would wait for its threads."""


def constrained_graph(
    fuzzy: csr_matrix,
    embeddings: FloatArray,
    constraints: TopicConstraints,
    groups: Int32Array,
    k: int,
) -> csr_matrix:
    """Return the fuzzy graph with the constraints applied."""
    if constraints.attraction:
        fuzzy = attract_groups(fuzzy, embeddings, groups, constraints.attraction, k)
    if constraints.separation:
        fuzzy = separate_groups(fuzzy, groups, constraints.separation)
    return fuzzy


def attract_groups(
    fuzzy: csr_matrix, embeddings: FloatArray, groups: Int32Array, weight: float, k: int
) -> csr_matrix:
    """Unite a fuzzy graph with ties of one weight to the nearest others of each group."""
    rows, columns = [], []
    by_group = np.argsort(groups, kind="stable")
    begins = np.searchsorted(groups[by_group], np.arange(int(groups.max(initial=-1)) + 2))
    for begin, end in pairwise(begins.tolist()):
        members = by_group[begin:end]
        near = _nearest_others(members, embeddings, k)
        rows.append(np.repeat(members, near.shape[1]))
        columns.append(members[near.ravel()])
    if not any(map(len, rows)):
        return fuzzy
    ends = (np.concatenate(rows), np.concatenate(columns))
    weights = np.full(len(ends[0]), weight, dtype=np.float32)
    directed = csr_matrix((weights, ends), shape=fuzzy.shape)
    tied = directed.maximum(directed.T)
    return _tidy(fuzzy + tied - fuzzy.multiply(tied))


def _nearest_others(members: Int64Array, embeddings: FloatArray, k: int) -> Int32Array:
    """Return the nearest others of each document of a group, by their positions in it."""
    if len(members) > SMALL_GROUP:
        return build_graph(embeddings[members], k).indices
    vectors = embeddings[members]
    similarities = np.einsum("id,jd->ij", vectors, vectors)
    np.fill_diagonal(similarities, -np.inf)
    others = min(k, len(members) - 1)
    return np.argsort(-similarities, axis=1, kind="stable")[:, :others].astype(np.int32)


def separate_groups(fuzzy: csr_matrix, groups: Int32Array, weight: float) -> csr_matrix:
    """Loosen the ties between groups, as umap-learn's categorical intersection does."""
    far = np.inf if weight >= 1 else FAR_DISTANCE / (1.0 - weight)
    ties = fuzzy.tocoo()
    one, other = groups[ties.row], groups[ties.col]
    factors = np.where(one == other, 1.0, np.exp(-far))
    factors[(one < 0) | (other < 0)] = np.exp(-UNKNOWN_DISTANCE)
    loosened = csr_matrix((ties.data * factors, (ties.row, ties.col)), shape=fuzzy.shape)
    strongest = loosened.max(axis=1).toarray().ravel()
    scales = np.divide(1.0, strongest, out=np.zeros_like(strongest), where=strongest > 0)
    directed = csr_matrix(diags_array(scales) @ loosened)
    transposed = directed.T.tocsr()
    return _tidy(directed + transposed - directed.multiply(transposed))


def _tidy(united: csr_matrix) -> csr_matrix:
    tidy = csr_matrix(united, dtype=np.float32)
    tidy.eliminate_zeros()
    tidy.sort_indices()
    return tidy


def groups_of_vectors(groups: Int32Array, of_document: Int64Array, n_vectors: int) -> Int32Array:
    """Return the group of the documents of each distinct vector, -1 where they have several."""
    known = groups >= 0
    largest = np.full(n_vectors, -1, dtype=np.int32)
    np.maximum.at(largest, of_document[known], groups[known])
    smallest = np.full(n_vectors, np.iinfo(np.int32).max, dtype=np.int32)
    np.minimum.at(smallest, of_document[known], groups[known])
    return np.where(largest == smallest, largest, -1).astype(np.int32)


def assign_constrained(
    graph: NeighborGraph,
    cut: ClusterCut,
    weights: Int64Array,
    coverage: float | str,
    constraints: TopicConstraints | None = None,
) -> OutlierAssignment:
    """Assign outliers to topics with the constraints applied."""
    clusters = cut.clustering
    if constraints is None:
        return assign_outliers(
            graph, clusters, cut.is_informative, weights, coverage, cells=cut.cells
        )

    def amend(labels: Int32Array, seeds: Int32Array, propagated: Propagation) -> Int32Array:
        if constraints.is_complete:
            labels = np.maximum(seeds, NOISE).astype(np.int32)
        if len(constraints.cannot_link):
            pairs = constraints.cannot_link
            labels = _separated(labels, propagated, clusters.probabilities, pairs)
        return labels

    is_held = (constraints.groups >= 0) & constraints.is_fixed
    assigned = assign_outliers(
        graph, clusters, cut.is_informative, weights, coverage, is_held=is_held, amend=amend
    )
    if not constraints.is_complete:
        return assigned
    found = assigned.clustering
    reasons = np.where(found.labels == NOISE, Reason.NOT_LABELED, Reason.IN_TOPIC).astype(np.int8)
    clustering = dataclasses.replace(found, reasons=reasons)
    return dataclasses.replace(assigned, clustering=clustering)


def named_topics(
    topics: Sequence[Topic],
    labels: Int32Array,
    weights: Int64Array,
    constraints: TopicConstraints | None,
) -> tuple[Topic, ...]:
    """Give fixed topics their names."""
    named = list(topics)
    if constraints is None or not constraints.is_fixed:
        return tuple(named)
    is_complete = constraints.is_complete
    homes, _ = _homes(labels, weights, constraints)
    for name, topic in zip(constraints.names, homes.tolist(), strict=True):
        if topic != NOISE and name:
            named[topic] = dataclasses.replace(
                named[topic], label=name, is_named=is_complete, is_seeded=not is_complete
            )
    return tuple(named)


def outcome(
    constraints: TopicConstraints | None, assigned: OutlierAssignment, documents: DistinctDocuments
) -> list[Decision]:
    """Return decisions on how far the constraints were met."""
    if constraints is None or constraints.is_complete:
        return []
    found, weights, groups = assigned.clustering, documents.weights, constraints.groups
    notes = []
    if len(constraints.cannot_link):
        n_out = int(weights[found.reasons == Reason.CANNOT_LINK].sum())
        if n_out:
            message = spell_count(n_out, "text is", "texts are")
            message += " in no topic because of pairs that cannot be linked."
            notes.append(note("cannot_link_outside", n_out, message))
    known = groups >= 0
    if not known.any():
        return notes
    n_topics = len(found.persistence)
    if constraints.separation:
        of_topic = owners(found.labels, groups, weights, n_topics, len(constraints.names))
        inside = known & (found.labels != NOISE)
        agrees = inside & (np.append(of_topic, NOISE)[found.labels] == groups)
        share = float(weights[agrees].sum() / weights[known].sum())
        outside = float(weights[known & ~inside].sum() / weights[known].sum())
        where = f"in a topic of their class, {outside:.1%} in none"
        message = f"{share:.1%} of the labelled texts are {where}."
        return [*notes, note("labels_respected", share, message)]
    homes, shares = _homes(found.labels, weights, constraints)
    sizes = np.bincount(found.labels + 1, weights, minlength=n_topics + 1)
    said = [
        f"{name}: {share:.0%} in topic {topic}, of {int(sizes[topic + 1]):,} texts"
        if topic != NOISE
        else f"{name}: in none"
        for name, topic, share in zip(constraints.names, homes.tolist(), shares, strict=True)
    ]
    message = f"Topics of the texts of each group: {first_of(said, '; ')}."
    return [*notes, note("guided_topics", said, message)]


def _homes(
    labels: Int32Array, weights: Int64Array, constraints: TopicConstraints
) -> tuple[Int32Array, list[float]]:
    """Return the topic that holds most texts of each group, or -1, and the share that it holds."""
    groups, n_groups = constraints.groups, len(constraints.names)
    n_topics = int(labels.max(initial=NOISE)) + 1
    homes = owners(groups, labels, weights, n_groups, n_topics)
    known = groups >= 0
    inside = known & (np.append(homes, NOISE)[groups] == labels)
    n_rows = np.bincount(groups[known], weights[known], minlength=n_groups)
    n_inside = np.bincount(groups[inside], weights[inside], minlength=n_groups)
    return homes, (n_inside / np.maximum(n_rows, 1)).tolist()


def _separated(
    labels: Int32Array, propagated: Propagation, probabilities: FloatArray, pairs: Int64Array
) -> Int32Array:
    """Part documents that cannot be linked; those with the fewest partners, the deepest, stay."""
    partners = partners_of(pairs)
    involved = np.array(sorted(partners), dtype=np.int64)
    is_own = propagated.topics[involved] == labels[involved, None]
    own = np.where(is_own, propagated.shares[involved], 0).sum(axis=1)
    n_here = np.array(
        [sum(labels[o] == labels[d] != NOISE for o in partners[d]) for d in involved.tolist()]
    )
    order = involved[np.lexsort((involved, -own, -probabilities[involved], n_here))]
    amended = labels.copy()
    placed: set[int] = set()
    for document in order.tolist():
        here, others = amended[document], partners[document]
        if here != NOISE and any(other in placed and amended[other] == here for other in others):
            barred = {int(amended[other]) for other in others}
            amended[document] = _clearest_topic(propagated, document, barred)
        placed.add(document)
    return amended


def _clearest_topic(propagated: Propagation, document: int, barred: set[int]) -> int:
    """Return the clear topic of a document, of those that are not barred; -1 if there is none."""
    topics, shares = propagated.topics[document], propagated.shares[document]
    allowed = [slot for slot, topic in enumerate(topics.tolist()) if topic not in barred | {NOISE}]
    if not allowed:
        return NOISE
    second = shares[allowed[1]] if len(allowed) > 1 else 0.0
    found = margin(shares[allowed[:1]], np.array([second]), propagated.none[[document]])[0]
    return int(topics[allowed[0]]) if found >= MIN_MARGIN else NOISE
