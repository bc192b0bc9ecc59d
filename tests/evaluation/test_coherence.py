"""NPMI against gensim on the same tokens; diversity by hand."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.evaluation import diversity, npmi
from embedtopics.results import TokenStream

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from gensim.corpora import Dictionary
    from gensim.models import CoherenceModel

WORDS = tuple(f"w{i}" for i in range(6))


def stream_of(documents):
    """Make a stream of documents given as lists of word ids."""
    return TokenStream(
        ids=np.array([i for document in documents for i in document], dtype=np.int32),
        offsets=np.cumsum([0, *map(len, documents)]).astype(np.int64),
        words=WORDS,
    )


def gensim_npmi(topics, stream, window):
    texts = [
        [stream.words[i] for i in stream.ids[a:b]]
        for a, b in zip(stream.offsets[:-1], stream.offsets[1:], strict=True)
    ]
    model = CoherenceModel(
        topics=topics,
        texts=texts,
        dictionary=Dictionary(texts),
        coherence="c_npmi",
        window_size=window,
        processes=1,
    )
    with np.errstate(all="ignore"):
        return np.array(model.get_coherence_per_topic())


@settings(deadline=None)
@given(
    documents=st.lists(st.lists(st.integers(0, 5), max_size=25), max_size=5),
    window=st.sampled_from([1, 2, 3, 5, 10, 10_000]),
)
def test_equals_gensim(documents, window):
    """Short and empty documents, repeated words and all; every word is known to gensim."""
    stream = stream_of([*documents, list(range(6))])
    topics = [["w0", "w1", "w2"], ["w3", "w5"], ["w4", "w1", "w0", "w5"]]
    expected = gensim_npmi(topics, stream, window)
    np.testing.assert_allclose(npmi(topics, stream, window=window), expected, atol=1e-9)
    if window == 10_000:
        np.testing.assert_allclose(npmi(topics, stream, window=None), expected, atol=1e-9)


def test_equals_gensim_on_many_documents():
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 60, size=200)
    stream = stream_of([rng.choice(6, size=n, p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05]) for n in lengths])
    topics = [list(rng.permutation(WORDS)[:4]) for _ in range(20)]
    expected = gensim_npmi(topics, stream, 10)
    np.testing.assert_allclose(npmi(topics, stream), expected, atol=1e-6)


def test_unknown_words_are_left_out_as_gensim_does():
    stream = stream_of([[0, 1, 2], [1, 2], [0]])
    topics = [["w0", "never", "w1"], ["w1", "w2"]]
    np.testing.assert_allclose(npmi(topics, stream), gensim_npmi(topics, stream, 10), atol=1e-9)
    unknown = npmi([["never", "w0"], [], ["never"]], stream)
    assert np.isnan(unknown).all()
    assert np.isnan(npmi([["never"]], stream)).all()
    assert np.isnan(npmi([["w0", "w1"]], stream_of([]))).all()


def test_extremes():
    apart = stream_of([[0], [1]] * 10)
    assert npmi([["w0", "w1"]], apart, window=None)[0] == pytest.approx(-0.95, abs=0.01)
    together = stream_of([[0, 1], [2]] * 10)
    assert npmi([["w0", "w1"]], together, window=None)[0] == pytest.approx(1.0)
    independent = stream_of([[0, 1], [0], [1], []])
    assert npmi([["w0", "w1"]], independent, window=None)[0] == pytest.approx(0.0, abs=1e-9)


def test_diversity():
    assert diversity([["a", "b"], ["c", "d"]]) == 1.0
    assert diversity([["a", "b"], ["a", "b"]]) == 0.5
    assert diversity([["a", "b", "x"], ["a", "c", "x"]], n=2) == 0.75
    assert np.isnan(diversity([]))


def test_bad_input():
    stream = stream_of([[0, 1]])
    with pytest.raises(InputError, match="window"):
        npmi([["w0", "w1"]], stream, window=0)
    with pytest.raises(InputError, match="topic 0 is the string 'w0'"):
        npmi(["w0"], stream)
    with pytest.raises(InputError, match="topic 1"):
        diversity([["a"], "b"])
    with pytest.raises(InputError, match="n must be"):
        diversity([["a"]], n=0)
