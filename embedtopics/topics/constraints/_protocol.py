"""The protocol of constraints, and how edits obey them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from embedtopics.clustering.results import NOISE
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.decisions import Decision
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import BoolArray, FloatArray, Int32Array, Int64Array
from embedtopics.terms.results import TokenStream
from embedtopics.topics._clusters import owners
from embedtopics.topics.results import TopicConstraints, TopicResult


@dataclass(frozen=True, eq=False)
class FitContext:
    """Documents, vectors and graph before the reduction, for constraints.

    `embeddings` are unit vectors. `tokens` returns the words of the documents when they are ready.
    `encode` returns unit vectors of texts, or raises `InputError` without an encoder.
    """

    corpus: Corpus
    documents: DistinctDocuments
    embeddings: FloatArray
    graph: NeighborGraph
    tokens: Callable[[], TokenStream]
    encode: Callable[[Sequence[str]], FloatArray]

    def __len__(self) -> int:
        return len(self.documents)


@runtime_checkable
class Constraint(Protocol):
    """A constraint on the topics of a fit: any object with these methods.

    A fit prepares it once, after the neighbor search and before the reduction. Later stages, and
    later cuts of the hierarchy, obey the returned value.
    """

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the constraints on the documents, and decisions."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return the description for the settings of the result, in JSON types."""
        ...


SHOWN = 20
"""Largest number of groups in a message."""


def first_of(items: Sequence[str], separator: str = ", ") -> str:
    """Join the first items of a list."""
    return separator.join(items[:SHOWN]) + (f"{separator}..." if len(items) > SHOWN else "")


def note(name: str, value: Any, message: str) -> Decision:
    """Return a decision of the clustering stage."""
    return Decision("clustering", name, value, message)


def cannot_merge(result: TopicResult) -> BoolArray:
    """Return the pairs of topics that must not merge: seeded, or with texts that cannot link."""
    seeded = np.array([topic.is_seeded for topic in result.topics], dtype=bool)
    apart: BoolArray = seeded[:, None] & seeded
    constraints, labels = result.constraints, result.clustering.labels
    if constraints is not None:
        one, other = labels[constraints.cannot_link].T
        both = (one != NOISE) & (other != NOISE)
        apart[one[both], other[both]] = apart[other[both], one[both]] = True
    np.fill_diagonal(apart, False)
    return apart


def bars(
    result: TopicResult, documents: Int64Array, topics: Int32Array, order: Int64Array
) -> BoolArray:
    """Return which outliers the constraints bar from their new topics, (n_outliers,)."""
    barred = np.zeros(len(documents), dtype=bool)
    constraints = result.constraints
    if constraints is None:
        return barred
    labels = result.clustering.labels.copy()
    involved = np.isin(documents, constraints.cannot_link)
    partners = constraints.partners if involved.any() else {}
    for place in order[involved[order]].tolist():
        topic = topics[place]
        if any(labels[other] == topic for other in partners[int(documents[place])]):
            barred[place] = True
        else:
            labels[documents[place]] = topic
    return barred


def departures(
    constraints: TopicConstraints | None,
    before: Int32Array,
    after: Int32Array,
    weights: Int64Array,
    edit: str,
) -> list[Decision]:
    """Return decisions on constraints that an edit broke."""
    if constraints is None:
        return []
    decisions = []

    def add(name: str, count: int, message: str) -> None:
        if count:
            decisions.append(note(name, count, f"Since {edit}, {count:,} {message}"))

    linked = _linked(constraints, after) & ~_linked(constraints, before)
    message = "pairs of texts that cannot be linked share a topic."
    add("pairs_joined", int(linked.sum()), message)
    if constraints.is_complete:
        wrong = _in_another_class(constraints, after, weights)
        wrong &= ~_in_another_class(constraints, before, weights)
        message = "labelled texts are in a topic of another class."
        add("labels_mixed", int(weights[wrong].sum()), message)
        unknown = (constraints.groups < 0) & (after != NOISE) & (before == NOISE)
        message = "texts that were not labelled are in topics."
        add("not_labeled_joined", int(weights[unknown].sum()), message)
    return decisions


def _linked(constraints: TopicConstraints, labels: Int32Array) -> BoolArray:
    one, other = labels[constraints.cannot_link].T
    return np.asarray((one == other) & (one != NOISE))


def _in_another_class(
    constraints: TopicConstraints, labels: Int32Array, weights: Int64Array
) -> BoolArray:
    groups, n_topics = constraints.groups, int(labels.max(initial=NOISE)) + 1
    classes = owners(labels, groups, weights, n_topics, len(constraints.names))
    classes = np.append(classes, NOISE)
    return np.asarray((groups >= 0) & (labels != NOISE) & (classes[labels] != groups))
