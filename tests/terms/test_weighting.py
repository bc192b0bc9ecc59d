"""Class-TF-IDF against hand calculations and BERTopic's formula."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from embedtopics.errors import InputError
from embedtopics.terms import ClassTfidf

COUNTS = np.array([[6, 2, 0, 2], [0, 2, 4, 4]])  # 10 words a topic; f = 6, 4, 4, 6


def test_hand_calculation():
    weights = ClassTfidf().fit_transform(csr_matrix(COUNTS)).toarray()
    expected = [
        [0.6 * np.log(1 + 10 / 6), 0.2 * np.log(1 + 10 / 4), 0.0, 0.2 * np.log(1 + 10 / 6)],
        [0.0, 0.2 * np.log(1 + 10 / 4), 0.4 * np.log(1 + 10 / 4), 0.4 * np.log(1 + 10 / 6)],
    ]
    np.testing.assert_allclose(weights, expected, rtol=1e-14)


@pytest.mark.parametrize("bm25", [False, True])
@pytest.mark.parametrize("sqrt_tf", [False, True])
@pytest.mark.parametrize("seeds", [None, ["b", "d"]])
def test_variants_equal_bertopic(bm25, sqrt_tf, seeds):
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
    if seeds:
        idf = idf * [1, 3, 1, 3, 1]
    tf = counts / counts.sum(axis=1, keepdims=True)
    expected = (np.sqrt(tf) if sqrt_tf else tf) * idf
    weighting = ClassTfidf(bm25=bm25, sqrt_tf=sqrt_tf, seed_terms=seeds, seed_boost=3.0)
    weighting.fit(csr_matrix(counts), terms=list("abcde"))
    np.testing.assert_allclose(weighting.transform(counts).toarray(), expected, rtol=1e-12)


def test_empty_topics_and_unseen_terms_stay_finite():
    weighting = ClassTfidf().fit(csr_matrix([[2, 1, 0], [0, 0, 0]]))
    weights = weighting.transform(csr_matrix([[1, 0, 1], [0, 0, 0]])).toarray()
    assert np.isfinite(weights).all()
    assert weights[1].tolist() == [0, 0, 0]


def test_input_is_not_changed():
    counts = csr_matrix(COUNTS, dtype=np.float64)
    before = counts.copy()
    ClassTfidf().fit(counts).transform(counts)
    assert (counts != before).nnz == 0


def test_bad_input():
    with pytest.raises(NotFittedError):
        ClassTfidf().transform(COUNTS)
    with pytest.raises(ValueError, match="Negative values"):
        ClassTfidf().fit(-COUNTS)
    with pytest.raises(InputError, match="terms="):
        ClassTfidf(seed_terms=["a"]).fit(COUNTS)
    with pytest.raises(InputError, match="names of all 4 columns; got 2"):
        ClassTfidf(seed_terms=["a"]).fit(COUNTS, terms=["a", "b"])
    with pytest.raises(InputError, match="seed_boost"):
        ClassTfidf(seed_terms=["a"], seed_boost=0).fit(COUNTS, terms=list("abcd"))


def test_clone_keeps_the_parameters():
    weighting = ClassTfidf(bm25=True, seed_terms=("a",))
    assert clone(weighting).get_params() == weighting.get_params()


@parametrize_with_checks([ClassTfidf()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
