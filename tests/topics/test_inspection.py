import math

import numpy as np
import pytest

import embedtopics as et
from embedtopics.corpus.results import Encoding
from embedtopics.topics import inspect_corpus

ENGLISH = "The committee discussed the winter repairs of the old bridge in the market town"


class WordCounter:
    """An encoder that reads ten words of a text."""

    name, dimensions, max_length, languages = "counter", 4, 10, ("en",)

    def count_tokens(self, texts):
        n = np.array([len(t.split()) for t in texts], np.int32)
        none = np.empty((len(texts), 0), np.float32)
        return Encoding(none, n, np.minimum(n, 10), np.zeros_like(n))

    def encode(self, texts):
        return np.ones((len(texts), 4), np.float32)


def test_counts_rows_and_lengths():
    texts = [f"{ENGLISH} {i}" for i in range(20)] + [f"{ENGLISH} 3", None, " "]
    seen = inspect_corpus(et.Corpus.of(texts), WordCounter())
    assert (seen.n_rows, seen.n_documents, seen.n_repeated) == (23, 20, 1)
    assert (seen.n_missing, seen.n_empty) == (1, 1)
    assert seen.mean_tokens == 15 and seen.truncated_share == 1.0
    assert seen.unseen_share == pytest.approx(1 / 3)
    assert seen.languages.main == "en" and seen.warnings == ()
    assert seen.seconds_to_encode == pytest.approx(200 / seen.tokens_per_second)
    assert seen.memory > 0.5e9


def test_warns_of_a_language_that_the_encoder_does_not_read():
    french = "Le conseil municipal a discuté de la réparation du vieux pont de la ville"
    seen = inspect_corpus(et.Corpus.of([f"{french} numéro {i}" for i in range(30)]), WordCounter())
    assert "multilingual" in seen.warnings[0]


def test_without_an_encoder_only_the_rest_is_estimated():
    seen = inspect_corpus(et.Corpus.of([f"{ENGLISH} {i}" for i in range(5)]))
    assert math.isnan(seen.mean_tokens) and math.isnan(seen.tokens_per_second)
    assert seen.seconds_after > 0
