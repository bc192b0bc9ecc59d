"""Shares of topics in documents, voted by their neighbours on the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int32Array
from embedtopics.results import NOISE, NeighborGraph

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["neighbor_memberships", "vote"]

OWN_SHARE = 0.5
"""A document's own label weighs as much as all of its neighbours' together, so that the largest
share of a document in a topic is that topic's, and of one in no topic is nobody's."""


def vote(
    indices: npt.NDArray[np.int32], similarities: FloatArray, labels: Int32Array, n_topics: int
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


def neighbor_memberships(graph: NeighborGraph, labels: Int32Array) -> csr_matrix:
    """Return the share of each topic in each document of a graph.

    Half of a document is its own label's, the other half is voted by its neighbours.

    Parameters
    ----------
    graph : NeighborGraph
    labels : int32 ndarray of shape (n_documents,)

    Returns
    -------
    csr_matrix of float32, shape (n_documents, n_topics)
        A row sums to at most 1; the rest belongs to no topic.
    """
    from scipy.sparse import csr_matrix

    n_documents = len(labels)
    n_topics = int(labels.max(initial=NOISE)) + 1
    inside = np.flatnonzero(labels != NOISE)
    own = csr_matrix(
        (np.ones(len(inside)), (inside, labels[inside])), shape=(n_documents, n_topics)
    )
    voted = vote(graph.indices, graph.similarities, labels, n_topics)
    # A document without neighbours, or with none alike, is wholly its own label's.
    has_votes = (graph.similarities > 0).any(axis=1) if graph.k else np.zeros(n_documents, bool)
    own_share = np.where(has_votes, OWN_SHARE, 1.0)
    mixed = own.multiply(own_share[:, None]) + voted.multiply((1.0 - own_share)[:, None])
    shares = csr_matrix(mixed, dtype=np.float32)
    shares.sort_indices()
    return shares
