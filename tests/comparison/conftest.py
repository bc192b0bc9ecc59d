"""Corpora and encoders for comparisons."""

import zlib
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from embedtopics import Corpus
from embedtopics.comparison import compare_encoders

THEMES = ("fruit", "train", "chess")


class WordCounts:
    """A sparse encoder that learns its words from the corpus, and knows no others."""

    name = "words"

    def __init__(self, least=1):
        self.least = least
        self.words = None

    @property
    def is_fitted(self):
        return self.words is not None

    def fit(self, texts):
        held = Counter(word for text in texts for word in set(text.lower().split()))
        self.words = sorted(w for w, n in held.items() if n >= self.least)
        self.idf = {w: np.log(len(texts) / held[w]) for w in self.words}
        return self

    def encode(self, texts):
        column = {word: i for i, word in enumerate(self.words)}
        rows = np.zeros((len(texts), len(column)))
        for row, text in enumerate(texts):
            for word in text.lower().split():
                if word in column:
                    rows[row, column[word]] += self.idf[word]
        return csr_matrix(rows)


class Hashed:
    """A dense encoder: the sum of a fixed random vector for each word."""

    name = "hashed"

    def encode(self, texts):
        return np.array([sum(self.vector(w) for w in text.lower().split()) for text in texts])

    @staticmethod
    def vector(word):
        return np.random.default_rng(zlib.crc32(word.encode())).normal(size=24)


@pytest.fixture(scope="session")
def themed(toy):
    """Rows with repeats, gaps and labels; and vectors by row that know the themes."""
    texts, vectors, themes = toy
    texts = [*texts, texts[0], None, "  ", texts[5]]
    rng = np.random.default_rng(0)
    extra = np.stack([vectors[0], rng.normal(size=16), np.zeros(16), vectors[5]])
    labels = [THEMES[theme] for theme in themes]
    labels = [*labels, labels[0], "fruit", None, labels[5]]
    frame = pd.DataFrame({"text": texts, "label": labels})
    return Corpus(frame, text="text"), np.vstack([vectors, extra]).astype(np.float32)


@pytest.fixture(scope="session")
def noise(themed):
    """Vectors by row that know nothing."""
    corpus, _ = themed
    by_text = {text: np.random.default_rng(i) for i, text in enumerate(dict.fromkeys(corpus.texts))}
    made = {text: rng.normal(size=8) for text, rng in by_text.items()}
    return np.array([made[text] for text in corpus.texts])


@pytest.fixture(scope="session")
def compared(themed, noise):
    """A comparison by labels of four encoders, one of them sparse and one that knows nothing."""
    corpus, vectors = themed
    encoders = {"words": WordCounts(2), "themes": vectors, "hashed": Hashed(), "noise": noise}
    return compare_encoders(encoders, corpus, "label", k=8, n_moves=5, n_resamples=200)
