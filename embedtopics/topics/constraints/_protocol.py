"""What a constraint is given and what it returns, and how edits keep to it."""

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
    """What is known of the documents before they are laid out; `embeddings` are unit vectors.

    `tokens` returns their words, once these are ready. `encode` makes unit vectors of texts as of
    the documents, and raises `InputError` where there is no encoder.
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
    """Constrains the topics of a fit; `TopicModel` takes any object with these methods.

    It is prepared once in a fit, after the neighbours are found and before anything is laid out.
    Later stages, and later cuts of the hierarchy, obey the value that it returns.
    """

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the constraints on the documents, and the decisions that led to them."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return the description that the settings of the result hold, as JSON holds it."""
        ...


SHOWN = 20
"""Groups that a message names."""


def first_of(items: Sequence[str], separator: str = ", ") -> str:
    """Return the first items of a list, joined."""
    return separator.join(items[:SHOWN]) + (f"{separator}..." if len(items) > SHOWN else "")


def note(name: str, value: Any, message: str) -> Decision:
    """Return a decision of the stage that applies constraints."""
    return Decision("clustering", name, value, message)


def cannot_merge(result: TopicResult) -> BoolArray:
    """Return which topics no step may merge, (n_topics, n_topics): seeded ones, ends of pairs."""
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
    """Return which outliers the constraints bar from the topics that they would be assigned to."""
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
    """Return decisions on where an edit broke the constraints."""
    if constraints is None:
        return []
    said = []

    def add(name: str, count: int, message: str) -> None:
        if count:
            said.append(note(name, count, f"Since {edit}, {count:,} {message}"))

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
    return said


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
