import numpy as np
import pytest

from embedtopics.errors import InputError
from embedtopics.topics import ManualLabels, at_resolution, stability
from embedtopics.topics.results import Reason
from tests.factories import refuses


class Never:
    """A clusterer that must not be asked."""

    def fit_predict(self, X, y=None):
        raise AssertionError("nothing is to be clustered")


@pytest.fixture(scope="module")
def given():
    return np.random.default_rng(2).choice(["b", "a", "c", ""], 135, p=[0.5, 0.2, 0.2, 0.1])


def test_the_topics_are_exactly_the_labels(toy, given, fit):
    result = fit(toy, ManualLabels(given), clusterer=Never())
    names = np.array([*(topic.label for topic in result.topics), ""])
    np.testing.assert_array_equal(names[result.labels], given)
    assert all(topic.is_named and not topic.is_seeded for topic in result.topics)
    assert [topic.size for topic in result.topics] == sorted(
        ((given == name).sum() for name in "abc"), reverse=True
    )
    assert (result.reasons[given == ""] == Reason.NOT_LABELED).all()
    assert all(topic.keywords for topic in result.topics)
    note = next(d for d in result.decisions if d.name == "manual_labels")
    assert note.value == [f"{topic.label} -> {topic.topic_id}" for topic in result.topics]


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


def test_other_resolutions_and_replicates_are_refused(toy, given, fit):
    result = fit(toy, ManualLabels(given))
    with refuses("result"):
        at_resolution(result)
    with pytest.raises(InputError):
        stability(result, 2)


@pytest.mark.parametrize(
    "parameters",
    [{"n_topics": 2}, {"n_topics": 9}, {"n_topics": "fine"}, {"min_cluster_size": 5},
     {"coverage": 0.5}],
)  # fmt: skip
def test_what_would_be_ignored_is_refused(toy, given, fit, parameters):
    with refuses("n_topics"):
        fit(toy, ManualLabels(given), **parameters)
    assert fit(toy, ManualLabels(given), n_topics=3).n_topics == 3
