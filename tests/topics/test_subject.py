import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_matrix

from embedtopics.terms.results import TermCounts
from embedtopics.topics import _support as subject
from embedtopics.topics._support import uninformative_topics, word_gains


def counts_of(matrix, lengths=None):
    matrix = np.asarray(matrix, dtype=np.int32)
    n_terms = matrix.shape[1]
    lengths = np.ones(n_terms) if lengths is None else np.asarray(lengths)
    terms = tuple(f"term {i}" for i in range(n_terms))
    return TermCounts(csr_matrix(matrix), terms, lengths.astype(np.int8))


def by_definition(matrix, labels, n_topics, judged):
    """Work out the gains document by document and word by word."""
    held = [{w for w, count in enumerate(row) if count} for row in matrix]
    n_terms = len(matrix[0])
    total = [sum(w in words for words in held) for w in range(n_terms)]
    mean_length = max(1.0, sum(total) / len(held))
    gains, n_words = [], []
    for topic in range(n_topics):
        members = [d for d, label in enumerate(labels) if label == topic]
        n_words.append(sum(len(held[d]) for d in members))
        elsewhere = [total[w] - sum(w in held[d] for d in members) + 0.5 for w in range(n_terms)]
        best = -math.inf
        for documents in (30, 100, 1000):
            prior, of_documents = documents * mean_length, []
            for d in members[:judged]:
                others = [o for o in members if o % 2 != d % 2]
                n_others = sum(len(held[o]) for o in others)
                gain = []
                for w in held[d]:
                    outside = elsewhere[w] / sum(elsewhere)
                    count = sum(w in held[o] for o in others)
                    mixture = (count + prior * outside) / (n_others + prior)
                    gain.append(math.log(mixture / outside))
                of_documents.append(statistics.fmean(gain) if gain else 0.0)
            best = max(best, statistics.median(of_documents) if of_documents else math.inf)
        gains.append(math.inf if n_words[-1] >= sum(total) else best)
    return gains, n_words


small = hnp.arrays(
    np.int32, st.tuples(st.integers(1, 14), st.integers(1, 8)), elements=st.integers(0, 2)
)


@settings(deadline=None, max_examples=150)
@given(small, st.integers(0, 4), st.integers(1, 20), st.data())
def test_gains_equal_the_definition(matrix, n_topics, judged, data):
    labels = data.draw(hnp.arrays(np.int32, len(matrix), elements=st.integers(-1, n_topics - 1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject, "MAX_DOCUMENTS", judged)
        gains, n_words = word_gains(counts_of(matrix), labels, n_topics)
    expected_gains, expected_words = by_definition(
        matrix.tolist(), labels.tolist(), n_topics, judged
    )
    np.testing.assert_allclose(gains, expected_gains, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(n_words, expected_words)


def test_a_hand_calculation():
    # Two documents with the word of the topic, two with another; each of one word.
    counts = counts_of([[1, 0], [1, 0], [0, 1], [0, 1]])
    gains, n_words = word_gains(counts, np.array([0, 0, 1, 1]), 2)
    # Elsewhere the word is counted half a time and the other 2.5: a sixth. Of the other half's
    # one word all are this one, beside a prior of 30 words.
    expected = math.log((1 + 30 / 6) / (1 + 30) / (1 / 6))
    np.testing.assert_allclose(gains, [expected, expected])
    assert n_words.tolist() == [2, 2]


def test_phrases_and_repeats_within_a_document_do_not_count():
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2, (40, 12))
    phrases = rng.integers(0, 2, (40, 5))
    labels = rng.integers(-1, 3, 40).astype(np.int32)
    alone = word_gains(counts_of(words), labels, 3)
    both = word_gains(counts_of(np.hstack([phrases, 7 * words]), [2] * 5 + [1] * 12), labels, 3)
    np.testing.assert_array_equal(alone[0], both[0])
    np.testing.assert_array_equal(alone[1], both[1])


def drawn(rng, n_documents, n_words, chances):
    """Return documents of words drawn by chance."""
    rows = [rng.choice(len(chances), n_words, p=chances) for _ in range(n_documents)]
    return np.array([np.bincount(row, minlength=len(chances)) for row in rows])


def mixed_corpus(n_shuffled, n_words=20):
    """Three vocabularies of 40 words, and documents of words from all of them; in random order."""
    rng = np.random.default_rng(4)
    chances = 1.0 / np.arange(1, 41)
    parts, labels = [], []
    for topic in range(3):
        own = np.zeros(120)
        own[40 * topic : 40 * (topic + 1)] = chances / chances.sum()
        parts.append(drawn(rng, 80, n_words, own))
        labels += [topic] * 80
    everything = np.vstack(parts).sum(axis=0)
    parts.append(drawn(rng, n_shuffled, n_words, everything / everything.sum()))
    labels += [3] * n_shuffled
    order = rng.permutation(len(labels))
    return np.vstack(parts)[order], np.array(labels, dtype=np.int32)[order]


def test_shuffled_words_are_no_subject_and_vocabularies_are():
    matrix, labels = mixed_corpus(60)
    gains, n_words = word_gains(counts_of(matrix), labels, 4)
    assert (gains[:3] > 0.3).all() and gains[3] < 0.01
    assert (n_words >= 300).all()
    assert np.flatnonzero(uninformative_topics(counts_of(matrix), labels, 4)).tolist() == [3]


def test_few_words_are_not_judged():
    matrix, labels = mixed_corpus(14)
    gains, n_words = word_gains(counts_of(matrix), labels, 4)
    assert gains[3] < subject.MIN_GAIN and n_words[3] < 300
    assert not uninformative_topics(counts_of(matrix), labels, 4).any()


def test_the_whole_corpus_cannot_be_judged():
    matrix, _ = mixed_corpus(60)
    labels = np.zeros(len(matrix), dtype=np.int32)
    gains, n_words = word_gains(counts_of(matrix), labels, 1)
    assert gains.tolist() == [np.inf] and n_words[0] == (matrix > 0).sum()
    assert not uninformative_topics(counts_of(matrix), labels, 1).any()


@pytest.mark.parametrize(
    ("matrix", "labels", "n_topics"),
    [
        (np.zeros((4, 0)), [0, 0, 1, -1], 2),  # no words at all
        (np.zeros((4, 3)), [0, 0, 1, -1], 2),
        (np.ones((4, 3)), [-1, -1, -1, -1], 0),  # no topics
        (np.ones((4, 3)), [-1, -1, -1, -1], 2),  # topics without documents
    ],
)
def test_nothing_to_judge(matrix, labels, n_topics):
    labels = np.array(labels, dtype=np.int32)
    gains, n_words = word_gains(counts_of(matrix), labels, n_topics)
    assert gains.shape == n_words.shape == (n_topics,)
    assert (n_words == 0).all() and not np.isnan(gains).any()
    assert not uninformative_topics(counts_of(matrix), labels, n_topics).any()
