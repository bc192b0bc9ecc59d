import dataclasses
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.training._curves import fit_shapes, learning_done, read_curves, step_at
from embedtopics.training.results import VERDICTS, Curves
from tests.training import curves_first, curves_second

KINDS = curves_first.KINDS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("generator", "n_runs", "least"),
    [
        (curves_first, 20, 18),
        pytest.param(curves_first, 200, 190, marks=pytest.mark.slow),
        # Real training of small networks.
        pytest.param(curves_second, 60, 54, marks=pytest.mark.slow),
    ],
)
def test_kinds_of_runs_are_recognized(kind, generator, n_runs, least):
    found = Counter()
    for seed in range(n_runs):
        with np.errstate(over="ignore", invalid="ignore"):  # networks that blow up on purpose
            curves = generator.draw(kind, seed)
        found[read_curves(curves).verdict] += 1
    assert found[kind] >= least, dict(found)


def changed(curves, factor, constant):
    losses = ("training_loss", "validation_loss", "sample_loss")
    return dataclasses.replace(
        curves, **{name: getattr(curves, name) * factor + constant for name in losses}
    )


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 50),
    factor=st.sampled_from([2.0**-10, 0.25, 8.0, 2.0**12]),
)
def test_the_scale_of_the_loss_changes_no_verdict(kind, seed, factor):
    curves = curves_first.draw(kind, seed)
    one, other = read_curves(curves), read_curves(changed(curves, factor, 0.0))
    assert one.verdict == other.verdict
    assert one.shares == other.shares
    assert other.evidence["value"][0] == pytest.approx(factor * one.evidence["value"][0])


@settings(max_examples=25, deadline=None)
@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 50), constant=st.floats(0, 20))
def test_a_constant_added_to_the_loss_makes_no_run_look_better(kind, seed, constant):
    curves = curves_first.draw(kind, seed)
    one, other = read_curves(curves), read_curves(changed(curves, 1.0, constant))
    assert other.verdict in (one.verdict, "learns nothing", "uncertain")
    assert other.shares["learns nothing"] >= one.shares["learns nothing"] - 0.05


def test_a_diagnosis_is_whole():
    found = read_curves(curves_first.draw("overlearning", 4))
    assert set(found.shares) == set(VERDICTS) and sum(found.shares.values()) == pytest.approx(1)
    assert found.confidence == found.shares[found.verdict]
    names = found.evidence["name"].tolist()
    assert len(set(names)) == len(names)
    assert {"learned", "late_slope", "late_step", "turn", "turn_step", "gap",
            "swings"} <= set(names)  # fmt: skip
    for item in found.evidence.itertuples():
        assert item.says and np.isfinite(item.value)


def drawn_by_hand(shape, n=21, planned=1000, noise=0.002, **changes):
    """A run of 4 epochs; `shape` gives validation and sample loss over the learning done."""
    rng = np.random.default_rng(0)
    steps = np.linspace(0, planned, n).round().astype(np.int64)
    validation, sample = shape(learning_done(steps, planned))
    training_steps = np.arange(10, planned + 1, 10)
    learned = shape(learning_done(training_steps, planned))[1]
    made = curves_first.draw("just right", 0)
    return dataclasses.replace(
        made,
        training_steps=training_steps,
        training_loss=learned + 0.05 * rng.normal(size=len(training_steps)),
        validation_steps=steps,
        validation_loss=validation + noise * rng.normal(size=n),
        sample_loss=sample + noise * rng.normal(size=n),
        steps_per_epoch=planned // 4,
        n_steps_planned=planned,
        **{"metric": np.full(n, np.nan), "metric_name": "", **changes},
    )


