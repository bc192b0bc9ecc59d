"""Where the middle of a topic lies among the embeddings, and how near documents are to it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int64Array
from embedtopics.results import NOISE, TopicResult

__all__ = ["centroid_of", "centroids", "closeness_to"]

FloatVector = npt.NDArray[np.float64]


def centroid_of(result: TopicResult, topic: int) -> FloatVector:
    """Return the middle of a topic: its documents' mean vector, weighted by their strengths.

    Where no document has a strength all count alike, as they do for typical documents.

    Returns
    -------
    float64 ndarray of shape (n_dimensions,)
        Of length 1; zeros where the vectors cancel each other out.
    """
    members = np.flatnonzero(result.clustering.labels == topic)
    weights = result.clustering.strengths[members].astype(np.float64)
    if not weights.sum() > 0:
        weights = np.ones(len(members))
    # einsum and not BLAS, whose last bits depend on the number of threads.
    summed = np.einsum("i,id->d", weights, result.embeddings[members], dtype=np.float64)
    length = np.sqrt(np.einsum("d,d->", summed, summed))
    return np.asarray(summed / (length or 1.0))


def centroids(result: TopicResult) -> FloatVector:
    """Return the middle of every topic, shape (n_topics, n_dimensions); see `centroid_of`."""
    found = np.zeros((result.n_topics, result.embeddings.shape[1]))
    for topic in range(result.n_topics):
        found[topic] = centroid_of(result, topic)
    return found


def closeness_to(result: TopicResult, topic: int, documents: Int64Array) -> FloatVector:
    """Return the cosine of each document with the middle of a topic, shape (n_documents,).

    For documents in no topic, which have no middle, it is their share of no topic.
    """
    if topic == NOISE:
        return result.none_shares[documents].astype(np.float64)
    centroid = centroid_of(result, topic)
    return np.asarray(np.einsum("id,d->i", result.embeddings[documents], centroid))
