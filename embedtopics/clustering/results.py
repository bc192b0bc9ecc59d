"""Results of clustering: labels, and the tree that they are cut from."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int32Array, Int64Array

NOISE = -1
"""Label of a document or row in no topic."""


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """Minimum spanning tree of documents under mutual reachability.

    Every density clustering of the documents, whatever its smallest cluster, is a cut of this
    tree: it is built once and cut many times.

    Parameters
    ----------
    edges : int64 ndarray of shape (n_documents - 1, 2)
        Documents at both ends, the lower first.
    distances : float64 ndarray of shape (n_documents - 1,)
        Mutual reachability along each edge, ascending; ties by the documents.
    core_distances : float64 ndarray of shape (n_documents,)
    """

    edges: Int64Array
    distances: npt.NDArray[np.float64]
    core_distances: npt.NDArray[np.float64]

    @property
    def n_documents(self) -> int:
        """Number of documents in the tree."""
        return len(self.core_distances)


@dataclass(frozen=True, eq=False)
class Clustering:
    """Labels of documents, numbered from the largest topic down.

    Parameters
    ----------
    labels : int32 ndarray of shape (n_documents,)
        Topic of each document; noise is -1.
    probabilities : float32 ndarray of shape (n_documents,)
        Depth of each document in the dense core of its topic, up to 1; 0 for noise and for
        outliers that label propagation assigned.
    persistence : float64 ndarray of shape (n_topics,)
        Stability of each topic in the density hierarchy; NaN if the clusterer reports none.
    reasons : int8 ndarray of shape (n_documents,), optional
        Why each document is in no topic, a `Reason`; 0 for documents in one. None for the plain
        labels of a clusterer.
    """

    labels: Int32Array
    probabilities: FloatArray
    persistence: npt.NDArray[np.float64]
    reasons: npt.NDArray[np.int8] | None = None
