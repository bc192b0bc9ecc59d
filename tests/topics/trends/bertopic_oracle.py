"""What BERTopic computes on its way to words."""

from __future__ import annotations

import warnings

import numpy as np
import pytest


def weights_of(model, ask):
    """Return the weights behind the words that BERTopic tells: one matrix a bin or class."""
    seen = []
    tell = type(model)._extract_words_per_topic

    def look(words, selection, c_tf_idf, **options):
        seen.append((sorted(selection.Topic.unique()), c_tf_idf.toarray()))
        return tell(model, words, selection, c_tf_idf, **options)

    model._extract_words_per_topic = look
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = ask()
    del model._extract_words_per_topic
    return seen, table


def assert_alike(terms, cell, present, expected):
    for row, topic in enumerate(present):
        found = np.zeros(expected.shape[1])
        held = terms.ids[topic, cell] >= 0
        found[terms.ids[topic, cell][held]] = terms.weights[topic, cell][held]
        assert found == pytest.approx(np.maximum(expected[row], 0.0), abs=1e-6)
