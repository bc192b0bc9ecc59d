from __future__ import annotations

import numpy as np
import pytest

from embedtopics.retrieval.dense import DenseSettings, build_dense

KINDS = ("flat", "hnsw", "ivf", "ivfpq", "sq")


def clustered(n, d, seed=0, n_clusters=30):
    """Unit vectors around some middles, as texts are around topics."""
    rng = np.random.default_rng(seed)
    middles = rng.normal(size=(n_clusters, d))
    vectors = middles[rng.integers(n_clusters, size=n)] + 0.7 * rng.normal(size=(n, d))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


@pytest.fixture(scope="package")
def vectors():
    return clustered(3000, 48)


@pytest.fixture(scope="package")
def folders(vectors, tmp_path_factory):
    """A segment of every kind."""
    made = {}
    for kind in KINDS:
        made[kind] = tmp_path_factory.mktemp(kind)
        build_dense(made[kind], vectors, DenseSettings(kind=kind, M=16))
    return made
