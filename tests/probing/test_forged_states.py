"""Stored hidden states whose rows or records are of another form are refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from embedtopics._utils.folders import write_manifest
from embedtopics.errors import CorruptFileError
from embedtopics.probing._extract import KIND, VERSION, open_store

SAVED = Path(__file__).parents[1] / "data" / "saved" / "states-words"


@pytest.mark.parametrize("row", [-1, 10**6])
def test_rows_of_texts_that_are_not_there_are_refused(tmp_path, row):
    folder = shutil.copytree(SAVED, tmp_path / "states")
    open_store(folder)
    with np.load(folder / "index.npz") as stored:
        arrays = dict(stored)
    arrays["of_text"][-1] = row
    np.savez(folder / "index.npz", **arrays)
    write_manifest(folder, KIND, VERSION)
    with pytest.raises(CorruptFileError, match="of texts that it does not hold"):
        open_store(folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("width", "16"),
        ("width", 0),
        ("n_layers", None),
        ("layers", []),
        ("layers", ["0"]),
        ("layers", [-1]),
        ("layers", {"0": 0}),
        ("dtype", "object"),
        ("unit", "page"),
        ("encoder", 5),
        ("fingerprint", None),
        ("forms", {"A": 1}),
        ("decisions", [{"stage": "probing", "name": "x", "value": 1}]),
        ("decisions", "none"),
        ("code", "x"),
    ],
)
def test_a_record_of_another_form_is_refused_with_its_field(tmp_path, field, value):
    folder = shutil.copytree(SAVED, tmp_path / "states")
    about = json.loads((folder / "about.json").read_text("utf-8"))
    (folder / "about.json").write_text(json.dumps({**about, field: value}), "utf-8")
    write_manifest(folder, KIND, VERSION)
    with pytest.raises(CorruptFileError, match=rf"about\.json is damaged: {field}"):
        open_store(folder)


def test_a_layer_that_the_encoder_does_not_have_is_refused(tmp_path):
    folder = shutil.copytree(SAVED, tmp_path / "states")
    about = json.loads((folder / "about.json").read_text("utf-8"))
    layers = [*about["layers"][:-1], 99]
    (folder / "about.json").write_text(json.dumps({**about, "layers": layers}), "utf-8")
    write_manifest(folder, KIND, VERSION)
    with pytest.raises(CorruptFileError, match="layer 99"):
        open_store(folder)


def test_a_record_without_forms_of_words_is_read(tmp_path):
    folder = shutil.copytree(SAVED, tmp_path / "states")
    about = json.loads((folder / "about.json").read_text("utf-8"))
    about.pop("forms", None)
    (folder / "about.json").write_text(json.dumps(about), "utf-8")
    write_manifest(folder, KIND, VERSION)
    states, _ = open_store(folder)
    assert dict(states.forms) == {}
