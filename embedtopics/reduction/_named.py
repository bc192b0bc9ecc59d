"""Reducers by name: those of umap-learn and scikit-learn, with BERTopic's settings."""

import warnings

from embedtopics.protocols import Reducer

REDUCERS = ("umap", "pca")


def named_reducer(name: str, n_neighbors: int, n_components: int, seed: int) -> Reducer:
    """Return umap-learn's UMAP or scikit-learn's PCA."""
    if name == "pca":
        from sklearn.decomposition import PCA

        pca: Reducer = PCA(n_components, random_state=seed)
        return pca
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImportWarning)  # of its variant for TensorFlow
        from umap import UMAP

    umap: Reducer = UMAP(
        n_neighbors=n_neighbors,
        n_components=n_components,
        min_dist=0.0,
        metric="cosine",
        random_state=seed,
        n_jobs=1,
    )
    return umap
