"""What is no classifier, or no sheets, is told the call to make."""

import pytest

import embedtopics as et
from embedtopics.errors import InputError

LABELLED = ["a plum", "a train"], ["fruit", "rail"]


@pytest.mark.parametrize("wrong", [None, ["a text"], et.TopicModel()])
def test_what_is_no_classifier_is_named(wrong):
    calls = {
        "classify(": lambda: et.classification.classify(wrong, ["a plum"]),
        "evaluate(": lambda: et.classification.evaluate(wrong, LABELLED, LABELLED),
        "suspicious_labels(": lambda: et.classification.suspicious_labels(wrong, *LABELLED),
    }

    for name, call in calls.items():
        with pytest.raises(InputError) as error:
            call()
        assert error.value.parameter == "classifier"
        assert f"call et.classification.{name}" in error.value.remedy


@pytest.mark.parametrize("wrong", [None, et.TopicModel(), ["a question"]])
def test_what_is_no_sheet_is_named(wrong, tmp_path):
    with pytest.raises(InputError) as error:
        et.annotation.ask(wrong, tmp_path / "answers")

    assert error.value.parameter == "sheets"
    assert error.value.remedy.startswith("call et.annotation.ask(et.annotation.validation_sheets")
    assert not (tmp_path / "answers").exists()
