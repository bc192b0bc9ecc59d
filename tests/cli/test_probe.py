"""``embedtopics probe``: what it prints, what it writes, and what it refuses."""

import json

import numpy as np
import pandas as pd
import pytest

from embedtopics import probing
from tests.cli.running import refused, run
from tests.encoders.conftest import WORDS
from tests.probing.made import rows_of

NOUNS = "cat dog mat park river stone light sound".split()
VERBS = "sat ran".split()
OTHERS = [word for word in WORDS if word not in (*NOUNS, *VERBS)]


def table(path, n, seed):
    """Sentences of known words; each tag is that of its word, and the head of each the first."""
    rng = np.random.default_rng(seed)
    lines = ["sent_id\ttok_id\tform\tupos\thead\tdeprel"]
    for nth in range(n):
        words = rng.choice(WORDS, size=int(rng.integers(5, 13)))
        for place, word in enumerate(words):
            tag = "NOUN" if word in NOUNS else "VERB" if word in VERBS else "X"
            head, relation = (1, "dep") if place else (0, "root")
            lines.append(f"{seed}-{nth}\t{place + 1}\t{word}\t{tag}\t{head}\t{relation}")
        lines.append("")
    path.write_text("\n".join(lines), "utf-8")
    return path


@pytest.fixture
def files(tmp_path):
    sizes = {"train": 50, "test": 20}
    return [table(tmp_path / f"{name}.tsv", n, nth) for nth, (name, n) in enumerate(sizes.items())]


def test_prints_and_writes_what_the_functions_return(tiny_bert, files, tmp_path):
    out = tmp_path / "out"
    train, test = files
    done = run(
        "probe", train, "--test", test, "--encoder", tiny_bert, "--out", out,
        "--control", "--random", columns=100,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    banks = {name: probing.read_treebank(path)
             for name, path in zip(("train", "test"), files, strict=True)}  # fmt: skip
    task = probing.make_task(banks, "upos")
    states = probing.hidden_states(tiny_bert, task)
    scores = probing.probe(states, task, control=True)
    found = pd.read_csv(out / "scores.csv", keep_default_na=True)
    expected = scores.to_frame().merge(
        found, on=["what", "layer", "metric"], suffixes=("", "_read")
    )
    assert len(expected) == len(scores.to_frame()) and set(found["what"]) >= {
        "random model",
        "majority",
    }
    np.testing.assert_allclose(expected["value_read"], expected["value"], rtol=1e-6)
    about = json.loads((out / "settings.json").read_text("utf-8"))
    assert about["fingerprint"] == states.fingerprint
    assert about["settings"]["control"] is True and about["settings"]["encoder"] == str(tiny_bert)
    assert about["versions"]["python"] and about["labels"] == ["NOUN", "VERB", "X"]
    assert 'id="place-figure-0"' in (out / "layers.html").read_text("utf-8")
    best = scores.best()
    shown = f"{best.value:.3f} ({best.low:.3f} to {best.high:.3f})"
    assert f"best on test: layer {best.layer}, {shown}" in done.stdout
    chosen = scores.chosen()
    shown = f"{chosen.value:.3f} ({chosen.low:.3f} to {chosen.high:.3f})"
    assert f"selected on dev: layer {chosen.layer}, {shown}" in done.stdout
    for score in rows_of(scores, what="probe", metric="accuracy"):
        assert f"{score.value:.3f}  {score.low:.3f} to {score.high:.3f}" in done.stdout
    for name in ("majority", "word type", "selectivity", "random"):
        assert name in done.stdout
    (out / "mine.txt").write_text("x")
    assert "other files" in refused("probe", train, "--encoder", tiny_bert, "--out", out)


def test_whole_sentences_are_pooled(tiny_bert, files, tmp_path):
    out = tmp_path / "out"
    done = run("probe", files[0], "--task", "bigram shift", "--encoder", tiny_bert, "--out", out,
               "--mix")  # fmt: skip
    assert done.exit_code == 0, done.output
    table = pd.read_csv(out / "scores.csv")
    assert set(table.loc[table["what"] == "probe", "layer"]) == {0, 1, 2}
    assert set(table.loc[table["what"] == "embedding layer", "layer"]) == {0}
    about = json.loads((out / "settings.json").read_text("utf-8"))
    assert about["labels"] == ["intact", "shifted"] and any("hash" in d for d in about["decisions"])
    assert "scalar mix: " in done.stdout
    assert "were split by the hash" in done.stdout


def test_labelled_texts(tiny_bert, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "texts.jsonl"
    rows = [{"text": " ".join(rng.choice(WORDS, 8)), "good": int(i % 2)} for i in range(80)]
    path.write_text("\n".join(map(json.dumps, rows)))
    done = run("probe", path, "--task", "good", "--encoder", tiny_bert)
    assert done.exit_code == 0 and "good, " in done.stdout, done.output


def test_bad_input(tiny_bert, files, tmp_path):
    train, _ = files
    first = ("probe", train, "--encoder", tiny_bert)
    assert "got 'pos'" in refused(*first, "--task", "pos")
    assert "no such file" in refused("probe", tmp_path / "nothing.conllu")
    broken = tmp_path / "broken.conllu"
    broken.write_text("1\tNo\n")
    assert "broken.conllu must be ten columns" in refused("probe", broken)
    texts = tmp_path / "t.jsonl"
    texts.write_text('{"text": "a", "label": 1}\n')
    assert "files of one kind; got rows that are words, and texts" in refused(
        *first, "--test", texts
    )
    assert "is a file" in refused(*first, "--out", texts)
    assert "control" in refused(*first, "--task", "sentence length", "--control")
