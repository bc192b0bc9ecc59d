"""A collection with topics within topics, fitted once for all tests of resolutions."""

import numpy as np
import pytest

import embedtopics as et
from tests.factories import make_result
from tests.noise import jittered

SYLLABLES = (
    "bal cor dun fer gim hul jas kov lim mor nep pra quo rit sul tav ush vex wil zor".split()
)


def branching(seed=0, n_branches=4, n_twigs=3, n_each=40, n_scattered=30):
    """Return texts and vectors of branches with twigs, some scattered, some repeated.

    Each twig has words of its own and shares others with its branch.
    """
    rng = np.random.default_rng(seed)
    branches = np.linalg.qr(rng.normal(size=(24, n_branches)))[0].T
    words = [a + b for a in SYLLABLES for b in SYLLABLES]
    rng.shuffle(words)
    texts, vectors = [], []
    for branch in range(n_branches):
        of_branch = words[20 * branch : 20 * branch + 20]
        for twig in range(n_twigs):
            begin = 200 + 12 * (branch * n_twigs + twig)
            center = branches[branch] + 0.12 * rng.normal(size=24)
            for _ in range(n_each + 5 * twig):
                chosen = [*rng.choice(words[begin : begin + 12], 7), *rng.choice(of_branch, 5)]
                texts.append(" ".join(rng.permutation(chosen)))
                vectors.append(center + 0.05 * rng.normal(size=24))
    for _ in range(n_scattered):
        texts.append(" ".join(rng.choice(words, 12)))
        vectors.append(0.3 * rng.normal(size=24) + 0.5 * branches.mean(axis=0))
    vectors = jittered(np.array(vectors, dtype=np.float32))
    repeated = rng.integers(0, len(texts), 25).tolist()
    texts += [texts[i] for i in repeated]
    return texts, np.concatenate([vectors, vectors[repeated]])


@pytest.fixture(scope="session")
def branches():
    """Texts and vectors of four branches of three twigs."""
    return branching()


@pytest.fixture(scope="session")
def branched(branches):
    """The result of a fit of them with the defaults."""
    texts, vectors = branches
    return et.TopicModel(languages=[], random_state=2).fit(texts, embeddings=vectors).result_


@pytest.fixture(scope="session")
def synthetic():
    """A result of six topics that is no fit."""
    return make_result()
