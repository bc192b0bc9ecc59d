"""The default clusterer, and the one door through which any clusterer is run."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin

from embedtopics._checks import is_count
from embedtopics.clustering.resolution import automatic_min_cluster_size
from embedtopics.clustering.selection import labels_at
from embedtopics.clustering.spanning_tree import spanning_tree
from embedtopics.errors import InputError
from embedtopics.protocols import Clusterer, Int32Array, Int64Array
from embedtopics.results import NOISE, Clustering, SpanningTree

__all__ = ["DensityClusterer", "cluster"]

NEIGHBORS_IN_CORE = 10
"""Neighbours whose distance says how dense a place is; more leave more documents in noise."""


class DensityClusterer(ClusterMixin, BaseEstimator):
    """HDBSCAN on coordinates, with duplicates counted by weight.

    Parameters
    ----------
    min_cluster_size : "auto" or int
        Fewest texts in a topic; "auto" is `automatic_min_cluster_size`.
    min_samples : int
        Neighbours that a document needs nearby to lie in a dense place.
    selection : {"leaf", "eom"}
        The clusters of the hierarchy that do not fall apart into smaller ones of that size, or
        those of the largest excess of mass. Leaves are much alike from one layout to another;
        the excess of mass may take one large cluster in one and its many parts in the next.

    Attributes
    ----------
    labels_ : int32 ndarray of shape (n_documents,)
    probabilities_ : float32 ndarray of shape (n_documents,)
        Strength of each document in its cluster.
    persistence_ : float64 ndarray of shape (n_clusters,)
    min_cluster_size_ : int
        The size that was used.
    tree_ : SpanningTree or None
        From which clusters of any other smallest size can be cut; None for a single document.

    References
    ----------
    Campello, Moulavi and Sander (2013), "Density-Based Clustering Based on Hierarchical
    Density Estimates"; McInnes and Healy (2017), "Accelerated Hierarchical Density Based
    Clustering".
    """

    def __init__(
        self,
        min_cluster_size: int | str = "auto",
        min_samples: int = NEIGHBORS_IN_CORE,
        selection: str = "leaf",
    ) -> None:
        self.min_cluster_size = min_cluster_size
        self.min_samples = min_samples
        self.selection = selection

    def fit(
        self, X: npt.ArrayLike, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> DensityClusterer:
        """Cluster coordinates.

        Parameters
        ----------
        X : array_like of shape (n_documents, n_components)
        y : ignored
        sample_weight : array_like of int, shape (n_documents,), optional
            Texts that each document stands for.
        """
        coordinates = np.ascontiguousarray(X, dtype=np.float64)
        n_documents = len(coordinates)
        weights = np.ones(n_documents, np.int64) if sample_weight is None else sample_weight
        weights = np.asarray(weights, dtype=np.int64)
        size = self._resolve_size(int(weights.sum()))
        self.min_cluster_size_ = size
        self.tree_: SpanningTree | None = None
        if n_documents < 2:
            alone = weights >= size
            self.labels_ = np.where(alone, 0, NOISE).astype(np.int32)
            self.probabilities_ = alone.astype(np.float32)
            self.persistence_ = np.full(int(alone.sum()), np.nan)
            return self
        tree = spanning_tree(coordinates, min_samples=self.min_samples, weights=weights)
        self.tree_ = tree
        found = labels_at(tree, size, weights, self.selection, allow_one_place=True)
        self.labels_ = found.labels
        self.probabilities_ = found.strengths
        self.persistence_ = found.persistence
        return self

    def fit_predict(
        self, X: npt.ArrayLike, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Int32Array:
        """Cluster coordinates and return the labels; see `fit`."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def _resolve_size(self, n_rows: int) -> int:
        size = self.min_cluster_size
        if size == "auto":
            return automatic_min_cluster_size(n_rows)
        if is_count(size, 2):
            return int(size)
        raise InputError(f'min_cluster_size must be "auto" or an integer from 2 up; got {size!r}')


def cluster(clusterer: Clusterer, coordinates: npt.NDArray[Any], weights: Int64Array) -> Clustering:
    """Run any clusterer and number its clusters from the largest down.

    Parameters
    ----------
    clusterer : object with ``fit_predict``
        Given the documents' weights where it takes ``sample_weight``. Its ``probabilities_``
        and ``persistence_`` (or ``cluster_persistence_``) are used where it has them.
    coordinates : ndarray of shape (n_documents, n_components)
    weights : int64 ndarray of shape (n_documents,)
        Rows that share each document.

    Returns
    -------
    Clustering
    """
    if _takes_weights(clusterer):
        raw = clusterer.fit_predict(coordinates, sample_weight=weights)  # type: ignore[call-arg]
    else:
        raw = clusterer.fit_predict(coordinates)
    raw = np.asarray(raw)
    if raw.shape != (len(coordinates),) or raw.dtype.kind not in "iu":
        raise InputError(
            f"a clusterer must return one integer a document, shape ({len(coordinates)},); "
            f"{type(clusterer).__name__} returned shape {raw.shape} of {raw.dtype}"
        )
    labels, old_ids = _number_by_size(raw, weights)
    strengths = getattr(clusterer, "probabilities_", None)
    if strengths is None or np.shape(strengths) != labels.shape:
        strengths = labels != NOISE
    persistence = getattr(clusterer, "persistence_", None)
    if persistence is None:
        persistence = getattr(clusterer, "cluster_persistence_", None)
    if persistence is None or len(persistence) != len(old_ids):
        persistence = np.full(len(old_ids), np.nan)
    else:
        persistence = np.asarray(persistence, dtype=np.float64)[np.argsort(np.argsort(old_ids))]
    return Clustering(
        labels=labels,
        strengths=np.where(labels == NOISE, 0.0, strengths).astype(np.float32),
        persistence=np.asarray(persistence, dtype=np.float64),
    )


def _takes_weights(clusterer: Clusterer) -> bool:
    """Tell whether a clusterer counts weighted documents rightly.

    fast_hdbscan accepts weights, but weights of one change its tree (seen in version 0.3.4).
    """
    if type(clusterer).__module__.startswith("fast_hdbscan"):
        return False
    return "sample_weight" in inspect.signature(clusterer.fit_predict).parameters


def _number_by_size(
    raw: npt.NDArray[Any], weights: Int64Array
) -> tuple[Int32Array, npt.NDArray[Any]]:
    """Renumber clusters by descending weight; return the labels and the old number of each."""
    old_ids, first, inverse = np.unique(raw, return_index=True, return_inverse=True)
    total = np.bincount(inverse, weights=weights, minlength=len(old_ids))
    kept = old_ids >= 0
    order = np.lexsort((first, -total))
    order = order[kept[order]]
    new_ids = np.full(len(old_ids), NOISE, dtype=np.int32)
    new_ids[order] = np.arange(len(order), dtype=np.int32)
    return new_ids[inverse], old_ids[order]
