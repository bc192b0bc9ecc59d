"""scikit-learn's own checks of the clusterer."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from embedtopics.clustering import DensityClusterer


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([DensityClusterer()])
def test_sklearn(estimator, check):
    check(estimator)
