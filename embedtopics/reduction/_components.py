"""Principal components, and the same smoothed over the neighbor graph.

Smoothing averages components over neighbors, a few times: what neighbors have in common stays, what
is particular to one text fades. Nothing is random, and the coordinates are a smooth function of the
vectors: other last bits give nearly the same coordinates. A layout by sampled forces may end
elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embedtopics._utils.machine import one_blas_thread
from embedtopics.protocols import FloatArray, Int32Array, Int64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

EXTENT = 10.0
"""Half the width of the start: the scale that UMAP's gradient steps assume."""

BLOCK = 4096
"""Documents per block of the covariance, summed in float32."""

MOST_DIMENSIONS = 2048
"""Dimensions up to which the whole covariance is decomposed, in a few seconds. Counts of words have
many more; then a randomized decomposition finds the first components."""

ENOUGH_DOCUMENTS = 20_000
"""Documents for the directions; larger collections use every second, third ... document."""

STEPS = 6
"""Averaging steps. Chosen from 3, 6 and 12 on AG News, BBC News and the titles of M10: agreement
with their classes differs by less than 0.01."""

SMOOTHED_COMPONENTS = 16
"""Components for partitions; 8 lose 0.02 on web snippets, 32 gain little."""

DENSITY_COMPONENTS = 8
"""Leading components for density: with more, all neighbors are about equally far."""


def principal_start(
    embeddings: FloatArray, n_components: int, rows: Int64Array | None = None
) -> FloatArray:
    """Project embeddings, or some rows of them, on their first principal components.

    The largest absolute value is 10. The sign of each eigenvector makes its entry of largest
    absolute value positive: the start is the same on every run. Above 2,048 dimensions they come
    from a randomized decomposition (Halko, Martinsson and Tropp 2011, algorithms 4.4 and 5.1).
    Shapes: (n_documents, n_dimensions) -> (n_documents, n_components), zero beyond the rank.
    """
    from sklearn.utils.extmath import randomized_svd

    rows = np.arange(len(embeddings)) if rows is None else rows
    n_documents, n_dimensions = len(rows), embeddings.shape[1]
    some = embeddings[rows[:: max(1, n_documents // ENOUGH_DOCUMENTS)]]
    mean = some.mean(axis=0, dtype=np.float64).astype(np.float32)
    start = np.zeros((n_documents, n_components), dtype=np.float32)
    # On one thread: the order in which BLAS sums depends on how many it has.
    with one_blas_thread():
        if n_dimensions <= MOST_DIMENSIONS:
            covariance = np.zeros((n_dimensions, n_dimensions))
            for begin in range(0, len(some), BLOCK):
                block = some[begin : begin + BLOCK] - mean
                covariance += block.T @ block
            axes = np.linalg.eigh(covariance)[1][:, ::-1][:, :n_components]
        else:
            n_first = min(n_components, len(some))
            rotation = randomized_svd(some - mean, n_first, n_iter=7, random_state=0)[2]
            axes = rotation.T.astype(np.float64)
        axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
        for begin in range(0, n_documents, BLOCK):
            block = embeddings[rows[begin : begin + BLOCK]] - mean
            start[begin : begin + BLOCK, : axes.shape[1]] = block @ axes
    return _scaled(start)


def first_components(start: FloatArray, n_components: int) -> FloatArray:
    """Return a `principal_start` of fewer dimensions, those of largest variance."""
    return _scaled(start[:, :n_components])


def _scaled(start: FloatArray) -> FloatArray:
    largest = float(np.abs(start).max(initial=0.0))
    return start * np.float32(EXTENT / largest) if largest > 0 else start.copy()


def smooth(
    fuzzy: csr_matrix,
    components: FloatArray,
    n_steps: int = STEPS,
    *,
    groups: Int32Array | None = None,
    pull: float = 0.0,
) -> FloatArray:
    """Average components (n_documents, n_components) over a fuzzy graph; rows of length 1.

    Each step takes the mean of a document, at weight 1, and its neighbors, at the weights of their
    edges: the graph filter of Wu et al. (2019), "Simplifying graph convolutional networks", and of
    Zhang et al. (2019), "Attributed graph clustering via adaptive graph convolution". A document in
    one of the `groups` (n_documents,), -1 for none, takes the share `pull` of its mean from
    neighbors in the same group.
    """
    from scipy.sparse import diags_array, eye_array

    looped = fuzzy + eye_array(fuzzy.shape[0], dtype=np.float32, format="csr")
    degrees = np.asarray(looped.sum(axis=1, dtype=np.float64)).ravel()
    averages = (diags_array(1.0 / degrees) @ looped).tocsr().astype(np.float32)
    if groups is not None and pull > 0:
        ends = averages.tocoo()
        within = averages.copy()
        within.data[(groups[ends.row] != groups[ends.col]) | (groups[ends.row] < 0)] = 0
        shares = np.asarray(within.sum(axis=1, dtype=np.float64)).ravel()
        pulls = np.where(groups >= 0, pull, 0.0)
        drawn = diags_array(pulls / np.where(shares > 0, shares, 1.0)) @ within
        averages = (diags_array(1.0 - pulls) @ averages + drawn).tocsr().astype(np.float32)
    smoothed = components
    for _ in range(n_steps):
        smoothed = averages @ smoothed
    return _of_length_one(smoothed)


def leading(coordinates: FloatArray) -> FloatArray:
    """Return the leading components, in which density is measured, (n_documents, up to 8)."""
    if coordinates.shape[1] <= DENSITY_COMPONENTS:
        return coordinates
    return _of_length_one(coordinates[:, :DENSITY_COMPONENTS])


def _of_length_one(rows: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.ascontiguousarray(rows / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)
