"""Encoders on tasks with known answers: what is read, what is measured, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from embedtopics.encoders import SentenceEncoder, TfidfEncoder
from embedtopics.errors import InputError
from embedtopics.evaluation import (
    evaluate_encoder,
    mean_of_estimates,
    pair_similarities,
    read_pairs,
    read_tasks,
    score_differences,
)
from embedtopics.evaluation.encoder_tasks import TASKS, ClassedPairs, GradedPairs
from tests.evaluation.task_data import Words, write_rows, write_tasks

NOT_HERE = {"stsb_fr", "stsb_de", "xnli_fr", "xnli_de", "lingnli", "multinli_sample"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_tasks(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def scores(data):
    return evaluate_encoder(Words(), sorted(set(TASKS) - NOT_HERE), data, n_resamples=50)


def figure(scores, task, file, metric):
    (found,) = [
        score.estimate
        for score in scores.scores
        if (score.task, score.file, score.metric) == (task, file, metric)
    ]
    return found


def test_every_task_has_figures_with_intervals(scores):
    frame = scores.to_frame()
    assert set(frame["task"]) == set(TASKS) - NOT_HERE
    assert list(frame) == ["task", "file", "metric", "value", "low", "high", "n"]
    assert frame.notna().all(axis=None)
    assert (frame["low"] <= frame["value"]).all() and (frame["value"] <= frame["high"]).all()


def test_similarity_is_the_correlation_of_the_pairs(data, scores):
    (pairs,) = read_tasks("stsb", data)
    near = pair_similarities(*map(Words().encode, pairs.columns))
    expected = spearmanr(near, pairs.scores)[0]
    found = figure(scores, "stsb", "test", "spearman_cosine")
    assert found.value == pytest.approx(expected, abs=1e-9) and found.n == 40


def test_other_tasks_by_hand(scores):
    # Each claim is the text of its document; one query of Cranfield has no relevant document.
    assert figure(scores, "scifact", "test", "ndcg@10").value == 1.0
    assert figure(scores, "scifact", "test", "mrr@10").n == 4
    assert figure(scores, "cranfield", "all", "recall@10").n == 7
    assert figure(scores, "multi30k", "en-fr", "accuracy_forward").value == 1.0
    assert figure(scores, "multi30k", "en-de", "accuracy_forward").value == 14 / 15
    assert figure(scores, "stackoverflow_titles", "all", "knn_accuracy").value > 0.9
    assert figure(scores, "rte", "dev", "entailment_auc").value == 1.0  # cosine 1 with itself
    assert figure(scores, "mpe", "test", "head_accuracy").n == 20


def test_sets_pools_and_their_means(data, scores):
    sets = read_tasks("sts12_14", data)
    assert [one.file for one in sets] == ["2012 A", "2013 B", "2013 C", "2013 pooled"]
    assert [len(one.scores) for one in sets] == [15, 15, 15, 30]
    parts = [
        figure(scores, "sts12_14", f, "spearman_cosine") for f in ("2012 A", "2013 B", "2013 C")
    ]
    mean = figure(scores, "sts12_14", "mean of sets", "spearman_cosine")
    assert mean.value == pytest.approx(np.mean([part.value for part in parts])) and mean.n == 45
    np.testing.assert_array_equal(mean.drawn, mean_of_estimates(parts).drawn)
    years = figure(scores, "sts12_14", "mean of years", "spearman_cosine")
    pooled = figure(scores, "sts12_14", "2013 pooled", "spearman_cosine")
    assert years.value == pytest.approx((parts[0].value + pooled.value) / 2)
    assert any("15 of 60 pairs are in STS-B" in d.message for d in scores.decisions)
    assert sum(len(one.scores) for one in read_tasks("sts12_14", data, seen=True)[:3]) == 60


def test_splits(data):
    (dev,) = read_tasks("sick", data, split="dev")
    assert dev.file == "dev" and len(dev.scores) == 10
    (rte,) = read_tasks("rte", data)
    assert rte.file == "dev" and "no test split" in rte.decisions[0].message
    (claims,) = read_tasks("scifact", data, split="dev")
    assert claims.file == "train" and claims.relevance.shape == (4, 12)


def test_each_text_is_encoded_once(data):
    encoder = Words()
    made = evaluate_encoder(encoder, ["stsb", "stsb_fr", "sick"], data, n_resamples=0)
    warming, texts = encoder.calls
    assert len(texts) == len(set(texts)) == made.n_texts and texts[:4] == warming
    assert made.seconds > 0 and made.texts_per_second == made.n_texts / made.seconds
    assert made.name == "words 0"


def test_the_order_of_rows_changes_no_figure(data, tmp_path):
    pairs = _rows_of(read_tasks("stsb", data)[0])
    write_rows(tmp_path / "stsb" / "en_test.jsonl.gz", pairs[::-1])
    first, second = (
        evaluate_encoder(Words(), "stsb", at, n_resamples=0) for at in (data, tmp_path)
    )
    assert first.fingerprints == second.fingerprints
    for one, other in zip(first.scores, second.scores, strict=True):
        assert one.estimate.value == pytest.approx(other.estimate.value, abs=1e-12)
    pairs[0]["score"] += 1
    write_rows(tmp_path / "stsb" / "en_test.jsonl.gz", pairs)
    assert read_tasks("stsb", tmp_path)[0].fingerprint() not in first.fingerprints.values()


def _rows_of(pairs):
    return [
        {"sentence1": a, "sentence2": b, "score": score}
        for a, b, score in pairs.examples()
    ]  # fmt: skip


def test_translations_of_one_set_draw_the_same_rows(data):
    made = evaluate_encoder(Words(), ["stsb", "stsb_fr", "sick"], data, n_resamples=20)
    english, french = (figure(made, t, "test", "pearson_cosine") for t in ("stsb", "stsb_fr"))
    np.testing.assert_array_equal(english.drawn, french.drawn)


def test_looks_are_told_once_for_each_set(data):
    seen = []
    made = evaluate_encoder(
        Words(), ["stsb", "sts12_14"], data, n_resamples=0, looked=lambda *look: seen.append(look)
    )
    assert [look[:2] for look in seen] == [
        ("stsb", "test"), ("sts12_14", "2012 A"), ("sts12_14", "2013 B"), ("sts12_14", "2013 C"),
    ]  # fmt: skip
    assert {look[:2]: look[2] for look in seen} == made.fingerprints


def test_differences_are_paired(data):
    made = [
        evaluate_encoder(Words(seed=seed), ["stsb", "sts12_14"], data, n_resamples=100)
        for seed in (0, 1)
    ]
    frame = score_differences(made).set_index(["task", "file", "metric"])
    row = frame.loc[("stsb", "test", "spearman_cosine")]
    first, second = (figure(one, "stsb", "test", "spearman_cosine") for one in made)
    assert row["difference"] == pytest.approx(second.value - first.value)
    expected = np.quantile(second.drawn - first.drawn, [0.025, 0.975])
    np.testing.assert_allclose([row["low"], row["high"]], expected)
    assert len(frame) == len(made[0].scores) and set(frame["against"]) == {"words 0"}
    with pytest.raises(InputError, match="same examples and seed"):
        score_differences([made[0], evaluate_encoder(Words(), "stsb", data, n_resamples=100)])
    assert score_differences(made[:1]).empty


def test_an_encoder_that_learns_from_texts_is_copied(data):
    encoder = TfidfEncoder()
    made = evaluate_encoder(
        encoder, ["stsb", "sick_nli", "scifact", "multi30k"], data, n_resamples=50
    )
    assert not encoder.is_fitted and made.decisions[-1].name == "fitted"
    assert figure(made, "scifact", "test", "ndcg@10").value > 0.8  # it reads no numbers
    assert figure(made, "stsb", "test", "spearman_cosine").value > 0.5


def test_pairs_of_the_user(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("a,b,s\nx y,x z,1\np q,p q,3\nm,n,0\n")
    graded = read_pairs(path, ["a", "b", "s"])
    assert isinstance(graded, GradedPairs) and graded.scores.tolist() == [1, 3, 0]
    path.write_text("a,b,s\nx y,x y,1\np q,v w,0\nm,n,0\n")
    classed = read_pairs(path, ["a", "b", "s"])
    assert isinstance(classed, ClassedPairs)
    made = evaluate_encoder(Words(), [classed])
    assert figure(made, "pairs", "mine.csv", "average_precision").value == 1.0
    assert figure(made, "pairs", "mine.csv", "best_f1").value == 1.0


class Broken:
    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, texts):
        return self.vectors(len(texts))


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (lambda n: np.ones((n + 1, 2)), "expected a vector for each of"),
        (lambda n: np.full((n, 2), np.nan), "text vectors; row 0"),
    ],
)
def test_bad_vectors(data, vectors, message):
    with pytest.raises(InputError, match=message):
        evaluate_encoder(Broken(vectors), "stsb", data)


def test_bad_input(data, tmp_path):
    def refused(*arguments, **options):
        with pytest.raises(InputError) as caught:
            read_tasks(*arguments, **options)
        return str(caught.value)

    told = refused("nothing", data)
    assert "no task 'nothing'" in told and "sts12_14" in told and "lingnli" not in told
    assert "lingnli needs the folder" in refused("lingnli", data)
    assert "nowhere" in refused("stsb", tmp_path / "nowhere")
    assert "test, dev; got 'train'" in refused("stsb", data, split="train")
    assert "has stsb" in refused([], data)
    assert "leave xnli out" in refused("xnli", data, split="dev")
    assert "fr_validation.jsonl.gz" in refused("xnli_fr", data)
    file = tmp_path / "stsb" / "en_test.jsonl.gz"
    write_rows(file, [{"sentence1": "a", "sentence2": "b", "score": 1}] * 2
               + [{"sentence1": "a", "sentence2": None, "score": 1}])  # fmt: skip
    assert "en_test.jsonl.gz, row 3: expected a text" in refused("stsb", tmp_path)
    write_rows(file, [{"sentence1": "a", "sentence2": "b", "score": "high"}])
    assert "row 1: expected a number from 0 to 5 in the column 'score'; got 'high'" in refused(
        "stsb", tmp_path
    )
    write_rows(file, [{"sentence1": "a", "score": 1}])
    assert "expected a column 'sentence2'" in refused("stsb", tmp_path)
    with pytest.raises(InputError, match="give it as data="):
        evaluate_encoder(Words(), "stsb")
    with pytest.raises(InputError, match="expected three columns"):
        read_pairs(file, ["a", "b"])


def test_classes_that_were_not_learned_are_refused(data, tmp_path):
    rows = [{"premise": "a", "hypothesis": "b", "label": name} for name in ("yes", "no")]
    write_rows(tmp_path / "rte" / "train.jsonl.gz", rows)
    write_rows(tmp_path / "rte" / "dev.jsonl.gz", [*rows, {**rows[0], "label": "maybe"}])
    with pytest.raises(InputError, match=r"dev.jsonl.gz, example 3.*no, yes.*'maybe'"):
        read_tasks("rte", tmp_path)


GOOD = [
    {"sentence1": f"a {n}", "sentence2": f"b {n}", "score": n % 5, "year": 2012, "set": "A",
     "split": "test", "in_stsb": False}
    for n in range(9)
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": 99}, "row 3: expected a number from 0 to 5 in the column 'score'; got 99"),
        ({"score": -1}, "row 3: expected a number from 0 to 5"),
        ({"score": None}, "row 3: expected a number from 0 to 5"),
        ({"sentence1": ""}, "row 3: expected a text in the column 'sentence1'; got ''"),
        ({"sentence2": " \n"}, "row 3: expected a text in the column 'sentence2'"),
    ],
)
def test_rows_that_cannot_be_measured(tmp_path, change, message):
    file = tmp_path / "stsb" / "en_test.jsonl.gz"
    write_rows(file, [{**row, **change} if n == 2 else row for n, row in enumerate(GOOD)])
    with pytest.raises(InputError) as caught:
        read_tasks("stsb", tmp_path)
    assert message in str(caught.value)


def test_too_little_to_measure_is_told_when_it_is_read(data, tmp_path):
    file = tmp_path / "stsb" / "en_test.jsonl.gz"
    write_rows(file, GOOD[:2])
    with pytest.raises(InputError, match=r"en_test.jsonl.gz: expected at least 3 pairs, got 2"):
        read_tasks("stsb", tmp_path)
    write_rows(file, [{**row, "score": 2} for row in GOOD])
    with pytest.raises(InputError, match=r"en_test.jsonl.gz: expected scores that differ.*2"):
        read_tasks("stsb", tmp_path)
    file = tmp_path / "sts12_14" / "sts12_14.jsonl.gz"
    write_rows(file, [{**row, "in_stsb": True} for row in GOOD])
    with pytest.raises(InputError, match=r"sts12_14.jsonl.gz: expected rows with False in the col"):
        read_tasks("sts12_14", tmp_path)
    assert len(read_tasks("sts12_14", tmp_path, seen=True)) == 1
    with pytest.raises(InputError, match=r"with 'train' in the column 'split'; there are 'test'"):
        read_tasks("sts12_14", tmp_path, split="dev")
    titles = tmp_path / "stackoverflow_titles" / "stackoverflow_titles.jsonl.gz"
    write_rows(titles, [{"text": f"title {n}", "label": "linq"} for n in range(9)])
    with pytest.raises(InputError, match="two classes, got linq alone"):
        read_tasks("stackoverflow_titles", tmp_path)


@pytest.mark.parametrize(("file", "name"), [("queries", "query_id"), ("corpus", "doc_id")])
def test_an_id_that_stands_twice_is_refused(tmp_path, file, name):
    folder = write_tasks(tmp_path) / "scifact"
    rows = [
        {"query_id": "0", "doc_id": "0", "split": "test", "text": text, "title": "t"}
        for text in ("one", "two")
    ]
    write_rows(folder / f"{file}.jsonl.gz", rows)
    with pytest.raises(InputError, match=rf"{file}.jsonl.gz.*'{name}'.*'0' more than once"):
        read_tasks("scifact", tmp_path)


def test_an_empty_document_can_be_searched(tmp_path):
    folder = write_tasks(tmp_path) / "cranfield"
    documents = [{"doc_id": str(n), "text": "" if n == 8 else f"text {n}"} for n in range(9)]
    write_rows(folder / "corpus.jsonl.gz", documents)
    assert read_tasks("cranfield", tmp_path)[0].columns[1][8] == ""


def test_a_correlation_that_is_not_defined_is_explained(data):
    class Same(Words):
        def encode(self, texts):
            return np.ones((len(texts), 3), np.float32)

    made = evaluate_encoder(Same(), "stsb", data, n_resamples=10)
    assert np.isnan(figure(made, "stsb", "test", "spearman_cosine").value)
    (note,) = made.decisions
    assert note.name == "stsb_test_not_defined" and "equal for all 40 pairs" in note.message


def test_one_class_alone_has_no_area_under_a_curve(tmp_path):
    write_tasks(tmp_path)
    rows = [{"premise": f"a {n}", "hypothesis": f"b {n}", "label": "entailment"} for n in range(5)]
    write_rows(tmp_path / "rte" / "dev.jsonl.gz", rows)
    made = evaluate_encoder(Words(), "rte", tmp_path, n_resamples=10)
    assert {score.metric for score in made.scores} == {"head_accuracy"}
    assert any("no entailment_auc" in decision.message for decision in made.decisions)


def test_pairs_of_the_user_that_cannot_be_measured(tmp_path):
    path = tmp_path / "mine.csv"

    def refused(rows, columns=("a", "b", "s")):
        path.write_text("a,b,s\n" + rows)
        with pytest.raises(InputError) as caught:
            read_pairs(path, columns)
        return str(caught.value)

    assert "mine.csv: expected at least 3 pairs, got 1" in refused("x,y,3\n")
    assert "row 2: expected a text in the column 'a'; got ''" in refused("x,y,3\n,z,2\nv,w,1\n")
    assert "different columns; got 'a' twice" in refused("x,y,3\n", ("a", "a", "s"))


@pytest.mark.slow
@pytest.mark.benchmark_data
def test_every_real_data_set_is_read(data_folder):
    sets = {(one.task, one.file): one for one in read_tasks(list(TASKS), data_folder)}
    assert len({task for task, _ in sets}) == len(TASKS)
    assert sets["scifact", "test"].relevance.shape == (300, 5183)
    assert sets["scifact", "test"].relevance.nnz == 339
    assert sets["cranfield", "all"].relevance.nnz == 1837 - 225  # one of each query has no code
    assert len(sets["lingnli", "val"].labels) == 7371
    assert len(sets["lingnli", "val"].train_labels) == 10_000
    assert len(sets["xnli_de", "test"].labels) == 5010
    assert sets["rte", "dev"].names == ("entailment", "not_entailment")
    assert len(sets["sick", "test"].scores) == 4927
    assert sum(len(o.scores) for (t, _), o in sets.items() if t == "sts12_14" and not o.pooled) == (
        7608 - 3750
    )
    assert len(sets["multi30k", "en-fr"].columns[0]) == 1000
    assert len(sets["stackoverflow_titles", "all"].labels) == 5000


@pytest.mark.slow
@pytest.mark.benchmark_data
def test_the_default_model_scores_what_is_published(data_folder):
    """As in the Massive Text Embedding Benchmark (Muennighoff et al., 2023)."""
    sets = read_tasks(["stsb", "sts12_14"], data_folder, seen=True)
    published = {"test": 0.8203, "2013 pooled": 0.8060, "2014 pooled": 0.7559}
    sets = [one for one in sets if one.file in published]
    made = evaluate_encoder(SentenceEncoder(), sets)
    found = {s.file: s.estimate for s in made.scores if s.metric == "spearman_cosine"}
    for file, value in published.items():
        assert found[file].value == pytest.approx(value, abs=0.0005), file
        assert found[file].low < value < found[file].high
    assert [found[file].n for file in published] == [1379, 1500, 3750]
