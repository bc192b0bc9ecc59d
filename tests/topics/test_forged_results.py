"""Saved results whose JSON has another form are refused, whatever checksum fits."""

import json
import shutil
from pathlib import Path

import pytest

import embedtopics as et
from embedtopics._utils.folders import write_manifest
from embedtopics.errors import CorruptFileError

SAVED = Path(__file__).parent / "saved" / "format_1"


def changed(tmp_path, name, change):
    folder = shutil.copytree(SAVED, tmp_path / "saved")
    content = json.loads((folder / name).read_text("utf-8"))
    change(content)
    (folder / name).write_text(json.dumps(content), "utf-8")
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    write_manifest(folder, manifest["kind"], manifest["version"])
    return folder


def test_a_folder_that_is_sealed_again_is_read(tmp_path):
    folder = changed(tmp_path, "result.json", lambda c: c["topics"][0].update(label="a new name"))
    assert et.TopicModel.load(folder).result_.topics[0].name == "a new name"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda c: c.update(settings=[]), id="settings as list"),
        pytest.param(lambda c: c.update(settings=None), id="no settings"),
        pytest.param(lambda c: c["settings"].update(seed=-1), id="negative seed"),
        pytest.param(lambda c: c["settings"].update(seed=True), id="a seed that is true"),
        pytest.param(lambda c: c["settings"].update(languages="en"), id="languages as text"),
        pytest.param(lambda c: c["settings"].update(ngram_range=[1]), id="half a range"),
        pytest.param(lambda c: c["settings"].update(ngram_range=[1, "2"]), id="range of text"),
        pytest.param(lambda c: c["settings"].update(extra_stop_words=5), id="stop words as number"),
        pytest.param(lambda c: c["settings"].update(n_neighbors=0), id="no neighbors"),
        pytest.param(lambda c: c["settings"].update(asked={"encoder": "x"}), id="asked encoder"),
        pytest.param(lambda c: c["settings"].update(words={"import": "os"}), id="word rules"),
        pytest.param(lambda c: c["settings"].update(constraints=[1]), id="constraints as list"),
        pytest.param(lambda c: c.update(topics={}), id="topics as object"),
        pytest.param(lambda c: c["topics"][0].update(size="36"), id="size as text"),
        pytest.param(lambda c: c["topics"][0].update(size=1.5), id="half a document"),
        pytest.param(lambda c: c["topics"][0].update(label=None), id="no label"),
        pytest.param(lambda c: c["topics"][0].update(keywords=[1]), id="keywords as numbers"),
        pytest.param(lambda c: c["topics"][0].update(label_auc=[1]), id="a third of an interval"),
        pytest.param(lambda c: c["topics"][0].pop("weights"), id="no weights"),
        pytest.param(lambda c: c.update(history=[{"name": "merge"}]), id="half an edit"),
        pytest.param(lambda c: c["history"][0].update(new_ids=["a"]), id="ids as text"),
        pytest.param(lambda c: c["history"][0].update(marks=[1]), id="marks as numbers"),
        pytest.param(lambda c: c.update(decisions=[{"stage": 1}]), id="half a decision"),
        pytest.param(lambda c: c.update(corpus=[]), id="corpus as list"),
        pytest.param(lambda c: c["corpus"].update(text_column=["a"]), id="column as list"),
        pytest.param(lambda c: c["corpus"].update(notes=["x"]), id="notes as text"),
        pytest.param(lambda c: c["graph"].update(recall="all"), id="recall as text"),
        pytest.param(lambda c: c["graph"].update(indices=1), id="an array in JSON"),
        pytest.param(lambda c: c.update(versions=[]), id="versions as list"),
        pytest.param(lambda c: c.update(timings={"corpus": "1"}), id="seconds as text"),
        pytest.param(lambda c: c.update(n_replicates=-2), id="negative replicates"),
        pytest.param(lambda c: c.update(constraints={"names": "x"}), id="half constraints"),
        pytest.param(lambda c: c.update(word_rules={"segmenters": []}), id="segmenters as list"),
        pytest.param(lambda c: c.update(code="import os"), id="code"),
    ],
)
def test_results_of_another_form_are_refused(tmp_path, change):
    folder = changed(tmp_path, "result.json", change)
    with pytest.raises(CorruptFileError, match=r"result\.json"):
        et.TopicModel.load(folder)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda c: c.update(words={}), id="words as object"),
        pytest.param(lambda c: c.update(terms="abc"), id="terms as text"),
        pytest.param(lambda c: c.update(stop_words=[1]), id="stop words as numbers"),
        pytest.param(lambda c: c.pop("function_words"), id="no function words"),
    ],
)
def test_words_of_another_form_are_refused(tmp_path, change):
    folder = changed(tmp_path, "words.json", change)
    with pytest.raises(CorruptFileError, match=r"words\.json"):
        et.TopicModel.load(folder)
