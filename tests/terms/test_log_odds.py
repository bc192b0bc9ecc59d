from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.terms._weighting import log_odds


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


def test_bad_input():
    with pytest.raises(InputError, match=r"\(2,\), \(1,\), \(2,\)"):
        log_odds([1, 2], [1], [1, 1])
    with pytest.raises(InputError, match="from 0 up"):
        log_odds([1, -2], [1, 1], [1, 1])
