"""Constraints of every kind."""

import json
import warnings

import numpy as np
import pytest

import embedtopics as et
from embedtopics.neighbors._graph import build_graph, unit_rows
from embedtopics.reduction._fuzzy import fuzzy_graph
from embedtopics.results import Decision
from embedtopics.topics import (
    ManualLabels,
    PartialLabels,
    SeedWords,
    ZeroShot,
    recluster,
    with_stability,
)
from embedtopics.topics.constraints import _apply as drawing
from embedtopics.topics.constraints._apply import attract_groups, groups_of_vectors, separate_groups
from embedtopics.topics.results import TopicConstraints
from tests.factories import fields

KINDS = ["seed_words", "zero_shot", "labels", "manual_labels"]


def make(kind, collection, order=None):
    """Return constraints of a kind for a collection whose rows stand in this order."""
    texts, vectors = collection[:2]
    n = len(texts)
    order = np.arange(n) if order is None else order
    classes = np.minimum(np.arange(n) // 135, 3)
    some = np.where(np.arange(n) % 3 == 0, classes, -1)
    first_two = np.stack([vectors[:130].mean(axis=0), vectors[140:270].mean(axis=0)])
    words = [text.split()[0] for text in texts]
    return {
        "seed_words": lambda: SeedWords({"one": words[:6], "two": words[150:155]}),
        "zero_shot": lambda: ZeroShot(["First", "Second"], embeddings=first_two),
        "labels": lambda: PartialLabels(some[order]),
        "manual_labels": lambda: ManualLabels([f"c{c}" for c in classes[order]]),
    }[kind]()  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def guided(request, branches, fit):
    return request.param, fit(branches, make(request.param, branches))


def same(one, two, order=None):
    order = np.arange(len(one.labels)) if order is None else order
    np.testing.assert_array_equal(one.labels[order], two.labels)
    np.testing.assert_array_equal(one.reasons[order], two.reasons)
    for name in ("map", "coordinates"):
        first, second = getattr(one, name), getattr(two, name)
        np.testing.assert_array_equal(first, second)
    assert (one.memberships != two.memberships).nnz == 0
    assert (one.topic_terms != two.topic_terms).nnz == 0
    assert [(t.name, t.size, t.keywords, t.is_seeded, t.is_named) for t in one.topics] == [
        (t.name, t.size, t.keywords, t.is_seeded, t.is_named) for t in two.topics
    ]


def test_the_order_of_rows_changes_nothing(guided, branches, fit):
    kind, result = guided
    texts, vectors = branches
    order = np.random.default_rng(5).permutation(len(texts))
    moved = ([texts[i] for i in order], vectors[order])
    kept = make(kind, branches, order)
    same(result, fit(moved, kept), order)


def test_it_does_something_and_says_so(guided, branched):
    kind, result = guided
    assert result.constraints is not None and branched.constraints is None
    settings = result.settings["constraints"]
    assert settings["kind"] == kind
    assert json.loads(json.dumps(settings)) == settings
    assert len(result.decisions) > len(branched.decisions)
    parts = ("labels", "coordinates")
    assert not all(np.array_equal(getattr(result, p), getattr(branched, p)) for p in parts)


def test_saved_and_loaded_it_answers_alike(guided, branches, tmp_path):
    kind, result = guided
    model = et.TopicModel()
    model.result_ = result
    loaded = et.TopicModel.load(model.save(tmp_path / "model"))
    same(result, loaded.result_)
    one, two = result.constraints, loaded.result_.constraints
    for name in ("groups", "probabilities"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        assert getattr(one, name).dtype == getattr(two, name).dtype
    for name in ("names", "attraction", "separation", "is_fixed", "is_complete"):
        assert getattr(one, name) == getattr(two, name)
    np.testing.assert_array_equal(loaded.predict(branches[0]), result.labels)
    new = branches[1][:9] + 0.01
    names = [f"new {i}" for i in range(9)]
    np.testing.assert_array_equal(
        loaded.predict(names, embeddings=new), model.predict(names, embeddings=new)
    )
    if kind != "manual_labels":
        same(recluster(result, 5), recluster(loaded.result_, 5))


def test_read_at_its_own_resolution_it_is_the_same(guided):
    kind, result = guided
    if kind == "manual_labels":
        return
    again = recluster(result)
    np.testing.assert_array_equal(again.labels, result.labels)
    assert fields(again.topics) == fields(result.topics)  # NaN equals nothing


@pytest.mark.parametrize("kind", ["zero_shot", "labels", "seed_words"])
def test_replicates_obey_the_guide(kind, branches, fit):
    result = fit(branches, make(kind, branches))
    measured = with_stability(result, 3).stability
    assert len(measured.recurrence) == result.n_topics
    if kind == "zero_shot":
        anchors = [topic.topic_id for topic in result.topics if topic.is_seeded]
        assert len(anchors) == 2 and (measured.recurrence[anchors] > 0.9).all()


@pytest.mark.parametrize("kind", KINDS)
def test_few_documents_and_rows_without_text(kind, fit):
    texts = ["one apple", "two pears", "", "three apple", None, "one apple"]
    vectors = np.random.default_rng(0).normal(size=(6, 4))
    vectors[5] = vectors[0]
    constraints = {
        "seed_words": SeedWords([["apple"]]),
        "zero_shot": ZeroShot(["Apples"], min_similarity=-1.0, embeddings=vectors[:1]),
        "labels": PartialLabels(["a", "b", "a", None, "b", "a"]),
        "manual_labels": ManualLabels(["a", "b", "a", None, "b", "a"]),
    }[kind]
    result = fit((texts, vectors), constraints)
    assert result.labels.shape == (6,) and (result.labels[[2, 4]] == -1).all()
    assert result.labels[0] == result.labels[5]
    expected = {"zero_shot": [0, 0, -1, 0, -1, 0], "manual_labels": [0, 1, -1, -1, -1, 0]}
    if kind in expected:
        assert result.labels.tolist() == expected[kind]


def test_anything_that_keeps_the_protocol_guides(toy, fit):
    class Halves:
        def prepare(self, context):
            groups = (np.arange(len(context)) % 2).astype(np.int32)
            probabilities = np.ones(len(context), dtype=np.float32)
            constraints = TopicConstraints(
                groups, ("even", "odd"), probabilities, is_fixed=True, is_complete=True
            )
            return constraints, [Decision("clustering", "halves", 2, "Halved.")]

        def describe(self):
            return {"kind": "halves"}

    result = fit(toy, Halves())
    assert {topic.name for topic in result.topics} == {"even", "odd"}
    assert result.decisions[-1].name != "halves" and "halves" in {d.name for d in result.decisions}


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(0)
    embeddings = unit_rows(rng.normal(size=(80, 6)))
    return embeddings, fuzzy_graph(build_graph(embeddings, 8)), rng.integers(-1, 3, 80)


@pytest.mark.slow
@pytest.mark.parametrize("weight", [0.2, 0.5, 0.9, 1.0])
def test_parting_equals_umap_learn(cloud, weight):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # umap-learn warns of a missing optional package
        from umap.umap_ import discrete_metric_simplicial_set_intersection

    _, fuzzy, groups = cloud
    far = 2.5 / (1.0 - weight) if weight < 1 else 1e12
    theirs = discrete_metric_simplicial_set_intersection(fuzzy.tocoo(True), groups, far_dist=far)
    ours = separate_groups(fuzzy, groups.astype(np.int32), weight)
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), atol=1e-6)


