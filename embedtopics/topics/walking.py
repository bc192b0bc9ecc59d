"""Where a walk from document to near document ends: the share of each topic in each document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from embedtopics.protocols import FloatArray, Int32Array
from embedtopics.results import NOISE, NeighborGraph

__all__ = ["NOWHERE", "Walk", "walk"]

NOWHERE = -2
"""Label of documents at which a walk ends without a topic."""

STEPS = 30
"""Steps of a walk; after them all but a few walks in a hundred have ended or never will."""

SLOTS = 16
"""Topics of a document that are kept; those with less are given to the kept ones in proportion.
They are left out at the end or, where documents and topics are many, at each step."""

MOST_CELLS = 2**24
"""Documents times topics up to which all shares are kept on the way, which is faster."""

ENOUGH_FOR_THREADS = 4_000
"""Documents below which a step is too short to share among threads."""


@dataclass(frozen=True, eq=False)
class Walk:
    """The topics at which walks from each document end.

    Parameters
    ----------
    topics : int32 ndarray of shape (n_documents, 16)
        By descending share, equal ones by number; -1 where there are fewer.
    shares : float32 ndarray of shape (n_documents, 16)
        A row sums to at most 1; the rest of the walks end in no topic.
    """

    topics: Int32Array
    shares: FloatArray

    @property
    def none(self) -> FloatArray:
        """Share of the walks that end in no topic, shape (n_documents,)."""
        rest: FloatArray = np.float32(1.0) - self.shares.sum(axis=1, dtype=np.float32)
        return np.clip(rest, 0.0, 1.0)


def walk(graph: NeighborGraph, labels: Int32Array, n_topics: int) -> Walk:
    """Walk from every document to its neighbours until a labelled one is met.

    From a document the walk goes on to one of its neighbours, with chances in proportion to
    their similarities. It ends at the first document that has a label, and is lost after 30
    steps. The first step is always made, so that the shares of a labelled document tell what its
    neighbours are. This is the harmonic solution of label propagation, cut after 30 steps.

    Parameters
    ----------
    graph : NeighborGraph
    labels : int32 ndarray of shape (n_documents,)
        Topics; -1 for documents that the walk passes through, -2 for those where it ends without
        a topic.
    n_topics : int

    Returns
    -------
    Walk
        The same whatever the number of threads.

    References
    ----------
    Zhu, Ghahramani and Lafferty (2003), "Semi-Supervised Learning Using Gaussian Fields and
    Harmonic Functions", section 2.
    """
    n_documents = len(labels)
    topics = np.full((n_documents, SLOTS), -1, dtype=np.int32)
    shares = np.zeros((n_documents, SLOTS), dtype=np.float32)
    if n_topics == 0 or graph.k == 0:
        return Walk(topics, shares)
    from embedtopics.topics import _kernels

    weights = _chances(graph)
    passing = np.flatnonzero(labels == NOISE).astype(np.int32)
    everyone = np.arange(n_documents, dtype=np.int32)
    steps = [passing] * (STEPS - 1) + [everyone]
    is_core = labels >= 0
    if n_documents * n_topics <= MOST_CELLS:
        labels = np.ascontiguousarray(labels, dtype=np.int32)
        all_shares = np.zeros((n_documents, n_topics), dtype=np.float32)
        new_all = np.zeros_like(all_shares)
        for walkers in steps:
            _on_threads(_kernels.mix, graph.indices, weights, walkers, labels, all_shares, new_all)
            all_shares, new_all = new_all, all_shares
        _kernels.keep_largest(all_shares, topics, shares)
        return Walk(topics, shares)
    topics[is_core, 0] = labels[is_core]
    shares[is_core, 0] = 1.0
    new_topics, new_shares = topics.copy(), shares.copy()
    for walkers in steps:
        _on_threads(
            _kernels.step, graph.indices, weights, walkers, topics, shares, new_topics, new_shares,
            np.int64(n_topics),
        )  # fmt: skip
        topics, new_topics, shares, new_shares = new_topics, topics, new_shares, shares
    return Walk(topics, shares)


def _chances(graph: NeighborGraph) -> FloatArray:
    """Return similarities scaled to sum to one in each row; negative ones have no chance."""
    weights = np.maximum(graph.similarities.astype(np.float64), 0.0)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return np.ascontiguousarray(weights, dtype=np.float32)


def _on_threads(
    step: Callable[..., None],
    indices: Int32Array,
    weights: FloatArray,
    walkers: Int32Array,
    *arrays: Any,
) -> None:
    import numba

    threads = numba.get_num_threads()
    numba.set_num_threads(threads if len(walkers) >= ENOUGH_FOR_THREADS else 1)
    try:
        step(indices, weights, walkers, *arrays)
    finally:
        numba.set_num_threads(threads)
