"""How far topics are from one another, and in which order they merge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array
from embedtopics.results import NOISE, TopicResult

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["LINKAGES", "link", "topic_centroids", "topic_distances"]

LINKAGES = ("average", "complete", "single", "weighted", "ward")
"""Those in which a merge is never nearer than the merges within it, so that cuts are nested."""

Method = Literal["average", "complete", "single", "weighted", "ward"]
Matrix = npt.NDArray[np.float64]


def topic_distances(result: TopicResult, by: Any) -> Matrix:
    """Return the distance of every two topics.

    Parameters
    ----------
    result : TopicResult
    by : {"terms", "embeddings"} or array_like of shape (n_topics, n_topics)
        Cosine distance of the topics' term weights, or of their mean embeddings; a matrix is
        taken as it is. A topic without terms is at distance 1 from all.

    Returns
    -------
    float64 ndarray of shape (n_topics, n_topics)
        Symmetric, none negative, 0 on the diagonal.

    Raises
    ------
    InputError
        If `by` is neither, or no matrix of distances.
    """
    if isinstance(by, str):
        if by == "terms":
            similarities = _cosines_of_terms(result.topic_terms)
        elif by == "embeddings":
            centroids = topic_centroids(result)
            similarities = np.einsum("id,jd->ij", centroids, centroids)
        else:
            raise InputError(f'by must be "terms", "embeddings" or distances; got {by!r}')
        distances = np.clip(1.0 - similarities, 0.0, 2.0)
        upper = np.triu(distances, 1)
        return upper + upper.T
    return _given(by, result.n_topics)


def topic_centroids(result: TopicResult) -> Matrix:
    """Return the mean embedding of the rows of each topic, scaled to length 1.

    Returns
    -------
    float64 ndarray of shape (n_topics, n_dimensions)
        Zeros where the mean is.
    """
    from scipy.sparse import csr_matrix

    labels = result.clustering.labels
    inside = np.flatnonzero(labels != NOISE)
    member = csr_matrix(
        (result.documents.weights[inside].astype(np.float64), (labels[inside], inside)),
        shape=(result.n_topics, len(labels)),
    )
    sums = np.asarray(member @ result.embeddings, dtype=np.float64)
    lengths = np.sqrt(np.einsum("id,id->i", sums, sums))
    centroids: Matrix = sums / np.where(lengths > 0, lengths, 1.0)[:, None]
    return centroids


def link(distances: Matrix, linkage: str) -> tuple[Int32Array, Matrix, Int32Array]:
    """Merge the nearest topics, again and again, until one is left.

    Parameters
    ----------
    distances : float64 ndarray of shape (n_topics, n_topics)
    linkage : str
        One of `LINKAGES`.

    Returns
    -------
    merges : int32 ndarray of shape (n_topics - 1, 2)
    distances : float64 ndarray of shape (n_topics - 1,)
    order : int32 ndarray of shape (n_topics,)
        The leaves' order in which neighbours are nearest (Bar-Joseph, Gifford & Jaakkola 2001,
        "Fast optimal leaf ordering for hierarchical clustering").
    """
    if linkage not in LINKAGES:
        raise InputError(
            f"linkage must be one of {', '.join(LINKAGES)}; got {linkage!r}"
            + ("; its merges can turn back, so that it has no levels"
               if linkage in ("centroid", "median") else "")
        )  # fmt: skip
    n_topics = len(distances)
    if n_topics < 2:
        none = np.empty((0, 2), dtype=np.int32)
        return none, np.empty(0), np.arange(n_topics, dtype=np.int32)
    from scipy.cluster.hierarchy import leaves_list
    from scipy.cluster.hierarchy import linkage as linked
    from scipy.spatial.distance import squareform

    steps = linked(
        squareform(distances, checks=False), cast(Method, linkage), optimal_ordering=True
    )
    # Rounding can put a merge below one within it by the last bit.
    heights = np.maximum.accumulate(steps[:, 2])
    return steps[:, :2].astype(np.int32), heights, leaves_list(steps).astype(np.int32)


def _cosines_of_terms(topic_terms: csr_matrix) -> Matrix:
    from embedtopics.topics.tree._kernels import add_products

    by_term = topic_terms.tocsc()
    by_term.sum_duplicates()  # sorts the topics of each term, too
    n_topics = topic_terms.shape[0]
    squares = np.bincount(by_term.indices, np.square(by_term.data), minlength=n_topics)
    scale = 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))
    cosines = np.zeros((n_topics, n_topics))
    add_products(
        by_term.indptr.astype(np.int64),
        by_term.indices.astype(np.int32),
        (by_term.data * scale[by_term.indices]).astype(np.float64),
        cosines,
    )
    return np.asarray(np.tril(cosines) + np.tril(cosines, -1).T)


def _given(by: Any, n_topics: int) -> Matrix:
    """Return a matrix of distances after making sure that it is one."""
    try:
        matrix = np.array(by, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f'by must be "terms", "embeddings" or distances; got {by!r}') from None
    if matrix.shape != (n_topics, n_topics):
        raise InputError(
            f"distances must have a row and a column for each of the {n_topics} topics; got shape "
            f"{matrix.shape}"
        )
    if not (np.isfinite(matrix).all() and (matrix >= 0).all()):
        raise InputError("distances must be finite and none negative; give one minus similarities")
    if np.any(matrix.diagonal() > 0) or not np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-9):
        raise InputError("distances must be symmetric, with zeros on the diagonal")
    return (matrix + matrix.T) / 2
