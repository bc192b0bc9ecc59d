"""Maximal marginal relevance: the best of a few candidates, without two of a kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["choose_diverse"]


def choose_diverse(
    relevance: npt.NDArray[Any],
    similarity: npt.NDArray[Any],
    n: int,
    diversity: float,
    clash: Callable[[int, int], bool],
    least: float = 0.0,
) -> list[int]:
    """Choose candidates one after the other by maximal marginal relevance.

    The most relevant comes first. Then, each time, the candidate i is taken that has the highest

        (1 - diversity) * relevance[i] - diversity * max(0, max over chosen j of similarity[i, j])

    (Carbonell and Goldstein 1998) among those that clash with none of the chosen.

    Parameters
    ----------
    relevance : ndarray of shape (n_candidates,)
        At most about 1, so that it compares with the similarities.
    similarity : ndarray of shape (n_candidates, n_candidates)
        Cosine similarities.
    n : int
        How many to choose; fewer where the candidates run out.
    diversity : float
        From 0 (relevance alone) to 1.
    clash : callable
        Given two candidates, tells whether they must not both be chosen.
    least : float
        In place of the 0 in the formula: -1 prefers what is opposite to the chosen to what is
        merely unlike them, as the paper does.

    Returns
    -------
    list of int
        Positions, in the order of choice; ties go to the earlier candidate.
    """
    chosen: list[int] = []
    free = np.ones(len(relevance), dtype=bool)
    nearest = np.full(len(relevance), least)
    while len(chosen) < n and free.any():
        score = (1 - diversity) * relevance - diversity * nearest if chosen else relevance
        best = int(np.argmax(np.where(free, score, -np.inf)))
        free[best] = False
        if any(clash(best, other) for other in chosen):
            continue
        chosen.append(best)
        nearest = np.maximum(nearest, similarity[best])
    return chosen
