"""Encoders on examples with known answers: scores, paired differences, and what is refused."""

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from embedtopics.comparison import evaluate_encoders
from embedtopics.encoders import TfidfEncoder
from embedtopics.evaluation import read_retrieval_set
from embedtopics.evaluation._pairs import pair_similarities
from embedtopics.training import read_examples
from embedtopics.training._compare import compare_before_after
from tests.evaluation.task_data import Words, write_pairs, write_retrieval
from tests.factories import Table, encodes, refuses
from tests.training.tables import examples_of, random_vectors

ROW = ["before", "after", "difference", "low", "high", "n", "verdict"]


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    path = write_pairs(tmp_path_factory.mktemp("pairs") / "graded.csv")
    return read_examples(path, "graded", scale=(0, 6))


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    return read_retrieval_set(write_retrieval(tmp_path_factory.mktemp("tiny")))


def score(scores, encoder, task, metric):
    frame = scores.to_frame().set_index(["encoder", "task", "metric"])
    return frame.loc[(encoder, task, metric)]


def test_scores_are_those_of_the_libraries(graded):
    scores = evaluate_encoders(Words(), graded, n_resamples=200)
    near = pair_similarities(*map(Words().encode, graded.columns))
    found = score(scores, "words 0", "graded.csv", "Spearman correlation")
    assert found["value"] == pytest.approx(spearmanr(near, graded.labels)[0], abs=1e-6)
    assert found["n"] == 40 and found["low"] < found["value"] < found["high"]
    assert list(scores.to_frame()) == ["encoder", "task", "metric", "value", "low", "high", "n"]
    assert repr(scores) == "EncoderScores(words 0: 2 scores on 1 sets)"
    assert "Spearman" in scores._repr_html_() and scores.differences().empty


def test_differences_are_those_of_a_training_report(toy):
    rng = np.random.default_rng(3)
    texts, rows, themes = toy
    a, b = list(dict.fromkeys(texts))[:40], list(dict.fromkeys(texts))[40:80]
    test = examples_of("graded", (a, b), rng.integers(0, 6, 40) / 5)
    pairs = examples_of("pairs", (a, b))
    before = Table(dict(zip(texts, rows, strict=True)))
    after = Table(random_vectors(texts, 9, 16))

    expected = compare_before_after(
        before, after, test=test, general={"other": pairs}, corpus=texts, labels=themes,
        n_resamples=200,
    )  # fmt: skip
    scores = evaluate_encoders(
        {"one": before, "two": after}, {"test": test, "other": pairs}, corpus=texts,
        labels=themes, n_resamples=200,
    )  # fmt: skip

    found = scores.differences()
    known = pd.DataFrame([asdict(change) for change in expected])
    pd.testing.assert_frame_equal(found[["task", "metric", *ROW]], known[["task", "metric", *ROW]])
    assert set(found["encoder"]) == {"two"} and set(found["against"]) == {"one"}
    for row in found[found["verdict"] != "descriptive"].itertuples():
        for name, value in (("one", row.before), ("two", row.after)):
            own = score(scores, name, row.task, row.metric)
            assert own["value"] == pytest.approx(value) and own["low"] <= own["high"]


def test_each_of_several_encoders_is_compared_with_the_first(graded, searched):
    encoders = [Words(seed=seed) for seed in range(3)]
    sets = {"pairs": graded, "search": searched}
    scores = evaluate_encoders(encoders, sets, n_resamples=100)
    frame = scores.differences()
    assert frame["encoder"].unique().tolist() == ["words 1", "words 2"]
    assert set(frame["against"]) == {"words 0"} and len(scores.to_frame()) == 3 * 8
    alone = evaluate_encoders(encoders[::2], sets, n_resamples=100).differences()
    pd.testing.assert_frame_equal(
        frame[frame["encoder"] == "words 2"][ROW].reset_index(drop=True), alone[ROW]
    )


