"""Figures of whole probes, against scikit-learn, hand counts and what was put into the vectors."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score

from embedtopics import probing
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_counts
from embedtopics.probing.probes._scores import (
    Answers,
    control_target,
    measured,
    most_frequent_of_type,
)
from embedtopics.probing.probes._units import DEV, TEST, TRAIN, label_units
from embedtopics.probing.results import ProbeTask
from tests.factories import refuses
from tests.probing.made import made_states, random_states, reordered, rows_of
from tests.probing.probes.problems import TAGS, tagged_states

STATES, TAGGED = tagged_states()


@pytest.fixture(scope="module")
def scores():
    return probing.probe(STATES, TAGGED, control=True)


def value(scores, what, metric, layer=None):
    found = rows_of(scores, what=what, metric=metric)
    (row,) = [one for one in found if one.layer == layer or (layer is None and pd.isna(one.layer))]
    return row.value


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_each_layer_is_read_as_well_as_by_the_best_of_scikit_learn(scores, layer):
    units = label_units(STATES, TAGGED, 0)
    x = STATES.layer(layer)[units.rows].astype(np.float64)
    train, dev, test = (units.of(part) for part in (TRAIN, DEV, TEST))
    x = (x - x[train].mean(axis=0)) / x[train].std(axis=0)
    fits = [
        LogisticRegression(C=1 / penalty, max_iter=1000).fit(x[train], units.target[train])
        for penalty in (1000, 100, 10, 1)
    ]
    losses = [
        -one.predict_log_proba(x[dev])[range(len(dev)), units.target[dev]].mean() for one in fits
    ]
    said = fits[int(np.argmin(losses))].predict(x[test])
    oracle = accuracy_score(units.target[test], said)
    assert value(scores, "probe", "accuracy", layer) == pytest.approx(oracle, abs=0.01)
    oracle = f1_score(units.target[test], said, average="macro")
    assert value(scores, "probe", "macro F1", layer) == pytest.approx(oracle, abs=0.015)


def test_more_signal_gives_more_and_a_control_gives_nothing(scores):
    found = [one.value for one in rows_of(scores, what="probe", metric="accuracy")]
    assert found[0] < 0.6 < found[1] < found[2] and found[2] > 0.95
    assert scores.best()["layer"] == 2
    # Vectors do not depend on the word type here, so that nothing can be memorized.
    (types,) = [one.value for one in scores.decisions if one.name == "known_types"]
    assert 0.8 < types < 0.95
    for one in rows_of(scores, what="control", metric="accuracy"):
        assert one.value < 0.65
    for layer in range(3):
        probe, control = (value(scores, what, "accuracy", layer) for what in ("probe", "control"))
        above = probe - control
        assert value(scores, "probe", "selectivity", layer) == pytest.approx(above, abs=1e-12)


def test_a_control_is_learnt_where_each_type_has_its_own_vector():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 48))
    texts = [" ".join(f"w{i}" for i in rng.integers(0, 40, 6)) for _ in range(150)]
    rows = np.array([int(word[1:]) for text in texts for word in text.split()])
    states = made_states(texts, vectors[rows][None])
    tags = [TAGS[number % 3] for number in rows]
    scores = probing.probe(states, tags, control=True)
    assert value(scores, "control", "accuracy", 0) > 0.99
    assert value(scores, "probe", "selectivity", 0) < 0.01
    assert value(scores, "word type", "accuracy") == 1
    (known,) = [one for one in scores.decisions if one.name == "known_types"]
    assert known.value > 0.99


def test_baselines_are_counted_by_hand(few_steps):
    texts = ["a b", "a c", "a b", "a d", "b c", "a e", "b a c f"]
    texts = [f"{text} x{i}" for i, text in enumerate(texts)]
    tags = [["N", "V", ""], ["N", "A", ""], ["N", "V", ""], ["V", "V", ""],
            ["N", "A", ""], ["V", "N", ""], ["V", "N", "A", "V", ""]]  # fmt: skip
    parts = ["train"] * 5 + ["dev", "test"]
    task = ProbeTask("t", "word", tuple(texts), tuple(map(tuple, tags)), tuple(parts))
    scores = probing.probe(random_states(texts), task)
    # Learnt: a N N N V, b V V N, c A A, d V; the majority of 4 to 4 is N, the first.
    # Asked: b V (V), a N (N), c A (A), f V (N, the majority).
    assert value(scores, "majority", "accuracy") == 0.25
    assert value(scores, "word type", "accuracy") == 0.75
    right = f1_score(["V", "N", "A", "V"], ["V", "N", "A", "N"], average="macro")
    assert value(scores, "word type", "macro F1") == pytest.approx(right)
    assert (scores.n_train, scores.n_dev, scores.n_test) == (10, 2, 4)
    assert scores.labels == ("A", "N", "V")


def test_of_equally_frequent_classes_of_a_type_the_more_frequent_of_all_wins():
    types = ["a", "a", "b", "b", "c"]
    target = np.array([0, 1, 2, 0, 1])
    found = most_frequent_of_type([*types, "d"], np.append(target, 1), ["a", "b", "z"], 3)
    assert found.tolist() == [1, 0, 1]


def test_the_embedding_layer_and_a_random_model_are_baselines(few_steps):
    other, _ = tagged_states(seed=5, signals=(0.0, 0.0, 0.0))
    other = replace(other, texts=STATES.texts, words=STATES.words)
    scores = probing.probe(STATES, TAGGED, layers=[2], baseline=other)
    alone = probing.probe(STATES, TAGGED, layers=0)
    assert value(scores, "embedding layer", "accuracy", 0) == alone.best()["value"]
    assert [one.layer for one in rows_of(scores, what="random model", metric="accuracy")] == [2]
    assert value(scores, "random model", "accuracy", 2) < 0.6
    assert value(scores, "probe", "accuracy", 2) > 0.9
    kept = replace(STATES, layers=(1, 2), vectors=STATES.vectors[1:])
    scores = probing.probe(kept, TAGGED, layers=2)
    assert not rows_of(scores, what="embedding layer")


def test_results_do_not_depend_on_the_order_of_the_texts(few_steps):
    shuffled, order = reordered(STATES)
    tags = [TAGGED[i] for i in order]
    first = probing.probe(STATES, TAGGED, layers=[1], control=True)
    again = probing.probe(shuffled, tags, layers=[1], control=True)
    pd.testing.assert_frame_equal(again.to_frame(), first.to_frame(), check_exact=True)


def test_intervals_resample_whole_sentences():
    rng = np.random.default_rng(3)
    group = np.sort(rng.integers(0, 12, 70))
    asked, said = rng.integers(0, 3, (2, 70))
    other = np.where(rng.random(70) < 0.5, asked, said)
    answers = [Answers("x", 0, np.stack([said, other]), asked), Answers("y", 0, other[None], asked)]
    found = measured(answers, group, 4, seed=7)
    numbered = np.unique(group, return_inverse=True)[1]
    drawn = []
    for times in next(resampled_counts(numbered.max() + 1, 1000, 7))[:25]:
        rows = np.repeat(np.arange(70), times[numbered].astype(int))
        drawn.append([
            (np.mean(one[rows] == asked[rows]), f1_score(asked[rows], one[rows], average="macro"))
            for one in (said, other)
        ])  # fmt: skip
    drawn = np.array(drawn)
    for figure, metric in zip(found[0], (0, 1), strict=True):
        expected = drawn[:, :, metric].mean(axis=1)
        np.testing.assert_allclose(figure.drawn[:25], expected, atol=1e-12)
        ends = bounded_interval(figure.value, figure.drawn, figure.n_units)
        assert (figure.low, figure.high) == ends
    np.testing.assert_allclose(found[1][1].drawn[:25], drawn[:, 1, 1], atol=1e-12)
    assert found[1][0].value == np.mean(other == asked)


def test_any_vectors_of_the_units_can_be_probed(few_steps):
    together = np.concatenate([STATES.layer(1), STATES.layer(2)], axis=1)
    found = probing.probe(STATES, TAGGED, vectors=together, control=True)
    same = probing.probe(STATES, TAGGED, vectors=STATES.layer(2))
    layers = probing.probe(STATES, TAGGED, layers=2)
    assert same.best(what="combination")["value"] == layers.best()["value"]
    assert found.best(what="combination")["value"] > 0.95
    assert {"combination", "word type", "control", "majority"} <= set(found.to_frame()["what"])
    assert rows_of(found, what="combination", metric="selectivity")
    assert {score.layer for score in rows_of(found, what="embedding layer", metric="accuracy")} == {
        0
    }


def test_states_of_whole_texts_are_probed(few_steps):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 150)
    vectors = rng.normal(size=(1, 150, 4))
    vectors[0, :, 1] += 6 * label
    states = made_states([f"text{i}" for i in range(150)], vectors, unit="text")
    tags = ["yes" if one else "no" for one in label]
    scores = probing.probe(states, tags)
    assert scores.best()["value"] > 0.95
    assert not rows_of(scores, what="word type")
    task = ProbeTask("t", "text", states.texts, tuple((tag,) for tag in tags))
    same = probing.probe(states, task).to_frame().drop(columns="task")
    expected = scores.to_frame().drop(columns="task")
    pd.testing.assert_frame_equal(same, expected, check_exact=True)
    with refuses("control"):
        probing.probe(states, tags, control=True)


def test_control_labels_are_drawn_by_type_from_how_frequent_labels_are():
    types = [f"word{i}" for i in range(20_000)]
    found = control_target(types, np.array([6, 3, 1]), 1)
    np.testing.assert_allclose(np.bincount(found) / len(found), [0.6, 0.3, 0.1], atol=0.012)
    again = control_target(["new", *reversed(types), "word3"], np.array([12, 6, 2]), 1)
    assert again[1:-1].tolist() == found[::-1].tolist() and again[-1] == found[3]
    assert np.mean(control_target(types, np.array([6, 3, 1]), 2) == found) < 0.55
    assert set(control_target(types, np.array([0, 5, 0, 5, 0]), 0).tolist()) == {1, 3}
