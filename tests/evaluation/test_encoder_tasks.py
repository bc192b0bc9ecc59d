"""Encoders on examples with known answers: what is read, what is measured, what is refused."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from embedtopics.encoders import TfidfEncoder
from embedtopics.evaluation import (
    evaluate_encoder,
    read_pairs,
    read_retrieval_set,
    score_differences,
)
from embedtopics.evaluation._bootstrap import interval
from embedtopics.evaluation._encoder_tasks import ClassedPairs, GradedPairs
from embedtopics.evaluation._pairs import pair_similarities
from tests.evaluation.task_data import Words, write_pairs, write_retrieval
from tests.factories import encodes, refuses


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    return read_pairs(write_pairs(tmp_path_factory.mktemp("pairs") / "graded.csv"))


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    return read_retrieval_set(write_retrieval(tmp_path_factory.mktemp("tiny")))


def figure(scores, task, file, metric):
    (found,) = [
        score.estimate
        for score in scores
        if (score.task, score.file, score.metric) == (task, file, metric)
    ]
    return found


def test_similarity_is_the_correlation_of_the_pairs(graded):
    scores = evaluate_encoder(Words(), graded)
    near = pair_similarities(*map(Words().encode, graded.columns))
    found = figure(scores, "pairs", "graded.csv", "spearman_cosine")
    assert found.value == pytest.approx(spearmanr(near, graded.scores)[0], abs=1e-9)
    assert found.n == 40 and found.low < found.value < found.high
    frame = scores.to_frame()
    assert list(frame) == ["task", "file", "metric", "value", "low", "high", "n"]
    assert "words 0" in repr(scores) and "spearman_cosine" in scores._repr_html_()


def test_search_finds_the_document_of_each_query(searched, tmp_path):
    scores = evaluate_encoder(Words(), searched)
    file = searched.file
    assert figure(scores, "retrieval", file, "ndcg@10").value == 1.0
    assert figure(scores, "retrieval", file, "mrr@10").n == 8  # the ninth has no judgement
    assert figure(scores, "retrieval", file, "recall@10").value == 1.0
    zipped = read_retrieval_set(write_retrieval(tmp_path, ".gz"))
    assert zipped.fingerprint() == searched.fingerprint()


def test_each_text_is_encoded_once(graded, tmp_path):
    encoder = Words()
    second = read_pairs(write_pairs(tmp_path / "second.csv", 20))
    scores = evaluate_encoder(encoder, [graded, second])
    warming, texts = encoder.calls
    assert len(texts) == len(set(texts)) == scores.n_texts and texts[:4] == warming
    assert scores.seconds > 0 and scores.texts_per_second == scores.n_texts / scores.seconds
    assert [score.file for score in scores] == ["graded.csv", "second.csv"]


def test_the_order_of_rows_changes_no_figure(graded, tmp_path):
    head, *lines = write_pairs(tmp_path / "graded.csv").read_text().splitlines()
    (tmp_path / "graded.csv").write_text("\n".join([head, *lines[::-1]]))
    turned = read_pairs(tmp_path / "graded.csv")
    first, second = (evaluate_encoder(Words(), one) for one in (graded, turned))
    assert first.fingerprints == second.fingerprints
    for one, other in zip(first, second, strict=True):
        assert one.estimate.value == pytest.approx(other.estimate.value, abs=1e-12)
    (tmp_path / "graded.csv").write_text("\n".join([head, *lines[1:]]))
    assert read_pairs(tmp_path / "graded.csv").fingerprint() not in first.fingerprints.values()


def test_differences_are_paired(graded, searched):
    sets = [graded, searched]
    made = [evaluate_encoder(Words(seed=seed), sets) for seed in (0, 1)]
    frame = score_differences(made).set_index(["task", "file", "metric"])
    row = frame.loc[("pairs", "graded.csv", "spearman_cosine")]
    first, second = (figure(one, "pairs", "graded.csv", "spearman_cosine") for one in made)
    assert row["difference"] == pytest.approx(second.value - first.value)
    expected = interval(second.drawn - first.drawn, first.n)
    np.testing.assert_allclose([row["low"], row["high"]], expected)
    assert len(frame) == len(made[0]) and set(frame["against"]) == {"words 0"}
    with refuses("scores"):
        score_differences([made[0], evaluate_encoder(Words(), graded)])
    assert score_differences(made[:1]).empty


def test_an_encoder_that_is_fitted_to_texts_is_copied(graded, searched):
    encoder = TfidfEncoder()
    made = evaluate_encoder(encoder, [graded, searched])
    assert not encoder.is_fitted and made.decisions[-1].name == "fitted"
    assert figure(made, "pairs", "graded.csv", "spearman_cosine").value > 0.5


def test_pairs_of_scores_or_classes(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("a,b,s\nx y,x z,1\np q,p q,3\nm,n,0\n")
    graded = read_pairs(path, ["a", "b", "s"])
    assert isinstance(graded, GradedPairs) and graded.scores.tolist() == [1, 3, 0]
    path.write_text("a,b,s\nx y,x y,1\np q,v w,0\nm,n,0\n")
    classed = read_pairs(path, ["a", "b", "s"])
    assert isinstance(classed, ClassedPairs)
    scores = evaluate_encoder(Words(), [classed])
    assert {score.metric: score.estimate.value for score in scores} == {
        "average_precision": 1.0, "area_under_curve": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "columns", "parameter"),
    [("x,y,3\n", "abs", "mine.csv"), ("x,y,2\nu,z,2\nv,w,2\n", "abs", "mine.csv"),
     ("x,y,3\n,z,2\nv,w,1\n", "abs", "a in mine.csv"),
     ("x,y,3\nu, ,2\nv,w,1\n", "abs", "b in mine.csv"),
     ("x,y,3\nu,z,high\nv,w,1\n", "abs", "s in mine.csv"),
     ("x,y,3\n", "abt", "mine.csv")],
)  # fmt: skip
def test_pairs_that_cannot_be_measured(tmp_path, rows, columns, parameter):
    (tmp_path / "mine.csv").write_text("a,b,s\n" + rows)
    with refuses(parameter):
        read_pairs(tmp_path / "mine.csv", tuple(columns))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\tnowhere\t1\n"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq99\td1\t1\n"),
        ("corpus.jsonl", '{"_id": "d1", "text": "a"}\n{"_id": "d1", "text": "b"}\n'),
        ("corpus.csv", "_id,text\n"),
    ],
)
def test_retrieval_sets_that_cannot_be_measured(tmp_path, file, content):
    (write_retrieval(tmp_path) / file).write_text(content)
    with refuses("folder"):
        read_retrieval_set(tmp_path)
    with refuses("folder"):
        read_retrieval_set(tmp_path, split="dev")


def test_bad_vectors(graded):
    for vectors in (lambda t: np.ones((len(t) + 1, 2)), lambda t: np.full((len(t), 2), np.nan)):
        with refuses("vectors"):
            evaluate_encoder(encodes(vectors), graded)


def test_a_correlation_that_is_not_defined_is_explained(graded):
    made = evaluate_encoder(encodes(lambda texts: np.ones((len(texts), 3))), graded)
    assert np.isnan(figure(made, "pairs", "graded.csv", "spearman_cosine").value)
    (note,) = made.decisions
    assert (note.name, note.value) == ("not_defined", "pairs, graded.csv")