@pytest.mark.parametrize("n", [5, 8, 21])
@pytest.mark.parametrize("noise", [0.02, 0.04])
def test_no_verdict_speaks_against_a_clear_gain(n, noise):
    # The training loss is noisy and was noted twenty times: of itself it shows nothing.
    rng, found = np.random.default_rng(n), Counter()
    for _ in range(12):
        curves = drawn_by_hand(lambda done: (1 - 0.5 * done, 1 - 0.5 * done), n, noise=noise)
        steps = np.arange(50, 1001, 50)
        done = learning_done(curves.validation_steps, 1000)
        diagnosis = read_curves(
            dataclasses.replace(
                curves,
                training_steps=steps,
                training_loss=1 - 0.5 * learning_done(steps, 1000) + rng.normal(size=20),
                validation_loss=1.1 - 0.5 * done + noise * rng.normal(size=n),
                sample_loss=np.full(n, np.nan),
                metric=0.8 + 0.055 * done + 0.003 * rng.normal(size=n),
                metric_name="Spearman correlation",
            )
        )
        found[diagnosis.verdict] += 1
        first, second = diagnosis.evidence["says"][:2]
        assert first.startswith("The validation loss fell from 1") and "at step" in first
        assert second.startswith("Spearman correlation was ") and "at the end" in second
    assert found["learns nothing"] == 0 and found["chaotic"] == 0, dict(found)


def test_figures_are_those_of_the_curve():
    def turning(done):
        valley = 1.0 - 0.8 * done + np.maximum(done - 0.5, 0) * 1.6
        return valley, 1.0 - 0.8 * done

    found = read_curves(drawn_by_hand(turning))
    evidence = {item.name: item for item in found.evidence.itertuples()}
    assert found.verdict == "overlearning"
    assert evidence["learned"].value == pytest.approx(0.4, abs=0.02)
    assert evidence["turn"].value == pytest.approx(0.4, abs=0.02)
    assert evidence["turn"].low < 0.4 < evidence["turn"].high + 0.01
    assert evidence["turn_step"].value == pytest.approx(step_at(0.5, 1000), abs=30)
    assert evidence["gap"].value == pytest.approx(1.0, abs=0.03)
    assert evidence["late_step"].value == step_at(2 / 3, 1000)


def test_a_straight_fall_over_the_learning_done_has_its_full_speed_to_the_end():
    """Over the steps this curve is all but level at its end."""
    curves = drawn_by_hand(lambda done: (1 - 0.5 * done, 1 - 0.5 * done))
    last_tenth = curves.validation_loss[-3] - curves.validation_loss[-1]
    assert last_tenth < 0.02
    found = read_curves(curves)
    evidence = {item.name: item for item in found.evidence.itertuples()}
    assert found.verdict == "could learn more"
    assert evidence["late_slope"].value == pytest.approx(1.0, abs=0.05)
    assert "8 epochs instead of 4" in found.advice[0]
    stopped = dataclasses.replace(
        curves,
        **{name: getattr(curves, name)[:12]
           for name in ("validation_steps", "validation_loss", "sample_loss", "metric")},
    )  # fmt: skip
    assert "Continue the run" in read_curves(stopped).advice[0]


def test_without_noise_and_without_training_notes_and_without_a_change():
    level = drawn_by_hand(lambda done: (1 + 0 * done, 1 + 0 * done), noise=0.0)
    none = np.empty(0, dtype=np.int64)
    level = dataclasses.replace(level, training_steps=none, training_loss=none.astype(float))
    assert read_curves(level).verdict == "learns nothing"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_loss_that_is_no_number_is_chaos(value):
    curves = drawn_by_hand(lambda done: (1 - done, 1 - done))
    loss = curves.training_loss.copy()
    loss[50:] = value
    found = read_curves(dataclasses.replace(curves, training_loss=loss))
    assert found.verdict == "chaotic" and found.evidence["value"].tolist() == [510]


def test_the_best_checkpoint_is_named_where_the_run_overlearned():
    runs = (curves_first.draw("overlearning", seed) for seed in range(10))
    curves = next(run for run in runs if run.metric_name)
    without = dataclasses.replace(curves, metric=np.full(len(curves.metric), np.nan))
    best = curves.validation_steps[np.argmax(curves.metric)]
    lowest = curves.validation_steps[np.argmin(curves.validation_loss)]
    assert best != lowest
    assert f"step {best:,} " in read_curves(curves).advice[0]
    assert f"step {lowest:,} " in read_curves(without).advice[0]


