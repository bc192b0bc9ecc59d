"""The benchmarks' own machinery: jobs in processes, scores by hand, tables as committed."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import embedtopics
from embedtopics.evaluation._coherence import npmi

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks" / "systems")]


from benchmarks import (  # noqa: E402
    coherence,
    embed,
    jobs,
    run,
    topic_names,
    topic_quality,
    topic_sets,
    topic_speed,
    topic_words,
)
from benchmarks.corpora import ENCODED, LabelledCorpus, hash_texts, load_encoded, sample_rows  # noqa: E402
from benchmarks.machine import describe_environment, describe_machine  # noqa: E402
from benchmarks.options import Options  # noqa: E402

TEXTS = ["tax cut", "", "goal\nmatch \u00e9"]
VECTORS = np.eye(3, 4, dtype=np.float64)

# Answers with what it was given, so that the way there and back can be checked.
FAKE = f"""
import os, sys
sys.path.insert(0, {str(ROOT / "benchmarks" / "systems")!r})
from fitjob import Job

job = Job.from_arguments()
with job.stage("loading"):
    texts, embeddings = job.load()
assert embeddings.dtype == "float32" and embeddings.argmax(axis=1).tolist() == [0, 1, 2]
assert os.environ["NUMBA_CACHE_DIR"].endswith("numba")
words = [texts[0].split(), [repr(texts[2]), str(job.options)]]
job.finish([0, -1, 1], words, {{"layout": 0.25}})
"""


def fake_system(folder: Path, code: str, name: str = "fake") -> jobs.System:
    script = folder / f"{name}.py"
    script.write_text(code, "utf-8")
    return jobs.System(name, script)


def outcome(labels, words) -> jobs.Outcome:
    return jobs.Outcome(np.array(labels), words, 1.0, 1.5, {"fit": 0.5}, {}, 100.0)


def test_a_job_carries_everything_there_and_back(tmp_path):
    jobs.write_inputs(tmp_path, TEXTS, VECTORS)
    found = jobs.fit(
        fake_system(tmp_path, FAKE), tmp_path, random_state=7, numba_cache=tmp_path / "numba"
    )
    assert found.labels.tolist() == [0, -1, 1]
    assert found.words == [
        ["tax", "cut"],
        [repr(TEXTS[2]), str({"random_state": 7, "stop_words": None, "n_held_out": 0})],
    ]
    assert found.timings == {"layout": 0.25}
    assert found.n_topics == 2
    assert math.isclose(found.coverage, 2 / 3)
    assert list(found.stages) == ["interpreter", "loading"]
    assert 0 < sum(found.stages.values()) <= found.seconds <= found.seconds_to_exit


def test_a_failing_system_stops_the_run_with_its_last_words(tmp_path):
    jobs.write_inputs(tmp_path, TEXTS, VECTORS)
    broken = fake_system(tmp_path, "raise ValueError('no luck today')")
    with pytest.raises(SystemExit, match=r"fake failed with exit code 1:[^$]*no luck today"):
        jobs.fit(broken, tmp_path)
    with pytest.raises(SystemExit, match="2 texts and 3 rows"):
        jobs.write_inputs(tmp_path, TEXTS[:2], VECTORS)


def test_environment_names_versions_and_refuses_a_missing_system(tmp_path):
    found = describe_environment(jobs.EMBEDTOPICS)
    assert found["packages"]["numpy"] == np.__version__
    assert found["packages"]["embedtopics"] == embedtopics.__version__
    with pytest.raises(SystemExit, match="expected no_such_package in the environment"):
        describe_environment(jobs.System("no_such_package", tmp_path))
    assert describe_machine()["cores"] >= 1


def test_samples_are_fixed_and_nested():
    small, large = sample_rows(1_000, 50), sample_rows(1_000, 200)
    assert np.array_equal(small, sample_rows(1_000, 50))
    assert set(small) <= set(large)
    assert (np.diff(large) > 0).all()
    with pytest.raises(SystemExit, match="at least 1001 documents, got 1000"):
        sample_rows(1_000, 1_001)


def test_words_are_those_of_scikit_learn():
    tokens = topic_quality.word_tokens(
        ["Tax cut, tax cut!", "tax cut", "goal match", "goal x match"]
    )
    # A word has two letters or more; "x" is none.
    assert tokens.words == ("cut", "goal", "match", "tax")
    assert tokens.offsets.tolist() == [0, 4, 6, 8, 10]


@pytest.mark.filterwarnings("ignore:the number of connected components")
def test_every_system_divides_the_same_vectors_into_as_many(corpus):
    fast = [one for one in topic_quality.SYSTEMS if not (one.is_slow or one.packages)]
    found = topic_quality._cases(corpus, range(42, 44), fast)
    assert [one["is_chosen"] for one in found] == [True, False]
    for one in found:
        for figures in one["systems"].values():
            assert figures["n_topics"] == [one["n_topics"]] * 2
            assert figures["ami"] > 0.8 and figures["under_noise"] > 0.8
    table = topic_quality.render({"unseen": ["toy"], "cases": found})
    assert all(system.name in table for system in fast)
    assert "2 of 2 fits" in table


def test_committed_tables_are_those_of_the_committed_results():
    assert run.rendered_readme() == run.README.read_text("utf-8")


def test_speed_benchmark_treats_both_systems_alike(tmp_path, monkeypatch):
    seen = []

    def fit(system, inputs, *, random_state, numba_cache):
        n_texts = len((inputs / "texts.jsonl").read_text().splitlines())
        seen.append((system.name, n_texts, random_state, numba_cache.name))
        return outcome([0] * n_texts, [["word"]])

    monkeypatch.setattr(topic_speed, "fit", fit)
    monkeypatch.setattr(topic_speed, "load_encoded", lambda name: (list("abcdef"), np.eye(6)))
    monkeypatch.setattr(topic_speed, "SIZES", {3: "short", 5: "long"})
    monkeypatch.setattr(topic_speed, "IMPORTS", {"one": ("pass",), "two": ()})
    systems = tuple(jobs.System(name, tmp_path) for name in ("one", "two"))
    result = topic_speed.measure(Options(systems=systems, seeded=True))
    cases = [(3, None, "cold")]
    cases += [(n, seed, "warm") for n in (3, 5) for seed in (None, 42)]
    plan = [(system, *case) for case in cases for system in ("one", "two")]
    assert {(run["n_documents"], run["corpus"]) for run in result["runs"]} == {
        (3, "short"),
        (5, "long"),
    }
    keys = ("system", "n_documents", "random_state", "numba_cache")
    assert [tuple(run[key] for key in keys) for run in result["runs"]] == plan
    assert seen == [(*case[:3], f"numba-{case[0]}") for case in plan]
    assert [len(timed["seconds"]) for timed in result["imports"]] == [3]


class Lengths:
    """An encoder whose vectors can be told by hand, and which counts its work."""

    def __init__(self):
        self.n_encoded = 0

    def encode(self, texts):
        self.n_encoded += len(texts)
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def test_embedding_resumes_joins_and_finds_foreign_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(embed, "CHUNK", 2)
    texts, encoder = ["a", "bb", "ccc", "dddd", "eeeee"], Lengths()
    np.save(tmp_path / "000002.npy", encoder.encode(texts[2:4]))
    encoder.n_encoded = 0
    embed.check_chunks(encoder, texts, tmp_path)
    embed.encode_chunks(encoder, texts, tmp_path)
    assert encoder.n_encoded == 1 + 3
    assert embed.join_chunks(texts, tmp_path)[:, 0].tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(SystemExit, match="expected row 2 in"):
        embed.check_chunks(encoder, ["a", "bb", "other", "dddd", "eeeee"], tmp_path)


def test_cached_embeddings_must_be_of_these_texts(tmp_path, monkeypatch):
    monkeypatch.setitem(ENCODED, "toy", lambda: TEXTS)
    with pytest.raises(SystemExit, match=r"make them once with: python benchmarks/embed\.py toy"):
        load_encoded("toy", tmp_path)
    np.save(tmp_path / "toy.npy", VECTORS)
    about = tmp_path / "toy.json"
    about.write_text(json.dumps({"texts_sha256": hash_texts(TEXTS)}))
    assert load_encoded("toy", tmp_path)[0] == TEXTS
    about.write_text(json.dumps({"texts_sha256": hash_texts(TEXTS[::-1])}))
    with pytest.raises(SystemExit, match="are of others"):
        load_encoded("toy", tmp_path)


@pytest.fixture(scope="module")
def corpus(toy):
    texts, vectors, themes = toy
    return LabelledCorpus("toy", texts, [str(theme) for theme in themes], vectors)


def test_both_are_timed_in_turns_and_agree(corpus, monkeypatch):
    monkeypatch.setattr(coherence, "N_TOPICS", 3)
    monkeypatch.setattr(coherence, "load_labelled", lambda name: corpus)
    result = coherence.measure(Options(quick=True))
    json.dumps(result, allow_nan=False)
    assert [one["corpus"] for one in result["corpora"]] == ["bbc_news"]
    rows = {row["measure"]: row for row in result["corpora"][0]["measures"]}
    assert list(rows) == ["c_npmi", "c_v", "u_mass"]
    assert all(row["largest_difference"] < 1e-6 for row in rows.values())
    tokens = topic_quality.word_tokens(corpus.texts)
    expected = npmi(coherence.topic_words(corpus, tokens), tokens).mean()
    assert rows["c_npmi"]["mean"] == pytest.approx(expected, abs=1e-4)


class FirstLetters:
    """An encoder that knows a text by its first letter."""

    def encode(self, texts):
        return np.stack([np.eye(26)[ord(text[0].lower()) - 97] for text in texts])


def toy_fit():
    rng = np.random.default_rng(0)
    words = ["apple pear plum", "train rail station", "violin cello flute"]
    truth = np.repeat([0, 1, 2], 60)
    texts = [f"{words[t]} number{i % 7}" for i, t in enumerate(truth)]
    vectors = np.eye(3, 16)[truth] + 0.05 * rng.normal(size=(180, 16))
    result = embedtopics.TopicModel(n_topics=3, show_progress=False).fit(texts, embeddings=vectors)
    classes = np.array(["apple", "train", "violin"])[truth]
    return topic_sets.Fit("toy", texts, classes, result.result_, texts)


def test_labels_and_words_of_toy_topics():
    fit = toy_fit()
    of_text = np.unique(fit.classes, return_inverse=True)[1]
    labels = ["a fruit", "tracks", "apple"]
    assert topic_names._right(fit, of_text, labels, FirstLetters()) == pytest.approx(
        2 / 3, abs=1e-4
    )
    lists = [["apple", "pear", "plum"], ["train", "number0"], ["violin", "cello", "flute"]]
    # "number0" is in 9, 9 and 8 texts, above average in two topics; the other seven words in one.
    assert topic_words._specific(fit.texts, of_text, lists) == 7 / 8
    alike = [[letter + "x" * n for n in range(6)] for letter in "abc"]
    assert topic_words._intrusion(alike, FirstLetters()) == 1.0
    encoder = topic_sets.LatentWords([*fit.texts, "apple train"])
    assert encoder.encode(["apple", "zzz"]).any(axis=1).tolist() == [True, False]
