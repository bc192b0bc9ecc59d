from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.topics import storage


@pytest.fixture(scope="module")
def fitted(toy):
    texts, vectors, _ = toy
    frame = pd.DataFrame(
        {
            "body": [*texts, None],
            "when": pd.date_range("2024-01-01", periods=len(texts) + 1),
            "mixed": [1, "two", None, 4.5] + [{}] * (len(texts) - 3),
        },
        index=[f"r{i}" for i in range(len(texts) + 1)],
    )
    corpus = et.Corpus.from_frame(frame, text="body", time="when")
    given = np.vstack([vectors, np.zeros(16)])
    return et.TopicModel(languages=["en"], random_state=3).fit(corpus, embeddings=given)


def test_a_loaded_result_is_the_saved_one(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = et.TopicModel.load(tmp_path / "model")
    one, two = fitted.result_, loaded.result_
    for name in ("embeddings", "coordinates", "map", "labels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    for name in ("memberships", "topic_terms"):
        assert (getattr(one, name) != getattr(two, name)).nnz == 0
    assert (one.term_counts.counts != two.term_counts.counts).nnz == 0
    np.testing.assert_array_equal(one.tokens.ids, two.tokens.ids)
    assert one.tokens.words == two.tokens.words
    assert one.topics == two.topics
    assert one.decisions == two.decisions
    assert dict(one.settings) == dict(two.settings)
    assert one.corpus.texts == two.corpus.texts and one.corpus.ids == two.corpus.ids
    assert one.corpus.index.equals(two.corpus.index)
    pd.testing.assert_series_equal(one.corpus.time, two.corpus.time)
    assert two.corpus.metadata["mixed"].tolist()[:2] == ["1", "two"]


def test_predicts_alike_in_a_new_process(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    queries = np.random.default_rng(0).normal(size=(20, 16)).astype(np.float32)
    np.save(tmp_path / "queries.npy", queries)
    texts = [f"query {i}" for i in range(20)]
    code = (
        "import sys, json, numpy as np, embedtopics as et;"
        f"m = et.TopicModel.load({str(tmp_path / 'model')!r});"
        f"q = np.load({str(tmp_path / 'queries.npy')!r});"
        f"print(json.dumps(m.predict({texts!r}, embeddings=q).tolist()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == fitted.predict(texts, embeddings=queries).tolist()


def test_no_pickle_anywhere(fitted, tmp_path):
    folder = fitted.save(tmp_path / "model")
    with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)
    assert {p.suffix for p in folder.iterdir()} == {".json", ".npz", ".npy", ".parquet"}


def test_a_full_disk_leaves_the_old_model_whole(fitted, tmp_path, monkeypatch):
    folder = fitted.save(tmp_path / "model")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}

    def fail(path, content):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "_write_json", fail)
    with pytest.raises(InputError, match="No space left on device; what was there before is whole"):
        fitted.save(folder)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_damage_and_other_folders_are_refused(fitted, tmp_path):
    folder = fitted.save(tmp_path / "model")
    with pytest.raises(InputError, match="does not exist"):
        et.TopicModel.load(tmp_path / "nowhere")
    with (folder / "embeddings.npy").open("r+b") as stream:
        stream.seek(200)
        stream.write(b"\xff\xff")
    with pytest.raises(CorruptFileError, match=r"embeddings\.npy is damaged"):
        et.TopicModel.load(folder)


def test_saving_into_a_folder_with_other_files_is_refused(fitted, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        fitted.save(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
