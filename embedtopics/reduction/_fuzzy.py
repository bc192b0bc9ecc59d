"""The fuzzy graph: comparable edge weights from neighbor distances."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Float64Array, FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


MOST_STEPS = 100
"""Largest number of Newton steps; a dozen are usual."""

PRECISION = 1e-12
"""Relative length of the last Newton step."""

ROWS_AT_ONCE = 32_768
"""Documents per block of bandwidths; one thread works on one block."""

SMALLEST_SCALE = 1e-3
"""Smallest bandwidth, as a share of the mean distance; duplicates would divide by zero."""


def fuzzy_graph(graph: NeighborGraph) -> csr_matrix:
    """Return UMAP's fuzzy graph of a neighbor graph: symmetric, (n_documents, n_documents).

    Each document's distances are shifted so that its nearest neighbor has weight 1, and scaled so
    that its weights sum to log2(k + 1). The two directions of an edge are united as a + b - a·b. A
    document without any neighbor of a similarity above 0 has no edges: its neighbors are arbitrary.
    Source: McInnes, Healy and Melville (2018), "UMAP: Uniform Manifold Approximation and Projection
    for Dimension Reduction", algorithms 2 and 3.
    """
    from scipy.sparse import csr_matrix

    n_documents, k = graph.indices.shape
    weights = np.empty((n_documents, k), dtype=np.float32)
    # The document itself counts with distance zero.
    usual = float(_distances(graph.similarities).mean()) * k / (k + 1) if weights.size else 0.0

    def weigh(begin: int) -> None:
        part = slice(begin, begin + ROWS_AT_ONCE)
        weights[part] = _weights(graph.similarities[part], usual)

    with ThreadPoolExecutor() as threads:
        list(threads.map(weigh, range(0, n_documents, ROWS_AT_ONCE)))
    directed = csr_matrix(
        (weights.ravel(), graph.indices.ravel(), np.arange(n_documents + 1) * k),
        shape=(n_documents, n_documents),
    )
    transposed = directed.T.tocsr()
    union = directed + transposed - directed.multiply(transposed)
    fuzzy = csr_matrix(union, dtype=np.float32)
    fuzzy.eliminate_zeros()
    fuzzy.sort_indices()
    return fuzzy


def positive_edges(graph: NeighborGraph) -> csr_matrix:
    """Return the fuzzy graph, (n, n), without edges of a similarity of 0 or below."""
    from scipy.sparse import csr_matrix

    fuzzy = fuzzy_graph(graph)
    is_positive = graph.similarities > 0
    if is_positive.all():
        return fuzzy
    rows = np.repeat(np.arange(len(graph)), is_positive.sum(axis=1))
    positive: Any = csr_matrix(
        (np.ones(len(rows), np.float32), (rows, graph.indices[is_positive])), shape=fuzzy.shape
    )
    either = ((positive + positive.T) > 0).astype(np.float32)
    edges = csr_matrix(fuzzy.multiply(either), dtype=np.float32)
    edges.eliminate_zeros()
    edges.sort_indices()
    return edges


def _distances(similarities: FloatArray) -> Float64Array:
    return np.maximum(0.0, 1.0 - similarities.astype(np.float64))


def _weights(similarities: FloatArray, usual: float) -> Float64Array:
    """Return the edge weights of some documents (n_rows, k); `usual` is the overall distance."""
    distances = _distances(similarities)
    # Each document's smallest distance above zero; 0 if all are zero.
    rho = np.where(distances > 0, distances, np.inf).min(axis=1, initial=np.inf)
    rho = np.where(np.isfinite(rho), rho, 0.0)
    sigma = _bandwidths(distances, rho, usual)
    beyond = distances - rho[:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        weights = np.where(beyond > 0, np.exp(-beyond / sigma[:, None]), 1.0)
    weights[(similarities <= 0).all(axis=1)] = 0.0
    return weights


def _bandwidths(distances: Float64Array, rho: Float64Array, usual: float) -> Float64Array:
    """Find the bandwidths with a sum of weights of log2(k + 1), by Newton's method.

    The sum is a convex, falling function of the inverse bandwidth: from zero on, no step
    overshoots. If too many neighbors are as near as the nearest, the smallest bandwidth applies.
    """
    n_documents, k = distances.shape
    target = np.log2(k + 1)
    beyond = np.maximum(distances - rho[:, None], 0.0)
    certain = np.count_nonzero(beyond == 0, axis=1)
    inverse = np.zeros(n_documents)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for _ in range(MOST_STEPS):
            falling = np.where(beyond > 0, np.exp(-beyond * inverse[:, None]), 0.0)
            excess = certain + falling.sum(axis=1) - target
            slope = np.einsum("ij,ij->i", beyond, falling)
            further = np.where(excess > 0, inverse + excess / slope, inverse)
            # A converged row does not move while others do.
            moves = further > inverse * (1 + PRECISION)
            if not moves.any():
                break
            inverse = np.where(moves, further, inverse)
        sigma = 1.0 / inverse
    own_mean = distances.sum(axis=1) / (k + 1)
    floor = SMALLEST_SCALE * np.where(rho > 0, own_mean, usual)
    return np.maximum(sigma, floor)
