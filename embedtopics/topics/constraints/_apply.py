"""The protocol of constraints, their effect on graph and topics, and how far they were met."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_matrix, diags_array

from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.neighbors._graph import build_graph
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Float64Array, FloatArray, Int32Array, Int64Array
from embedtopics.results import Decision
from embedtopics.terms.results import TokenStream
from embedtopics.topics._clusters import owners
from embedtopics.topics.results import Topic, TopicConstraints


@dataclass(frozen=True, eq=False)
class FitContext:
    """Documents, vectors and graph before the reduction, for constraints."""

    corpus: Corpus
    documents: DistinctDocuments
    texts: Sequence[str]  # of the documents
    embeddings: FloatArray  # unit vectors
    graph: NeighborGraph
    tokens: Callable[[], TokenStream]  # waits for the words of the documents
    encode: Callable[[Sequence[str]], FloatArray]  # raises InputError without an encoder

    def __len__(self) -> int:
        return len(self.documents)


class Constraint(Protocol):
    """A constraint on the topics of a fit, prepared once before the reduction."""

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the constraints on the documents, and decisions."""

    def describe(self) -> dict[str, Any]:
        """Return the description for the settings of the result, in JSON types."""


def first_of(items: Sequence[str], separator: str = ", ") -> str:
    """Join the first items of a list."""
    return separator.join(items[:20]) + (f"{separator}..." if len(items) > 20 else "")


def note(name: str, value: Any, message: str) -> Decision:
    """Return a decision of the clustering stage."""
    return Decision("clustering", name, value, message)


UNKNOWN_DISTANCE = 1.0
FAR_DISTANCE = 2.5
"""umap-learn's distances between classes: to an unknown class, and to another class at weight 0."""

MIN_SHARE, MIN_PURITY = 0.5, 0.2
"""Minimum share of a seed's texts in one topic, and of that topic's texts that are the seed's, for
the topic to be about the seed. Texts without a seed word may be about it, too."""

SMALL_GROUP = 128
"""Documents of a group up to which all pairs are compared here. There may be thousands of such
groups, and a search in each would wait for its threads."""


def constrained_graph(
    fuzzy: csr_matrix,
    embeddings: FloatArray,
    constraints: TopicConstraints,
    groups: Int32Array,
    k: int,
) -> csr_matrix:
    """Return the fuzzy graph with the groups (n_documents,) attracted and separated."""
    if constraints.attraction:
        fuzzy = attract_groups(fuzzy, embeddings, groups, constraints.attraction, k)
    if constraints.separation:
        fuzzy = separate_groups(fuzzy, groups, constraints.separation)
    return fuzzy


def attract_groups(
    fuzzy: csr_matrix, embeddings: FloatArray, groups: Int32Array, weight: float, k: int
) -> csr_matrix:
    """Unite a fuzzy graph with edges of one weight to the nearest others of each group."""
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
    """Return the nearest others of each document of a group, as positions in it."""
    if len(members) > SMALL_GROUP:
        return build_graph(embeddings[members], k).indices
    vectors = embeddings[members]
    similarities = np.einsum("id,jd->ij", vectors, vectors)
    np.fill_diagonal(similarities, -np.inf)
    others = min(k, len(members) - 1)
    return np.argsort(-similarities, axis=1, kind="stable")[:, :others].astype(np.int32)


def separate_groups(fuzzy: csr_matrix, groups: Int32Array, weight: float) -> csr_matrix:
    """Weaken the edges between groups, like umap-learn's categorical intersection."""
    far = np.inf if weight >= 1 else FAR_DISTANCE / (1.0 - weight)
    edges = fuzzy.tocoo()
    one, other = groups[edges.row], groups[edges.col]
    factors = np.where(one == other, 1.0, np.exp(-far))
    factors[(one < 0) | (other < 0)] = np.exp(-UNKNOWN_DISTANCE)
    weakened = csr_matrix((edges.data * factors, (edges.row, edges.col)), shape=fuzzy.shape)
    strongest = weakened.max(axis=1).toarray().ravel()
    scales = np.divide(1.0, strongest, out=np.zeros_like(strongest), where=strongest > 0)
    directed = csr_matrix(diags_array(scales) @ weakened)
    transposed = directed.T.tocsr()
    return _tidy(directed + transposed - directed.multiply(transposed))


