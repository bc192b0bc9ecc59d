"""The default clusterer, and the one function that runs any clusterer."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from embedtopics._utils.checks import is_count
from embedtopics.clustering._resolution import named_min_cluster_size
from embedtopics.clustering._selection import labels_at
from embedtopics.clustering._spanning_tree import spanning_tree
from embedtopics.clustering.results import NOISE, Clustering, SpanningTree
from embedtopics.errors import InputError
from embedtopics.protocols import Clusterer, Int32Array, Int64Array

NEIGHBORS_IN_CORE = 10
"""Neighbours whose distance says how dense a place is; more leave more documents in noise."""


class DensityClusterer(ClusterMixin, BaseEstimator):
    """HDBSCAN on coordinates, with duplicates counted by weight.

    Parameters
    ----------
    min_cluster_size : "auto" or int
        Fewest texts in a topic; "auto" is `named_min_cluster_size`.
    min_samples : int
        Neighbours in the core distance of a document.
    selection : {"leaf", "eom"}
        The clusters of the hierarchy without smaller ones inside, or those of the largest excess
        of mass. Leaves change little from one layout to another; the excess of mass may select
        one large cluster in one and its many parts in the next.

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
            Texts that each document stands for; documents of weight 0 are left out, as noise.
        """
        coordinates = validate_data(self, X, dtype=np.float64, order="C")
        weights = _row_weights(sample_weight, len(coordinates))
        counted = weights > 0
        coordinates, weights = coordinates[counted], weights[counted]
        given = self.min_cluster_size
        if given != "auto" and not is_count(given, 2):
            raise InputError("min_cluster_size", '"auto" or an integer from 2 up', given)
        size = (
            named_min_cluster_size("auto", coordinates, weights) if given == "auto" else int(given)
        )
        self.min_cluster_size_ = size
        self.tree_: SpanningTree | None = None
        if len(coordinates) < 2:
            alone = weights >= size
            found = Clustering(
                np.where(alone, 0, NOISE).astype(np.int32),
                alone.astype(np.float32),
                np.full(int(alone.sum()), np.nan),
            )
        else:
            tree = spanning_tree(coordinates, min_samples=self.min_samples)
            found = labels_at(tree, size, weights, self.selection, allow_one_place=True)
            self.tree_ = tree
        self.labels_ = np.full(len(counted), NOISE, dtype=np.int32)
        self.labels_[counted] = found.labels
        self.probabilities_ = np.zeros(len(counted), dtype=np.float32)
        self.probabilities_[counted] = found.probabilities
        self.persistence_ = found.persistence
        return self

    def fit_predict(
        self, X: npt.ArrayLike, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Int32Array:
        """Cluster coordinates and return the labels; see `fit`."""
        return self.fit(X, sample_weight=sample_weight).labels_


def _row_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> Int64Array:
    """Return whole weights from 0 up, ones by default."""
    if sample_weight is None:
        return np.ones(n_rows, dtype=np.int64)
    given = np.asarray(sample_weight)
    if given.shape != (n_rows,):
        raise InputError("sample_weight", f"of shape ({n_rows},)", found=f"shape {given.shape}")
    weights = given.astype(np.int64)
    if (weights != given).any() or (weights < 0).any():
        raise InputError("sample_weight", "whole numbers from 0 up", given)
    if not weights.any():
        raise InputError("sample_weight", "above 0 for some row", found="all zero weights")
    return weights


def cluster(clusterer: Clusterer, coordinates: npt.NDArray[Any], weights: Int64Array) -> Clustering:
    """Run any clusterer and number its clusters from the largest down.

    Shapes: `coordinates` (n_documents, n_components), `weights` (n_documents,), rows of each text.
    """
    # fast_hdbscan accepts weights, but weights of one change its tree (seen in version 0.3.4).
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
            f"an object that returns one integer a document, shape ({len(coordinates)},)",
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
    return Clustering(
        labels=labels,
        probabilities=np.where(labels == NOISE, 0.0, probabilities).astype(np.float32),
        persistence=np.asarray(persistence, dtype=np.float64),
    )


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
