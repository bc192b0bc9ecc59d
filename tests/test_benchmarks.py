"""The benchmarks' own machinery: jobs in processes, scores by hand, tables as committed."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import embedtopics

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import embed, jobs, run, static_encoder, topic_quality, topic_speed  # noqa: E402
from benchmarks.corpora import (  # noqa: E402
    ENCODED,
    LabelledCorpus,
    hash_texts,
    load_encoded,
    sample_rows,
)
from benchmarks.machine import describe_environment, describe_machine  # noqa: E402
from benchmarks.options import Options  # noqa: E402
from benchmarks.rendering import describe, replace_tables  # noqa: E402

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


def test_peak_memory_is_the_process_s_own(tmp_path):
    jobs.write_inputs(tmp_path, TEXTS, VECTORS)
    hungry = FAKE.replace("words = [", "ballast = bytearray(200_000_000)\nwords = [")
    light, heavy = (
        jobs.fit(fake_system(tmp_path, code), tmp_path, numba_cache=tmp_path / "numba").peak_rss_mb
        for code in (FAKE, hungry)
    )
    assert 150 < heavy - light < 250


def test_a_failing_system_stops_the_run_with_its_last_words(tmp_path):
    jobs.write_inputs(tmp_path, TEXTS, VECTORS)
    broken = fake_system(tmp_path, "raise ValueError('no luck today')")
    with pytest.raises(SystemExit, match=r"fake failed with exit code 1:[^$]*no luck today"):
        jobs.fit(broken, tmp_path)


def test_inputs_must_be_aligned(tmp_path):
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


def test_score_by_hand():
    texts = ["Tax cut, tax cut!", "tax cut", "goal match", "goal x match"]
    corpus = LabelledCorpus("toy", texts, ["a", "a", "b", "b"], np.zeros((4, 2)))
    tokens = topic_quality.word_tokens(texts)
    # A word has two letters or more; "x" is none.
    assert tokens.words == ("cut", "goal", "match", "tax")
    assert tokens.offsets.tolist() == [0, 4, 6, 8, 10]
    # Of four windows two hold tax and cut: log(.5 / .25) / -log(.5) = 1. Never together: -1
    # but for the epsilon. One known word makes no pair.
    words = [["tax", "cut"], ["goal", "tax", "absent"], ["match", "missing"]]
    found = topic_quality.score(outcome([0, 0, 1, -1], words), corpus, tokens)
    never = math.log(1e-12 / 0.25) / -math.log(1e-12)
    assert found["npmi"] == pytest.approx((1 + never) / 2, abs=1e-4)
    assert found["n_topics"] == 3
    assert found["n_topics_unscored"] == 1
    assert found["known_words"] == pytest.approx(5 / 7, abs=1e-4)
    assert found["diversity"] == pytest.approx(6 / 7, abs=1e-4)
    assert found["coverage"] == 0.75
    # Homogeneity 1, completeness 2/3 (entropy 1 of the 1.5 bits): their harmonic mean is 0.8.
    assert found["nmi"] == pytest.approx(0.8)


def test_scores_of_no_topic_are_unknown_not_nan():
    corpus = LabelledCorpus("toy", TEXTS, ["a", "b", "b"], VECTORS)
    found = topic_quality.score(outcome([-1] * 3, []), corpus, topic_quality.word_tokens(TEXTS))
    assert (found["npmi"], found["diversity"], found["coverage"]) == (None, None, 0.0)
    json.dumps(found, allow_nan=False)


def speed_run(system, seconds, **changes):
    return {
        "system": system,
        "n_documents": 5_000,
        "random_state": None,
        "numba_cache": "warm",
        "seconds": seconds,
        "peak_rss_mb": 1234.5,
        "stages": {"imports": 1.0, "fit": seconds - 1},
        "timings": {"layout": 0.5} if system == "embedtopics" else {},
        "n_topics": 50,
        **changes,
    }


def test_speed_tables():
    runs = [
        speed_run("embedtopics", 30.0, numba_cache="cold"),
        speed_run("bertopic", 60.0),
        speed_run("bertopic", 70.0),
        speed_run("bertopic", 64.0),
        speed_run("embedtopics", 8.0, peak_rss_mb=800.0, n_topics=1_040),
    ]
    imports = [{"system": "bertopic", "code": "import bertopic", "seconds": [9.0, 20.0, 15.0]}]
    assert topic_speed.render({"runs": runs, "imports": imports}).splitlines() == [
        "| documents | seed | compiled cache | BERTopic, s | embedtopics, s | ratio "
        "| BERTopic, MB | embedtopics, MB | BERTopic, topics | embedtopics, topics |",
        "| :-- | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
        "| 5,000 | none | warm | 64.0 | 8.0 | 8.0 | 1,234 | 800 | 50 | 1,040 |",
        "| 5,000 | none | cold | n/a | 30.0 | n/a | n/a | 1,234 | n/a | 50 |",
        "",
        "| documents | seed | compiled cache | system | interpreter, s | imports, s | loading, s "
        "| fit, s | tables, s |",
        "| :-- | --: | --: | --: | --: | --: | --: | --: | --: |",
        "| 5,000 | none | warm | bertopic | n/a | 1.00 | n/a | 63.00 | n/a |",
        "| 5,000 | none | warm | embedtopics | n/a | 1.00 | n/a | 7.00 | n/a |",
        "| 5,000 | none | cold | embedtopics | n/a | 1.00 | n/a | 29.00 | n/a |",
        "",
        "| documents | seed | compiled cache | layout, s |",
        "| :-- | --: | --: | --: |",
        "| 5,000 | none | warm | 0.50 |",
        "| 5,000 | none | cold | 0.50 |",
        "",
        "| a process that only runs | s |",
        "| :-- | --: |",
        "| `import bertopic` | 15.00 |",
    ]


def test_quality_table_and_its_origin():
    first = dict(n_topics=12, coverage=0.75, nmi=0.6, ari=0.4, ami=0.5, npmi=None, diversity=1)
    second = first | dict(n_topics=1_000, ari=0.5134)
    result = {
        "date": "2001-02-03",
        "machine": {"cpu": "Abacus", "cores": 2, "memory_gb": 8.4, "system": "Linux"},
        "environments": {"bertopic": {"python": "3.11.7", "packages": {"bertopic": "0.17.4"}}},
        "corpora": [
            {
                "corpus": "toy",
                "n_documents": 2225,
                "n_classes": 5,
                "runs": {"bertopic": [first, second], "embedtopics": [second]},
            }
        ],
    }
    name = "toy (2,225 documents, 5 classes)"
    assert topic_quality.render(result).splitlines() == [
        "| corpus | system | seeds | topics | coverage | NMI | ARI | AMI | NPMI | diversity |",
        "| :-- | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
        f"| {name} | bertopic | 2 | 506 | 0.750 | 0.600 | 0.457 | 0.500 | n/a | 1.000 |",
        f"| {name} | embedtopics | 1 | 1,000 | 0.750 | 0.600 | 0.513 | 0.500 | n/a | 1.000 |",
    ]
    assert describe(result) == (
        "Measured on 2001-02-03: Abacus, 2 cores, 8.4 GB, Linux. bertopic 0.17.4 (Python 3.11.7, "
        "NumPy n/a, Numba n/a, scikit-learn n/a)."
    )


def test_tables_go_between_their_markers():
    page = "a\n<!-- t -->\nold\n<!-- /t -->\nb"
    assert replace_tables(page, {"t": r"\1 new"}) == ("a\n<!-- t -->\n\n\\1 new\n\n<!-- /t -->\nb")
    with pytest.raises(SystemExit, match="expected <!-- u -->"):
        replace_tables(page, {"u": "new"})


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


def test_the_static_encoder_s_table():
    common = {"n_texts": 17_256, "dimensions": 256, "spearman": 0.6584}
    result = {
        "versions": {"model2vec": "0.10.0", "tokenizers": "0.23.3"},
        "distill": {"encoder": "static", "seconds": 54.2},
        "encoders": [
            {"encoder": "static", "texts_a_second": [30_000.0, 50_000.0, 40_000.0], **common},
            {"encoder": "sentence", "texts_a_second": [80.0], **common},
        ],
    }
    assert static_encoder.render(result).splitlines() == [
        "| encoder | texts | texts a second | static is faster by | dimensions "
        "| Spearman x 100, STS-B test |",
        "| :-- | --: | --: | --: | --: | --: |",
        "| static | 17,256 | 40,000 | 1.0 | 256 | 65.84 |",
        "| sentence | 17,256 | 80 | 500.0 | 256 | 65.84 |",
        "",
        "Distilling took 54.2 s.",
        "",
        "model2vec 0.10.0, tokenizers 0.23.3.",
    ]
