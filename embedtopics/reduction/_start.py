"""Where a layout starts: principal components with their signs fixed."""

import numpy as np

from embedtopics.protocols import FloatArray, Int64Array

EXTENT = 10.0
"""Half the width of the start, the scale that UMAP's gradient steps are made for."""

BLOCK = 4096
"""Documents whose part of the covariance is summed in float32."""

MOST_DIMENSIONS = 2048
"""Dimensions up to which the covariance is decomposed as a whole, in a few seconds. Counts of words
have many more; then the first components alone are looked for."""

ENOUGH_DOCUMENTS = 20_000
"""Documents from which the directions are learnt; where there are more, every second, third ..."""


def principal_start(
    embeddings: FloatArray, n_components: int, rows: Int64Array | None = None
) -> FloatArray:
    """Project embeddings, or some rows of them, on their first principal components.

    The largest absolute value is 10.
    The eigenvectors of the covariance are turned so that the entry of largest absolute value is
    positive: the start is the same on every run. Above 2,048 dimensions they come from a
    randomized decomposition (Halko, Martinsson and Tropp 2011, algorithms 4.4 and 5.1). Shapes:
    (n_documents, n_dimensions) -> (n_documents, n_components), zero beyond the rank.
    """
    from sklearn.utils.extmath import randomized_svd
    from threadpoolctl import threadpool_limits

    rows = np.arange(len(embeddings)) if rows is None else rows
    n_documents, n_dimensions = len(rows), embeddings.shape[1]
    some = embeddings[rows[:: max(1, n_documents // ENOUGH_DOCUMENTS)]]
    mean = some.mean(axis=0, dtype=np.float64).astype(np.float32)
    start = np.zeros((n_documents, n_components), dtype=np.float32)
    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        if n_dimensions <= MOST_DIMENSIONS:
            covariance = np.zeros((n_dimensions, n_dimensions))
            for begin in range(0, len(some), BLOCK):
                block = some[begin : begin + BLOCK] - mean
                covariance += block.T @ block
            axes = np.linalg.eigh(covariance)[1][:, ::-1][:, :n_components]
        else:
            n_first = min(n_components, len(some))
            found = randomized_svd(some - mean, n_first, n_iter=7, random_state=0)
            axes = found[2].T.astype(np.float64)
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
