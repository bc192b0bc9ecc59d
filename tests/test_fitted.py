"""A fitted model is taken wherever a result is, and other objects are told what to call."""

from pathlib import Path

import pytest
from sklearn.exceptions import NotFittedError

import embedtopics as et
from embedtopics._utils.fitted import result_of
from embedtopics.errors import InputError


@pytest.fixture(scope="module")
def model(toy):
    texts, vectors, _ = toy
    return et.TopicModel(n_topics=3, languages=["en"]).fit(texts, embeddings=vectors)


def test_a_result_and_its_model_are_the_same(model):
    assert result_of(model) is model.result_
    assert result_of(model.result_) is model.result_


def test_an_unfitted_model_is_told_to_fit():
    with pytest.raises(NotFittedError, match=r"this TopicModel is not fitted yet; call fit\(texts"):
        result_of(et.TopicModel())


def test_what_is_no_result_is_told_what_to_call(model):
    new_text, new_vector = ["An apple a day."], model.result_.embeddings[:1]
    extension = et.topics.extend(model.result_, new_text, embeddings=new_vector)
    remedies = {
        "load it: et.TopicResult.load('study')": [Path("study"), "study"],
        "pass the result of the Extension, its attribute result": [extension],
        "fit a model: TopicModel().fit(texts)": [et.TopicModel],
        "": [None, ["a text"], 3],
    }

    for remedy, values in remedies.items():
        for value in values:
            with pytest.raises(InputError) as error:
                result_of(value, "first")
            assert error.value.parameter == "first"
            assert error.value.remedy == remedy
