"""embedtopics add: new documents for a folder of results."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics.cli._display import write_results_folder
from embedtopics.topics import extend, load_result, rename
from tests.cli.running import refused, run

FARM = "cow barn milk meadow hay tractor".split()
SKY = "star comet orbit moon telescope galaxy".split()
SHIP = "anchor harbour mast sail keel rudder".split()


def texts_of(words, count, seed, name=""):
    rng = np.random.default_rng(seed)
    return [f"{' '.join(rng.choice(words, 5))} {name}{i}" for i in range(count)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    frame = pd.DataFrame({
        "body": [*texts_of(FARM, 60, 0), *texts_of(SKY, 40, 1)],
        "when": "2024-01-01", "paper": ["a", "b"] * 50,
    })  # fmt: skip
    corpus = et.Corpus.from_frame(frame, text="body", time="when", group="paper")
    model = et.TopicModel("lsa", languages=["en"], random_state=1, n_topics=2)
    folder = tmp_path_factory.mktemp("written") / "results"
    write_results_folder(rename(model.fit(corpus).result_, {0: "Farms"}), folder)
    return folder


def test_documents_are_added_twice_and_the_columns_found(written, tmp_path):
    results = shutil.copytree(written, tmp_path / "results")
    before = load_result(results / "model")
    for number, seed in enumerate((2, 3), 1):
        file = tmp_path / "new.csv"
        body = [*texts_of(FARM, 5, seed, f"n{seed}"), before.corpus.texts[0]]
        other = ["=1+1 <b>" * 9] * 6
        pd.DataFrame({"other": other, "paper": "c", "when": "2025-02-03", "body": body}).to_csv(
            file, index=False
        )
        expected = extend(
            load_result(results / "model"),
            et.Corpus.from_file(file, text="body", time="when", group="paper"),
        )
        done = run("add", results, file)
        assert done.exit_code == 0, done.output
        assert str(expected) in done.stdout and "Farms" in done.stdout
        after = load_result(results / "model")
        assert len(after.corpus) == 100 + 6 * number
        np.testing.assert_array_equal(after.labels, expected.result.labels)
        np.testing.assert_array_equal(after.labels[:100], before.labels)
        assert after.corpus.time.iloc[-1] == pd.Timestamp("2025-02-03")
        assert after.corpus.group.iloc[-1] == "c"
    assert (results / "report.html").is_file()


def test_a_new_subject_is_told_and_adopted(written, tmp_path):
    file = tmp_path / "ships.txt"
    file.write_text("\n".join(texts_of([*SHIP, "cow", "star"], 40, 4)), "utf-8")
    before = load_result(written / "model")
    expected = extend(before, et.Corpus.from_file(file))
    out = tmp_path / "out"
    done = run("add", written, file, "--out", out)
    assert done.exit_code == 0, done.output
    assert expected.is_alarming and len(expected.candidates) == 1
    assert str(expected) in done.stdout and "more than chance explains" in done.stdout
    assert "24 texts: " in done.stdout and "--adopt makes topics" in done.stdout
    assert load_result(written / "model").labels.shape == (100,)  # stays as it was
    done = run("add", written, file, "--out", tmp_path / "more", "--adopt", "--keep-terms")
    assert done.exit_code == 0, done.output
    assert "--adopt makes topics" not in done.stdout
    after = load_result(tmp_path / "more" / "model")
    assert after.topics[0].label == "Farms" and after.n_topics == 3


def test_what_is_refused_with_one_line(written, tmp_path):
    file = tmp_path / "new.csv"
    file.write_text("body,when\na cow,2024-01-01\n", "utf-8")
    for arguments, message in (
        ((tmp_path / "nowhere", file), "expected a folder that embedtopics topics"),
        ((written, tmp_path / "nowhere.csv"), "no such file"),
        ((written, file, "--text", "foo"), "expected a text column 'foo'"),
        ((written, file, "--encoder", "tfidf"), "--encoder must be that of the fit"),
        ((written, file, "--out", file), "is a file"),
    ):
        assert message in refused("add", *arguments)
