"""Labels of some texts that guide the topics, and labels of all that are the topics."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embedtopics as et
from embedtopics.topics import ManualLabels, PartialLabels, recluster, with_stability
from embedtopics.topics._clusters import owners
from embedtopics.topics.results import Reason
from tests.factories import raising, refuses


def purity(result, classes):
    """Share of the rows in a topic whose class is that of most rows of their topic."""
    inside = result.labels >= 0
    table = pd.crosstab(result.labels[inside], classes[inside])
    return table.max(axis=1).sum() / inside.sum()


def test_topics_follow_labels_where_the_embeddings_do_not_part_the_classes(mixed, fit):
    _, _, classes = mixed
    plain = fit(mixed, n_topics=6)
    guided = fit(mixed, PartialLabels(classes), n_topics=6)
    assert purity(plain, classes) < 0.65 and purity(guided, classes) > 0.97
    share = next(d for d in guided.decisions if d.name == "labels_respected").value
    inside = guided.labels >= 0
    assert share == pytest.approx(purity(guided, classes) * inside.mean())
    np.testing.assert_array_equal(plain.embeddings, guided.embeddings)
    np.testing.assert_array_equal(plain.graph.indices, guided.graph.indices)


def test_documents_without_a_label_go_where_their_neighbors_are(branches, fit):
    texts = branches[0]
    branch = np.minimum(np.arange(len(texts)) // 135, 4)  # 40 + 45 + 50 texts each
    hidden = np.random.default_rng(0).random(len(texts)) < 0.7
    labels = np.where(hidden | (branch == 4), -1, branch)
    result = fit(branches, PartialLabels(labels), n_topics=4)
    inside = (branch < 4) & (result.labels >= 0)
    assert purity(result, branch) > 0.9 and inside[branch < 4].mean() > 0.95
    assert len(set(result.labels[inside & hidden])) == 4


def test_rows_of_one_text_take_the_label_of_most_and_say_so(toy, fit):
    texts, vectors, _ = toy
    rows = [*texts, texts[0], texts[0], texts[1], texts[2]]
    given = np.vstack([vectors, vectors[[0, 0, 1, 2]]])
    labels = ["fruit", "fruit", None, *(["other"] * 132), "odd", "odd", "odd", "fruit"]
    result = fit((rows, given), PartialLabels(labels))
    names = np.array([*result.constraints.names, "none"])[
        result.by_row(result.constraints.groups, -1)
    ]
    # Two rows of three; a tie, of which the lowest is taken; one known of two.
    assert names[[0, 1, 2]].tolist() == ["odd", "fruit", "fruit"]
    notes = {d.name: d.value for d in result.decisions}
    assert notes["conflicting_labels"] == 2 and notes["shared_labels"] == 1


@pytest.mark.parametrize(
    ("given_labels", "classes", "codes"),
    [
        (["b", None, "a", "", " b "], ("a", "b"), [1, -1, 0, -1, 1]),
        ([2, -1, 0, 2], (0, 2), [1, -1, 0, 1]),
        (np.array([2.0, np.nan, 0.0]), (0, 2), [1, -1, 0]),
        (pd.Series([1, None, 3], dtype="Int64"), (1, 3), [0, -1, 1]),
        (pd.Series(["x", "y", None], dtype="category"), ("x", "y"), [0, 1, -1]),
        (pd.Series(["x", pd.NA]), ("x",), [0, -1]),
        ((np.int8(3), np.float32(-1)), (3,), [0, -1]),
    ],
)
def test_labels_are_read_as_people_have_them(given_labels, classes, codes):
    read = PartialLabels(given_labels)
    assert read.classes == classes and read.codes.tolist() == codes


@pytest.mark.parametrize("labels", [[1, -2], [0.5, 1]])
def test_what_are_no_labels_is_refused(labels):
    with refuses("labels"):
        PartialLabels(labels)


def test_labels_must_fit_the_rows(toy, fit):
    for labels in (["a", "b"], [None] * 135):
        with refuses("labels"):
            fit(toy, PartialLabels(labels))


def test_a_reducer_of_ones_own_is_told_the_groups(toy, fit):
    from sklearn.decomposition import PCA

    class Told(PCA):
        seen: tuple = ()

        def fit_transform(self, X, y=None):
            Told.seen = y
            return super().fit_transform(X)

    labels = np.where(np.arange(135) % 2, toy[2], -1)
    result = fit(toy, PartialLabels(labels), reducer=Told(4, random_state=0))
    np.testing.assert_array_equal(Told.seen, result.constraints.groups)
    assert fit(toy, reducer=Told(4, random_state=0)).constraints is None and Told.seen is None


def test_labels_given_to_fit_are_not_used_and_that_is_said(toy):
    texts, vectors, themes = toy
    model = et.TopicModel(languages=["en"])
    plain = model.fit(texts, embeddings=vectors).result_
    told = model.fit(texts, themes, embeddings=vectors).result_
    np.testing.assert_array_equal(told.labels, plain.labels)
    assert [d.name for d in told.decisions if d not in plain.decisions] == ["y"]
    model.fit_predict(texts, themes, embeddings=vectors)
    assert any(d.name == "y" for d in model.result_.decisions)
    assert not any(d.name == "y" for d in plain.decisions)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(0, 5), st.integers(0, 5), st.integers(0, 25))
def test_a_topic_is_of_the_class_that_most_rows_have(data, n_topics, n_classes, n):
    def draw(least, most):
        return np.array(data.draw(st.lists(st.integers(least, most), min_size=n, max_size=n)), int)

    labels, classes, weights = draw(-1, n_topics - 1), draw(-1, n_classes - 1), draw(1, 3)
    found = owners(labels, classes, weights, n_topics, n_classes)
    for topic in range(n_topics):
        n_rows = [weights[(labels == topic) & (classes == c)].sum() for c in range(n_classes)]
        assert found[topic] == (np.argmax(n_rows) if sum(n_rows) else -1)
    assert found.dtype == np.int32 and len(found) == n_topics
    # As many topics and classes as there may be texts: a table of them would not fit into memory.
    many = owners(labels, classes, weights, 2**20, 2**20)
    np.testing.assert_array_equal(many[:n_topics], found)


@pytest.fixture(scope="module")
def by_hand():
    return np.random.default_rng(2).choice(["b", "a", "c", ""], 135, p=[0.5, 0.2, 0.2, 0.1])


def test_the_topics_are_exactly_the_labels(toy, by_hand, fit):
    never = SimpleNamespace(fit_predict=raising(AssertionError("nothing is to be clustered")))
    result = fit(toy, ManualLabels(by_hand), clusterer=never)
    names = np.array([*(topic.name for topic in result.topics), ""])
    np.testing.assert_array_equal(names[result.labels], by_hand)
    assert all(topic.is_named and not topic.is_seeded for topic in result.topics)
    assert [topic.size for topic in result.topics] == sorted(
        ((by_hand == name).sum() for name in "abc"), reverse=True
    )
    assert (result.reasons[by_hand == ""] == Reason.NOT_LABELED).all()
    assert all(topic.keywords for topic in result.topics)
    note = next(d for d in result.decisions if d.name == "manual_labels")
    assert note.value == [f"{topic.name} -> {topic.topic_id}" for topic in result.topics]


def test_integers_are_numbered_by_size_and_named_by_their_words(toy, fit):
    labels = np.where(toy[2] == 0, 7, np.where(toy[2] == 1, 0, -1))
    result = fit(toy, ManualLabels(labels))
    expected = np.where(labels == 7, 0, np.where(labels == 0, 1, -1))
    np.testing.assert_array_equal(result.labels, expected)
    assert not any(topic.is_named for topic in result.topics)
    assert next(d for d in result.decisions if d.name == "manual_labels").value == [
        "7 -> 0", "0 -> 1",
    ]  # fmt: skip


def test_a_text_that_is_like_no_other_keeps_its_label(toy, fit):
    vectors = np.eye(12)
    texts = [f"word{i} alone" for i in range(12)]
    labels = ["x"] * 6 + ["y"] * 5 + [None]
    result = fit((texts, vectors), ManualLabels(labels))
    assert result.labels.tolist() == [0] * 6 + [1] * 5 + [-1]
    result = fit(toy, ManualLabels([None] * 134 + ["alone"]))
    assert result.n_topics == 1 and result.labels.tolist() == [-1] * 134 + [0]


def test_other_resolutions_and_replicates_are_refused(toy, by_hand, fit):
    result = fit(toy, ManualLabels(by_hand))
    with refuses("result"):
        recluster(result)
    with refuses("result"):
        with_stability(result, 2)


@pytest.mark.parametrize(
    "parameters",
    [{"n_topics": 2}, {"n_topics": 9}, {"n_topics": "fine"}, {"min_cluster_size": 5},
     {"coverage": 0.5}],
)  # fmt: skip
def test_what_would_be_ignored_is_refused(toy, by_hand, fit, parameters):
    with refuses("n_topics"):
        fit(toy, ManualLabels(by_hand), **parameters)
    assert fit(toy, ManualLabels(by_hand), n_topics=3).n_topics == 3


@pytest.mark.parametrize("kind", [PartialLabels, ManualLabels])
def test_blank_labels_and_spellings_of_one_label(kind):
    labels = kind(["no", "n/a", " ", "Orle\u0301ans", "Orléans", None, "\u00a0"])

    assert labels.classes == ("Orléans", "no")
    assert labels.codes.tolist() == [1, -1, -1, 0, 0, -1, -1]


@pytest.mark.parametrize(
    ("labels", "row"), [(["a", 1], 1), ([None, 3, "b"], 2), ([0, float("inf")], 1), ([0, [1]], 1)]
)
def test_labels_of_two_types_or_none_are_refused(labels, row):
    with refuses("labels", row=row):
        PartialLabels(labels)
