"""The documents to read first in each topic."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.terms.selection import choose_diverse

__all__ = ["representatives"]

DIVERSITY = 0.3
NEAR_DUPLICATE = 0.95
"""Cosine similarity from which two documents tell a reader the same."""


def representatives(
    embeddings: FloatArray,
    labels: npt.ArrayLike,
    strengths: npt.ArrayLike | None = None,
    *,
    n: int = 5,
    n_topics: int | None = None,
) -> list[Int64Array]:
    """Choose typical documents of each topic: central, but not all alike.

    Of the documents nearest to the topic's centroid (its mean embedding, weighted by strength)
    some are picked by maximal marginal relevance, never two near duplicates.

    Parameters
    ----------
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
        Unit vectors.
    labels : array_like of int, shape (n_documents,)
        Topic of each document; noise is -1.
    strengths : array_like of float, shape (n_documents,), or None
        How firmly each document lies in its topic; None takes all alike.
    n : int
        Documents of each topic at most.
    n_topics : int or None
        Number of topics; None takes the largest label plus one.

    Returns
    -------
    list of int64 ndarray
        For each topic the indices of its documents, best first; ties by index.

    Raises
    ------
    InputError
        If the lengths differ.

    Examples
    --------
    >>> vectors = np.array([[1, 0], [1, 0], [0.6, 0.8], [0, 1]], dtype=np.float32)
    >>> [found.tolist() for found in representatives(vectors, [0, 0, 0, -1], n=2)]
    [[0, 2]]
    """
    topic = np.asarray(labels)
    strength = np.ones(len(topic)) if strengths is None else np.asarray(strengths, dtype=float)
    if not len(embeddings) == len(topic) == len(strength):
        raise InputError(
            "embeddings, labels and strengths must have one row a document; "
            f"got {len(embeddings)}, {len(topic)} and {len(strength)}"
        )
    if n_topics is None:
        n_topics = int(topic.max(initial=-1)) + 1
    return [
        _of_topic(embeddings, np.flatnonzero(topic == number), strength, n)
        for number in range(n_topics)
    ]


def centroid(vectors: FloatArray, strengths: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the mean of vectors, weighted by their strengths and scaled to length 1.

    Where none has a strength all count alike. Zeros where the vectors cancel out.

    Parameters
    ----------
    vectors : float32 ndarray of shape (n_documents, n_dimensions)
    strengths : ndarray of shape (n_documents,)

    Returns
    -------
    float64 ndarray of shape (n_dimensions,)
    """
    weights = strengths.astype(np.float64)
    if not weights.sum() > 0:
        weights = np.ones(len(vectors))
    # einsum and not BLAS, whose last bits depend on the number of threads.
    summed = np.einsum("i,id->d", weights, vectors, dtype=np.float64)
    length = np.sqrt(np.einsum("d,d->", summed, summed))
    return np.asarray(summed / (length or 1.0))


def _of_topic(
    embeddings: FloatArray, members: Int64Array, strength: npt.NDArray[Any], n: int
) -> Int64Array:
    """Choose the documents of one topic."""
    if len(members) == 0:
        return members
    vectors = embeddings[members]
    relevance = np.einsum("id,d->i", vectors, centroid(vectors, strength[members]))
    pool = np.argsort(-relevance, kind="stable")[: 10 * n]
    pool.sort()
    similarity = np.einsum("id,jd->ij", vectors[pool], vectors[pool])
    picked = choose_diverse(
        relevance[pool], similarity, n, DIVERSITY, lambda i, j: similarity[i, j] > NEAR_DUPLICATE
    )
    return members[pool[picked]]
