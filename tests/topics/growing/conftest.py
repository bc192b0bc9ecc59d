"""A fit, and further rows."""

import numpy as np
import pytest

import embedtopics as et

CUT = 400


@pytest.fixture(scope="session")
def split(branches):
    """Return a fit of most rows, and the other rows with their vectors."""
    texts, vectors = branches
    order = np.random.default_rng(1).permutation(len(texts))
    texts, vectors = [texts[i] for i in order], vectors[order]
    model = et.TopicModel(languages=[], random_state=2).fit(texts[:CUT], embeddings=vectors[:CUT])
    return model.result_, texts[CUT:], vectors[CUT:]
