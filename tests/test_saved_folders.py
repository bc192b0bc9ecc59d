"""What version 0.1.0 saved is read as it was: models, indexes, states, encoders, reports."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import embedtopics as et
from embedtopics.topics.editing._labels import read_labels

SAVED = Path(__file__).parent / "data" / "saved"
EXPECTED = json.loads((SAVED / "expected.json").read_text("utf-8"))


@pytest.fixture
def copy_of(tmp_path):
    """Copy a saved folder: what is opened may be written to."""
    return lambda name: Path(shutil.copytree(SAVED / name, tmp_path / name))


def check_result(result, expected):
    assert result.labels.tolist() == expected["labels"]
    found = [[t.label, t.size, list(t.keywords)] for t in result.topics]
    assert found == expected["topics"]
    assert [[d.stage, d.name] for d in result.decisions] == expected["decisions"]
    assert [edit.name for edit in result.history] == expected["edits"]
    np.testing.assert_allclose(result.map, expected["map"], atol=1e-5)


def test_a_model_answers_as_it_did(copy_of):
    expected = EXPECTED["model"]
    model = et.TopicModel.load(copy_of("model"))
    check_result(model.result_, expected)
    assert model.predict(expected["new_texts"]).tolist() == expected["predicted"]
    shares = model.transform(expected["new_texts"]).toarray()
    np.testing.assert_allclose(shares, expected["shares"], atol=1e-5)
    known = model.predict(model.result_.corpus)
    assert known.tolist() == expected["labels"]


def test_a_result_that_was_edited_answers_as_it_did(copy_of):
    expected = EXPECTED["result"]
    result = et.topics.load_result(copy_of("result"))
    check_result(result, expected)
    texts = [f"new {i}" for i in range(len(expected["vectors"]))]
    found = et.topics.assign(result, texts, embeddings=expected["vectors"])
    assert found.labels.tolist() == expected["predicted"]
    assert et.topics.at_resolution(result, 3).n_topics == 3
    assert result.stability.n_replicates == 2
    np.testing.assert_allclose(result.stability.recurrence, expected["recurrence"], atol=1e-6)


def test_names_of_topics_are_read():
    result = et.topics.load_result(SAVED / "result")
    found = read_labels(SAVED / "labels.csv", result)
    assert {str(topic): name for topic, name in found.items()} == EXPECTED["result"]["names"]


def test_answers_on_a_sheet_are_scored():
    sheets = SAVED / "sheets"
    score = et.evaluation.score_intrusion(
        sheets / "word_intrusion.csv", sheets / "keys" / "word_intrusion.csv"
    )
    assert score.precision == pytest.approx(EXPECTED["sheets"]["precision"])


def check_hits(hits, expected):
    for found, wanted in zip(hits.hits, expected, strict=True):
        assert [[hit.id, hit.topic] for hit in found] == [[id, topic] for id, _, topic in wanted]
        scores = [score for _, score, _ in wanted]
        np.testing.assert_allclose([hit.score for hit in found], scores, atol=1e-5)


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
def test_an_index_finds_what_it_found(copy_of, mode):
    expected = EXPECTED["index"]
    index = et.SearchIndex.load(copy_of("index"), verify=True)
    assert len(index) == expected["n"]
    queries = expected["queries"]
    check_hits(index.search(queries, 5, mode), expected[mode]["all"])
    check_hits(index.search(queries, 5, mode, expected["where"]), expected[mode]["some"])


def test_an_index_goes_on_growing(copy_of):
    folder = copy_of("index")
    et.SearchIndex.load(folder).add(["Plum and cherry blossom in the orchard."])
    index = et.SearchIndex.load(folder)
    assert len(index) == EXPECTED["index"]["n"] + 1
    (found,) = index.search("plum and cherry blossom in the orchard", 1).hits
    assert found[0].text.startswith("Plum and cherry")
    index.compact()
    assert len(et.SearchIndex.load(folder, verify=True)) == EXPECTED["index"]["n"] + 1


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_an_index_with_a_graph_or_codes_finds_what_it_found(copy_of, kind):
    expected = EXPECTED[f"index-{kind}"]
    index = et.SearchIndex.load(copy_of(f"index-{kind}"), verify=True)
    vectors = np.array(expected["vectors"], dtype=np.float32)
    check_hits(index.search(["a", "b", "c"], 5, "dense", vectors=vectors), expected["hits"])


@pytest.mark.parametrize("name", ["states-words", "states-tokens"])
def test_hidden_states_are_as_they_were(copy_of, name):
    expected = EXPECTED[name]
    states = et.probing.open_states(copy_of(name))
    assert list(states.texts) == expected["texts"] and list(states.words) == expected["words"]
    assert list(states.layers) == expected["layers"]
    for array in ("of_text", "spans", "missing"):
        assert getattr(states, array).tolist() == expected[array]
    for layer, vectors in zip(states.layers, expected["vectors"], strict=True):
        np.testing.assert_allclose(states.layer(layer).astype(float), vectors, atol=1e-6)


@pytest.mark.parametrize("name", ["static", "student"])
def test_a_static_encoder_encodes_as_it_did(copy_of, name):
    encoder = et.StaticEncoder(copy_of(name))
    vectors = encoder.encode(EXPECTED[name]["texts"])
    np.testing.assert_allclose(vectors, EXPECTED[name]["vectors"], atol=1e-6)


def test_the_report_of_a_student_is_read(copy_of):
    report = et.training.read_report(copy_of("student"))
    assert report.best_step == EXPECTED["student"]["best_step"]
    assert report.diagnosis.verdict and report.advice


def test_the_report_of_a_training_run_is_read(copy_of):
    expected = EXPECTED["tuned"]
    report = et.training.read_report(copy_of("tuned"))
    assert report.best_step == expected["best_step"]
    assert report.diagnosis.verdict == expected["verdict"]
    assert report.curves.training_loss.tolist() == expected["training_loss"]
    found = [[c.task, c.metric, c.before, c.after] for c in report.before_after]
    assert found == expected["before_after"]


def test_a_tuned_encoder_encodes_as_it_did(copy_of):
    encoder = et.SentenceEncoder(copy_of("tuned"), runtime="torch")
    vectors = encoder.encode(EXPECTED["tuned"]["texts"])
    np.testing.assert_allclose(vectors, EXPECTED["tuned"]["vectors"], atol=1e-5)
