"""How alike topics and documents are: by their terms, and by their vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.neighbors import unit_rows
from embedtopics.protocols import FloatArray
from embedtopics.results import NOISE, TopicResult

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["centroids", "term_cosines", "unit_term_rows"]


def term_cosines(rows: csr_matrix) -> npt.NDArray[np.float64]:
    """Return the cosines of all pairs of sparse rows, shape (n_rows, n_rows).

    A row without entries has a cosine of 0 with all others, and of 1 with itself.
    """
    unit = unit_term_rows(rows)
    cosines: npt.NDArray[np.float64] = (unit @ unit.T).toarray()
    np.fill_diagonal(cosines, 1.0)
    return np.clip((cosines + cosines.T) / 2, -1.0, 1.0)


def unit_term_rows(rows: csr_matrix) -> csr_matrix:
    """Return sparse rows scaled to length one; rows without entries stay so."""
    from scipy.sparse import csr_matrix

    scaled = csr_matrix(rows, dtype=np.float64, copy=True)
    lengths = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    scaled.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(scaled.indptr))
    return scaled


def centroids(result: TopicResult) -> FloatArray:
    """Return the mean vector of each topic's rows, scaled to length one.

    Returns
    -------
    float32 ndarray of shape (n_topics, n_dimensions)
        Zeros where the documents cancel out.
    """
    from scipy.sparse import csr_matrix

    labels, weights = result.clustering.labels, result.documents.weights
    inside = np.flatnonzero(labels != NOISE)
    of_topic = csr_matrix(
        (weights[inside].astype(np.float32), (labels[inside], inside)),
        shape=(result.n_topics, len(labels)),
    )
    # A sparse product adds up in a fixed order, whatever the number of threads.
    return unit_rows(np.asarray(of_topic @ result.embeddings), keep_zeros=True)
