import dataclasses

import numpy as np
import pytest

from embedtopics import plots
from embedtopics.probing._tables import LAYER_MEASURES, PROBE_SCORES, make_table
from embedtopics.probing.results import Contextualization, LayerScores, ScalarMix
from tests.factories import refuses
from tests.probing.made import rows_of

HOSTILE = "<b onclick=x>$x$</b>"
NAN = float("nan")


def score(what, layer, metric, value, low=NAN, high=NAN, n=1234):
    row = {"what": what, "layer": layer, "metric": metric, "value": value}
    return row | {"low": low, "high": high, "n": n}


def scores(task="upos", n=5, *, seed=0, extra=(), **more):
    rng = np.random.default_rng(seed)
    made = []
    for what, metric in (
        ("probe", "accuracy"), ("control", "accuracy"), ("probe", "selectivity"),
        ("probe", "bits per label"),
    ):  # fmt: skip
        for layer in range(n):
            value = float(rng.uniform(0.3, 0.9))
            made.append(score(what, layer, metric, value, value - 0.02, value + 0.03))
    made += [
        score("majority", None, "accuracy", 0.2),
        score("word type", None, "accuracy", 0.7, 0.68, 0.72),
        score("random model", None, "accuracy", 0.6, 0.58, 0.62),
        score("embedding layer", 0, "accuracy", 0.65, 0.6, 0.7),
        *extra,
    ]
    weights = rng.dirichlet(np.ones(n), size=3)
    table = make_table([{"task": task, **row} for row in made], PROBE_SCORES)
    return LayerScores(
        table=table, task=task, encoder="made", labels=("A", "B"), n_train=900, n_dev=100,
        n_test=1234,
        **{"mix": ScalarMix(tuple(range(n)), weights, np.ones(3)), **more},
    )  # fmt: skip


def named(figure, name):
    return [t for t in figure.data if t.name == name and t.hoverinfo != "skip"]


def test_curves_hold_the_scores_and_bands_their_intervals():
    found = scores()
    figure = plots.layers(found)
    curve, strip = named(figure, "probe")
    own = rows_of(found, what="probe", metric="accuracy")
    assert list(curve.x) == [s.layer for s in own] and list(curve.y) == [s.value for s in own]
    chosen = rows_of(found, what="probe", metric="selectivity")
    assert list(strip.y) == [s.value for s in chosen] and strip.yaxis != curve.yaxis
    band = next(t for t in figure.data if t.name == "probe" and t.fill == "toself")
    assert list(band.y) == [*(s.low for s in own), *(s.high for s in own[::-1])]
    assert f"{own[2].value:.3f} ({own[2].low:.3f} to {own[2].high:.3f})" in curve.hovertext[2]
    assert "1,234 test units" in curve.hovertext[2]


def test_baselines_are_levels_with_their_bands_and_their_figures_beside_them():
    figure = plots.layers(scores())
    for name, value in (
        ("majority", 0.2), ("word type", 0.7), ("random model", 0.6), ("embedding layer", 0.65),
    ):  # fmt: skip
        (line,) = named(figure, name)
        assert set(line.y) == {value} and line.mode == "lines"
        assert any(note.text == f"{name} {value:.3f}" for note in figure.layout.annotations)
    bands = {t.name: t for t in figure.select_traces({"fill": "toself"})}
    assert "majority" not in bands  # it has no interval
    assert (min(bands["word type"].y), max(bands["word type"].y)) == (0.68, 0.72)


def test_a_baseline_of_all_layers_is_a_curve():
    extra = [score("random model", i, "macro F1", 0.1 * i, n=9) for i in range(4)]
    extra.append(score("probe", 0, "macro F1", 0.5, n=9))
    (line,) = named(plots.layers(scores(extra=extra), metric="macro F1"), "random model")
    assert list(line.x) == [0, 1, 2, 3] and "markers" in line.mode


@pytest.mark.parametrize(("metric", "pick"), [("accuracy", max), ("bits per label", min)])
def test_the_best_layer_is_ringed_where_fewer_is_better_too(metric, pick):
    found = scores(n=7)
    figure = plots.layers(found, metric=metric)
    (ring,) = [t for t in figure.data if t.name == "best layer"]
    best = pick(rows_of(found, what="probe", metric=metric), key=lambda s: s.value)
    assert (ring.x[0], ring.y[0]) == (best.layer, best.value)
    said = f"layer {best.layer}: {best.value:.3f}"
    assert said in [note.text for note in figure.layout.annotations]


