"""Coordinates -> labels: density clusters, numbered from the largest down."""

from __future__ import annotations

from embedtopics.clustering.hdbscan import DensityClusterer, automatic_min_cluster_size, cluster

__all__ = ["DensityClusterer", "automatic_min_cluster_size", "cluster"]
