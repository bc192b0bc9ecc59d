"""Coordinates -> labels: density clusters, numbered from the largest down."""

from __future__ import annotations

from embedtopics.clustering.hdbscan import DensityClusterer, cluster
from embedtopics.clustering.resolution import (
    automatic_min_cluster_size,
    merge_nearest,
    named_min_cluster_size,
    topics_by_min_cluster_size,
)
from embedtopics.clustering.restricting import subtree
from embedtopics.clustering.selection import labels_at
from embedtopics.clustering.spanning_tree import spanning_tree

__all__ = [
    "DensityClusterer",
    "automatic_min_cluster_size",
    "cluster",
    "labels_at",
    "merge_nearest",
    "named_min_cluster_size",
    "spanning_tree",
    "subtree",
    "topics_by_min_cluster_size",
]
