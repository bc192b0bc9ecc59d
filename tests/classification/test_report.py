"""Scores beside scikit-learn's, intervals over groups, calibration, abstention, wrong labels."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import (
    accuracy_score,
    cohen_kappa_score,
    f1_score,
    mean_absolute_error,
    precision_recall_fscore_support,
)

from embedtopics import TextClassifier, plots
from embedtopics.classification import evaluate, suspicious_labels
from embedtopics.classification._heads import (
    calibrate,
    calibration_error,
    log_loss,
    risk_coverage,
    threshold_for,
)
from embedtopics.classification._report import confident_errors
from tests.classification.conftest import themed_texts
from tests.factories import refuses

ORDER = ["fruit", "train", "chess"]


def score(report, metric, name=None):
    table = report.to_frame()
    table = table[(table["of"] == "classifier") & (table["metric"] == metric)]
    (row,) = table[[cell == name for cell in table["class"]]].itertuples(index=False)
    return row


@pytest.fixture(scope="module")
def sets():
    texts, themes = themed_texts(300, noise=0.6)
    return (texts[:180], themes[:180]), (texts[180:], themes[180:])


@pytest.fixture(scope="module")
def ordinal(counted, sets):
    model = TextClassifier(counted, head="ordinal", classes=ORDER).fit(*sets[0])
    return model, evaluate(model, sets[1], sets[0])


def test_scores_are_those_of_scikit_learn(ordinal, sets):
    model, report = ordinal
    texts, truth = sets[1]
    guess = model.predict(texts)
    precision, recall, f1, n = precision_recall_fscore_support(
        truth, guess, labels=ORDER, zero_division=0
    )
    for place, name in enumerate(ORDER):
        for metric, wanted in (("precision", precision), ("recall", recall), ("f1", f1)):
            one = score(report, metric, name)
            assert np.isclose(one.value, wanted[place]) and one.n == n[place]
            assert 0 <= one.low <= one.value <= one.high <= 1
    number = {name: place for place, name in enumerate(ORDER)}
    codes = [[number[one] for one in side] for side in (truth, guess)]
    wanted = {
        "accuracy": accuracy_score(truth, guess),
        "macro F1": f1_score(truth, guess, average="macro", zero_division=0),
        "quadratic kappa": cohen_kappa_score(*codes, weights="quadratic"),
        "mean absolute error": mean_absolute_error(*codes),
    }
    for metric, value in wanted.items():
        one = score(report, metric)
        assert np.isclose(one.value, value) and one.low < value < one.high
    assert report.confusion.sum() == 120 and report.confusion[0, 0] == sum(
        t == g == "fruit" for t, g in zip(truth, guess, strict=True)
    )


def test_baselines_stand_beside_it(ordinal, sets):
    frame = ordinal[1].to_frame()
    accuracy = frame[frame.metric == "accuracy"].set_index("of")["value"]
    most = max(ORDER, key=sets[0][1].count)
    assert np.isclose(accuracy["most frequent"], np.mean([t == most for t in sets[1][1]]))
    assert accuracy["TF-IDF, logistic regression"] > accuracy["most frequent"]
    assert "best baseline" in repr(ordinal[1]) and "<table" in ordinal[1]._repr_html_()


def test_copies_make_no_interval_narrower(counted, sets):
    model = TextClassifier(counted).fit(*sets[0])
    texts, themes = sets[1]
    once = evaluate(model, (texts[:40], themes[:40]), sets[0])
    often = evaluate(model, (texts[:40] * 6, themes[:40] * 6), sets[0])
    assert often.n == 240 and often.n_groups == once.n_groups
    first, second = score(once, "accuracy"), score(often, "accuracy")
    assert np.isclose(first.value, second.value)
    assert np.isclose(first.high - first.low, second.high - second.low, rtol=0.1)


def test_looks_at_a_test_set_are_counted_and_saved(tmp_path, counted, sets):
    model = TextClassifier(counted).fit(*sets[0])
    assert evaluate(model, sets[1], sets[0]).n_looks == 1
    turned = tuple(side[::-1] for side in sets[1])
    assert evaluate(model, turned, sets[0]).n_looks == 2
    model.save(tmp_path / "model")
    again = TextClassifier(counted).fit(*sets[0])
    again.save(tmp_path / "model")
    loaded = TextClassifier.load(tmp_path / "model", encoder=counted)
    report = evaluate(loaded, sets[1], sets[0])
    assert report.n_looks == 3 and [d.name for d in report.decisions] == ["looks"]
    overlap = evaluate(model, sets[0], sets[0])
    assert [d.value for d in overlap.decisions if d.name == "overlap"] == [180]


def test_several_labels_have_scores_of_their_own(counted):
    first, themes = themed_texts(200)
    second, others = themed_texts(200, seed=1)
    both = [f"{a} {b}" for a, b in zip(first, second, strict=True)]
    y = [[a, b] for a, b in zip(themes, others, strict=True)]
    model = TextClassifier(counted, head="multilabel").fit(both[:120], y[:120])
    report = evaluate(model, (both[120:], y[120:]), (both[:120], y[:120]))
    truth = [[name in labels for name in model.classes_] for labels in y[120:]]
    wanted = f1_score(np.array(truth, dtype=int), model.predict(both[120:]), average="micro")
    assert np.isclose(score(report, "micro F1").value, wanted) and report.confusion is None
    with refuses("report"):
        plots.confusion(report)


def test_what_cannot_be_measured_is_refused(ordinal, sets):
    model, _ = ordinal
    with refuses("y", row=1):
        evaluate(model, (["apple", "pawn"], ["fruit", "music"]), sets[0])
    with refuses("test"):
        evaluate(model, ([], []), sets[0])
    with refuses("texts"):
        suspicious_labels(model, *sets[1])


def test_temperature_minimizes_the_loss_of_left_out_texts():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2000, 3))
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = np.array([rng.choice(3, p=row) for row in chances])
    found = calibrate("temperature", "softmax", logits * 4, codes)
    grid = np.linspace(2, 8, 241)
    losses = [log_loss("softmax", logits * 4 / t, codes) for t in grid]
    assert abs(found.temperature - grid[np.argmin(losses)]) < 0.05
    errors = [
        calibration_error(p.max(axis=1), p.argmax(axis=1) == codes)[0]
        for p in (
            calibrate(None, "softmax", logits * 4, codes).apply(logits * 4),
            found.apply(logits * 4),
        )
    ]
    assert errors[0] > 0.15 and errors[1] < 0.05


def test_calibration_error_by_hand():
    error, bins = calibration_error(np.array([0.9, 0.6, 0.8, 0.7]), np.array([1, 0, 1, 0]), 2)
    assert np.allclose(bins, [[0.65, 0, 2], [0.85, 1, 2]])
    assert np.isclose(error, (0.65 + 0.15) / 2)


def test_bounds_of_the_error_are_clopper_and_pearsons():
    sure = np.linspace(1, 0, 200)
    right = np.arange(200) % 10 != 9
    curve = risk_coverage(sure, right)
    assert np.allclose(curve.coverage, np.arange(1, 11) / 10)
    for place in (0, 4, 9):
        n = 20 * (place + 1)
        wrong = int((~right[:n]).sum())
        high = binomtest(wrong, n).proportion_ci(1 - 0.01, "exact").high  # 0.005 on each side
        assert np.isclose(curve.high[place], high) and np.isclose(curve.error[place], wrong / n)
    with refuses("max_error"):
        threshold_for(0.05, curve)
    assert threshold_for(0.5, curve) == 0.0
    tied = risk_coverage(np.ones(50), np.ones(50, dtype=bool))
    assert tied.coverage.tolist() == [1.0]


def test_the_allowed_error_holds_in_nineteen_of_twenty_samples():
    rng = np.random.default_rng(5)
    n_broken = 0
    for _ in range(400):
        sure = rng.uniform(0.5, 1, 400)
        curve = risk_coverage(sure, rng.random(400) < sure)
        if curve.high.min() <= 0.1:
            # The error of a text is 1 - sure: their mean is known.
            n_broken += 1 - (1 + threshold_for(0.1, curve)) / 2 > 0.1
    assert n_broken <= 20


def test_predictions_are_held_back(counted, sets):
    model = TextClassifier(counted).fit(*themed_texts(600, noise=0.5))
    found = model.predict(sets[1][0], max_error=0.2)
    kept = np.array([one is not None for one in found])
    assert 0 < kept.sum() < len(found)
    assert (found[kept] == model.predict(sets[1][0])[kept]).all()
    assert model.predict("apple plum cherry") == model.predict(["apple plum cherry"])[0]
    least = model.risk_coverage().high.min()
    with refuses("max_error") as refused:
        model.predict(sets[1][0], max_error=least - 0.002)
    named = float(str(refused.value).split("at least ")[1].split(",")[0])
    assert least <= named < least + 0.001
    assert any(one is not None for one in model.predict(sets[1][0], max_error=named))
    for error in (0.0, 1.0, "a"):
        with refuses("max_error"):
            model.predict(sets[1][0], max_error=error)
    with refuses("calibration"):
        bare = TextClassifier(counted).fit(*sets[0])
        bare.left_out_scores_ = np.empty((0, 0))
        bare.predict(sets[1][0], max_error=0.2)


# Probabilities of three classes in percent, and the label. The rows below, by the probability of
# the label, are those of find_label_issues(filter_by="confident_learning",
# return_indices_ranked_by="self_confidence") of cleanlab 2.9.0.
LABELLED = np.array([
    (3, 77, 20, 2), (8, 66, 26, 2), (44, 32, 24, 0), (55, 25, 20, 2),
    (26, 73, 1, 1), (36, 23, 41, 1), (7, 60, 33, 1), (57, 13, 30, 0),
    (9, 7, 84, 2), (5, 61, 34, 0), (7, 80, 13, 0), (36, 61, 3, 1),
    (14, 22, 64, 1), (5, 90, 5, 1), (13, 4, 83, 0), (12, 80, 8, 0),
    (59, 36, 5, 0), (19, 73, 8, 0), (40, 18, 42, 0), (17, 22, 61, 2),
    (35, 6, 59, 0), (26, 48, 26, 1), (76, 14, 10, 2), (16, 73, 11, 0),
])  # fmt: skip
WRONG_BY_CLEANLAB = [9, 10, 22, 15, 14, 23, 17, 0, 3, 12, 5, 1, 20, 18]


def test_wrong_labels_are_those_of_cleanlab():
    chances, codes = LABELLED[:, :3] / 100, LABELLED[:, 3]

    suspects, suggested = confident_errors(chances, codes)

    assert suspects.tolist() == sorted(WRONG_BY_CLEANLAB)
    assert (suggested == chances[suspects].argmax(axis=1)).all()


def test_most_labels_that_were_exchanged_are_suspicious(counted):
    texts, y = themed_texts(300, noise=0.1)
    exchanged = np.random.default_rng(0).choice(300, 30, replace=False).tolist()
    for row in exchanged:
        y[row] = ORDER[(ORDER.index(y[row]) + 1) % 3]

    table = suspicious_labels(TextClassifier(counted).fit(texts, y), texts, y)

    assert len(set(table["row"]) & set(exchanged)) > 20
    assert (table["suggested"] != table["label"]).all()
    assert table["probability"].is_monotonic_increasing


def test_the_figures_show_what_was_measured(ordinal):
    report = ordinal[1]
    heat = plots.confusion(report).data[0]
    assert np.allclose(np.asarray(heat.z).sum(axis=1), 1)
    assert list(plots.reliability(report).data[1].y) == report.calibration[:, 1].tolist()
    assert list(plots.risk_coverage(report).data[1].y) == report.risk_coverage.error.tolist()
    named = replace(report, classes=("<b>x</b>", "y", "z"))
    assert "&lt;b&gt;" in plots.confusion(named).layout.yaxis.ticktext[0]
