"""What a saved folder records of an encoder is data: no code, no network, no more than is named."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import embedtopics as et
from embedtopics._utils.folders import write_manifest
from embedtopics.classification._words import TokenClassifier
from embedtopics.encoders._registry import encoder_from_settings, recorded_encoder
from embedtopics.errors import EmbedTopicsError
from embedtopics.topics import with_name_scores
from embedtopics.topics._storage import KIND
from tests.factories import refuses

TEXTS = [f"{word} {i}" for i in range(20) for word in ("the red cat", "a stone river")]
CLASSES = ["animal", "water"] * 20


@pytest.fixture
def checkpoint_with_code(tmp_path):
    """A checkpoint whose Python code writes a file when it runs; returns both."""
    folder = tmp_path / "with-code"
    ran = tmp_path / "ran"
    folder.mkdir()
    config = {
        "model_type": "foreign",
        "hidden_size": 8,
        "vocab_size": 10,
        "auto_map": {"AutoConfig": "code.Config", "AutoModel": "code.Model"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    save_file({"w": np.zeros((10, 8), np.float32)}, folder / "model.safetensors")
    words = {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": words}))
    return folder, ran


def change(folder, file, new):
    """Update the JSON of a saved folder, and its checksums."""
    path = folder / file
    content = json.loads(path.read_text("utf-8"))
    new(content)
    path.write_text(json.dumps(content), "utf-8")
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    write_manifest(folder, manifest["kind"], manifest["version"])


@pytest.mark.parametrize("trust", [True, False])
def test_no_question_to_a_saved_result_runs_code(tmp_path, checkpoint_with_code, trust):
    checkpoint, ran = checkpoint_with_code
    folder = tmp_path / "result"
    et.TopicModel("tfidf", random_state=0).fit(TEXTS).save(folder)
    record = {"name": str(checkpoint)} | ({"trust_remote_code": True} if trust else {})
    new = {"encoder": "x", "encoder_settings": record, "encoder_fingerprint": None}
    change(folder, "result.json", lambda content: content["settings"].update(new))
    model = et.TopicModel.load(folder)
    result = et.TopicResult.load(folder)
    assert json.loads((folder / "manifest.json").read_text("utf-8"))["kind"] == KIND

    questions = (
        lambda: model.predict(["a new text"]),
        lambda: et.topics.find(result, "a new text"),
        lambda: with_name_scores(result),
        lambda: et.topics.verify(folder, TEXTS),
    )
    for question in questions:
        with pytest.raises(EmbedTopicsError, match=r"encoder|SentenceEncoder\("):
            question()
    assert not ran.exists()


def test_no_question_to_a_saved_classifier_runs_code(tmp_path, checkpoint_with_code):
    checkpoint, ran = checkpoint_with_code
    folder = tmp_path / "classifier"
    et.TextClassifier(et.encoders.RandomProjectionEncoder(32)).fit(TEXTS, CLASSES).save(folder)
    record = {"name": str(checkpoint), "trust_remote_code": True}
    change(folder, "classifier.json", lambda content: content.update(encoder=record))
    with refuses("encoder"):
        et.TextClassifier.load(folder)
    given = et.TextClassifier.load(folder, encoder=et.encoders.RandomProjectionEncoder(32))
    assert given.predict(TEXTS[:2]).tolist() == CLASSES[:2]
    assert not ran.exists()


def test_records_of_earlier_versions_have_other_names_of_arguments(tiny_bert):
    settings = et.SentenceEncoder(tiny_bert, truncate_dim=5, max_seq_length=9).settings
    former = {"truncate_dim": "dimensions", "max_seq_length": "max_length"}
    recorded = {former.get(name, name): value for name, value in settings.items()}
    assert recorded["dimensions"] == 5
    assert recorded["max_length"] == 9

    encoder = encoder_from_settings(recorded)
    assert encoder.settings == settings
    assert encoder.dimensions == 5
    assert encoder.max_seq_length == 9


@pytest.mark.parametrize(
    "record",
    [
        pytest.param({"name": "x", "max_length": True}, id="a former length that is true"),
        pytest.param({"name": "x", "local_files_only": False}, id="a field of no record"),
        pytest.param({"name": "x", "device": "cuda"}, id="a device"),
        pytest.param({"name": ["x"]}, id="a name that is a list"),
        pytest.param({"name": "x", "max_seq_length": True}, id="a length that is true"),
        pytest.param({"name": "//server/share/model"}, id="another machine"),
        pytest.param({"name": "\\\\server\\share"}, id="another Windows machine"),
        pytest.param({"kind": "static", "folder": "//server/share"}, id="a table elsewhere"),
        pytest.param({"kind": "static"}, id="a table without a folder"),
        pytest.param({"kind": "random", "dimensions": 10**12}, id="endless vectors"),
        pytest.param({"kind": "fasttext", "epochs": 10**9}, id="endless training"),
        pytest.param({"kind": "tfidf", "ngram_range": [1, 2, 3]}, id="a range of three"),
        pytest.param({"kind": "tfidf", "words": {"import": "os"}}, id="unknown word rules"),
        pytest.param({"kind": "pickle"}, id="an unknown kind"),
        pytest.param({"kind": ["tfidf"]}, id="a kind that is a list"),
        pytest.param([1], id="a list"),
        pytest.param("all-MiniLM-L6-v2", id="a name alone"),
    ],
)
def test_a_record_of_another_form_is_refused(record):
    with refuses("encoder"):
        encoder_from_settings(record)


def test_a_recorded_name_reaches_no_network(empty_hub, monkeypatch):
    from embedtopics.encoders.sentence import _loading

    def download(*_, **__):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(_loading, "download_snapshot", download)
    with refuses("encoder"):
        encoder_from_settings({"name": "somebody/some-model"})


def test_a_folder_here_is_not_taken_for_a_recorded_model(tmp_path, tiny_bert, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "somebody").mkdir()
    (tmp_path / "somebody" / "model").symlink_to(tiny_bert)
    with refuses("encoder"):
        encoder_from_settings({"name": "somebody/model"})


def test_a_model_of_a_local_checkpoint_answers_after_loading(tmp_path, make_sentence_folder):
    checkpoint = make_sentence_folder()
    encoder = et.SentenceEncoder(checkpoint, precision="float32")
    model = et.TopicModel(encoder, random_state=0).fit(TEXTS)
    model.save(tmp_path / "model")
    loaded = et.TopicModel.load(tmp_path / "model")
    new = ["the cat on the mat", "a river of stone"]
    assert loaded.predict(new).tolist() == model.predict(new).tolist()

    classifier = et.TextClassifier(encoder).fit(TEXTS, CLASSES)
    classifier.save(tmp_path / "classifier")
    again = et.TextClassifier.load(tmp_path / "classifier")
    assert again.predict(new).tolist() == classifier.predict(new).tolist()
    assert again.fit(TEXTS, CLASSES).predict(new).tolist() == classifier.predict(new).tolist()

    et.SearchIndex.build(TEXTS, tmp_path / "index", encoder=encoder)
    hits = et.SearchIndex.load(tmp_path / "index").search("the red cat", 3, mode="dense")
    assert all("cat" in hit.text for hit in hits.hits[0])

    words = [text.split() for text in TEXTS]
    tags = [[CLASSES[i]] * len(row) for i, row in enumerate(words)]
    tagger = TokenClassifier(encoder).fit(words, tags)
    tagger.save(tmp_path / "tagger")
    loaded_tagger = TokenClassifier.load(tmp_path / "tagger")
    assert loaded_tagger.predict(words[:2]) == tagger.predict(words[:2])
    given = TokenClassifier.load(tmp_path / "tagger", encoder=checkpoint)
    assert given.predict(words[:2]) == tagger.predict(words[:2])


def test_an_absent_encoder_is_asked_for_when_it_is_used(tmp_path):
    encoder = recorded_encoder(str(tmp_path / "gone"))
    assert encoder.name == str(tmp_path / "gone")
    with refuses("encoder"):
        encoder.encode(["a text"])
    with refuses("encoder"):
        et.TextClassifier(encoder, method="fine_tune").fit(TEXTS, CLASSES)


def test_numbers_of_a_session_are_numbers_of_a_record():
    encoder = et.encoders.RandomProjectionEncoder(np.int64(16))
    again = encoder_from_settings(encoder.settings)
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))