def test_search_finds_the_document_of_each_query(searched):
    scores = evaluate_encoders([Words()], searched, n_resamples=100)
    task = searched.source
    assert score(scores, "words 0", task, "ndcg@10")["value"] == 1.0
    assert score(scores, "words 0", task, "recall@10")["value"] == 1.0
    assert score(scores, "words 0", task, "mrr@10")["n"] == 8


def test_each_text_is_encoded_once(graded, tmp_path):
    encoder = Words()
    second = read_examples(write_pairs(tmp_path / "second.csv", 20), "graded", scale=(0, 6))
    scores = evaluate_encoders(encoder, [graded, second], n_resamples=100)
    warming, texts = encoder.calls
    assert len(texts) == len(set(texts)) == scores.n_texts["words 0"] and texts[:4] == warming
    assert scores.texts_per_second["words 0"] == len(texts) / scores.seconds["words 0"]
    assert scores.to_frame()["task"].unique().tolist() == ["graded.csv", "second.csv"]


def test_the_order_of_rows_changes_no_figure(graded):
    turned = graded.take(np.arange(len(graded))[::-1])
    encoders = [Words(seed=0), Words(seed=1)]
    first, second = (
        evaluate_encoders(encoders, {"x": one}, n_resamples=100) for one in (graded, turned)
    )
    pd.testing.assert_frame_equal(first.to_frame(), second.to_frame())
    pd.testing.assert_frame_equal(first.differences(), second.differences())


def test_classed_pairs_are_separated_by_their_cosines():
    rows = [("x y", "x y", 1), ("p q", "v w", 0), ("m", "n", 0), ("k l", "k l", 1)]
    scores = evaluate_encoders(Words(), read_examples(rows, "classed"), n_resamples=100)
    assert dict(zip(scores.to_frame()["metric"], scores.to_frame()["value"], strict=True)) == {
        "AUC": 1.0, "average precision": 1.0,
    }  # fmt: skip


def test_an_encoder_that_is_fitted_to_texts_is_copied_and_may_be_sparse(graded, searched):
    encoder = TfidfEncoder()
    scores = evaluate_encoders(encoder, {"a": graded, "b": searched}, n_resamples=100)
    assert not encoder.is_fitted and scores.decisions[-1].name == "fitted"
    found = scores.to_frame().set_index("metric")["value"]
    assert found["Spearman correlation"] > 0.5 and found["ndcg@10"] > 0.9


def test_bad_input_is_named(graded):
    for parameter, arguments, named in (
        ("examples", (Words(),), {}),
        ("examples", (Words(), "pairs.csv"), {}),
        ("examples", (Words(), {"x": ["a"]}), {}),
        ("examples", (Words(), [graded, graded]), {}),
        ("encoders", (graded, Words()), {}),
        ("encoders", ([], graded), {}),
        ("encoders", ([Words(), Words()], graded), {}),
        ("encoders", ([3], graded), {}),
        ("corpus", (Words(), graded), {"labels": "label"}),
        ("n_resamples", (Words(), graded), {"n_resamples": 5}),
        ("encoders", (TfidfEncoder(),), {"corpus": [f"word {i}" for i in range(20)]}),
    ):
        with refuses(parameter):
            evaluate_encoders(*arguments, **named)


def test_vectors_that_do_not_fit_are_refused(graded):
    with refuses("encoders"):
        evaluate_encoders(encodes(lambda t: np.ones((1, 2))), graded, n_resamples=100)
    with pytest.raises(ValueError, match="finite"):
        evaluate_encoders(encodes(lambda t: np.full((len(t), 2), np.nan)), graded)


def test_a_correlation_that_is_not_defined_is_explained(graded):
    blind = encodes(lambda texts: np.ones((len(texts), 3)))
    scores = evaluate_encoders({"a": Words(), "b": blind}, graded, n_resamples=100)
    assert np.isnan(score(scores, "b", "graded.csv", "Spearman correlation")["value"])
    assert scores.differences()["note"].str.contains("same similarity").all()
