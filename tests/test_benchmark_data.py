"""The data sets of the benchmarks: their sizes, and that nothing is learned of a test."""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import corpora, search_quality, student_texts, training_sets
from benchmarks.encoder_tasks import TASKS, InferencePairs, read_tasks
from benchmarks.task_sets import evaluate_encoder
from embedtopics import SentenceEncoder
from tests.evaluation.task_data import Words, _sentence

NOT_HERE = {"xnli_fr", "xnli_de", "lingnli", "multinli_sample"}


def write_rows(path, rows):
    """Write rows as the real files are written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


def _graded(rng, n, first="sentence1", second="sentence2", score="score"):
    rows = []
    for _ in range(n):
        one, other = _sentence(rng), _sentence(rng)
        shared = len(set(one.split()) & set(other.split()))
        # Three words are in all sentences: scores go from 1 to 5.
        rows.append({first: one, second: other, score: shared - 2 + float(rng.integers(0, 3)) / 2})
    return rows


def _inferred(rng, n, premise="premise", hypothesis="hypothesis"):
    rows = []
    for label in rng.choice(["entailment", "neutral", "contradiction"], n).tolist():
        one = _sentence(rng)
        other = {"entailment": one, "neutral": _sentence(rng), "contradiction": "not " + one}
        rows.append({premise: one, hypothesis: other[label], "label": label})
    return rows


def write_tasks(folder):
    """Write stsb, sts12_14, sick, rte, mpe, xnli, scifact, cranfield, multi30k and titles."""
    rng = np.random.default_rng(0)
    same = _graded(rng, 40)
    for language in ("en", "fr", "de"):
        for split in ("dev", "test"):
            write_rows(folder / "stsb" / f"{language}_{split}.jsonl.gz", same)
    sets = [(2012, "A", "test"), (2013, "B", "test"), (2013, "C", "test"), (2012, "A", "train")]
    write_rows(
        folder / "sts12_14" / "sts12_14.jsonl.gz",
        [
            {"year": year, "set": name, "split": split, **row, "in_stsb": place % 4 == 0}
            for year, name, split in sets
            for place, row in enumerate(_graded(rng, 20))
        ],
    )
    write_rows(
        folder / "sick" / "sick.jsonl.gz",
        [
            {**row, **answer, "split": split}
            for split, n in (("train", 60), ("trial", 10), ("test", 30))
            for row, answer in zip(
                _inferred(rng, n, "sentence_a", "sentence_b"),
                _graded(rng, n, "x", "y", "relatedness"), strict=True,
            )
        ],
    )  # fmt: skip
    for name, n in (("train", 60), ("dev", 20), ("test", 20)):
        rows = _inferred(rng, n)
        write_rows(folder / "snli_counterfactual" / f"{name}.jsonl.gz", rows)
        several = [{**row, "premises": [row["premise"], _sentence(rng)]} for row in rows]
        write_rows(folder / "mpe" / f"{name}.jsonl.gz", several)
        if name != "test":
            two = [row for row in rows if row["label"] != "neutral"]
            for row in two:
                row["label"] = row["label"].replace("contradiction", "not_entailment")
            write_rows(folder / "rte" / f"{name}.jsonl.gz", two)
    for name in ("validation", "test"):
        write_rows(folder / "xnli" / f"en_{name}.jsonl.gz", _inferred(rng, 40))
    documents = [f"{_sentence(rng)} document {row}" for row in range(12)]
    for task in ("scifact", "cranfield"):
        corpus = [{"doc_id": str(r), "title": "", "text": t} for r, t in enumerate(documents)]
        write_rows(folder / task / "corpus.jsonl.gz", corpus)
        queries = [
            {"query_id": str(r), "split": ("test", "train")[r % 2], "text": documents[r]}
            for r in range(8)
        ]
        write_rows(folder / task / "queries.jsonl.gz", queries)
        judged = [
            {"query_id": str(r), "doc_id": str(r), "split": ("test", "train")[r % 2],
             "relevance": 1, "code": -1 if r == 7 else 2}
            for r in range(8)
        ]  # fmt: skip
        write_rows(folder / task / "qrels.jsonl.gz", judged)
    captions = [_sentence(rng) + f" {row}" for row in range(15)]
    for name in ("test_2016_flickr", "val"):
        rows = [{"en": c, "fr": "le " + c, "de": "x" if r == 3 else c}
                for r, c in enumerate(captions)]  # fmt: skip
        write_rows(folder / "multi30k" / f"translations_{name}.jsonl.gz", rows)
    titles = [{"text": _sentence(rng) + f" {name} {name}", "label": name}
              for name in ("linq", "bash") for _ in range(30)]  # fmt: skip
    write_rows(folder / "stackoverflow_titles" / "stackoverflow_titles.jsonl.gz", titles)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_tasks(tmp_path_factory.mktemp("data"))


def test_every_task_has_the_figures_known_by_hand(data):
    scores = evaluate_encoder(Words(), read_tasks(sorted(set(TASKS) - NOT_HERE), data))
    found = {(s.task, s.file, s.metric): s.estimate for s in scores.rows}
    assert {task for task, *_ in found} == {*TASKS, "sts12_14 pooled"} - NOT_HERE
    # Each claim is the text of its document; one query of Cranfield has no relevant document.
    assert found["scifact", "test", "ndcg@10"].value == 1.0
    assert found["scifact", "test", "mrr@10"].n == 4
    assert found["cranfield", "all", "recall@10"].n == 7
    assert found["multi30k", "en-fr", "accuracy_forward"].value == 1.0
    assert found["multi30k", "en-de", "accuracy_forward"].value == 14 / 15
    assert found["stackoverflow_titles", "all", "knn_accuracy"].value > 0.9
    assert found["rte", "dev", "entailment_auc"].value == 1.0  # cosine 1 with itself
    assert found["mpe", "test", "head_accuracy"].n == 20
    assert found["sts12_14", "2012 A", "spearman_cosine"].n == 15
    assert found["sts12_14 pooled", "2013", "spearman_cosine"].n == 30
    assert any("15 of 60 pairs are in STS-B" in d.message for d in scores.decisions)


def test_splits_and_names(data):
    assert sum(len(one.scores) for one in read_tasks("sts12_14", data, seen=True)[:3]) == 60
    (dev,) = read_tasks("sick", data, split="dev")
    assert dev.file == "dev" and len(dev.scores) == 10
    (claims,) = read_tasks("scifact", data, split="dev")
    assert claims.file == "train" and claims.relevance.shape == (4, 12)
    with pytest.raises(SystemExit, match="no task 'nothing'"):
        read_tasks("nothing", data)


@pytest.mark.parametrize("make", [np.asarray, csr_matrix])
def test_a_linear_head_learns_the_relation_of_both_vectors(make):
    rng = np.random.default_rng(0)
    first = rng.normal(size=(600, 6)).astype(np.float32)
    labels = rng.integers(0, 3, 600)
    second = first + rng.normal(size=first.shape).astype(np.float32) * 0.2
    second[:, 0] += labels * rng.choice([-1, 1], 600)
    examples = InferencePairs(
        task="made", file="up", columns=(), train_labels=labels[:400], labels=labels[400:],
        names=("contradiction", "entailment", "neutral"),
    )  # fmt: skip
    parts = [make(rows) for rows in (first[:400], second[:400], first[400:], second[400:])]
    found = examples.score(parts, seed=0)
    accuracy = found["head_accuracy"]
    assert accuracy.n == 200 and accuracy.low < accuracy.value < accuracy.high
    assert accuracy.value > 0.6 and set(found) == {"head_accuracy", "entailment_auc"}


@pytest.mark.slow
@pytest.mark.benchmark_data
def test_every_real_data_set_is_read(data_folder):
    sets = {(one.task, one.file): one for one in read_tasks(list(TASKS), data_folder)}
    assert {task.removesuffix(" pooled") for task, _ in sets} == set(TASKS)
    assert sets["scifact", "test"].relevance.shape == (300, 5183)
    assert len(sets["lingnli", "val"].labels) == 7371
    assert len(sets["lingnli", "val"].train_labels) == 10_000
    assert len(sets["xnli_de", "test"].labels) == 5010
    assert sets["rte", "dev"].names == ("entailment", "not_entailment")
    assert len(sets["sick", "test"].scores) == 4927
    assert sum(len(o.scores) for (t, _), o in sets.items() if t == "sts12_14") == 7608 - 3750
    assert len(sets["multi30k", "en-fr"].columns[0]) == 1000
    assert len(sets["stackoverflow_titles", "all"].labels) == 5000


@pytest.mark.slow
@pytest.mark.benchmark_data
def test_the_default_model_scores_what_is_published(data_folder):
    """As in the Massive Text Embedding Benchmark (Muennighoff et al., 2023)."""
    sets = read_tasks(["stsb", "sts12_14"], data_folder, seen=True)
    published = {"test": 0.8203, "2013": 0.8060, "2014": 0.7559}
    sets = [one for one in sets if one.file in published]
    made = evaluate_encoder(SentenceEncoder(), sets)
    found = {s.file: s.estimate for s in made.rows if s.metric == "spearman_cosine"}
    for file, value in published.items():
        assert found[file].value == pytest.approx(value, abs=0.0005), file
        assert found[file].low < value < found[file].high
    assert [found[file].n for file in published] == [1379, 1500, 3750]


@pytest.mark.benchmark_data
def test_the_french_corpus_is_all_of_its_parts(data_folder, monkeypatch):
    monkeypatch.setattr(corpora, "DATA", data_folder)
    texts, classes, _ = corpora._read_masakhanews("fra")
    assert len(texts) == len(classes) == 250 + 211 + 422
    assert len(set(classes)) == 5
    assert texts[250:] != texts[:-250]


@pytest.mark.benchmark_data
def test_nothing_is_learned_that_a_test_holds(data_folder):
    texts = student_texts.load_student_texts(quick=True)
    held_out = {student_texts._normal(title) for title in texts.test_titles}
    for row in student_texts._read_rows("stsb/en_test.jsonl.gz"):
        held_out |= {student_texts._normal(row[key]) for key in ("sentence1", "sentence2")}
    learned = {student_texts._normal(text) for text in [*texts.titles, *texts.general]}
    assert len(learned) > 5_000 and len(held_out) > 2_000
    assert not learned & held_out
    assert len(texts.test_titles) == len(texts.test_categories)


@pytest.mark.benchmark_data
@pytest.mark.parametrize(
    ("name", "n_documents", "n_queries", "n_relevant"),
    [("scifact", 5_183, 300, 339), ("cranfield", 1_400, 225, 1_612)],
)
def test_the_sets_are_those_of_the_published_figures(
    data_folder, name, n_documents, n_queries, n_relevant
):
    ids, texts, queries, qrels = search_quality.read_set(name)
    assert len(set(ids)) == len(ids) == len(texts) == n_documents and len(queries) == n_queries
    assert sum(grade > 0 for judged in qrels.values() for grade in judged.values()) == n_relevant


@pytest.mark.slow
@pytest.mark.benchmark_data
def test_no_sentence_of_a_test_is_learned_from(data_folder):
    pairs, counts = training_sets.inference_pairs(None)
    held = {
        " ".join(text.lower().split())
        for content in training_sets.test_pairs().values()
        for column in content["columns"]
        for text in column
    }
    learned = {" ".join(text.lower().split()) for column in pairs["columns"] for text in column}
    assert not held & learned
    assert sum(counts.values()) == len(pairs["labels"]) > 60_000
    assert {len(column) for column in pairs["columns"]} == {len(pairs["labels"])}


@pytest.mark.benchmark_data
def test_the_tests_have_their_published_sizes(data_folder):
    sizes = {name: len(content["labels"]) for name, content in training_sets.test_pairs().items()}
    assert sizes == {
        "STS-B test": 1379, "STS12": 1608, "STS13": 750, "STS14": 1500, "SICK-R test": 4927,
    }  # fmt: skip
    train, dev = training_sets.sts_training_pairs(), training_sets.sts_pairs("dev")
    assert len(train["labels"]) < 5749 and len(dev["labels"]) == 1500
    pairs = set(map(frozenset, zip(*train["columns"], strict=True)))
    assert not pairs & set(map(frozenset, zip(*dev["columns"], strict=True)))