def _tidy(united: csr_matrix) -> csr_matrix:
    tidy = csr_matrix(united, dtype=np.float32)
    tidy.eliminate_zeros()
    tidy.sort_indices()
    return tidy


def groups_of_vectors(groups: Int32Array, of_document: Int64Array, n_vectors: int) -> Int32Array:
    """Return the group of the documents of each distinct vector; -1 for none or several groups."""
    inside = groups >= 0
    largest = np.full(n_vectors, -1, dtype=np.int32)
    np.maximum.at(largest, of_document[inside], groups[inside])
    smallest = np.full(n_vectors, np.iinfo(np.int32).max, dtype=np.int32)
    np.minimum.at(smallest, of_document[inside], groups[inside])
    return np.where(largest == smallest, largest, -1).astype(np.int32)


def named_topics(
    topics: Sequence[Topic],
    labels: Int32Array,
    weights: Int64Array,
    constraints: TopicConstraints | None,
) -> tuple[Topic, ...]:
    """Return the topics with the names of fixed ones."""
    named = list(topics)
    if constraints is None or not constraints.is_fixed:
        return tuple(named)
    is_complete = constraints.is_complete
    homes, _ = _homes(labels, weights, constraints)
    for name, topic in zip(constraints.names, homes.tolist(), strict=True):
        if topic != NOISE and name:
            named[topic] = dataclasses.replace(
                named[topic], name=name, is_named=is_complete, is_seeded=not is_complete
            )
    return tuple(named)


def outcome(
    constraints: TopicConstraints, clustering: Clustering, documents: DistinctDocuments
) -> list[Decision]:
    """Return decisions on how far the constraints were met."""
    if constraints.is_complete:
        return []
    labels, weights, groups = clustering.labels, documents.weights, constraints.groups
    in_group = groups >= 0
    if not in_group.any():
        return []
    n_topics = len(clustering.persistence)
    if constraints.separation:
        class_of = owners(labels, groups, weights, n_topics, len(constraints.names))
        inside = in_group & (labels != NOISE)
        agrees = inside & (np.append(class_of, NOISE)[labels] == groups)
        share = float(weights[agrees].sum() / weights[in_group].sum())
        outside = float(weights[in_group & ~inside].sum() / weights[in_group].sum())
        message = f"{share:.1%} of the labelled texts are in a topic of their class, "
        message += f"{outside:.1%} in none."
        return [note("labels_respected", share, message)]
    homes, shares = _homes(labels, weights, constraints)
    sizes = np.bincount(labels + 1, weights, minlength=n_topics + 1)
    items = [
        f"{name}: {share:.0%} in topic {topic} of {int(sizes[topic + 1]):,} texts"
        if topic != NOISE
        else f"{name}: in no topic"
        for name, topic, share in zip(constraints.names, homes.tolist(), shares, strict=True)
    ]
    message = f"Topics of each group's texts: {first_of(items, '; ')}."
    notes = [note("guided_topics", items, message)]
    n_inside = shares * np.bincount(groups[in_group], weights[in_group], len(shares))
    purities = n_inside / np.maximum(sizes[homes + 1], 1)
    is_lost = (shares < MIN_SHARE) | (purities < MIN_PURITY)
    if constraints.attraction and is_lost.any():
        lost = [
            f"{items[i]}, {purities[i]:.0%} of that topic" for i in np.flatnonzero(is_lost).tolist()
        ]
        message = f"No topic is about these seeds: {first_of(lost, '; ')}. "
        message += "Use more specific words, or a larger number of topics."
        notes.append(note("seeds_without_topic", lost, message))
    return notes


def _homes(
    labels: Int32Array, weights: Int64Array, constraints: TopicConstraints
) -> tuple[Int32Array, Float64Array]:
    """Return the topic with most texts of each group, or -1, and its share of the group."""
    groups, n_groups = constraints.groups, len(constraints.names)
    n_topics = int(labels.max(initial=NOISE)) + 1
    homes = owners(groups, labels, weights, n_groups, n_topics)
    in_group = groups >= 0
    inside = in_group & (np.append(homes, NOISE)[groups] == labels)
    n_rows = np.bincount(groups[in_group], weights[in_group], minlength=n_groups)
    n_inside = np.bincount(groups[inside], weights[inside], minlength=n_groups)
    return homes, n_inside / np.maximum(n_rows, 1)
