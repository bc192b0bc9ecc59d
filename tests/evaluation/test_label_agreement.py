"""Agreement against scikit-learn on the same labels."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    normalized_mutual_info_score,
)

from embedtopics.errors import InputError
from embedtopics.evaluation import agreement


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-1, 3)), min_size=1, max_size=30))
def test_equals_scikit_learn(pairs):
    true = np.array([a for a, _ in pairs])
    predicted = np.array([b for _, b in pairs])
    found = agreement(true, predicted)
    covered = predicted >= 0
    assert found.nmi == pytest.approx(normalized_mutual_info_score(true, predicted))
    assert found.ami == pytest.approx(adjusted_mutual_info_score(true, predicted))
    assert found.ari == pytest.approx(adjusted_rand_score(true, predicted))
    assert found.coverage == covered.mean()
    if covered.any():
        inside = true[covered], predicted[covered]
        assert found.nmi_covered == pytest.approx(normalized_mutual_info_score(*inside))
        assert found.ami_covered == pytest.approx(adjusted_mutual_info_score(*inside))
        assert found.ari_covered == pytest.approx(adjusted_rand_score(*inside))
    else:
        assert math.isnan(found.nmi_covered)


def test_lists_of_strings_and_perfect_labels():
    found = agreement(["x", "x", "y", "y"], [1, 1, 0, 0])
    assert (found.nmi, found.ami, found.ari, found.coverage) == (1.0, 1.0, 1.0, 1.0)


def test_bad_input():
    with pytest.raises(InputError, match="one length"):
        agreement([0, 1], [0])
    with pytest.raises(InputError, match="at least 1"):
        agreement([], [])
    with pytest.raises(InputError, match="integers"):
        agreement([0, 1], [0.0, 1.0])
