"""The loop over the terms that topics share, compiled by Numba and kept in its cache."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from embedtopics._compiling import compiled
from embedtopics.protocols import Int32Array, Int64Array

__all__ = ["add_products"]

Floats = npt.NDArray[np.float64]


def _given(dtype: Any) -> Any:
    """Return the type of a contiguous vector that may be read-only."""
    return numba.types.Array(dtype, 1, "C", readonly=True)


@compiled(
    numba.void(
        _given(numba.int64), _given(numba.int32), _given(numba.float64), numba.float64[:, ::1]
    ),
    nogil=True,
)  # fmt: skip
def add_products(begins: Int64Array, topics: Int32Array, weights: Floats, sums: Floats) -> None:
    """Add up the products of the weights that every two topics give to a term.

    SciPy's sparse product counts the entries of its outcome first, which takes as long as filling
    them, and knows nothing of the symmetry.

    Parameters
    ----------
    begins : int64 ndarray of shape (n_terms + 1,)
        Where the entries of each term begin.
    topics : int32 ndarray of shape (n_entries,)
        Ascending for each term.
    weights : float64 ndarray of shape (n_entries,)
    sums : float64 ndarray of shape (n_topics, n_topics)
        Zeros at first; its lower triangle is filled, the diagonal included.
    """
    for term in range(len(begins) - 1):
        for one in range(begins[term], begins[term + 1]):
            topic, weight = topics[one], weights[one]
            for other in range(begins[term], one + 1):
                sums[topic, topics[other]] += weight * weights[other]
