"""Shares of rows, and how far they are known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedtopics.evaluation.bootstrap import interval, resampled_sums
from embedtopics.protocols import Int64Array

__all__ = ["bootstrap", "share_of"]

Float64Array = npt.NDArray[np.float64]

N_RESAMPLES = 1000


def share_of(counts: npt.ArrayLike, totals: npt.ArrayLike) -> Float64Array:
    """Divide; NaN where there is nothing to divide by."""
    above, below = np.broadcast_arrays(
        np.asarray(counts, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    )
    shares = np.full(above.shape, np.nan)
    np.divide(above, below, out=shares, where=below > 0)
    return shares


def bootstrap(
    labels: Int64Array,
    documents: Int64Array,
    cells: Int64Array,
    shape: tuple[int, int],
    pooled: Float64Array,
    confidence: float,
    seed: int,
) -> tuple[Float64Array, Float64Array]:
    """Return percentile intervals of shares, with distinct texts drawn with replacement.

    Rows of one text are drawn together: they are one observation.

    Parameters
    ----------
    labels, documents, cells : int64 ndarray of shape (n_rows,)
        Topic (-1 for none), distinct text and cell of each row; of rows in a cell only.
    shape : (int, int)
        Topics and one for none; cells.
    pooled : float64 ndarray of shape (n_cells, n_cells)
        Which cells are taken together for a share.
    confidence : float
    seed : int

    Returns
    -------
    low, high : float64 ndarray of shape `shape`
    """
    from scipy.sparse import csr_matrix

    n_topics, n_cells = shape
    distinct, document = np.unique(documents, return_inverse=True)
    place = (labels % n_topics) * n_cells + cells
    added = csr_matrix(
        (np.ones(len(place)), (document, place)), shape=(len(distinct), n_topics * n_cells)
    )
    low, high = np.empty(shape), np.empty(shape)
    sums = resampled_sums(added, N_RESAMPLES, seed).reshape(N_RESAMPLES, n_topics, n_cells)
    totals = sums.sum(axis=1) @ pooled
    for topic in range(n_topics):
        low[topic], high[topic] = interval(share_of(sums[:, topic] @ pooled, totals), confidence)
    return low, high
