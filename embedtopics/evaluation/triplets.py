"""How often an anchor is nearer to what belongs to it than to what does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.evaluation.estimates import mean_of_values
from embedtopics.evaluation.vector_pairs import pair_similarities
from embedtopics.results import Estimate

__all__ = ["triplet_accuracy"]


def triplet_accuracy(
    anchors: Any,
    positives: Any,
    negatives: Any,
    *,
    similarity: str = "cosine",
    margin: float = 0.0,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """Return the share of anchors that are nearer to their positive than to their negative.

    Parameters
    ----------
    anchors, positives : array_like or csr_matrix of shape (n_triplets, n_dimensions)
    negatives : array_like or csr_matrix of shape (n_triplets, n_dimensions), or sequence of these
        Of several negatives, the nearest counts.
    similarity : str
        See `pair_similarities`.
    margin : float
        The positive must be nearer by more than this; equal similarities are no success.
    n_resamples, seed, confidence
        Of the interval.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        Where the shapes differ, or there are no triplets.
    """
    near = pair_similarities(anchors, positives, similarity)
    if not len(near):
        raise InputError("expected triplets; got none")
    several = isinstance(negatives, Sequence) and np.ndim(negatives[0]) == 2
    far = [
        pair_similarities(anchors, n, similarity) for n in (negatives if several else [negatives])
    ]
    right = near > np.max(far, axis=0) + margin
    return mean_of_values(
        right.astype(np.float64), n_resamples=n_resamples, seed=seed, confidence=confidence
    )
