"""The nearest of several segments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array

__all__ = ["merge_nearest"]


def merge_nearest(
    found: Sequence[tuple[FloatArray, Int64Array]], k: int | None = None
) -> tuple[FloatArray, Int64Array, Int64Array]:
    """Merge what was found in each segment into one list for each query.

    Parameters
    ----------
    found : sequence of (similarities, rows)
        Of every segment, arrays of shape (n_queries, its own k); -1 and -inf where there is none.
    k : int, optional
        How many are kept; by default as many as the longest list holds.

    Returns
    -------
    similarities : float32 ndarray of shape (n_queries, k)
        Descending; ties in the order of segments, then of rows. -inf where there is none.
    segments, rows : int64 ndarray of shape (n_queries, k)
        -1 where there is none.

    Raises
    ------
    InputError
        If there is no segment, or their shapes do not belong together.
    """
    if not found:
        raise InputError("expected what was found in at least one segment; got none")
    n_queries = len(found[0][0])
    for number, (similarities, rows) in enumerate(found):
        if similarities.shape != rows.shape or len(rows) != n_queries:
            raise InputError(
                f"expected similarities and rows of {n_queries:,} queries from every segment; "
                f"segment {number} has {similarities.shape} and {rows.shape}"
            )
    k = max(rows.shape[1] for _, rows in found) if k is None else k
    near = np.concatenate([similarities for similarities, _ in found], axis=1)
    names = np.concatenate([rows for _, rows in found], axis=1)
    segments = np.repeat(np.arange(len(found)), [rows.shape[1] for _, rows in found])
    segments = np.where(names < 0, -1, segments[None, :])
    order = np.lexsort((names, segments, -near, names < 0), axis=1)[:, :k]
    merged = (
        np.full((n_queries, k), -np.inf, dtype=np.float32),
        np.full((n_queries, k), -1, dtype=np.int64),
        np.full((n_queries, k), -1, dtype=np.int64),
    )
    for whole, values in zip(merged, (near, segments, names), strict=True):
        whole[:, : order.shape[1]] = np.take_along_axis(values, order, axis=1)
    return merged
