"""What format 2 brought: the hierarchy, the reasons, memory and stability; and format 1 still."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

import embedtopics as et
from embedtopics._utils.folders import write_manifest
from embedtopics.errors import CorruptFileError
from embedtopics.report._report import report_html
from embedtopics.topics import assign, at_resolution, levels, load_result, save_result
from embedtopics.topics._storage import FORMAT, KIND, read_arrays
from embedtopics.topics.results import Reason, Stability
from tests.factories import refuses


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


def as_format_1(folder):
    """Take from a saved result all that format 1 did not have."""
    new = ("tree.", "stability.", "clustering.reasons")
    stored = read_arrays(folder / "arrays.arrow")
    np.savez(folder / "arrays.npz", **{n: a for n, a in stored.items() if not n.startswith(new)})
    (folder / "arrays.arrow").unlink()
    content = json.loads((folder / "result.json").read_text("utf-8"))
    del content["peak_memory"], content["n_replicates"]
    for name in ("n_topics", "coverage", "least_ratio"):
        del content["settings"][name]
    (folder / "result.json").write_text(json.dumps(content), "utf-8")
    write_manifest(folder, KIND, 1)
    return folder


def test_format_1_is_read(branched, branches, tmp_path):
    texts, vectors = branches
    loaded = load_result(as_format_1(save_result(branched, tmp_path / "old")))
    assert loaded.tree is None and loaded.stability is None and np.isnan(loaded.peak_memory)
    np.testing.assert_array_equal(loaded.labels, branched.labels)
    np.testing.assert_array_equal(
        loaded.clustering.probabilities, branched.clustering.probabilities
    )
    # Of its noise it knows no reason but that of all noise.
    outside = loaded.labels < 0
    assert set(loaded.reasons[outside]) <= {Reason.ISOLATED}
    assert set(loaded.reasons[~outside]) == {Reason.IN_TOPIC}
    with refuses("result"):
        at_resolution(loaded, 4)
    queries = [f"new {i}" for i in range(20)]
    one, two = (
        assign(result, queries, embeddings=vectors[:20] + 0.01) for result in (loaded, branched)
    )
    np.testing.assert_array_equal(one.labels, two.labels)
    model = et.TopicModel.load(tmp_path / "old")
    np.testing.assert_array_equal(model.predict(texts), branched.labels)
    assert len(et.topics.documents(loaded)) == len(texts) and report_html(loaded)
    same_again = load_result(save_result(loaded, tmp_path / "again"))
    assert same_again.tree is None and same_again.topics == loaded.topics


def test_a_format_to_come_is_refused(branched, tmp_path):
    folder = save_result(branched, tmp_path / "result")
    write_manifest(folder, KIND, FORMAT + 1)
    with pytest.raises(CorruptFileError, match=f"format {FORMAT + 1}, newer than"):
        load_result(folder)


def test_how_fine_the_topics_are_comes_back_with_the_model(branches, tmp_path):
    texts, vectors = branches
    model = et.TopicModel(n_topics=5, coverage=0.8, languages=[], random_state=2)
    model.fit(texts, embeddings=vectors)
    loaded = et.TopicModel.load(model.save(tmp_path / "model"))
    assert (loaded.n_topics, loaded.coverage) == (5, 0.8)
    again = loaded.fit(texts, embeddings=vectors)
    np.testing.assert_array_equal(again.labels_, model.labels_)


@pytest.mark.slow
@pytest.mark.smoke
def test_a_new_process_predicts_and_reads_alike(branched, branches, tmp_path):
    texts, vectors = branches
    result = at_resolution(branched, 5, coverage=0.9)
    folder = save_result(result, tmp_path / "result")
    queries = np.random.default_rng(3).normal(size=(40, 24)) / 9 + vectors[:40]
    np.save(tmp_path / "queries.npy", queries)
    names = [f"query {i}" for i in range(40)]
    (tmp_path / "texts.json").write_text(json.dumps([texts, names]), "utf-8")
    code = f"""
import json, numpy as np
from pathlib import Path
import embedtopics as et
from tests.factories import refuses
here = Path({str(tmp_path)!r})
texts, names = json.loads((here / "texts.json").read_text("utf-8"))
result = et.topics.load_result(here / "result")
fitted = et.topics.assign(result, texts)
new = et.topics.assign(result, names, embeddings=np.load(here / "queries.npy"))
other = et.topics.at_resolution(result, 8)
np.savez(here / "found.npz", fitted=fitted.labels, new=new.labels, novelty=new.novelty,
         shares=new.memberships.toarray(), other=other.labels, terms=other.topic_terms.toarray())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
    found = np.load(tmp_path / "found.npz")
    new, other = assign(result, names, embeddings=queries), at_resolution(result, 8)
    np.testing.assert_array_equal(found["fitted"], result.labels)
    np.testing.assert_array_equal(found["new"], new.labels)
    np.testing.assert_array_equal(found["novelty"], new.novelty)
    np.testing.assert_array_equal(found["shares"], new.memberships.toarray())
    np.testing.assert_array_equal(found["other"], other.labels)
    np.testing.assert_array_equal(found["terms"], other.topic_terms.toarray())
    assert folder == tmp_path / "result"
