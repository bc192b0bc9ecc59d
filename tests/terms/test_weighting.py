"""Class-TF-IDF against hand calculations and BERTopic's formula."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from embedtopics.terms._weighting import log_odds
from embedtopics.topics import ClassTfidf

COUNTS = np.array([[6, 2, 0, 2], [0, 2, 4, 4]])  # 10 words a topic; f = 6, 4, 4, 6


def test_hand_calculation():
    weights = ClassTfidf().fit_transform(csr_matrix(COUNTS)).toarray()
    expected = [
        [0.6 * np.log(1 + 10 / 6), 0.2 * np.log(1 + 10 / 4), 0.0, 0.2 * np.log(1 + 10 / 6)],
        [0.0, 0.2 * np.log(1 + 10 / 4), 0.4 * np.log(1 + 10 / 4), 0.4 * np.log(1 + 10 / 6)],
    ]
    np.testing.assert_allclose(weights, expected, rtol=1e-14)


@pytest.mark.parametrize("bm25", [False, True])
def test_variants_equal_bertopic(bm25):
    """Its transformer, written out; it rounds A down, so the counts here have a whole A."""
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 5, size=(4, 5))
    counts[:, 0] += 1
    counts[0, 0] += -counts.sum() % 4
    mean = int(counts.sum(axis=1).mean())
    assert mean == counts.sum(axis=1).mean()
    frequency = counts.sum(axis=0)
    idf = (
        np.log(1 + (mean - frequency + 0.5) / (frequency + 0.5))
        if bm25
        else np.log(mean / frequency + 1)
    )
    tf = counts / counts.sum(axis=1, keepdims=True)
    weights = ClassTfidf(bm25=bm25).fit(csr_matrix(counts)).transform(counts)
    np.testing.assert_allclose(weights.toarray(), tf * idf, rtol=1e-12)


def test_empty_topics_and_unseen_terms_stay_finite():
    weighting = ClassTfidf().fit(csr_matrix([[2, 1, 0], [0, 0, 0]]))
    weights = weighting.transform(csr_matrix([[1, 0, 1], [0, 0, 0]])).toarray()
    assert np.isfinite(weights).all()
    assert weights[1].tolist() == [0, 0, 0]


def test_bad_input():
    with pytest.raises(NotFittedError):
        ClassTfidf().transform(COUNTS)
    with pytest.raises(ValueError, match="Negative values"):
        ClassTfidf().fit(-COUNTS)


@parametrize_with_checks([ClassTfidf()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# Log-odds with an informative prior.


def test_a_calculation_by_hand():
    # Group one says "tax" 3 times of 10 words, group two 1 time of 5; the prior weighs 4 words.
    prior = [1.0, 3.0]
    delta = math.log((3 + 1) / (10 + 4 - 3 - 1)) - math.log((1 + 1) / (5 + 4 - 1 - 1))
    expected = delta / math.sqrt(1 / (3 + 1) + 1 / (1 + 1))
    assert log_odds([3, 7], [1, 4], prior)[0] == pytest.approx(expected)


counts = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30), st.floats(0.01, 5)), min_size=2, max_size=8
)


@given(counts)
def test_the_groups_change_places(rows):
    first, second, prior = map(np.array, zip(*rows, strict=True))
    np.testing.assert_allclose(
        log_odds(first, second, prior), -log_odds(second, first, prior), atol=1e-12
    )


def test_the_prior_holds_rare_words_back():
    prior = np.array([0.001, 10, 30])
    z = log_odds([1, 30, 40], [0, 10, 40], prior)
    assert z[1] > z[0] > 0  # one occurrence against none is weak evidence
    assert log_odds([1, 1000], [0, 1000], [0.5, 500])[0] < 1


def test_words_that_no_one_says_and_lonely_words_tell_nothing():
    assert log_odds([0, 2, 1], [0, 1, 2], [0, 1, 1])[0] == 0
    assert log_odds([3], [1], [1]).tolist() == [0]
    assert log_odds([], [], []).tolist() == []