@pytest.mark.parametrize("small", [128, 0])
def test_tying_is_the_union_with_ties_inside_each_group(cloud, monkeypatch, small):
    monkeypatch.setattr(drawing, "SMALL_GROUP", small)
    embeddings, fuzzy, groups = cloud
    groups = groups.astype(np.int32)
    inside = np.zeros(fuzzy.shape)
    for group in range(3):
        members = np.flatnonzero(groups == group)
        cosines = embeddings[members] @ embeddings[members].T
        np.fill_diagonal(cosines, -2)
        for place, member in enumerate(members):
            near = members[np.argsort(-cosines[place])[:8]]
            inside[member, near] = inside[near, member] = 0.4
    before = fuzzy.toarray()
    tied = attract_groups(fuzzy, embeddings, groups, 0.4, 8)
    np.testing.assert_allclose(tied.toarray(), before + inside - before * inside, atol=1e-6)
    np.testing.assert_array_equal(fuzzy.toarray(), before)
    alone = np.full(80, -1, dtype=np.int32)
    alone[7] = 0
    assert attract_groups(fuzzy, embeddings, alone, 0.4, 8) is fuzzy


def test_small_groups_are_tied_wholly(cloud):
    embeddings, fuzzy, _ = cloud
    groups = np.repeat(np.arange(16, dtype=np.int32), 5)
    groups[[0, 79]] = -1, 17  # 16 has nobody, 17 one document
    tied = attract_groups(fuzzy, embeddings, groups, 1.0, 8).toarray()
    same = (groups[:, None] == groups) & (groups >= 0)[:, None] & ~np.eye(80, dtype=bool)
    np.testing.assert_allclose(tied[same], 1.0, atol=1e-6)
    np.testing.assert_array_equal(tied[~same], fuzzy.toarray()[~same])


def test_documents_that_share_a_vector_have_the_one_group_that_they_have():
    groups = np.array([-1, 2, 0, 1, -1, 0], dtype=np.int32)
    places = np.array([0, 0, 1, 1, 2, 3])
    assert groups_of_vectors(groups, places, 4).tolist() == [2, -1, -1, 0]
