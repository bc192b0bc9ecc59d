"""Arguments of a fit that mean something else than what they are passed as."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import embedtopics as et
from embedtopics.errors import InputError

N_ROWS = 40


@pytest.fixture(scope="module")
def collection():
    """Texts of two subjects, their vectors, and their classes."""
    kinds = np.arange(N_ROWS) % 2
    words = ("apple pie", "train station")
    texts = [f"{words[kind]} {row}" for row, kind in enumerate(kinds)]
    vectors = np.eye(6)[kinds] + 0.05 * np.random.default_rng(1).normal(size=(N_ROWS, 6))
    return texts, vectors, kinds


@pytest.fixture
def model():
    return et.TopicModel("tfidf", languages=["en"], n_topics=2)


@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
def test_a_name_as_second_argument_is_refused(method, model, collection):
    frame = pd.DataFrame({"headline": collection[0], "text": "something else"})

    with pytest.raises(InputError) as refusal:
        getattr(model, method)(frame, "headline")

    assert refusal.value.parameter == "y"
    assert str(refusal.value) == (
        "y must be one label per row or None; got 'headline'; "
        'name the column of texts: et.Corpus(df, text="headline")'
    )


@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist, csr_matrix, pd.DataFrame])
@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
def test_vectors_as_second_argument_are_refused(method, form, model, collection):
    texts, vectors, _ = collection

    with pytest.raises(InputError) as refusal:
        getattr(model, method)(texts, form(vectors))

    assert refusal.value.parameter == "y"
    assert str(refusal.value) == (
        f"y must be one label per row or None; got an array of shape {np.shape(vectors)}; "
        "pass the vectors as embeddings="
    )


@pytest.mark.parametrize("y", [["headline", "body"], 3, True, object(), {}, []])
def test_a_second_argument_that_is_no_label_for_each_row_is_refused(y, model, collection):
    with pytest.raises(InputError) as refusal:
        model.fit(collection[0], y)

    assert refusal.value.parameter == "y"


def test_the_labels_of_a_pipeline_reach_its_classifier(model, collection):
    texts, _, kinds = collection
    pipeline = make_pipeline(model, DummyClassifier()).fit(texts, kinds)

    assert pipeline[-1].classes_.tolist() == [0, 1]
    assert [note.name for note in pipeline[0].result_.decisions].count("y") == 1


@pytest.fixture
def fitted(model, collection):
    return model.fit(collection[0])


def test_a_model_of_an_edited_result_keeps_its_names(fitted, collection, tmp_path):
    named = et.topics.rename(fitted.result_, {0: "Orchard"})
    model = et.TopicModel.from_result(named)
    model.save(tmp_path / "named")
    loaded = et.TopicModel.load(tmp_path / "named")

    assert model.result_ is named and model.n_topics == 2
    assert loaded.result_.topics[0].name == "Orchard"
    assert loaded.get_feature_names_out()[0] == "Orchard"
    np.testing.assert_array_equal(model.predict(collection[0]), fitted.labels_)


def test_a_model_says_that_it_saves_no_edits(fitted, tmp_path):
    et.topics.recluster(fitted.result_, 2)  # no edit
    fitted.save(tmp_path / "first")
    et.topics.rename(fitted.result_, {0: "Orchard"})

    with pytest.warns(UserWarning, match=r"edited\.save\(folder\)"):
        fitted.save(tmp_path / "second")
    et.TopicModel.from_result(fitted.result_).save(tmp_path / "chosen")  # says nothing
    loaded = et.TopicModel.load(tmp_path / "first")
    et.topics.rename(loaded.result_, {0: "Orchard"})
    with pytest.warns(UserWarning, match=r"edited\.save\(folder\)"):
        loaded.save(tmp_path / "third")


def test_a_model_is_made_of_a_fitted_model_too(fitted):
    assert et.TopicModel.from_result(fitted).result_ is fitted.result_
    with pytest.raises(NotFittedError):
        et.TopicModel.from_result(et.TopicModel())


@pytest.mark.parametrize("value", [None, "study"])
def test_a_model_is_made_of_a_result_only(value):
    with pytest.raises(InputError) as refusal:
        et.TopicModel.from_result(value)

    assert refusal.value.parameter == "result"


WRONG = {
    "term": lambda result: et.topics.concordance(result, 5),
    "query": lambda result: et.topics.find(result, ["apple", None]),
    "rows": lambda result: et.topics.mixtures(result, rows=[0, "a"]),
    "row": lambda result: et.topics.mixture(result, None),
    "history": lambda result: et.topics.replay(result, ["merge"]),
    "n_resamples": lambda result: et.topics.evaluate(result, n_resamples=-3),
    "scores": lambda result: et.topics.table(result, scores=["intruders"]),
    "n_examples": lambda result: et.topics.table(result, n_examples=1.5),
    "n_terms": lambda result: et.topics.terms(result, n_terms=None),
    "weighting": lambda result: et.topics.update_terms(result, weighting="bm25"),
    "min_df": lambda result: et.topics.update_terms(result, min_df="two"),
    "extra_stop_words": lambda result: et.topics.update_terms(result, extra_stop_words=[1]),
    "keywords": lambda result: et.topics.with_keywords(result, {0: "apple"}),
}


@pytest.mark.parametrize("parameter", WRONG)
def test_an_argument_of_a_wrong_type_is_refused_by_its_name(parameter, fitted):
    with pytest.raises(InputError) as refusal:
        WRONG[parameter](fitted.result_)

    assert refusal.value.parameter == parameter


@pytest.mark.parametrize(
    "ask", [et.topics.terms, et.plots.map, lambda model: et.topics.remove(model, 0).history]
)
def test_a_fitted_model_stands_for_its_result(ask, fitted):
    assert str(ask(fitted)) == str(ask(fitted.result_))
    with pytest.raises(NotFittedError):
        ask(et.TopicModel())


def test_a_model_does_not_have_the_attributes_of_its_result(fitted):
    with pytest.raises(AttributeError, match=r"it is model\.result_\.topics$"):
        fitted.topics  # noqa: B018
    assert not hasattr(fitted, "topics") and not hasattr(fitted, "nothing")
