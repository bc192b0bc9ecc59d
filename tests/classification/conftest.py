"""Labelled texts on three themes, and an encoder that counts their words."""

import numpy as np
import pytest

from tests.conftest import WORDS
from tests.encoders.conftest import tiny_bert, tiny_roberta  # noqa: F401

VOCABULARY = sorted({word for words in WORDS.values() for word in words})


class CountedWords:
    """An encoder without settings, whose vectors are counts of some words."""

    def encode(self, texts):
        return np.array(
            [[text.lower().split().count(word) for word in VOCABULARY] for text in texts],
            dtype=np.float32,
        ).reshape(len(texts), len(VOCABULARY))


def themed_texts(n, noise=0.0, seed=0, n_words=3):
    """Return texts and their themes; of a share of the words the theme is another."""
    rng = np.random.default_rng(seed)
    names = list(WORDS)
    themes = [names[i] for i in rng.integers(0, len(names), n)]
    texts = []
    for number, theme in enumerate(themes):
        pools = [names[rng.integers(3)] if rng.random() < noise else theme for _ in range(n_words)]
        texts.append(" ".join(rng.choice(WORDS[pool]) for pool in pools) + f" n{number}")
    return texts, themes


@pytest.fixture(scope="session")
def counted():
    return CountedWords()


@pytest.fixture(scope="session")
def labelled():
    return themed_texts(240, noise=0.4)
