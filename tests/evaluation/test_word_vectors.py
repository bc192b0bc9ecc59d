"""Coherence in word vectors against gensim's own vectors, and by hand."""

import warnings

import numpy as np
import pytest

from embedtopics.errors import InputError
from embedtopics.evaluation import word_embedding_coherence

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from gensim.models import KeyedVectors


def test_equals_mean_similarity_in_gensim():
    rng = np.random.default_rng(0)
    vectors = KeyedVectors(vector_size=5)
    vectors.add_vectors(list("abcdef"), rng.normal(size=(6, 5)).astype(np.float32))
    topics = [list("abc"), list("fde"), ["a", "unknown", "f"]]
    found, n_missing = word_embedding_coherence(topics, vectors)
    pairs = [("ab", "ac", "bc"), ("fd", "fe", "de"), ("af",)]
    expected = [np.mean([vectors.similarity(*pair) for pair in some]) for some in pairs]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert n_missing.tolist() == [0, 0, 1]


def test_few_words_and_vectors_of_zeros():
    vectors = {"a": [1.0, 0.0], "b": [0.0, 0.0], "c": [0.0, 3.0], "d": [-2.0, 0.0]}
    found, n_missing = word_embedding_coherence([["a"], [], ["a", "b"], list("acd")], vectors)
    np.testing.assert_allclose(found, [np.nan, np.nan, np.nan, -1 / 3])
    assert n_missing.tolist() == [0, 0, 1, 0]
    assert word_embedding_coherence([["a", "c", "d"]], vectors, n=2)[0].tolist() == [0.0]


def test_bad_input():
    with pytest.raises(InputError, match=r"'b' is not \(shape \(1,\)\)"):
        word_embedding_coherence([["a", "b"]], {"a": [1.0, 0.0], "b": [1.0]})
    with pytest.raises(InputError, match="'a' is not"):
        word_embedding_coherence([["a"]], {"a": [np.nan, 1.0]})
    with pytest.raises(InputError, match="string"):
        word_embedding_coherence(["a"], {"a": [1.0]})
    with pytest.raises(InputError, match="n must be"):
        word_embedding_coherence([["a"]], {}, n=0)
