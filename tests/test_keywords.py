"""Keywords and names of other libraries: the error says what to pass or call instead."""

import inspect

import pytest
from sklearn.base import clone

import embedtopics as et
from embedtopics._utils.habits import NAMES, hint_of_name
from embedtopics._utils.keywords import KEYWORDS, names_keywords

FUNCTIONS = {
    "TopicModel": et.TopicModel,
    "SentenceEncoder": et.SentenceEncoder,
    "TextClassifier": et.TextClassifier,
    "Corpus": et.Corpus,
    "SearchIndex.build": et.SearchIndex.build,
    "SearchIndex.add": et.SearchIndex.add,
    "SearchIndex.search": et.SearchIndex.search,
    "BaseEncoder.encode": et.SentenceEncoder.encode,
    "BaseEncoder.fit": et.SentenceEncoder.fit,
}


def test_each_function_with_hints_is_known():
    assert FUNCTIONS.keys() == KEYWORDS.keys()


@pytest.mark.parametrize("name", KEYWORDS)
def test_no_hint_stands_for_a_keyword_that_there_is(name):
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    assert not KEYWORDS[name].keys() & parameters.keys()


@pytest.mark.parametrize("name", ["TopicModel", "SentenceEncoder", "TextClassifier", "Corpus"])
def test_a_foreign_keyword_is_answered_by_its_hint(name):
    first = ["a text"] if name == "Corpus" else "tfidf"
    for keyword, hint in KEYWORDS[name].items():
        with pytest.raises(TypeError) as error:
            FUNCTIONS[name](first, **{keyword: "value"})
        assert f"unexpected keyword argument '{keyword}'; {hint}" in str(error.value)


def test_foreign_keywords_of_methods_are_answered():
    index = et.SearchIndex.build(["the cat sat", "a dog ran"], encoder=None)

    with pytest.raises(TypeError, match="'top_k'; pass k="):
        index.search("cat", top_k=1)
    with pytest.raises(TypeError, match="'text_column'; pass text="):
        et.SearchIndex.build(["a text"], text_column="body")
    with pytest.raises(TypeError, match=r"'output_hidden_states'; call et\.probing"):
        et.encoders.TfidfEncoder().encode(["a text"], output_hidden_states=True)
    with pytest.raises(TypeError, match=r"'epochs'; call et\.training\.fit"):
        et.SentenceEncoder().fit([("a", "b")], epochs=1)


def test_a_misspelt_keyword_is_answered_by_the_nearest_and_others_by_all():
    with pytest.raises(TypeError, match="'clusterr'; did you mean clusterer"):
        et.TopicModel(clusterr="kmeans")
    with pytest.raises(TypeError, match="'zzz'; it takes encoder, n_topics, "):
        et.TopicModel(zzz=1)


def test_a_type_error_from_inside_stays_as_it_is():
    @names_keywords
    def add(first, second):
        return first + second

    assert add(1, 2) == 3
    with pytest.raises(TypeError) as error:
        add(1, "2")
    assert "takes" not in str(error.value)


def test_signatures_and_clones_are_those_of_the_constructor():
    model = et.TopicModel("tfidf", n_topics=3)

    assert clone(model).get_params() == model.get_params()
    assert list(inspect.signature(et.TopicModel).parameters)[:2] == ["encoder", "n_topics"]


def test_vectors_of_new_texts_may_be_the_second_argument(toy):
    texts, vectors, _ = toy
    model = et.TopicModel(n_topics=3, languages=["en"]).fit(texts, embeddings=vectors)

    assert (model.predict(texts, vectors) == model.labels_).all()
    assert (model.transform(texts, vectors) != model.transform(texts)).nnz == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_another_library_is_answered_in_every_namespace(name):
    places = [one for one in dir(et) if hasattr(getattr(et, one), "__path__")]
    assert not [place for place in places if name in getattr(et, place).__all__]

    for place in ("topics", "training", "evaluation"):
        with pytest.raises(AttributeError) as error:
            getattr(getattr(et, place), name)
        assert str(error.value).endswith(NAMES[name])


def test_a_name_of_another_namespace_or_nearly_one_of_this_is_answered():
    assert hint_of_name("embedtopics.topics", "coherence") == "it is et.evaluation.coherence"
    assert hint_of_name("embedtopics.topics", "recluser") == "did you mean et.topics.recluster?"
    assert hint_of_name("embedtopics.plots", "barchart") == "call et.plots.terms(model)"
    assert hint_of_name("embedtopics.topics", "zzz") == ""


def test_a_former_constructor_is_answered_by_the_class():
    with pytest.raises(AttributeError, match=r"'from_file'; call et.Corpus\("):
        et.Corpus.from_file("articles.csv")
    with pytest.raises(AttributeError, match=r"'merge_models'; call et\.topics\.extend"):
        et.TopicModel.merge_models([])
    with pytest.raises(AttributeError, match=r"type object 'Corpus' has no attribute 'zzz'$"):
        et.Corpus.zzz  # noqa: B018
