"""Maximal marginal relevance: hits that do not repeat one another."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, checked_share
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.terms.selection import choose_diverse

__all__ = ["as_relevance", "varied"]


class _Cosines:
    """Rows of a matrix of cosines, each worked out when it is asked for."""

    def __init__(self, vectors: npt.NDArray[Any]) -> None:
        self._vectors = np.asarray(vectors, dtype=np.float64)

    def __getitem__(self, place: int) -> npt.NDArray[np.float64]:
        # Not by BLAS, whose last bits depend on the number of threads.
        return np.asarray(np.einsum("id,d->i", self._vectors, self._vectors[place]))


def as_relevance(scores: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return scores of any kind on the scale of a cosine, the best as 1.

    They are divided by the best. Where some are below 0, as cross-encoders have it, they are
    counted from the lowest.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,)

    Returns
    -------
    float64 ndarray of shape (n_candidates,)
        From 0 to 1; all 0 where none is above 0, nor above the lowest.
    """
    values = np.asarray(scores, dtype=np.float64)
    above = values - min(0.0, float(values.min(initial=0.0)))
    best = float(above.max(initial=0.0))
    return above / best if best > 0 else above


def varied(
    relevance: npt.NDArray[Any], vectors: npt.NDArray[Any], k: int, diversity: float = 0.3
) -> Int64Array:
    """Choose hits one after the other: relevant, and unlike those before.

    The most relevant comes first. Then each time the candidate i with the highest

        (1 - diversity) * relevance[i] - diversity * max over chosen j of cosine(i, j)

    (Carbonell and Goldstein 1998, with lambda = 1 - diversity). The work is one row of cosines
    for each hit that is chosen.

    Parameters
    ----------
    relevance : ndarray of shape (n_candidates,)
        On the scale of a cosine, see `as_relevance`.
    vectors : ndarray of shape (n_candidates, n_dimensions)
        Of length 1.
    k : int
        How many to choose; all, where there are fewer.
    diversity : float
        From 0 (relevance alone) to 1.

    Returns
    -------
    int64 ndarray of shape (min(k, n_candidates),)
        Places among the candidates, in the order of choice; ties go to the earlier candidate.

    Raises
    ------
    InputError
        If shapes do not go together, a value is not finite, or `k` or `diversity` is out of range.
    """
    relevance = np.asarray(relevance, dtype=np.float64)
    vectors = np.asarray(vectors)
    k, diversity = checked_count(k, "k"), checked_share(diversity, "diversity")
    if relevance.ndim != 1 or vectors.ndim != 2 or len(vectors) != len(relevance):
        raise InputError(
            f"expected one relevance and one vector a candidate, got arrays of shape "
            f"{relevance.shape} and {vectors.shape}"
        )
    if not np.isfinite(relevance).all() or not np.isfinite(vectors).all():
        raise InputError("expected finite relevances and vectors, got NaN or infinity among them")
    cosines = cast(npt.NDArray[Any], _Cosines(vectors))
    chosen = choose_diverse(relevance, cosines, k, diversity, lambda *_: False, least=-1.0)
    return np.array(chosen, dtype=np.int64)
