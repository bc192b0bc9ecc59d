"""Labels of texts are probed with the means of the words."""

import numpy as np

from embedtopics import probing
from embedtopics.probing.results import ProbeTask
from tests.probing.made import random_states

TEXTS = [f"{'plum pear' if i % 2 else 'train track'} number {i}" for i in range(60)]


def test_a_task_on_texts_takes_states_of_words():
    labels = tuple(("fruit" if i % 2 else "rail",) for i in range(60))
    task = ProbeTask("kind", "text", tuple(TEXTS), labels)
    states = random_states(TEXTS)
    baseline = random_states(TEXTS, seed=1)

    scores = probing.probe(states, task, baseline=baseline)
    expected = probing.probe(states.pooled(), task, baseline=baseline.pooled())

    assert scores.to_frame().equals(expected.to_frame())
    assert "random model" in set(scores.to_frame()["what"])
    assert np.isfinite(scores.to_frame()["value"]).all()
