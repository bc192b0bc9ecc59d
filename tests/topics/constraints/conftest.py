"""A small collection in which constraints shows: two themes in one place, one elsewhere."""

import numpy as np
import pytest

import embedtopics as et
from tests.noise import jittered


@pytest.fixture(scope="session")
def fit():
    """Fit with constraints, and return the result."""

    def run(collection, constraints=None, **parameters):
        texts, vectors = collection[:2]
        model = et.TopicModel(
            parameters.pop("encoder", None),
            constraints=constraints, languages=["en"], random_state=3, **parameters,
        )  # fmt: skip
        return model.fit(texts, embeddings=vectors).result_

    return run


@pytest.fixture(scope="session")
def theme_vectors(toy):
    """The mean vector of each theme of the toy: what an encoder would make of its name."""
    _, vectors, themes = toy
    return np.array([vectors[themes == theme].mean(axis=0) for theme in range(3)])


@pytest.fixture(scope="session")
def mixed():
    """Texts, vectors and classes: blobs that hold two classes each, and words of the class."""
    rng = np.random.default_rng(11)
    centers = np.linalg.qr(rng.normal(size=(16, 3)))[0].T
    words = {
        "red": "rose ruby brick cherry tomato".split(),
        "blue": "sky sea sapphire iris".split(),
    }
    texts, vectors, classes = [], [], []
    for blob in range(3):
        for number in range(60):
            name = "red" if number % 2 else "blue"
            chosen = " ".join(rng.choice(words[name], 5))
            texts.append(f"text {number} of place{blob}: {chosen}")
            # The class moves a text a little, less than texts of a blob differ.
            moved = 0.04 * (1 if name == "red" else -1) * centers[(blob + 1) % 3]
            vectors.append(centers[blob] + moved + 0.08 * rng.normal(size=16))
            classes.append(name)
    return texts, jittered(np.array(vectors, dtype=np.float32)), np.array(classes, dtype=object)
