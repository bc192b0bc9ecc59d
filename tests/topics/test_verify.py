"""A study that is computed again: what comes out, what does not, and by how much."""

from dataclasses import replace

import numpy as np
import pytest

import embedtopics as et
from embedtopics.topics import extend, merge, recluster, rename, verify
from embedtopics.topics._storage import without_texts
from tests.factories import refuses


@pytest.fixture(scope="module")
def texts(branches):
    return branches[0][:300]


@pytest.fixture(scope="module")
def study(texts):
    return et.TopicModel("tfidf", languages=[], n_topics=6, random_state=3).fit(texts).result_


def outcomes(verification):
    parts = verification.parts.itertuples()
    return {part.part: (part.outcome, part.different) for part in parts}


def test_a_study_comes_out_again(study, tmp_path):
    edited = recluster(rename(merge(study, [1, 2]), {0: "First"}), 5)
    edited = rename(edited, {1: "Second"})
    edited.save(tmp_path / "study")
    verification = et.topics.verify(tmp_path / "study")
    assert verification.is_same and not verification.versions
    assert set(outcomes(verification).values()) == {("same bits", 0)}
    compared = verification.to_frame().set_index("part")["compared"]
    assert compared["texts"] == len(study.corpus) and compared["edits"] == 4
    assert compared["topics"] == study.distinct.weights.sum() and compared["names"] == 5
    assert [topic.name for topic in verification.result.topics[:2]][1] == "Second"


@pytest.mark.parametrize(
    "parameters",
    [
        {"min_cluster_size": 12},
        {"n_topics": "coarse", "coverage": 1.0, "words": ["social"], "stop_words": ["auto", "x"]},
        {"reducer": "pca", "clusterer": "kmeans", "n_topics": 4},
        {"constraints": et.topics.SeedWords({"seeded": ["balcor", "dunfer"]}), "n_topics": 7},
        {"constraints": et.topics.PartialLabels([0, 0, 0, 1, 1, 1] + [-1] * 294)},
    ],
)
def test_every_parameter_is_recorded(texts, parameters):
    result = et.TopicModel("tfidf", languages=[], random_state=3, **parameters).fit(texts).result_
    verification = verify(result)
    assert verification.is_same, verification.to_frame().to_string()


def test_given_vectors_are_taken_as_they_are(branched, branches):
    verification = verify(branched)
    assert verification.is_same and outcomes(verification)["vectors"] == ("not computed", 0)
    with refuses("encoder"):
        verify(branched, [*branches[0][:-1], "a new text"])


def test_changed_texts_are_found_in_their_rows(study, texts):
    changed = [*texts[:4], texts[4] + " indeed", *texts[5:]]
    verification = verify(study, changed)
    assert not verification.is_same and "texts" in repr(verification)
    part = verification.parts.iloc[0]
    assert (part.outcome, part.different, part.message) == ("differs", 1, "rows 4")
    fewer = verify(study, texts[:-10]).parts.iloc[0]
    assert (fewer.different, fewer.message) == (10, "300 rows in the study, 290 here")


def test_each_part_is_compared_by_itself(study):
    def parts_of(**changes):
        return outcomes(verify(replace(study, **changes)))

    rounded = study.embeddings * (1 + np.float32(1e-6))
    assert parts_of(embeddings=rounded)["vectors"] == ("within rounding", 0)
    vectors = study.embeddings.copy()
    vectors[7] = -vectors[7]
    assert parts_of(embeddings=vectors)["vectors"] == ("differs", 1)
    indices = study.graph.indices.copy()
    indices[:2] = indices[1::-1]
    assert parts_of(graph=replace(study.graph, indices=indices))["neighbors"] == ("differs", 2)
    topics = (replace(study.topics[0], name="another"), *study.topics[1:])
    assert parts_of(topics=topics)["names"] == ("differs", 1)
    # Numbers of topics may be exchanged; a text in another topic may not.
    labels = study.clustering.labels.copy()
    row = int(np.flatnonzero(labels == 0)[0])
    labels[row] = 1
    moved = verify(replace(study, clustering=replace(study.clustering, labels=labels)))
    assert outcomes(moved)["topics"] == ("differs", study.distinct.weights[row])
    shares = [*study.memberships[row].toarray().ravel(), study.none_shares[row]]
    margin = np.diff(np.sort(shares)[-2:])[0]
    message = moved.parts.set_index("part")["message"]["topics"]
    assert message == f"all within {max(margin, 0.001):.3f} of a border"


def test_other_versions_are_named(study):
    verification = verify(replace(study, versions={**study.versions, "numpy": "1.0"}))
    assert verification.versions == {"numpy": ("1.0", np.__version__)}


def test_what_cannot_be_computed_again_is_refused(study, texts, branched):
    with refuses("corpus"):
        verify(without_texts(study))
    assert outcomes(verify(without_texts(study), texts))["texts"] == ("same bits", 0)
    with refuses("result"):
        verify(extend(branched, ["new"], embeddings=branched.embeddings[:1]).result)
    custom = replace(study, settings={**study.settings, "reducer": "Own()"})
    with refuses("result"):
        verify(custom)
    unknown = replace(study, settings={**study.settings, "encoder_settings": None})
    with refuses("encoder"):
        verify(unknown)
