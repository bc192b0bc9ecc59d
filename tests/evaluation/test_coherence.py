"""Coherence against gensim on the same tokens, and diversity by brute force."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.evaluation import coherence, diversity
from embedtopics.evaluation._coherence import c_v, count_together, npmi, topic_uniqueness, u_mass
from embedtopics.terms.results import TokenStream
from tests.factories import refuses

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from gensim.corpora import Dictionary
    from gensim.models import CoherenceModel

WORDS = tuple(f"w{i}" for i in range(6))
WINDOWED = {"c_npmi": npmi, "c_v": c_v}


def stream_of(documents):
    """Make a stream of documents given as lists of word ids."""
    return TokenStream(
        ids=np.array([i for document in documents for i in document], dtype=np.int32),
        offsets=np.cumsum([0, *map(len, documents)]).astype(np.int64),
        words=WORDS,
    )


def by_gensim(topics, stream, coherence, window=None):
    texts = [
        [stream.words[i] for i in stream.ids[a:b]]
        for a, b in zip(stream.offsets[:-1], stream.offsets[1:], strict=True)
    ]
    model = CoherenceModel(
        topics=topics, texts=texts, dictionary=Dictionary(texts), coherence=coherence,
        window_size=window, processes=1,
    )  # fmt: skip
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of no pair
        return np.array(model.get_coherence_per_topic())


def assert_equal(topics, stream, window):
    for name, measure in WINDOWED.items():
        expected = by_gensim(topics, stream, name, window)
        np.testing.assert_allclose(measure(topics, stream, window=window), expected, atol=1e-6)
        if window == 10_000:
            np.testing.assert_allclose(measure(topics, stream, window=None), expected, atol=1e-6)
    expected = by_gensim(topics, stream, "u_mass")
    np.testing.assert_allclose(u_mass(topics, stream), expected, atol=1e-6)


TOPIC = st.lists(st.sampled_from([*WORDS, "never", "nowhere"]), max_size=6)


@settings(deadline=None)
@given(
    documents=st.lists(st.lists(st.integers(0, 5), max_size=25), max_size=5),
    topics=st.lists(TOPIC, min_size=1, max_size=4),
    window=st.sampled_from([1, 2, 3, 5, 10, 110, 10_000]),
)
def test_equals_gensim_on_any_topics(documents, topics, window):
    """Words twice in a topic, words that no document holds, topics of one word."""
    stream = stream_of([*documents, [0, 1, 2, 3]])
    # gensim refuses a topic without any known word, and the others with it
    known = [topic for topic in topics if set(topic) & set(WORDS[:4])] or [["w0"]]
    assert_equal(known, stream, window)


def test_more_words_than_a_short_integer_counts():
    n = np.iinfo(np.uint16).max + 10
    words = tuple(f"{i:06}" for i in range(n))
    ids = np.concatenate([np.arange(n), [n - 1, 0]]).astype(np.int32)
    offsets = np.append(np.arange(0, n + 1), n + 2)  # each alone, then the last with the first
    # Each word is looked for, so that the places are sorted by a wider integer.
    topics = [[words[-1], words[0]], *([word] for word in words[1:-1])]
    first = next(count_together(topics, TokenStream(ids, offsets, words), None))
    assert (first.together * (n + 1)).round(9).tolist() == [[2, 1], [1, 2]]


def test_unknown_words_are_left_out_as_gensim_does():
    stream = stream_of([[0, 1, 2], [1, 2], [0]])
    assert_equal([["w0", "never", "w1"], ["w1", "w2"]], stream, 10)
    without = [[], ["never"]]
    for measure in (npmi, c_v, u_mass):
        assert np.isnan(measure(without, stream)).all()
        assert np.isnan(measure([["w0", "w1"]], stream_of([]))).all()
        assert measure([], stream).shape == (0,)
    # w5 has a number in the stream, but no document holds it
    assert np.isnan(npmi([["w5", "w0"], ["never", "w0"]], stream)).all()
    assert c_v([["w5", "w0"]], stream).tolist() == [1.0]  # as gensim has it


def test_extremes():
    apart = stream_of([[0], [1]] * 10)
    assert npmi([["w0", "w1"]], apart, window=None)[0] == pytest.approx(-0.95, abs=0.01)
    together = stream_of([[0, 1], [2]] * 10)
    assert npmi([["w0", "w1"]], together, window=None)[0] == pytest.approx(1.0)
    independent = stream_of([[0, 1], [0], [1], []])
    assert npmi([["w0", "w1"]], independent, window=None)[0] == pytest.approx(0.0, abs=1e-9)
    # UMass reads the order.
    stream = stream_of([[0, 1], [0], [0], [0]])
    # w1 never comes without w0, and w0 brings w1 along once in four documents.
    assert u_mass([["w1", "w0"]], stream)[0] == pytest.approx(0.0, abs=1e-9)
    assert u_mass([["w0", "w1"]], stream)[0] == pytest.approx(np.log(1 / 4))


@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6), max_size=5),
    st.integers(1, 6),
)
def test_uniqueness_and_diversity_by_brute_force(topics, n):
    lists = [topic[:n] for topic in topics]
    every = [word for words in lists for word in words]
    expected = [np.mean([1 / every.count(w) for w in t]) if t else np.nan for t in lists]
    np.testing.assert_allclose(topic_uniqueness(topics, n), expected)
    share = len(set(every)) / len(every) if every else np.nan
    np.testing.assert_allclose(diversity(topics, n), share)


def test_no_terms_and_bad_input():
    stream = stream_of([[0, 1]])
    for measure in WINDOWED.values():
        with refuses("window"):
            measure([["w0", "w1"]], stream, window=0)
    for measure in (npmi, c_v, u_mass):
        with refuses("topics", row=0):
            measure(["w0"], stream)
    with refuses("topics", row=0):
        diversity(["w0"])
    with refuses("n_terms"):
        diversity([["w0"]], n_terms=0)


def test_one_function_gives_every_measure_with_its_usual_window():
    stream = stream_of([[0, 1, 2] * 50, [1, 2], [0]])
    topics = [["w0", "w1"], ["w1", "w2", "w0"]]
    windows = {"npmi": 10, "c_v": 110, "u_mass": None}
    for name, function in {"npmi": npmi, "c_v": c_v, "u_mass": u_mass}.items():
        own = {} if name == "u_mass" else {"window": windows[name]}
        expected = function(topics, stream, **own)
        np.testing.assert_array_equal(coherence(topics, stream, name), expected)
    np.testing.assert_array_equal(
        coherence(topics, stream, window=None), npmi(topics, stream, window=None)
    )


def test_a_result_or_a_model_gives_its_words_and_documents():
    import embedtopics as et

    corpus = et.Corpus("embedtopics:demo", limit=200)
    model = et.TopicModel("tfidf").fit(corpus)
    words = model.result_._single_words(10)
    assert 2 <= len(words) == model.result_.n_topics
    expected = npmi(words, model.result_.tokens)
    np.testing.assert_array_equal(coherence(model), expected)
    np.testing.assert_array_equal(coherence(model.result_), expected)
    assert diversity(model) == diversity(words)
    assert diversity(model, 5) == diversity(model.result_._single_words(5), 5)


def test_what_has_no_coherence_is_named():
    stream = stream_of([[0, 1]])
    words = [["w0", "w1"]]
    for parameter, arguments, named in (
        ("tokens", (words,), {}),
        ("tokens", (words, ["a text"]), {}),
        ("measure", (words, stream, "c_uci"), {}),
        ("window", (words, stream, "u_mass"), {"window": 5}),
        ("window", (words, stream), {"window": "all"}),
        ("topics", ("study",), {}),
    ):
        with refuses(parameter):
            coherence(*arguments, **named)
