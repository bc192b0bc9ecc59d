"""What format 2 brought: the hierarchy, the reasons, memory and stability; and format 1 still."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import embedtopics as et
from embedtopics.topics import at_resolution, levels, load_result, save_result
from embedtopics.topics.results import Stability


def same(one, two):
    """Whether two results hold the same arrays, to the bit."""
    for name in ("labels", "reasons", "none_shares", "embeddings", "coordinates", "map"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    for part in ("graph", "clustering", "tree"):
        ours, theirs = getattr(one, part), getattr(two, part)
        for field in dataclasses.fields(ours):
            np.testing.assert_array_equal(getattr(ours, field.name), getattr(theirs, field.name))
    for name in ("memberships", "topic_terms"):
        np.testing.assert_array_equal(getattr(one, name).toarray(), getattr(two, name).toarray())
    assert repr(one.topics) == repr(two.topics)
    assert dict(one.settings) == dict(two.settings) and one.history == two.history


@pytest.mark.parametrize("read", [None, 3, "fine"])
def test_any_resolution_comes_back(branched, tmp_path, read):
    result = branched if read is None else at_resolution(branched, read, coverage=0.9)
    loaded = load_result(save_result(result, tmp_path / "result"))
    same(loaded, result)
    assert loaded.peak_memory == result.peak_memory > 1e6
    assert loaded.stability is None
    for name, array in vars(loaded.tree).items():
        assert array.dtype == getattr(result.tree, name).dtype


def test_a_loaded_result_is_read_at_other_resolutions_alike(branched, tmp_path):
    loaded = load_result(save_result(branched, tmp_path / "result"))
    assert levels(loaded) == levels(branched)
    for n_topics in (2, 7, "coarse"):
        same(at_resolution(loaded, n_topics), at_resolution(branched, n_topics))


def test_stability_and_unknown_memory_come_back(branched, tmp_path):
    n_topics, rng = branched.n_topics, np.random.default_rng(0)
    agreement = rng.random(len(branched.documents)).astype(np.float32)
    agreement[3] = np.nan
    measured = Stability(*rng.random((3, n_topics)), agreement, rng.random(6), 4)
    result = dataclasses.replace(branched, stability=measured, peak_memory=float("nan"))
    loaded = load_result(save_result(result, tmp_path / "result"))
    assert np.isnan(loaded.peak_memory)
    for field in dataclasses.fields(measured):
        np.testing.assert_array_equal(
            getattr(loaded.stability, field.name), getattr(measured, field.name)
        )
    assert isinstance(loaded.stability.n_replicates, int)


def test_how_fine_the_topics_are_comes_back_with_the_model(branches, tmp_path):
    texts, vectors = branches
    model = et.TopicModel(n_topics=5, coverage=0.8, languages=[], random_state=2)
    model.fit(texts, embeddings=vectors)
    loaded = et.TopicModel.load(model.save(tmp_path / "model"))
    assert (loaded.n_topics, loaded.coverage) == (5, 0.8)
    again = loaded.fit(texts, embeddings=vectors)
    np.testing.assert_array_equal(again.labels_, model.labels_)
