"""Wrong first arguments are refused by the name of the argument, with the call to make."""

import numpy as np
import pytest

import embedtopics as et
from embedtopics.encoders import CachedEncoder, RandomProjectionEncoder, StaticEncoder
from tests.factories import refuses


@pytest.fixture(scope="module")
def index():
    return et.SearchIndex.build(["Cats purr.", "Dogs bark."], encoder=None, languages=["en"])


@pytest.mark.parametrize(
    ("value", "call"),
    [
        (et.TopicModel("tfidf"), "et.SearchIndex.build(corpus).attach_topics(model)"),
        (RandomProjectionEncoder(8), "et.SearchIndex.build(corpus, encoder=encoder)"),
        (None, "et.SearchIndex.build(texts)"),
        (5, "et.SearchIndex.build(texts)"),
    ],
)
def test_what_is_no_corpus(index, value, call):
    for add in (et.SearchIndex.build, index.add):
        with refuses("corpus") as caught:
            add(value)
        assert call in str(caught.value)


def test_an_index_is_no_corpus_and_no_path(index, tmp_path):
    with refuses("corpus") as caught:
        et.SearchIndex.build(index)
    assert "index.save(folder)" in str(caught.value)

    for call in (et.SearchIndex.load, et.SearchIndex.check, index.save):
        with refuses("folder") as caught:
            call(index)
        assert "index.folder" in str(caught.value)
    with refuses("path"):
        index.export(5)
    with refuses("out"):
        et.SearchIndex.build(["a"], 5, encoder=None)


def test_an_index_is_built_or_loaded():
    with refuses("collection") as caught:
        et.SearchIndex(["a text"])
    assert "et.SearchIndex.build(corpus)" in str(caught.value)


def test_a_page_serves_an_index():
    with refuses("index") as caught:
        et.retrieval.serve("texts.index")
    assert "et.SearchIndex.load('texts.index')" in str(caught.value)


def test_topics_are_those_of_a_result_or_a_fitted_model(index):
    with refuses("result"):
        index.attach_topics(["a text"])
    with refuses("result") as caught:
        index.attach_topics("study")
    assert "et.TopicResult.load('study')" in str(caught.value)


def test_the_table_of_problems(tmp_path):
    et.SearchIndex.build(["Cats purr."], tmp_path / "index", encoder="random", show_progress=False)
    columns = ["file", "problem", "remedy"]
    intact = et.SearchIndex.check(tmp_path / "index")
    assert intact.columns.tolist() == columns
    assert not len(intact)

    path = next((tmp_path / "index").rglob("vectors.f32"))
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    (problem,) = et.SearchIndex.check(tmp_path / "index").itertuples(index=False)
    assert problem.file == str(path)
    assert "checksum" in problem.problem


@pytest.mark.parametrize("value", [5, None])
def test_what_is_no_list_of_texts(value):
    encoder = RandomProjectionEncoder(8)
    for call in (encoder.encode, encoder.encode_query, encoder.transform):
        with refuses("texts"):
            call(value)
    with refuses("texts"):
        encoder.fit_transform(value)


@pytest.mark.parametrize("name", ["similarity", "similarity_pairwise"])
def test_texts_are_no_vectors(name):
    compare = getattr(RandomProjectionEncoder(8), name)
    for first in ("a text", ["a text"], np.array(["a text"])):
        with refuses("first") as caught:
            compare(first, ["another"])
        assert "encoder.encode(texts)" in str(caught.value)


def test_encoders_name_the_call():
    with refuses("encoder") as caught:
        CachedEncoder("all-MiniLM-L6-v2")
    assert "et.SentenceEncoder('all-MiniLM-L6-v2')" in str(caught.value)
    with refuses("folder") as caught:
        StaticEncoder(5)
    assert "et.training.distill(encoder)" in str(caught.value)
