"""Tiny checkpoints of the encoders' tests, and probes that are trained shortly."""

import pytest

from tests.encoders.conftest import empty_hub, tiny_bert, tiny_roberta
from tests.encoders.test_families import checkpoint

__all__ = ["checkpoint", "empty_hub", "tiny_bert", "tiny_roberta"]


@pytest.fixture
def few_steps(monkeypatch):
    """Train probes in an eighth of their steps, where nothing is compared with an optimum."""
    from embedtopics.probing.probes import _fit

    monkeypatch.setattr(_fit.fit, "__defaults__", (_fit.TrainingPlan(n_epochs=1, least_steps=100),))
