"""A cache of vectors that somebody changed is made again."""

import json
import logging
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from embedtopics.encoders import CachedEncoder, RandomProjectionEncoder
from embedtopics.encoders._cache import cache_entries
from tests.factories import exact_encoder

TEXTS = ["the red cat", "a stone river", "blue light"]


@pytest.mark.parametrize(
    "script",
    [
        "ALTER TABLE vectors RENAME TO kept; CREATE VIEW vectors AS WITH RECURSIVE c(x) AS "
        "(SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS key, x AS content FROM c;",
        "UPDATE vectors SET content = 5;",
        "UPDATE vectors SET content = 'text';",
        "UPDATE vectors SET content = NULL;",
        "UPDATE vectors SET content = x'00';",
        "DROP TABLE vectors; CREATE TABLE vectors (other INTEGER);",
        "CREATE TRIGGER more AFTER INSERT ON vectors BEGIN DELETE FROM vectors; END;",
    ],
    ids=["endless view", "numbers", "texts", "nothing", "short", "other columns", "trigger"],
)
def test_a_changed_cache_gives_the_vectors_of_the_encoder(tmp_path, script):
    encoder = RandomProjectionEncoder(16)
    expected = encoder.encode(TEXTS)
    CachedEncoder(encoder, folder=tmp_path).encode(TEXTS)
    (path,) = tmp_path.rglob("*.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    found = CachedEncoder(encoder, folder=tmp_path).encode(TEXTS)
    np.testing.assert_array_equal(found, expected)


def without(name):
    def change(about):
        del about[name]

    return change


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda about: about.update(shape=[2**40, 2**20]), id="an endless table"),
        pytest.param(lambda about: about.update(shape=[-1, 16]), id="a negative size"),
        pytest.param(lambda about: about.update(shape=["5", "16"]), id="sizes as texts"),
        pytest.param(lambda about: about.update(shape=[5]), id="one size"),
        pytest.param(lambda about: about.update(shape={"0": 5}), id="sizes by name"),
        pytest.param(lambda about: about.update(pad_id=1.5), id="half a token"),
        pytest.param(lambda about: about.update(pad_id=True), id="a token that is true"),
        pytest.param(lambda about: about.update(unknown_id=10**30), id="a token beyond all"),
        pytest.param(lambda about: about.update(sha256=[]), id="checksums as list"),
        pytest.param(lambda about: about.update(sha256={}), id="no checksums"),
        pytest.param(lambda about: about.update(sha256={"model.onnx": 5}), id="a checksum of 5"),
        pytest.param(lambda about: about.update(refused=["no"]), id="a refusal as list"),
        pytest.param(lambda about: about.update(encoder=5), id="a name that is a number"),
        pytest.param(lambda about: about.update(run="code"), id="a field of no record"),
        pytest.param(lambda about: about.update(variant="x" * 2**17), id="a long record"),
        pytest.param(without("shape"), id="no shape"),
        pytest.param(without("encoder"), id="no name"),
    ],
)
def test_a_forged_record_of_a_prepared_model_prepares_it_again(
    tiny_bert, tmp_path, monkeypatch, caplog, change
):
    monkeypatch.setenv("EMBEDTOPICS_CACHE", str(tmp_path))
    expected = exact_encoder(tiny_bert).encode(TEXTS)
    (path,) = tmp_path.rglob("about.json")
    intact = path.read_text("utf-8")
    about = json.loads(intact)
    change(about)
    path.write_text(json.dumps(about), "utf-8")
    assert [entry.kind for entry in cache_entries()] == ["model"]

    with caplog.at_level(logging.WARNING, "embedtopics"):
        found = exact_encoder(tiny_bert).encode(TEXTS)
    np.testing.assert_array_equal(found, expected)
    assert "is damaged" in caplog.text
    assert path.read_text("utf-8") == intact


@pytest.mark.parametrize("content", ["", "[]", "null", '"text"', "[" * 10_000, "\0"])
def test_a_record_that_is_none_prepares_the_model_again(tiny_bert, tmp_path, monkeypatch, content):
    monkeypatch.setenv("EMBEDTOPICS_CACHE", str(tmp_path))
    expected = exact_encoder(tiny_bert).encode(TEXTS)
    (path,) = tmp_path.rglob("about.json")
    path.write_text(content, "utf-8")
    (entry,) = cache_entries()
    assert entry.encoder == "unknown"
    np.testing.assert_array_equal(exact_encoder(tiny_bert).encode(TEXTS), expected)
