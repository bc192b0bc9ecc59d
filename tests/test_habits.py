"""What other libraries taught users to ask for raises an error that names the call to make."""

import copy
import inspect
import pickle
import re

import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import embedtopics as et
from embedtopics._utils.habits import HINTS


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """One object of each kind, and what the calls in the hints need beside it."""
    corpus = et.Corpus("embedtopics:demo", limit=200)
    model = et.TopicModel("tfidf").fit(corpus)
    texts = list(corpus.texts[:20])
    encoder = et.SentenceEncoder()
    return {
        "et": et,
        "pd": pd,
        "model": model,
        "result": model.result_,
        "corpus": corpus,
        "encoder": encoder,
        "index": et.SearchIndex.build(texts, tmp_path_factory.mktemp("of") / "texts.index"),
        "texts": texts,
        "first": encoder.encode(texts[:2]),
        "second": encoder.encode(texts[:2]),
        "mask": corpus.status == 0,
        "ids": [],
        "formula": "source",
        "query": model.result_.topics[0].keywords[0],
        "term": "river",
        "examples": [(texts[0], texts[1])],
    }


@pytest.mark.parametrize("kind", HINTS)
def test_no_hint_is_about_an_attribute_that_is_there(objects, kind):
    present = [name for name in HINTS[kind] if hasattr(objects[kind], name)]
    assert not present


def test_the_error_names_the_call():
    with pytest.raises(AttributeError) as raised:
        et.TopicModel().get_topic_info()
    message = "TopicModel has no attribute 'get_topic_info'; call et.topics.table(model)"
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("kind", "name", "call"),
    [
        ("model", "over_time", "et.topics.over_time(model)"),
        ("model", "find", "et.topics.find(model, query)"),
        ("model", "documents", "et.topics.documents(model)"),
        ("result", "by_group", "et.topics.by_group(result)"),
        ("result", "sizes", "et.plots.sizes(result)"),
        ("result", "forest", "et.plots.forest(et.topics.effects(result, formula))"),
        ("corpus", "over_time", "et.topics.over_time(et.TopicModel().fit(corpus))"),
        ("corpus", "groupby", "corpus.to_frame().groupby"),
        ("model", "topics", "model.result_.topics"),
    ],
)
def test_questions_and_figures_are_named_with_the_object_as_their_argument(
    objects, kind, name, call
):
    with pytest.raises(AttributeError) as raised:
        getattr(objects[kind], name)
    assert str(raised.value).split("; ")[1] in (f"call {call}", f"it is {call}")


def test_an_edit_is_said_to_return_a_new_result(objects):
    for kind in ("model", "result"):
        with pytest.raises(AttributeError, match=f"a new result; the {kind} does not change"):
            objects[kind].split  # noqa: B018
        with pytest.raises(AttributeError, match=f"a new result; the {kind} does not change"):
            objects[kind].merge_topics  # noqa: B018


@pytest.mark.parametrize("kind", HINTS)
def test_other_names_raise_what_python_raises(objects, kind):
    value = objects[kind]
    with pytest.raises(AttributeError) as raised:
        value.nothing  # noqa: B018
    assert str(raised.value) == f"'{type(value).__name__}' object has no attribute 'nothing'"
    assert raised.value.name == "nothing" and raised.value.obj is value
    assert not hasattr(value, "__nothing__") and not hasattr(value, "_nothing")


@pytest.mark.parametrize("name", ["labels_", "result_", "topics_", "any_"])
def test_an_estimator_that_is_not_fitted_says_so(name):
    for estimator in (et.TopicModel(), et.encoders.TfidfEncoder()):
        if name == "labels_" and not isinstance(estimator, et.TopicModel):
            continue
        with pytest.raises(NotFittedError, match="is not fitted yet; call fit"):
            getattr(estimator, name)
    with pytest.raises(NotFittedError):
        check_is_fitted(et.TopicModel())


def test_objects_are_copied_and_pickled_as_before(objects):
    model, corpus, result = objects["model"], objects["corpus"], objects["result"]
    check_is_fitted(model)
    for duplicate in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert (duplicate.labels_ == model.labels_).all()
    assert pickle.loads(pickle.dumps(corpus)).ids == corpus.ids
    assert copy.copy(result).labels.tolist() == result.labels.tolist()
    assert clone(model).get_params() == model.get_params()


def test_an_error_inside_a_property_is_not_hidden():
    class Broken(et.TopicModel):
        @property
        def share(self):
            return self.result_of_nothing

    with pytest.raises(AttributeError, match="'result_of_nothing'"):
        Broken().share  # noqa: B018


EXPENSIVE = re.compile(r"^((?:et\.(?:training|batch|comparison)\.\w+)|encoder\.to)\(")
"""Calls that are bound to the signature instead of being run."""


@pytest.mark.filterwarnings("ignore:the model saves the result of its fit")
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in HINTS for name in HINTS[kind]])
def test_the_code_of_each_hint_runs_as_it_is_written(objects, kind, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = re.match(r"(?:call|it is) (.+?)(?:; |$)", HINTS[kind][name])[1]
    if EXPENSIVE.match(code):
        code = EXPENSIVE.sub(r"signature(\1).bind(", code)
    names = dict(objects, signature=inspect.signature)
    if kind == "index":
        data = objects["corpus" if name == "topics" else "texts"]
        names["index"] = et.SearchIndex.build(data, tmp_path / "copy.index")
        names["texts"] = ["Another text."]
    if "load" in name:
        objects["encoder"].save(tmp_path / "folder")
    eval(code, names)
