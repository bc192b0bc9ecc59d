"""Checks that the parts of a loaded result are consistent.

Compiled functions do not check indices: a number out of range would read or write foreign memory,
and a folder may come from anybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import is_of
from embedtopics.clustering.results import NOISE
from embedtopics.topics.results import TopicResult

Texts = tuple[str, ...]
SETTINGS: Mapping[str, Any] = {
    "min_margin": float, "languages": Texts | None, "extra_stop_words": Texts | None,
    "n_keywords": int, "seed": int, "n_neighbors": int,
}  # fmt: skip
"""Settings that later functions compute with."""
KINDS = {"u": "uint", "i": "int", "f": "float", "b": "bool"}
"""Kinds of any width: custom stages may return wider types."""


def check_parts(result: TopicResult) -> None:
    """Raise ValueError unless every array has its kind and shape, and every index is in range."""
    n_rows, n, n_topics = len(result.corpus), len(result.documents), result.n_topics
    n_terms = len(result.term_counts.terms)
    if [topic.topic_id for topic in result.topics] != list(range(n_topics)):
        raise ValueError("topics are not numbered from 0")
    for name in SETTINGS.keys() & result.settings.keys():
        part_of(result.settings, name, SETTINGS[name])
    for name, array, kind, shape in _expected(result):
        if array is not None and (array.dtype.kind != kind or array.shape != shape):
            expected = f"{KINDS[kind]} of shape {shape}"
            raise ValueError(f"{name}: {array.dtype} of shape {array.shape}, expected {expected}")
    documents, clustering, tokens = result.documents, result.clustering, result.tokens
    if documents.hashes.dtype != np.uint64:
        raise ValueError(f"hashes: {documents.hashes.dtype}, expected uint64")
    if int(documents.weights.clip(0, n_rows + 1).sum()) > n_rows:
        raise ValueError("documents have more rows than there are")
    if result.embeddings.dtype != np.float32:
        raise ValueError(f"embeddings: {result.embeddings.dtype}, expected float32")
    _within("status", result.corpus.status, 0, 3)
    _within("weights", documents.weights, 1, n_rows + 1)
    _within("first_rows", documents.first_rows, 0, n_rows)
    _within("of_row", documents.of_row, NOISE, n)
    _within("neighbors", result.graph.indices, 0, n)
    _within("labels", clustering.labels, NOISE, n_topics)
    _within("reasons", clustering.reasons, 0, 127)
    _within("tokens", tokens.ids, 0, len(tokens.words))
    _within("lengths of tokens", np.diff(tokens.offsets, prepend=0), 0, len(tokens.ids) + 1)
    _check_sparse("memberships", result.memberships, (n, n_topics))
    _check_sparse("counts", result.term_counts.counts, (n, n_terms))
    _check_sparse("topic_terms", result.topic_terms, (n_topics, n_terms))
    for topic in result.topics:
        if len(topic.weights) != len(topic.keywords):
            raise ValueError(f"topic {topic.topic_id} lacks weights of its keywords")
        _within("representatives", np.array(topic.representatives, dtype=np.int64), 0, n_rows)
    if result.tree is not None:
        _within("hierarchy", result.tree.edges, 0, n)
    constraints = result.constraints
    if constraints is not None:
        _within("groups of the constraints", constraints.groups, NOISE, len(constraints.names))


def _expected(
    result: TopicResult,
) -> Iterator[tuple[str, npt.NDArray[Any] | None, str, tuple[int, ...]]]:
    """Yield the name, array, kind and shape of each part; None for a missing optional one."""
    n, n_topics = len(result.documents), result.n_topics
    documents, graph, clustering = result.documents, result.graph, result.clustering
    tree, stability, constraints = result.tree, result.stability, result.constraints
    yield "hashes", documents.hashes, "u", (n, 2)
    yield "first_rows", documents.first_rows, "i", (n,)
    yield "of_row", documents.of_row, "i", (len(result.corpus),)
    yield "weights", documents.weights, "i", (n,)
    yield "embeddings", result.embeddings, "f", (n, *result.embeddings.shape[1:2])
    yield "neighbors", graph.indices, "i", (n, graph.k)
    yield "similarities", graph.similarities, "f", (n, graph.k)
    yield "coordinates", result.coordinates, "f", (n, *result.coordinates.shape[1:2])
    yield "map", result.map, "f", (n, 2)
    yield "labels", clustering.labels, "i", (n,)
    yield "probabilities", clustering.probabilities, "f", (n,)
    yield "persistence", clustering.persistence, "f", (n_topics,)
    yield "reasons", clustering.reasons, "i", (n,)
    yield "tokens", result.tokens.ids, "i", (int(result.tokens.offsets[-1]),)
    yield "offsets", result.tokens.offsets, "i", (n + 1,)
    yield "lengths of terms", result.term_counts.lengths, "i", (len(result.term_counts.terms),)
    yield "added", result.added, "b", (n,)
    if tree is not None:
        yield "hierarchy", tree.edges, "i", (max(0, n - 1), 2)
        yield "lengths of the hierarchy", tree.distances, "f", (max(0, n - 1),)
        yield "core distances", tree.core_distances, "f", (n,)
    if stability is not None:
        for name in ("recurrence", "low", "high", "chance"):
            yield name, getattr(stability, name), "f", (n_topics,)
        yield "agreement", stability.agreement, "f", (n,)
    if constraints is not None:
        yield "groups of the constraints", constraints.groups, "i", (n,)
        yield "probabilities of the constraints", constraints.probabilities, "f", (n,)


def _within(name: str, numbers: npt.NDArray[Any] | None, low: int, high: int) -> None:
    """Raise ValueError unless all integers are in range(low, high)."""
    if numbers is not None and numbers.size:
        least, most = int(numbers.min()), int(numbers.max())
        if least < low or most >= high:
            raise ValueError(f"{name}: from {least} to {most}, expected {low} to {high - 1}")


def _check_sparse(name: str, matrix: Any, shape: tuple[int, int]) -> None:
    if matrix.shape != shape:
        raise ValueError(f"{name} has the shape {matrix.shape}, expected {shape}")
    starts, columns = matrix.indptr, matrix.indices
    if starts.dtype.kind != "i" or columns.dtype.kind != "i":
        raise ValueError(f"{name} has indices that are not integers")
    if matrix.data.dtype.kind not in "if" or len(columns) != len(matrix.data):
        raise ValueError(f"{name} has {len(matrix.data)} values and {len(columns)} columns")
    if len(starts) != shape[0] + 1 or starts[0] != 0 or starts[-1] != len(columns):
        raise ValueError(f"{name} has inconsistent row offsets")
    _within(f"rows of {name}", np.diff(starts), 0, len(columns) + 1)
    _within(f"columns of {name}", columns, 0, shape[1])


def part_of(content: Mapping[str, Any], name: str, hint: Any) -> Any:
    """Return one value of parsed JSON, or raise ValueError if it has another type."""
    value = tuple(content[name]) if isinstance(content[name], list) else content[name]
    if not is_of(value, hint):
        raise ValueError(f"{name} is {value!r:.80}, expected {hint}")
    return value
