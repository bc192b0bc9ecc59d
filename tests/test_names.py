"""Names of other libraries on our classes: the error says what is meant, and ours are untouched."""

import copy
import pickle

import pytest
from sklearn.exceptions import NotFittedError

import embedtopics as et
from embedtopics._utils.names import ARGUMENTS, OF_A_RESULT
from tests.coming_from_bertopic.table import method_of, rows
from tests.factories import each, make_result, refuses


class Counting(et.TfidfEncoder):
    """An encoder that somebody wrote."""


@pytest.mark.parametrize("owner", [et.TopicModel("tfidf"), make_result(60, 2), et.topics])
@pytest.mark.parametrize("name", ["get_topic_info", "visualize_topics", "c_tf_idf_"])
def test_names_of_bertopic_say_what_to_use(owner, name):
    with pytest.raises(AttributeError, match=name) as caught:
        getattr(owner, name)
    assert OF_A_RESULT[name] in str(caught.value) and not hasattr(owner, name)


def test_hints_are_those_of_the_documentation():
    ours = {method_of(theirs): code for theirs, code in rows()}
    missing = [name for name in ours if "_" in name and name in dir(et.TopicModel)]
    assert set(missing) <= {"fit_transform", "get_params", "push_to_hub"}
    for name, code in ours.items():
        if code.startswith(("et.topics.", "et.plots.")) and name in OF_A_RESULT:
            assert code.split("(")[0] in OF_A_RESULT[name], name


@pytest.mark.parametrize(
    ("owner", "name", "meant"),
    [
        (et.TfidfEncoder(), "get_sentence_embedding_dimension", "encoder.dimensions"),
        (Counting(), "max_seq_length", "encoder.max_length"),
        (et, "SentenceTransformer", "et.SentenceEncoder"),
        (et.TopicModel(), "nonsense", "'nonsense'"),
    ],
)
def test_names_of_others_say_what_to_use(owner, name, meant):
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    assert meant in str(caught.value)


def test_what_a_property_raises_stays_what_it_is():
    with pytest.raises(NotFittedError):
        _ = et.TopicModel().labels_
    result = make_result(60, 2)
    assert copy.copy(result).n_topics == pickle.loads(pickle.dumps(result)).n_topics == 2


@pytest.mark.parametrize(("name", "value"), each(nr_topics=[20], embedding_model=["tfidf"],
    min_topic_size=[5], calculate_probabilities=[True], umap_model=[None]))  # fmt: skip
def test_arguments_of_bertopic_say_what_is_meant(name, value):
    with refuses(name) as caught:
        et.TopicModel(**{name: value})
    assert ARGUMENTS[name] in str(caught.value)


def test_arguments_of_sentence_transformers_say_what_is_meant():
    with refuses("convert_to_numpy"):
        et.TfidfEncoder().encode(["a text"], convert_to_numpy=True)
    with refuses("truncate_dim"):
        et.SentenceEncoder(truncate_dim=128)
    with pytest.raises(TypeError, match="nonsense"):
        et.TopicModel(nonsense=1)
