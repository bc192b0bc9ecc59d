"""The default clusterer, and the function that runs any clusterer."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from embedtopics._utils.checks import is_count
from embedtopics.clustering._hierarchy import labels_at
from embedtopics.clustering._resolution import default_min_cluster_size
from embedtopics.clustering._spanning_tree import spanning_tree
from embedtopics.clustering.results import NOISE, Clustering, SpanningTree
from embedtopics.errors import InputError
from embedtopics.protocols import Clusterer, Int32Array, Int64Array

NEIGHBORS_IN_CORE = 10
"""Neighbors within the core distance; more neighbors leave more documents in noise."""


class DensityClusterer(ClusterMixin, BaseEstimator):
    """HDBSCAN on coordinates, with duplicates counted by weight.

    Parameters
    ----------
    min_cluster_size : "auto" or int
        Smallest number of texts in a topic; "auto" depends on the number of texts.
    min_samples : int
        Neighbors within the core distance of a document.

    Attributes
    ----------
    labels_ : int32 ndarray of shape (n_documents,)
    probabilities_ : float32 ndarray of shape (n_documents,)
        Membership strength of each document in its cluster.
    persistence_ : float64 ndarray of shape (n_clusters,)
    min_cluster_size_ : int
        The size used.
    tree_ : SpanningTree or None
        Gives the clusters of any other smallest size; None for a single document.

    References
    ----------
    Campello, Moulavi and Sander (2013), "Density-Based Clustering Based on Hierarchical
    Density Estimates"; McInnes and Healy (2017), "Accelerated Hierarchical Density Based
    Clustering".

    Examples
    --------
    >>> import embedtopics as et
    >>> import numpy as np
    >>> grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    >>> clusterer = et.topics.DensityClusterer(min_cluster_size=10)
    >>> clusterer.fit_predict(np.concatenate([grid, grid + 100])).tolist() == [0] * 25 + [1] * 25
    True
    """

    def __init__(
        self, min_cluster_size: int | str = "auto", min_samples: int = NEIGHBORS_IN_CORE
    ) -> None:
        self.min_cluster_size = min_cluster_size
        self.min_samples = min_samples

    def fit(
        self, X: npt.ArrayLike, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> DensityClusterer:
        """Cluster coordinates.

        Parameters
        ----------
        X : array_like of shape (n_documents, n_components)
        y : ignored
        sample_weight : array_like of int, shape (n_documents,), optional
            Number of texts of each document; documents of weight 0 become noise.
        """
        coordinates = validate_data(self, X, dtype=np.float64, order="C")
        weights = _row_weights(sample_weight, len(coordinates))
        counted = weights > 0
        coordinates, weights = coordinates[counted], weights[counted]
        size = self.min_cluster_size
        if size != "auto" and not is_count(size, 2):
            raise InputError("min_cluster_size", '"auto" or an integer from 2 up', size)
        if isinstance(size, str):
            size = default_min_cluster_size(coordinates, weights)
        self.min_cluster_size_ = size = int(size)
        self.tree_: SpanningTree | None = None
        if len(coordinates) < 2:
            alone = weights >= size
            clustering = Clustering(
                np.where(alone, 0, NOISE).astype(np.int32),
                alone.astype(np.float32),
                np.full(int(alone.sum()), np.nan),
            )
        else:
            tree = spanning_tree(coordinates, min_samples=self.min_samples)
            clustering = labels_at(tree, size, weights, allow_one_place=True)
            self.tree_ = tree
        self.labels_ = np.full(len(counted), NOISE, dtype=np.int32)
        self.labels_[counted] = clustering.labels
        self.probabilities_ = np.zeros(len(counted), dtype=np.float32)
        self.probabilities_[counted] = clustering.probabilities
        self.persistence_ = clustering.persistence
        return self

    def fit_predict(
        self, X: npt.ArrayLike, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Int32Array:
        """Cluster coordinates and return the labels; see `fit`."""
        return self.fit(X, sample_weight=sample_weight).labels_


def _row_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> Int64Array:
    """Return weights (n_rows,) as int64, ones by default."""
    if sample_weight is None:
        return np.ones(n_rows, dtype=np.int64)
    array = np.asarray(sample_weight)
    weights = array.astype(np.int64)
    is_valid = array.shape == (n_rows,) and (weights == array).all() and (weights >= 0).all()
    if not is_valid or not weights.any():
        expected = f"integers from 0 up, not all zero, shape ({n_rows},)"
        raise InputError("sample_weight", expected, sample_weight)
    return weights


def cluster(clusterer: Clusterer, coordinates: npt.NDArray[Any], weights: Int64Array) -> Clustering:
    """Run any clusterer and number its clusters from the largest down.

    Shapes: `coordinates` (n_documents, n_components), `weights` (n_documents,), rows per document.
    """
    # fast_hdbscan accepts weights, but weights of one change its tree (version 0.3.4).
    distrusted = type(clusterer).__module__.startswith("fast_hdbscan")
    parameters = inspect.signature(clusterer.fit_predict).parameters
    if "sample_weight" in parameters and not distrusted:
        raw = clusterer.fit_predict(coordinates, sample_weight=weights)  # type: ignore[call-arg]
    else:
        raw = clusterer.fit_predict(coordinates)
    raw = np.asarray(raw)
    if raw.shape != (len(coordinates),) or raw.dtype.kind not in "iu":
        raise InputError(
            "clusterer",
            f"an object that returns one integer per document, shape ({len(coordinates)},)",
            found=f"shape {raw.shape} of {raw.dtype} from {type(clusterer).__name__}",
        )
    labels, old_ids = _number_by_size(raw, weights)
    probabilities = getattr(clusterer, "probabilities_", None)
    if probabilities is None or np.shape(probabilities) != labels.shape:
        probabilities = labels != NOISE
    persistence = getattr(clusterer, "persistence_", None)
    if persistence is None:
        persistence = getattr(clusterer, "cluster_persistence_", None)
    if persistence is None or len(persistence) != len(old_ids):
        persistence = np.full(len(old_ids), np.nan)
    else:
        persistence = np.asarray(persistence, dtype=np.float64)[np.argsort(np.argsort(old_ids))]
    inside = np.where(labels == NOISE, 0.0, probabilities).astype(np.float32)
    return Clustering(labels, inside, np.asarray(persistence, dtype=np.float64))


def _number_by_size(
    raw: npt.NDArray[Any], weights: Int64Array
) -> tuple[Int32Array, npt.NDArray[Any]]:
    """Renumber clusters by descending weight; return the labels and the old number of each."""
    old_ids, first, inverse = np.unique(raw, return_index=True, return_inverse=True)
    total = np.bincount(inverse, weights=weights, minlength=len(old_ids))
    is_cluster = old_ids >= 0
    order = np.lexsort((first, -total))
    order = order[is_cluster[order]]
    new_ids = np.full(len(old_ids), NOISE, dtype=np.int32)
    new_ids[order] = np.arange(len(order), dtype=np.int32)
    return new_ids[inverse], old_ids[order]
