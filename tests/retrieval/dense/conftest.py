import numpy as np
import pytest

from embedtopics.retrieval.dense._build import build_dense
from embedtopics.retrieval.dense._segment import DenseSettings
from tests.noise import jittered

KINDS = ("flat", "ivf")


def settings_of(kind, **others):
    """Return the settings that give a kind of index, where there are vectors enough."""
    return DenseSettings(kind, **others)


def clustered(n, d, seed=0, n_clusters=30):
    """Unit vectors around some centres, as texts are around topics."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_clusters, d))
    vectors = centres[rng.integers(n_clusters, size=n)] + 0.7 * rng.normal(size=(n, d))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return jittered(vectors.astype(np.float32))


@pytest.fixture(scope="package")
def vectors():
    return clustered(3000, 48)


@pytest.fixture(scope="package")
def folders(vectors, tmp_path_factory):
    """A segment of every kind."""
    made = {}
    for kind in KINDS:
        made[kind] = tmp_path_factory.mktemp(kind)
        build_dense(made[kind], vectors, settings_of(kind))
    return made