@given(st.floats(0, 1), st.integers(1000, 10**6))
def test_the_clock_runs_as_the_learning_rate_does(share, planned):
    step = share * planned
    fine = np.linspace(0, step, 4001)
    rate = np.minimum(fine / (0.1 * planned), (planned - fine) / (0.9 * planned))
    total = np.trapezoid(rate, fine) / (planned / 2)
    assert learning_done(step, planned) == pytest.approx(total, abs=1e-5)
    assert step_at(float(learning_done(step, planned)), planned) == pytest.approx(step, abs=1)


def test_shapes_are_found_where_the_curve_is_one():
    done = np.linspace(0, 1, 15)
    curves = np.stack([
        3 + 2 * np.exp(-4 * done), 1 + 0 * done, 5 - 0.3 * (-np.maximum(done - 0.3, 0)),
        2 + np.exp(-9 * done) + 0.7 * np.maximum(done - 0.4, 0),
    ])  # fmt: skip
    fits = fit_shapes(done, curves)
    np.testing.assert_allclose(fits.values, curves, atol=1e-3)
    fine = np.linspace(0, 1, 61)
    valley = 2 + np.exp(-9 * fine) + 0.7 * np.maximum(fine - 0.4, 0)
    assert fits.rise[3] == pytest.approx(valley[-1] - valley.min(), abs=2e-3)
    assert fits.fall[0] == pytest.approx(2 * (1 - np.exp(-4)), abs=2e-3)
    assert fits.fall[1] == fits.rise[1] == 0 and fits.noise[1] < 1e-12


# Runs of sentence encoders, static students, classifiers and masked models on stsb, sick, multinli,
# masakhanews and TREC: objective, number of examples and peak learning rate are their names.
RUNS = {
    name: Curves(**{k: np.array(v) if isinstance(v, list) else v for k, v in run.items()})
    for name, run in json.loads(Path(__file__).with_name("thirty_runs.json").read_text()).items()
}


def test_verdicts_on_runs_that_people_read():
    verdicts = {name: read_curves(run) for name, run in RUNS.items()}
    assert len(verdicts) == 30
    for name, verdict in [
        ("sts 2000, cosine, 1e-6", "learns nothing"),
        ("sts 2000, cosine, 1e-4", "could learn more"),
        ("sts 2000, cosent, 1e-3", "just right"),
        ("sts 64, cosine, 3e-2", "overlearning"),
        ("sts 2000, cosine, 1e+1", "chaotic"),
        # It has learned its examples in full; one spike in their loss hides no fall to nothing.
        ("classes trec 100, 1e-4", "just right"),
        ("classes trec 60, 5e-4", "overlearning"),
        ("siamese sts 100, 3e-3", "chaotic"),
    ]:
        assert verdicts[name].verdict == verdict, name
    advice = {name: " ".join(one.advice) for name, one in verdicts.items()}
    assert "More epochs will hardly help" in advice["sts 2000, cosine, 1e-3"]
    assert "more epochs may help" in advice["nli 2000, ranking, 1e-3"]
    collapse = verdicts["siamese sts 100, 3e-3"].evidence["says"].tolist()
    assert "The loss on training examples rose as well: the steps are too large." in collapse


