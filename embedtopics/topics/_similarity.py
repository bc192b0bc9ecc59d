"""Where the middle of a topic lies among the embeddings, and how alike topics are.

A topic has two middles. What is *about the topic* (which documents are typical of it, which topic
a question is about) starts from its core: documents weigh by their probabilities. What *treats
topics as sets of rows* (which are merged, where a document is added) starts from all rows alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_choice
from embedtopics.protocols import Float64Array, FloatArray, Int32Array, Int64Array
from embedtopics.terms._representative import centroid
from embedtopics.topics.results import TopicResult

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def core_centroid(result: TopicResult, topic: int) -> Float64Array:
    """Return the mean vector of a topic's documents, weighted by their probabilities; of length 1.

    It is the one that typical documents are near to; see `embedtopics.terms.typical.centroid`.

    Shape: (n_dimensions,).
    """
    members = np.flatnonzero(result.clustering.labels == topic)
    return centroid(result.embeddings[members], result.clustering.probabilities[members])


def core_centroids(result: TopicResult) -> Float64Array:
    """Return `core_centroid` of every topic, shape (n_topics, n_dimensions)."""
    found = np.zeros((result.n_topics, result.embeddings.shape[1]))
    for topic in range(result.n_topics):
        found[topic] = core_centroid(result, topic)
    return found


def row_centroids(result: TopicResult) -> Float64Array:
    """Return the mean vector of each topic's rows, scaled to length 1.

    Shape: (n_topics, n_dimensions).
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

    Shapes: `embeddings` (n_documents, n_dimensions), `labels` (n_documents,), `weights`
    (n_documents,) -> (n_labels, n_dimensions).
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
    from embedtopics.topics._kernels import add_products

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


def topic_cosines(result: TopicResult, by: str) -> Float64Array:
    """Return the cosines of all pairs of topics, by their weighted terms or their mean vectors."""
    if checked_choice(by, "by", ("terms", "embeddings")) == "terms":
        return term_cosines(result.topic_terms)
    means = row_centroids(result)
    return cosines(means, means)


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


# The mean vectors of topics, and how tight a group of documents is.


def centroids(
    embeddings: FloatArray, labels: Int32Array, n_topics: int, weights: Int64Array | None = None
) -> Float64Array:
    """Add up the vectors of each topic's documents.

    Shapes: `embeddings` (n_documents, n_dimensions), `labels` (n_documents,), `weights`
    (n_documents,) -> (n_topics, n_dimensions).
    """
    from scipy.sparse import csr_matrix

    members = np.flatnonzero(labels >= 0)
    counts = np.ones(len(members)) if weights is None else weights[members].astype(np.float64)
    indicator = csr_matrix((counts, (labels[members], members)), shape=(n_topics, len(labels)))
    return np.asarray(indicator @ embeddings, dtype=np.float64)


def group_cosines(one: Float64Array, other: Float64Array) -> Float64Array:
    """Return the cosine similarity of each row of one array with each of another.

    0 where a row is zero.
    """
    return np.asarray(np.einsum("id,jd->ij", _unit_or_zero(one), _unit_or_zero(other)))


def tightness(sums: Float64Array, sizes: npt.NDArray[np.int64]) -> Float64Array:
    """Return the mean cosine similarity of two different documents of each group.

    Shapes: `sums` (n_groups, n_dimensions), `sizes` (n_groups,) -> (n_groups,).
    """
    squares = np.einsum("id,id->i", sums, sums)
    pairs = sizes * (sizes - 1.0)
    out = np.full(len(sums), np.nan)
    np.divide(squares - sizes, pairs, out=out, where=pairs > 0)
    return out


def _unit_or_zero(rows: Float64Array) -> Float64Array:
    norms = np.sqrt(np.einsum("id,id->i", rows, rows))[:, None]
    out = np.zeros(rows.shape)
    np.divide(rows, norms, out=out, where=norms > 0)
    return out
