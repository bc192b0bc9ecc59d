"""What several tests of edits need."""

import dataclasses

import numpy as np

from tests.factories import fields


def with_anchors(result, *topics):
    """Return the result with topics that were asked for before the fit."""
    return dataclasses.replace(
        result,
        topics=tuple(
            dataclasses.replace(topic, is_seeded=True, name=f"asked {topic.topic_id}")
            if topic.topic_id in topics
            else topic
            for topic in result.topics
        ),
    )


def partition(labels):
    """Return labels in a numbering that depends on nothing but who is with whom."""
    number = {-1: -1}
    return [number.setdefault(label, len(number) - 1) for label in np.asarray(labels).tolist()]


def assert_same_topics(one, two):
    """Compare the topics of two results and what they hold, to the bit."""
    for name in ("labels", "probabilities", "persistence", "reasons"):
        np.testing.assert_array_equal(getattr(one.clustering, name), getattr(two.clustering, name))
    for name in ("memberships", "topic_terms"):
        first, second = getattr(one, name), getattr(two, name)
        assert first.shape == second.shape and first.dtype == second.dtype
        np.testing.assert_array_equal(first.toarray(), second.toarray())
    assert fields(one.topics) == fields(two.topics)  # as text, for NaN is not NaN


def assert_same(one, two):
    """Compare all of two results that an edit may change, to the bit."""
    assert_same_topics(one, two)
    assert one.term_counts.terms == two.term_counts.terms
    assert (one.term_counts.counts != two.term_counts.counts).nnz == 0
    assert one.term_counts.stop_words == two.term_counts.stop_words
    assert one.history == two.history
    assert one.decisions == two.decisions
    assert dict(one.settings) == dict(two.settings)


def frozen(result):
    """Return copies of all that an edit could change by mistake."""
    return (
        result.clustering.labels.copy(),
        result.clustering.probabilities.copy(),
        result.memberships.toarray(),
        result.topic_terms.toarray(),
        result.term_counts.counts.toarray(),
        result.topics,
        result.history,
        dict(result.settings),
    )


def assert_untouched(result, before):
    for now, then in zip(frozen(result), before, strict=True):
        if isinstance(then, np.ndarray):
            np.testing.assert_array_equal(now, then)
        else:
            assert now == then or repr(now) == repr(then)