def drawn_at_random(seed):
    """A curve of any shape, noise and length, with or without a metric and a training sample."""
    rng = np.random.default_rng(seed)
    done = np.linspace(0, 1, int(rng.integers(5, 25)))

    def shape(scale):
        falls = rng.choice([0, 0.005, 0.02, 0.1, 0.5]) * (1 - np.exp(-rng.uniform(0.5, 15) * done))
        rises = rng.choice([0, 0, 0.01, 0.1, 1]) * np.maximum(done - rng.uniform(0, 0.9), 0)
        noise = rng.choice([0, 0.001, 0.01, 0.1]) * rng.normal(size=len(done))
        return scale * (1 - falls + rises + noise)

    metric = shape(0.6) if rng.random() < 0.7 else np.full(len(done), np.nan)
    sample = shape(2.0) if rng.random() < 0.7 else np.full(len(done), np.nan)
    steps = np.arange(10, 1001, 10)
    return dataclasses.replace(
        curves_first.draw("just right", 0),
        training_steps=steps,
        training_loss=2.0 - rng.choice([0, 0.2, 1]) * steps / 1000 + 0.1 * rng.normal(size=100),
        validation_steps=np.round(1000 * done).astype(np.int64),
        validation_loss=shape(2.0),
        sample_loss=sample,
        metric=metric,
        metric_name="MRR",
        steps_per_epoch=250,
        n_steps_planned=1000,
    )


@pytest.mark.parametrize(
    "seeds", [range(100), pytest.param(range(100, 10_000), marks=pytest.mark.slow), RUNS.values()]
)
def test_no_verdict_speaks_against_its_evidence(seeds):
    for seed in seeds:
        curves = seed if isinstance(seed, Curves) else drawn_at_random(seed)
        found = read_curves(curves)
        learned, turn = (
            next(item for item in found.evidence.itertuples() if item.name == name)
            for name in ("learned", "turn")
        )
        has_fallen, metric = learned.value > learned.threshold, curves.metric
        if found.verdict == "learns nothing":
            assert not has_fallen and "fell from" not in learned.says, seed
            assert not metric[-1] - metric[0] > 0.05 + 8 * np.std(np.diff(metric)), seed
        elif found.verdict in ("just right", "could learn more"):
            assert has_fallen and "fell from" in learned.says, seed
            assert not metric[-1] < metric[0] == metric.max(), seed
            assert "turned at" not in turn.says or turn.value < 0.5 * learned.value, seed
        elif found.verdict == "overlearning":
            assert turn.value > 0, seed


def fall(done, speed):
    return 1.0 - np.exp(-speed * done)


BETTER = {"metric": np.linspace(0.80, 0.90, 21), "metric_name": "Spearman"}
WORSE = {"metric": np.linspace(0.90, 0.85, 21), "metric_name": "Spearman"}


@pytest.mark.parametrize(
    ("shape", "changes", "verdict", "advised"),
    [
        # Losses that part without a turn.
        (lambda d: (1 - 0.3 * fall(d, 9), 1 - 0.9 * d), {}, "uncertain", "add examples"),
        (lambda d: (1 - d, 1 - d), {"n": 4}, "uncertain", "Validate more often"),
        # It gets worse on what it learns from.
        (lambda d: (1.8 + 0.9 * fall(d, 5), 2.2 + 0.5 * fall(d, 5)), {}, "chaotic",
         "Lower the learning rate"),
        (lambda d: (1 - 0.5 * fall(d, 6), 1 - 0.52 * fall(d, 6)), {}, "just right", ""),
        # The loss falls, and the metric does not get better.
        (lambda d: (1 - 0.5 * fall(d, 6), 1 - 0.52 * fall(d, 6)), WORSE, "uncertain",
         "Spearman was best before training (0.900, at the end 0.850)"),
        (lambda d: (1 - 0.01 * d, 1 - 0.01 * d), BETTER, "uncertain",
         "Spearman rose from 0.800 to 0.900, although the loss hardly fell"),
        # Users are not sent back to the start.
        (lambda d: (1 - 0.3 * d + 2 * d**2, 1 - 0.9 * d), WORSE, "overlearning",
         "The best validation was before training"),
    ],
)  # fmt: skip
def test_verdicts_and_advice_on_curves_drawn_by_hand(shape, changes, verdict, advised):
    found = read_curves(drawn_by_hand(shape, **changes))
    assert found.verdict == verdict and advised in " ".join(found.advice[:1])
