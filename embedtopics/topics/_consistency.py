"""Whether the parts of a result that was read belong together.

Compiled functions trust the numbers of documents and terms that they are given: one out of range
would make them read, or write, memory that is not theirs. A folder may come from anybody.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.results import NOISE, TopicResult

__all__ = ["check_parts"]

KINDS = {"u": "uint", "i": "int", "f": "float", "b": "bool"}
"""Of any width: stages of the user's own may give wider ones."""

Expected = tuple[str, npt.NDArray[Any] | None, str, tuple[int, ...]]


def check_parts(result: TopicResult) -> None:
    """Make sure that every array has its kind and shape, and every number in it is of something.

    Raises
    ------
    ValueError
        Which names the part.
    """
    n_rows, n, n_topics = len(result.corpus), len(result.documents), result.n_topics
    if [topic.topic_id for topic in result.topics] != list(range(n_topics)):
        raise ValueError("topics are not numbered from 0")
    documents, graph, tokens = result.documents, result.graph, result.tokens
    clustering, counts, k = result.clustering, result.term_counts, result.graph.k
    expected: list[Expected] = [
        ("hashes", documents.hashes, "u", (n, 2)),
        ("first_rows", documents.first_rows, "i", (n,)),
        ("of_row", documents.of_row, "i", (n_rows,)),
        ("weights", documents.weights, "i", (n,)),
        ("embeddings", result.embeddings, "f", (n, *result.embeddings.shape[1:2])),
        ("neighbours", graph.indices, "i", (n, k)),
        ("similarities", graph.similarities, "f", (n, k)),
        ("coordinates", result.coordinates, "f", (n, *result.coordinates.shape[1:2])),
        ("map", result.map, "f", (n, 2)),
        ("labels", clustering.labels, "i", (n,)),
        ("strengths", clustering.strengths, "f", (n,)),
        ("persistence", clustering.persistence, "f", (n_topics,)),
        ("reasons", clustering.reasons, "i", (n,)),
        ("tokens", tokens.ids, "i", (int(tokens.offsets[-1]),)),
        ("offsets", tokens.offsets, "i", (n + 1,)),
        ("lengths of terms", counts.lengths, "i", (len(counts.terms),)),
        ("added", result.added, "b", (n,)),
        *_parts_that_may_lack(result),
    ]
    for name, array, kind, shape in expected:
        if array is not None and (array.dtype.kind != kind or array.shape != shape):
            found = f"{array.dtype} of shape {array.shape}"
            raise ValueError(f"{name}: {found}, expected {KINDS[kind]} of shape {shape}")
    if documents.hashes.dtype != np.uint64:
        raise ValueError(f"hashes: {documents.hashes.dtype}, expected uint64")
    _within("first_rows", documents.first_rows, 0, n_rows)
    _within("of_row", documents.of_row, NOISE, n)
    _within("neighbours", graph.indices, 0, n)
    _within("labels", clustering.labels, NOISE, n_topics)
    _within("reasons", clustering.reasons, 0, 127)
    _within("tokens", tokens.ids, 0, len(tokens.words))
    _within("lengths of tokens", np.diff(tokens.offsets, prepend=0), 0, len(tokens.ids) + 1)
    n_terms = len(counts.terms)
    _check_sparse("memberships", result.memberships, (n, n_topics))
    _check_sparse("counts", counts.counts, (n, n_terms))
    _check_sparse("topic_terms", result.topic_terms, (n_topics, n_terms))
    for topic in result.topics:
        _within("representatives", np.array(topic.representatives, dtype=np.int64), 0, n_rows)
    if result.tree is not None:
        _within("hierarchy", result.tree.edges, 0, n)
    if result.guide is not None:
        _within("groups of the guide", result.guide.groups, NOISE, len(result.guide.names))
        _within("pairs of the guide", result.guide.apart, 0, n)


def _within(name: str, numbers: npt.NDArray[Any] | None, low: int, high: int) -> None:
    """Refuse whole numbers below the low or not below the high."""
    if numbers is not None and numbers.size:
        least, most = int(numbers.min()), int(numbers.max())
        if least < low or most >= high:
            raise ValueError(f"{name}: from {least} to {most}, expected {low} to {high - 1}")


def _parts_that_may_lack(
    result: TopicResult,
) -> Iterable[Expected]:
    n, n_topics = len(result.documents), result.n_topics
    tree, stability, guide = result.tree, result.stability, result.guide
    if tree is not None:
        yield "hierarchy", tree.edges, "i", (max(0, n - 1), 2)
        yield "lengths of the hierarchy", tree.distances, "f", (max(0, n - 1),)
        yield "core distances", tree.core_distances, "f", (n,)
    if stability is not None:
        for name in ("recurrence", "low", "high", "chance"):
            yield name, getattr(stability, name), "f", (n_topics,)
        yield "agreement", stability.agreement, "f", (n,)
    if guide is not None:
        yield "groups of the guide", guide.groups, "i", (n,)
        yield "strengths of the guide", guide.strengths, "f", (n,)
        yield "pairs of the guide", guide.apart, "i", (len(guide.apart), 2)


def _check_sparse(name: str, matrix: Any, shape: tuple[int, int]) -> None:
    if matrix.shape != shape:
        raise ValueError(f"{name} has the shape {matrix.shape}, expected {shape}")
    starts, columns = matrix.indptr, matrix.indices
    if starts.dtype.kind != "i" or columns.dtype.kind != "i":
        raise ValueError(f"{name} has places that are not whole numbers")
    if matrix.data.dtype.kind not in "if" or len(columns) != len(matrix.data):
        raise ValueError(f"{name} has {len(matrix.data)} values in {len(columns)} places")
    if len(starts) != shape[0] + 1 or starts[0] != 0 or starts[-1] != len(columns):
        raise ValueError(f"{name} has rows that do not hold its values")
    _within(f"rows of {name}", np.diff(starts), 0, len(columns) + 1)
    _within(f"columns of {name}", columns, 0, shape[1])
