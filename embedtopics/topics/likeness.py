"""Where the middle of a topic lies among the embeddings, and how alike topics are.

A topic has two middles. What is *about the topic* (which documents are typical of it, which topic
a question is about) starts from its core: documents weigh by their strengths. What *treats topics
as sets of rows* (which are merged, where a document is added) starts from all rows alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray
from embedtopics.results import TopicResult
from embedtopics.terms.typical import centroid

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "core_centroid", "core_centroids", "cosines", "label_sums", "row_centroids", "term_cosines",
    "unit_term_rows",
]  # fmt: skip

Float64Array = npt.NDArray[np.float64]


def core_centroid(result: TopicResult, topic: int) -> Float64Array:
    """Return the mean vector of a topic's documents, weighted by their strengths; of length 1.

    It is the one that typical documents are near to; see `embedtopics.terms.typical.centroid`.

    Returns
    -------
    float64 ndarray of shape (n_dimensions,)
    """
    members = np.flatnonzero(result.clustering.labels == topic)
    return centroid(result.embeddings[members], result.clustering.strengths[members])


def core_centroids(result: TopicResult) -> Float64Array:
    """Return `core_centroid` of every topic, shape (n_topics, n_dimensions)."""
    found = np.zeros((result.n_topics, result.embeddings.shape[1]))
    for topic in range(result.n_topics):
        found[topic] = core_centroid(result, topic)
    return found


def row_centroids(result: TopicResult) -> Float64Array:
    """Return the mean vector of each topic's rows, scaled to length 1.

    Returns
    -------
    float64 ndarray of shape (n_topics, n_dimensions)
        Zeros where the documents cancel out.
    """
    labels, weights = result.clustering.labels, result.documents.weights
    return _unit(label_sums(result.embeddings, labels, result.n_topics, weights))


def label_sums(
    embeddings: FloatArray,
    labels: npt.NDArray[Any],
    n_labels: int,
    weights: npt.NDArray[Any] | None = None,
) -> Float64Array:
    """Add up the vectors of the documents of each label.

    Parameters
    ----------
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
    labels : int ndarray of shape (n_documents,)
        Negative ones are left out.
    n_labels : int
    weights : ndarray of shape (n_documents,), optional
        How often each document counts; by default once.

    Returns
    -------
    float64 ndarray of shape (n_labels, n_dimensions)
        Of one direction with the means.
    """
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(n_labels + 1))
    sums = np.zeros((n_labels, embeddings.shape[1]))
    for label in range(n_labels):
        members = order[ends[label] : ends[label + 1]]
        counts = np.ones(len(members)) if weights is None else weights[members]
        # einsum and not BLAS, whose last bits depend on the number of threads.
        sums[label] = np.einsum("i,id->d", counts, embeddings[members], dtype=np.float64)
    return sums


def cosines(first: Float64Array, second: Float64Array) -> Float64Array:
    """Return the cosine of each row of one array with each of another; 0 where a row is zero."""
    return np.asarray(np.einsum("id,jd->ij", _unit(first), _unit(second)))


def term_cosines(rows: csr_matrix) -> Float64Array:
    """Return the cosines of all pairs of sparse rows, shape (n_rows, n_rows).

    A row without entries has a cosine of 0 with all others, and of 1 with itself.
    """
    from embedtopics.topics._likeness_kernels import add_products

    by_term = unit_term_rows(rows).tocsc()
    by_term.sum_duplicates()  # sorts the rows of each column, too
    found: Float64Array = np.zeros((rows.shape[0], rows.shape[0]))
    add_products(
        by_term.indptr.astype(np.int64),
        by_term.indices.astype(np.int32),
        by_term.data.astype(np.float64),
        found,
    )
    found = np.tril(found) + np.tril(found, -1).T
    np.fill_diagonal(found, 1.0)
    return np.clip(found, -1.0, 1.0)


def unit_term_rows(rows: csr_matrix) -> csr_matrix:
    """Return sparse rows scaled to length one; rows without entries stay so."""
    from scipy.sparse import csr_matrix

    scaled = csr_matrix(rows, dtype=np.float64, copy=True)
    lengths = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    scaled.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(scaled.indptr))
    return scaled


def _unit(rows: Float64Array) -> Float64Array:
    lengths = np.sqrt(np.einsum("id,id->i", rows, rows))
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0)[:, None])