def test_of_equal_layers_the_lowest_is_the_best():
    same = [score("probe", i, "macro F1", 0.5, n=9) for i in (1, 2, 3)]
    figure = plots.layers(scores(extra=same), metric="macro F1")
    assert [t.x[0] for t in figure.data if t.name == "best layer"] == [1]
    with refuses("metric"):
        plots.layers(scores(), metric="uuas")


def test_the_mix_is_a_strip_of_bars():
    found = scores()
    figure = plots.layers(found)
    (bars,) = [t for t in figure.data if t.type == "bar"]
    np.testing.assert_allclose(bars.y, found.mix.weights.mean(axis=0))
    np.testing.assert_allclose(np.add(bars.y, bars.error_y.array), found.mix.weights.max(axis=0))
    (equal,) = [t for t in figure.data if t.name == "equal weights"]
    assert equal.y[0] == pytest.approx(1 / 5)
    assert not [t for t in plots.layers(scores(mix=None)).data if t.type == "bar"]


def test_names_beside_lines_do_not_touch():
    figure = plots.layers(scores(n=13))
    notes = [n for n in figure.layout.annotations if n.xanchor == "left" and n.yanchor == "middle"]
    places = sorted(note.y for note in notes)
    inner = figure.layout.height - figure.layout.margin.t - figure.layout.margin.b
    assert len(notes) == 6 and np.diff(places).min() * inner >= 15.9


def test_scores_that_are_no_numbers_are_gaps():
    found = scores()
    broken = found.to_frame()
    broken.loc[broken["layer"].isin([1, 3]), ["value", "low", "high"]] = NAN
    figure = plots.layers(dataclasses.replace(found, table=broken))
    curve = named(figure, "probe")[0]
    assert [value is None for value in curve.y] == [False, True, False, True, False]
    assert (
        sum(t.name == "probe" and t.fill == "toself" and t.yaxis == "y" for t in figure.data) == 3
    )


def geometry(measures, n=4, **more):
    rng = np.random.default_rng(0)
    made = []
    for measure in measures:
        for layer in range(n):
            value = float(rng.uniform(0, 1))
            row = {"measure": measure, "layer": layer, "value": value}
            made.append(row | {"low": value - 0.1, "high": value + 0.1, "n": 77})
    return Contextualization(
        **{"encoder": "made", "layers": tuple(range(n)), "table": make_table(made, LAYER_MEASURES),
           "words": ("bat", "play"), "n_uses": np.array([30, 20], np.int32),
           **more}
    )  # fmt: skip


MEASURES = {
    "self-similarity": ("one word in two contexts", "y"),
    "intra-sentence similarity": ("word and its sentence", "y"),
    "anisotropy": ("two random words", "y"),
    "corrected self-similarity": ("one word in two contexts", "y2"),
    "corrected intra-sentence similarity": ("word and its sentence", "y2"),
}


def test_contextualization_draws_each_measure_with_its_interval():
    found = geometry(MEASURES)
    figure = plots.contextualization(found)
    for measure, (name, axis) in MEASURES.items():
        (line,) = [t for t in named(figure, name) if t.yaxis == axis]
        assert list(line.y) == [s.value for s in rows_of(found, measure=measure)]
        (band,) = [t for t in figure.data if t.fill and t.name == name and t.yaxis == axis]
        own = rows_of(found, measure=measure)
        assert list(band.y) == [*(s.low for s in own), *(s.high for s in own[::-1])]
    assert "2 words, 50 uses" in figure.layout.annotations[0].text


def test_names_of_tasks_encoders_and_kinds_are_no_markup():
    extra = [score(HOSTILE, None, "accuracy", 0.5, n=3)]
    found = dataclasses.replace(scores(HOSTILE, extra=extra), encoder=HOSTILE)
    for figure in (
        plots.layers(found),
        plots.contextualization(geometry(["self-similarity"], encoder=HOSTILE)),
    ):
        assert "<b onclick" not in figure.to_json() and "$x$" not in figure.to_json()
