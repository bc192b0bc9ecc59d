"""Saved classifiers whose JSON or arrays have another form are refused, whatever checksum fits."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import embedtopics as et
from embedtopics import SentenceEncoder
from embedtopics._utils.folders import write_manifest
from embedtopics.classification._words import TokenClassifier
from embedtopics.errors import CorruptFileError, EmbedTopicsError
from tests.encoders.conftest import tiny_bert  # noqa: F401

TEXTS = [f"{word} {i}" for i in range(12) for word in ("red cat", "stone river", "blue light")]
CLASSES = ["animal", "water", "colour"] * 12


def sealed(folder):
    """Make the checksums of a changed folder fit again."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    write_manifest(folder, manifest["kind"], manifest["version"])


def change_json(folder, change):
    path = folder / "classifier.json"
    content = json.loads(path.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), "utf-8")
    sealed(folder)


def change_array(folder, name, array):
    path = folder / "arrays.safetensors"
    arrays = {**load_file(path), name: array}
    save_file({key: value for key, value in arrays.items() if value is not None}, path)
    sealed(folder)


@pytest.fixture
def folder(tmp_path):
    encoder = et.encoders.RandomProjectionEncoder(32)
    et.TextClassifier(encoder).fit(TEXTS, CLASSES).save(tmp_path / "classifier")
    return tmp_path / "classifier"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda c: c.update(classes=[]), id="no classes"),
        pytest.param(lambda c: c.update(classes="abc"), id="classes as text"),
        pytest.param(lambda c: c.update(classes=[["a"], ["b"], ["c"]]), id="lists of classes"),
        pytest.param(lambda c: c.update(classes=["a", "b"]), id="two classes"),
        pytest.param(lambda c: c.update(order={"a": 1}), id="an order as object"),
        pytest.param(lambda c: c.update(encoder="x"), id="encoder as text"),
        pytest.param(lambda c: c.update(encoder_name=None), id="no name"),
        pytest.param(lambda c: c.update(method="own"), id="unknown method"),
        pytest.param(lambda c: c.update(decisions=[{"stage": "x"}]), id="half a decision"),
        pytest.param(lambda c: c.update(decisions={}), id="decisions as object"),
        pytest.param(lambda c: c.update(test_log={"a": -1}), id="negative looks"),
        pytest.param(lambda c: c.update(test_log=[1]), id="looks as list"),
        pytest.param(lambda c: c.update(versions={"python": 3}), id="version as number"),
        pytest.param(lambda c: c.update(code="import os"), id="code"),
        pytest.param(lambda c: c.pop("parameters"), id="no parameters"),
        pytest.param(lambda c: c.update(parameters=[]), id="parameters as list"),
        pytest.param(lambda c: c["parameters"].update(head="own"), id="unknown head"),
        pytest.param(lambda c: c["parameters"].update(head="ordinal"), id="another head"),
        pytest.param(lambda c: c["parameters"].update(pairs="yes"), id="pairs as text"),
        pytest.param(lambda c: c["parameters"].update(random_state=1.5), id="half a seed"),
        pytest.param(lambda c: c["parameters"].update(training=[1]), id="training as list"),
        pytest.param(lambda c: c["parameters"].update(encoder="x"), id="an encoder"),
    ],
)
def test_json_of_another_form_is_refused(folder, change):
    change_json(folder, change)
    with pytest.raises(CorruptFileError):
        et.TextClassifier.load(folder)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("weights", None),
        ("weights", np.full((3, 32), np.nan)),
        ("weights", np.ones(3)),
        ("weights", np.ones((3, 32), dtype=np.int64)),
        ("bias", np.ones(4)),
        ("bias", np.full(3, np.inf)),
        ("temperature", np.array([0.0])),
        ("temperature", np.array([-1.0])),
        ("temperature", np.array([np.nan])),
        ("temperature", np.ones(0)),
        ("left_out_scores_", np.ones(5)),
        ("left_out_scores_", np.ones((5, 7))),
        ("left_out_codes_", np.full(36, 3)),
        ("left_out_codes_", np.full(36, -1)),
        ("left_out_codes_", np.zeros(5, dtype=np.int64)),
        ("left_out_codes_", np.zeros(36)),
        ("training_keys_", np.zeros(5)),
        ("training_keys_", np.zeros((5, 3), dtype=np.uint64)),
    ],
)
def test_arrays_of_another_form_are_refused(folder, name, array):
    change_array(folder, name, array)
    with pytest.raises(CorruptFileError):
        et.TextClassifier.load(folder)


def test_weights_of_another_width_are_refused(folder):
    change_array(folder, "weights", np.ones((3, 5)))
    with pytest.raises(EmbedTopicsError):
        et.TextClassifier.load(folder).predict(TEXTS[:2])


@pytest.fixture(scope="module")
def tagger(tiny_bert):  # noqa: F811
    words = [text.split() for text in TEXTS]
    tags = [[label] * len(row) for label, row in zip(CLASSES, words, strict=True)]
    training = {"max_steps": 2}
    frozen = TokenClassifier(SentenceEncoder(tiny_bert)).fit(words, tags)
    tuned = TokenClassifier(tiny_bert, method="fine_tune", settings=training).fit(words, tags)
    return {"frozen": frozen, "fine_tune": tuned}


@pytest.mark.parametrize("method", ["frozen", "fine_tune"])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda c: c.update(method="auto"), id="unknown method"),
        pytest.param(lambda c: c.update(classes=["a"]), id="one class"),
        pytest.param(lambda c: c.update(classes=[1, 2, 3]), id="numbers"),
        pytest.param(lambda c: c.update(classes=["a", "b"]), id="two classes"),
        pytest.param(lambda c: c.update(max_length="12"), id="length as text"),
        pytest.param(lambda c: c.update(max_length=0), id="no length"),
        pytest.param(lambda c: c.update(random_state=True), id="a seed that is true"),
        pytest.param(lambda c: c.update(trust_remote_code=True), id="code"),
        pytest.param(lambda c: c.pop("encoder"), id="no encoder"),
    ],
)
def test_a_classifier_of_words_of_another_form_is_refused(tagger, tmp_path, method, change):
    folder = tmp_path / "tagger"
    tagger[method].save(folder)
    TokenClassifier.load(folder)
    change_json(folder, change)
    with pytest.raises(CorruptFileError):
        TokenClassifier.load(folder)


def test_a_length_beyond_the_positions_is_refused(tagger, tmp_path):
    folder = tmp_path / "tagger"
    tagger["fine_tune"].save(folder)
    change_json(folder, lambda content: content.update(max_length=10**6))
    with pytest.raises(CorruptFileError, match="at most 32 tokens"):
        TokenClassifier.load(folder)


def test_a_model_that_is_a_link_out_of_the_folder_is_refused(tagger, tmp_path):
    folder = tmp_path / "tagger"
    tagger["fine_tune"].save(folder)
    (folder / "model").rename(tmp_path / "elsewhere")
    sealed(folder)
    (folder / "model").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorruptFileError, match="link"):
        TokenClassifier.load(folder)
