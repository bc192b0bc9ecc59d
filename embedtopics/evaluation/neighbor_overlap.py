"""How alike two lists of neighbours are, document by document."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray

__all__ = ["chance_overlap", "jaccard_overlap", "rank_biased_overlap"]

PERSISTENCE = 0.9
"""Weight of each further rank; at 0.9 the first ten ranks have 86 % of the weight."""

ROWS_AT_ONCE = 4096
"""Lists that are compared together."""

IntArray = npt.NDArray[np.integer]


def jaccard_overlap(first: npt.ArrayLike, second: npt.ArrayLike) -> FloatArray:
    """Return what two lists share, as a share of what either holds.

    Parameters
    ----------
    first, second : array_like of int, shape (n_documents, k)
        Neighbours of each document, all different in a row; negative entries are none. Both may
        have another k.

    Returns
    -------
    float32 ndarray of shape (n_documents,)
        0 where one of the lists is empty.

    Examples
    --------
    >>> jaccard_overlap([[1, 2, 3]], [[2, 3, 4]]).tolist()
    [0.5]
    """
    one, other = _check(first, second)
    shared = np.concatenate([met[:, -1] for met in _agreements(one, other)] or [np.zeros(0)])
    either = (one >= 0).sum(axis=1) + (other >= 0).sum(axis=1) - shared
    return np.asarray(shared / np.maximum(either, 1), dtype=np.float32)


def rank_biased_overlap(
    first: npt.ArrayLike, second: npt.ArrayLike, p: float = PERSISTENCE
) -> FloatArray:
    """Return the extrapolated rank-biased overlap of two rankings.

    With X_d the items that both lists hold down to depth d, s and l the lengths of the shorter and
    of the longer list,

        RBO = (1 - p) / p (sum_{d=1..l} X_d / d p^d + sum_{d=s+1..l} X_s (d - s) / (s d) p^d)
              + ((X_l - X_s) / l + X_s / s) p^l

    (Webber, Moffat and Zobel, 2010, "A similarity measure for indefinite rankings", equation 32):
    agreement at each depth, the first ranks counting most, the agreement at the end taken to go
    on behind it.

    Parameters
    ----------
    first, second : array_like of int, shape (n_documents, k)
        Best first; negative entries, which stand at the end of a row, are none.
    p : float
        Between 0 and 1; nearer to 1, deeper ranks count more.

    Returns
    -------
    float32 ndarray of shape (n_documents,)
        From 0 to 1; 0 where one of the lists is empty.

    Raises
    ------
    InputError
        Where `p` is not between 0 and 1, or the lists are not of the same documents.
    """
    if not 0 < p < 1:
        raise InputError(f"p must be between 0 and 1; got {p!r}")
    one, other = _check(first, second)
    lengths = np.column_stack([(one >= 0).sum(axis=1), (other >= 0).sum(axis=1)])
    overlap = np.zeros(len(one))
    begin = 0
    for met in _agreements(one, other):
        part = slice(begin, begin + len(met))
        shorter, longer = lengths[part].min(axis=1), lengths[part].max(axis=1)
        overlap[part] = extrapolated_overlap(met, shorter, longer, p)
        begin += len(met)
    return overlap.astype(np.float32)


def chance_overlap(n_documents: int, k: int, p: float = PERSISTENCE) -> tuple[float, float]:
    """Return the overlaps to be expected of neighbours drawn at random.

    Parameters
    ----------
    n_documents : int
        Above k.
    k : int
        Neighbours of each.
    p : float
        Of `rank_biased_overlap`.

    Returns
    -------
    jaccard, rank_biased : float
        Expected values: the items in common follow a hypergeometric distribution. A neighbour of
        the one list is in the other with a chance of k / (n_documents - 1).

    Examples
    --------
    >>> [round(value, 4) for value in chance_overlap(1001, 10)]
    [0.0053, 0.0065]
    """
    from scipy.stats import hypergeom

    n_others = n_documents - 1
    if not 0 < k <= n_others:
        raise InputError(f"k must be from 1 to {n_others}, the other documents; got {k}")
    shared = np.arange(k + 1)
    chances = hypergeom(n_others, k, k).pmf(shared)
    depths = np.arange(1, k + 1)
    # The expected agreement at depth d is d / n_others, and the measure is linear in it.
    head = (1 - p) / p * float((depths / n_others * p**depths).sum())
    return float((chances * shared / (2 * k - shared)).sum()), head + k / n_others * p**k


def _check(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    one, other = np.asarray(first), np.asarray(second)
    if one.ndim != 2 or other.ndim != 2 or len(one) != len(other):
        raise InputError(
            "neighbours must be two arrays with a row for each of the same documents; "
            f"got shapes {one.shape} and {other.shape}"
        )
    return one, other


def _agreements(one: IntArray, other: IntArray) -> list[npt.NDArray[np.float64]]:
    """Return, for parts of the rows, how many items both lists hold down to each depth."""
    deepest = max(one.shape[1], other.shape[1])
    depth = np.maximum.outer(np.arange(one.shape[1]), np.arange(other.shape[1]))
    parts = []
    for begin in range(0, len(one), ROWS_AT_ONCE):
        left = one[begin : begin + ROWS_AT_ONCE, :, None]
        equal = (left == other[begin : begin + ROWS_AT_ONCE, None, :]) & (left >= 0)
        row, *places = np.nonzero(equal)
        entered = row * deepest + depth[tuple(places)]
        new = np.bincount(entered, minlength=len(equal) * deepest).reshape(-1, deepest)
        parts.append(np.cumsum(new, axis=1).astype(np.float64))
    return parts


def extrapolated_overlap(
    met: npt.NDArray[np.float64], shorter: IntArray, longer: IntArray, p: float
) -> npt.NDArray[np.float64]:
    """Return equation 32 of `rank_biased_overlap` for rows of agreements; 0 for an empty list.

    Parameters
    ----------
    met : float64 ndarray of shape (n_pairs, depth)
        How many items both lists of a pair hold down to each depth.
    shorter, longer : int ndarray of shape (n_pairs,)
        Lengths of both lists.
    p : float
        Between 0 and 1.

    Returns
    -------
    float64 ndarray of shape (n_pairs,)
    """
    depths = np.arange(1, met.shape[1] + 1)
    rows = np.arange(len(met))
    some = shorter > 0
    s, l_ = np.maximum(shorter, 1)[:, None], np.maximum(longer, 1)[:, None]
    at_s, at_l = met[rows, s[:, 0] - 1][:, None], met[rows, l_[:, 0] - 1][:, None]
    terms = np.where(depths <= l_, met / depths, 0.0)
    terms += np.where((depths > s) & (depths <= l_), at_s * (depths - s) / (s * depths), 0.0)
    head = (1 - p) / p * (terms * p**depths).sum(axis=1)
    tail = (((at_l - at_s) / l_ + at_s / s) * p**l_)[:, 0]
    return np.where(some, np.minimum(head + tail, 1.0), 0.0)
