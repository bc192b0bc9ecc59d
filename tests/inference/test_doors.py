"""One door to a share: what `shares` and `regress` take, and what they say of other objects."""

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics.errors import InputError
from tests.classification.conftest import CountedWords, themed_texts


@pytest.fixture(scope="module")
def classifier():
    return et.TextClassifier(CountedWords()).fit(*themed_texts(90, noise=0.5, seed=9))


@pytest.fixture(scope="module")
def corpus():
    texts, _ = themed_texts(120, noise=0.5, seed=4)
    sides = np.where(np.arange(120) % 2, "a", "b")
    return et.Corpus(pd.DataFrame({"text": texts, "side": sides}), text="text")


@pytest.fixture(scope="module")
def measured(classifier, corpus):
    _, themes = themed_texts(120, noise=0.5, seed=4)
    gold = [theme if row % 3 == 0 else None for row, theme in enumerate(themes)]
    return et.inference.Measurement.from_classifier(classifier, corpus, gold)


def test_a_measured_classifier_has_the_numbers_of_the_former_calls(measured, classifier, corpus):
    """The expected numbers are those of `classification.prevalence` and of `measure`."""
    by_side = et.inference.shares(measured, "side").to_frame()
    without_labels = et.classification.adjusted_shares(classifier, corpus).to_frame()
    fit = et.inference.regress(measured, "class ~ side", target="fruit").to_frame()

    assert by_side["estimate"].tolist() == pytest.approx(BY_SIDE, abs=1e-6)
    assert without_labels["estimate"].tolist() == pytest.approx(WITHOUT_LABELS, abs=1e-6)
    assert without_labels["low"].tolist() == pytest.approx(LOW_WITHOUT_LABELS, abs=1e-6)
    assert fit["effect"].tolist() == pytest.approx([0.217364587919, 0.144128249171], abs=1e-6)


WITHOUT_LABELS = [0.349745916515, 0.25630369026, 0.393950393225]
LOW_WITHOUT_LABELS = [0.028651993786, 0.0, 0.130843010481]
BY_SIDE = [
    0.360614138728,
    0.275145358551,
    0.225055200973,
    0.384920750135,
    0.394896305139,
    0.334530624402,
]


def test_the_measured_variable_has_the_given_name(classifier, corpus):
    _, themes = themed_texts(120, noise=0.5, seed=4)
    theme = et.inference.Measurement.from_classifier(classifier, corpus, themes, name="theme")
    assert et.inference.regress(theme, "theme ~ side", target="fruit").classes == ("fruit",)


class Project:
    """An object that has a measurement."""

    def __init__(self, measured):
        self.measured = measured

    def measurement(self):
        return self.measured


def test_an_object_with_a_measurement_stands_for_it(measured):
    project = Project(measured)
    shares = et.inference.shares(project, "side").to_frame()
    pd.testing.assert_frame_equal(shares, et.inference.shares(measured, "side").to_frame())

    fit = et.inference.regress([project], "class ~ side", target="fruit")
    expected = et.inference.regress(measured, "class ~ side", target="fruit")
    pd.testing.assert_frame_equal(fit.to_frame(), expected.to_frame())


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (pd.DataFrame({"a": [1]}), "Measurement.from_frame(frame, gold, predictions"),
        (et.TextClassifier(), "Measurement.from_classifier(classifier, corpus, gold)"),
        (["a"], ""),
        (None, ""),
    ],
)
def test_what_has_no_measurement_is_refused_with_the_call_that_measures_it(value, remedy):
    for question in (et.inference.shares, lambda x: et.inference.regress(x, "y ~ x")):
        with pytest.raises(InputError) as refused:
            question(value)
        assert refused.value.parameter == "measurement"
        assert remedy in str(refused.value)


def test_swapped_arguments_are_named(measured, classifier, corpus):
    with pytest.raises(InputError, match=r"regress\(measurement, ") as refused:
        et.inference.regress("class ~ side", measured)
    assert refused.value.parameter == "measurement"

    with pytest.raises(InputError, match=r"from_classifier\(classifier, corpus, gold\)") as refused:
        et.inference.Measurement.from_classifier(corpus, classifier, [None])
    assert refused.value.parameter == "classifier"

    with pytest.raises(InputError, match=r"adjusted_shares\(classifier, corpus\)") as refused:
        et.classification.adjusted_shares(corpus, classifier)
    assert refused.value.parameter == "classifier"


@pytest.mark.parametrize("name", ["measure", "prevalence"])
def test_former_names_say_what_to_call(name):
    with pytest.raises(AttributeError, match=r"Measurement\.from_classifier"):
        getattr(et.classification, name)
