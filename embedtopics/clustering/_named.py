"""Clusterers by name: those of hdbscan and scikit-learn, with BERTopic's settings."""

from embedtopics.errors import InputError
from embedtopics.protocols import Clusterer

CLUSTERERS = ("hdbscan", "kmeans")

MIN_CLUSTER_SIZE = 10
"""BERTopic's default for HDBSCAN."""

N_CLUSTERS = 8
"""scikit-learn's default for KMeans."""


def named_clusterer(
    name: str, n_topics: int | str, min_cluster_size: int | str, seed: int
) -> Clusterer:
    """Return HDBSCAN with a smallest cluster size, or KMeans with a number of clusters."""
    if name == "kmeans":
        if min_cluster_size != "auto":
            raise InputError("min_cluster_size", '"auto" for KMeans', min_cluster_size)
        if n_topics in ("fine", "coarse"):
            raise InputError("n_topics", '"auto" (8) or an integer for KMeans', n_topics)
        from sklearn.cluster import KMeans

        means: Clusterer = KMeans(
            N_CLUSTERS if isinstance(n_topics, str) else int(n_topics), random_state=seed
        )
        return means
    if n_topics != "auto":
        remedy = "set min_cluster_size, or merge topics afterwards with topics.merge"
        raise InputError("n_topics", '"auto" for HDBSCAN', n_topics, remedy)
    from hdbscan import HDBSCAN

    size = MIN_CLUSTER_SIZE if isinstance(min_cluster_size, str) else int(min_cluster_size)
    dense: Clusterer = HDBSCAN(
        min_cluster_size=size,
        metric="euclidean",
        cluster_selection_method="eom",
        prediction_data=True,
    )
    return dense
