"""Shares of rows, and how far they are known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedtopics.evaluation.bootstrap import interval, resampled_sums
from embedtopics.protocols import Int64Array

__all__ = ["bootstrap", "share_of"]

Float64Array = npt.NDArray[np.float64]

N_RESAMPLES = 1000
SUMS_AT_ONCE = 2**25
"""Figures of resamples that are held at a time, a quarter of a gigabyte."""


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
    if not len(documents):
        return np.full(shape, np.nan), np.full(shape, np.nan)
    distinct, document = np.unique(documents, return_inverse=True)
    topic = labels % n_topics

    def drawn(first: int, last: int, of_topic: Int64Array) -> Float64Array:
        """Return the resampled sums of some topics, shape (n_resamples, last - first, n_cells)."""
        used = np.flatnonzero((of_topic >= first) & (of_topic < last))
        place = (of_topic[used] - first) * n_cells + cells[used]
        width = (len(distinct), (last - first) * n_cells)
        added = csr_matrix((np.ones(len(used)), (document[used], place)), shape=width)
        # The same seed draws the same documents for all of them.
        return resampled_sums(added, N_RESAMPLES, seed).reshape(N_RESAMPLES, -1, n_cells)

    low, high = np.empty(shape), np.empty(shape)
    totals = drawn(0, 1, np.zeros_like(topic))[:, 0] @ pooled
    at_once = max(1, SUMS_AT_ONCE // (N_RESAMPLES * n_cells))
    for first in range(0, n_topics, at_once):
        sums = drawn(first, min(first + at_once, n_topics), topic)
        for place in range(sums.shape[1]):
            shares = share_of(sums[:, place] @ pooled, totals)
            low[first + place], high[first + place] = interval(shares, confidence)
    return low, high
