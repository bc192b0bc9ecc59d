"""The mean vectors of topics, and how tight a group of documents is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int32Array, Int64Array

__all__ = ["centroids", "cosines", "tightness"]

Float64Array = npt.NDArray[np.float64]


def centroids(
    embeddings: FloatArray, labels: Int32Array, n_topics: int, weights: Int64Array | None = None
) -> Float64Array:
    """Add up the vectors of each topic's documents.

    Parameters
    ----------
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
        Unit vectors.
    labels : int32 ndarray of shape (n_documents,)
        Negative ones are left out.
    n_topics : int
    weights : int64 ndarray of shape (n_documents,), optional
        How often each document counts.

    Returns
    -------
    float64 ndarray of shape (n_topics, n_dimensions)
        Sums, not scaled: of one direction with the means.
    """
    from scipy.sparse import csr_matrix

    members = np.flatnonzero(labels >= 0)
    counts = np.ones(len(members)) if weights is None else weights[members].astype(np.float64)
    indicator = csr_matrix((counts, (labels[members], members)), shape=(n_topics, len(labels)))
    return np.asarray(indicator @ embeddings, dtype=np.float64)


def cosines(one: Float64Array, other: Float64Array) -> Float64Array:
    """Return the cosine similarity of each row of one array with each of another.

    0 where a row is zero.
    """
    return np.asarray(np.einsum("id,jd->ij", _unit(one), _unit(other)))


def tightness(sums: Float64Array, sizes: npt.NDArray[np.int64]) -> Float64Array:
    """Return the mean cosine similarity of two different documents of each group.

    Parameters
    ----------
    sums : float64 ndarray of shape (n_groups, n_dimensions)
        Of the unit vectors of each group's documents.
    sizes : int64 ndarray of shape (n_groups,)

    Returns
    -------
    float64 ndarray of shape (n_groups,)
        NaN for groups of less than two.
    """
    squares = np.einsum("id,id->i", sums, sums)
    pairs = sizes * (sizes - 1.0)
    out = np.full(len(sums), np.nan)
    np.divide(squares - sizes, pairs, out=out, where=pairs > 0)
    return out


def _unit(rows: Float64Array) -> Float64Array:
    norms = np.sqrt(np.einsum("id,id->i", rows, rows))[:, None]
    out = np.zeros(rows.shape)
    np.divide(rows, norms, out=out, where=norms > 0)
    return out
