"""How alike the two vectors of each pair are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError

__all__ = ["SIMILARITIES", "checked_vectors", "pair_similarities"]

SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
"""Similarities of vectors; the last two are distances with a minus, so that higher is nearer."""

ROWS_AT_ONCE = 4096

Float64Array = npt.NDArray[np.float64]


def pair_similarities(first: Any, second: Any, similarity: str = "cosine") -> Float64Array:
    """Return the similarity of the two vectors of each pair.

    It is computed in float64, row by row: it depends neither on the other pairs nor on the number
    of threads, and the cosine of a vector with itself is exactly 1, so that pairs of equal texts
    are tied in a ranking.

    Parameters
    ----------
    first, second : array_like or csr_matrix of shape (n_pairs, n_dimensions)
    similarity : {"cosine", "dot", "euclidean", "manhattan"}
        The last two are negative distances.

    Returns
    -------
    float64 ndarray of shape (n_pairs,)
        A cosine with a zero vector is 0.

    Raises
    ------
    InputError
        Where the shapes differ, a vector is not finite, or there is no such similarity.

    Examples
    --------
    >>> pair_similarities([[3.0, 4.0]], [[4.0, 3.0]]).tolist()
    [0.96]
    """
    from scipy.sparse import issparse

    if similarity not in SIMILARITIES:
        raise InputError(
            f"expected a similarity among {', '.join(SIMILARITIES)}; got {similarity!r}"
        )
    one, other = checked_vectors(first, "first"), checked_vectors(second, "second")
    if one.shape != other.shape or issparse(one) != issparse(other):
        raise InputError(
            "expected two arrays of vectors of one shape, both dense or both sparse; got shapes "
            f"{one.shape} and {other.shape}"
        )
    found = np.empty(one.shape[0])
    for begin in range(0, len(found), ROWS_AT_ONCE):
        part = slice(begin, begin + ROWS_AT_ONCE)
        found[part] = _similarities(one[part], other[part], similarity)
    return found


def checked_vectors(vectors: Any, name: str) -> Any:
    """Return vectors as a dense array or a csr_matrix, one a row, or refuse them.

    Raises
    ------
    InputError
        Where they are not two-dimensional and finite.
    """
    from scipy.sparse import csr_matrix, issparse

    is_sparse = bool(issparse(vectors))
    array: Any = csr_matrix(vectors) if is_sparse else np.asarray(vectors)
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise InputError(
            f"expected {name} vectors as numbers of shape (n, n_dimensions); got shape "
            f"{array.shape} of {array.dtype}"
        )
    if array.dtype.kind == "f":
        # A sum has a NaN or an infinity where one of its terms has.
        sums: Any = abs(array).sum(axis=1) if is_sparse else array.sum(axis=1)
        is_bad = ~np.isfinite(np.asarray(sums, dtype=np.float64)).ravel()
        if not is_sparse and is_bad.any():  # or where finite terms add up to too much
            is_bad = ~np.isfinite(array).all(axis=1)
        if is_bad.any():
            raise InputError(
                f"expected finite {name} vectors; row {int(np.argmax(is_bad))} has a NaN or an "
                "infinity; look at the text of that row, or at the encoder"
            )
    return array


def _similarities(one: Any, other: Any, similarity: str) -> Float64Array:
    from scipy.sparse import issparse

    one, other = one.astype(np.float64), other.astype(np.float64)
    dots = _dots if not issparse(one) else _sparse_dots
    if similarity == "dot":
        return dots(one, other)
    if similarity == "cosine":
        # The root of a square is exact in binary floating point: equal vectors give exactly 1.
        lengths = np.sqrt(dots(one, one) * dots(other, other))
        cosines = np.zeros(len(lengths))
        np.divide(dots(one, other), lengths, out=cosines, where=lengths > 0)
        return cosines
    apart = one - other
    if similarity == "euclidean":
        return -np.sqrt(dots(apart, apart))
    return -np.asarray(np.abs(apart).sum(axis=1), dtype=np.float64).ravel()


def _dots(one: Float64Array, other: Float64Array) -> Float64Array:
    return np.asarray(np.einsum("ij,ij->i", one, other))


def _sparse_dots(one: Any, other: Any) -> Float64Array:
    return np.asarray(one.multiply(other).sum(axis=1), dtype=np.float64).ravel()
