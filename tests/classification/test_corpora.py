"""Whole corpora in parts, as files of any kind, and runs that go on."""

import gzip

import numpy as np
import pandas as pd
import pytest

from embedtopics import Corpus
from embedtopics.classification import TextClassifier, classify
from embedtopics.classification import _corpora as corpora
from tests.classification.conftest import themed_texts
from tests.factories import raising, refuses


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(corpora, "PART_ROWS", 10)


@pytest.fixture(scope="module")
def model(counted):
    return TextClassifier(counted).fit(*themed_texts(240, noise=0.4))


@pytest.fixture(scope="module")
def frame():
    texts = themed_texts(50, noise=0.4, seed=1)[0]
    texts[7] = ""
    return pd.DataFrame({"name": [f"d{i}" for i in range(50)], "body": texts})


def written(frame, path):
    if path.name.endswith(".parquet"):
        frame.to_parquet(path)
    elif ".jsonl" in path.name:
        content = frame.to_json(orient="records", lines=True).encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ";")
    return path


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.jsonl", "a.jsonl.gz", "a.parquet", "a.csv.gz"]
)
def test_a_file_in_parts_has_the_classes_of_the_whole(tmp_path, model, frame, name):
    path = written(frame, tmp_path / name)
    done = classify(model, path, tmp_path / "out", text="body", id="name")
    assert len(done.paths) == 5
    table = pd.read_parquet(tmp_path / "out")
    assert (
        table["row"].tolist() == list(range(50)) and table["id"].tolist() == frame["name"].tolist()
    )
    has_text = frame["body"] != ""
    wanted = model.predict(frame["body"][has_text].tolist())
    assert table["label"][has_text].tolist() == wanted.tolist() and pd.isna(table["label"][7])
    chances = table[[f"p_{name}" for name in model.classes_]]
    assert np.allclose(chances[has_text], model.predict_proba(frame["body"][has_text].tolist()))
    assert np.isnan(table["confidence"][7])


def test_a_run_that_was_interrupted_goes_on(tmp_path, model, frame, monkeypatch):
    path = written(frame, tmp_path / "a.csv")
    whole = classify(model, path, tmp_path / "whole", text="body")
    usual, calls = corpora.classified, []

    def stop_later(*arguments):
        calls.append(1)
        return usual(*arguments) if len(calls) < 4 else raising(KeyboardInterrupt())()

    with monkeypatch.context() as patch:
        patch.setattr(corpora, "classified", stop_later)
        with pytest.raises(KeyboardInterrupt):
            classify(model, path, tmp_path / "part", text="body")
    done = classify(model, path, tmp_path / "part", text="body")
    assert done.notes[0].message.endswith(" files (3 existed).")
    assert [p.read_bytes() for p in done.paths] == [p.read_bytes() for p in whole.paths]
    with refuses("out"):
        classify(model, path, tmp_path / "part", text="body", max_error=0.3)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").write_text("mine")
    with refuses("out"):
        classify(model, path, tmp_path / "mine", text="body")


def test_predictions_are_held_back_and_labels_may_be_several(tmp_path, counted, frame):
    texts, themes = themed_texts(600, noise=0.5)
    sure = TextClassifier(counted).fit(texts, themes)
    classify(sure, Corpus(frame["body"].tolist()), tmp_path / "held", max_error=0.2)
    table = pd.read_parquet(tmp_path / "held")
    assert 0 < table["label"].isna().sum() < 50
    several = TextClassifier(counted, head="multilabel").fit(texts, [[t] for t in themes])
    classify(several, frame["body"].tolist(), tmp_path / "several")
    lists = pd.read_parquet(tmp_path / "several")["label"]
    assert lists[0].tolist() == [
        name for name, p in zip(several.classes_, several.predict_proba(frame["body"][:1])[0],
                                strict=True) if p >= 0.5
    ]  # fmt: skip


def test_bad_input_is_refused(tmp_path, model, frame):
    with pytest.raises(ValueError, match="body"):
        classify(model, written(frame, tmp_path / "a.csv"), tmp_path / "out", text="text")
    (tmp_path / "b.jsonl").write_text('{"text": "an apple"}\n{"text": ')
    (tmp_path / "c.parquet").write_bytes(b"PAR1 nothing PAR1")
    for name in ("b.jsonl", "c.parquet"):
        with refuses("corpus"):
            classify(model, tmp_path / name, tmp_path / f"out-{name}")
