"""Figures of training: curves, and differences before and after, drawn as they are."""

import dataclasses
import math

import numpy as np
import pytest

from embedtopics import plots
from embedtopics.plots import before_after
from embedtopics.training._curves import read_curves
from embedtopics.training._rows import Change, frame_of
from embedtopics.training.results import Diagnosis, TrainingReport
from tests.factories import refuses
from tests.training import curves_first
from tests.training.reports import NO_EVIDENCE

HOSTILE = "<b onclick=x>$x$</b>"


def drawn(kind, seed=4):
    curves = curves_first.draw(kind, seed)
    return curves, read_curves(curves)


def trace(figure, name):
    (found,) = [each for each in figure.data if each.name and each.name.startswith(name)]
    return found


def report(curves, read=None, best_step=-1, changes=()):
    return TrainingReport(
        objective="nli", base="b", folder="f", settings={}, data={}, curves=curves,
        diagnosis=read or read_curves(curves), before_after=frame_of(changes, Change),
        best_step=best_step, n_steps=1, stopped="finished", seconds=1.0, examples_per_second=1.0,
    )  # fmt: skip


@pytest.mark.parametrize("kind", curves_first.KINDS)
def test_curves_are_drawn_over_epochs_with_their_verdict(kind):
    curves, read = drawn(kind)
    figure = plots.learning_curves(report(curves, read))
    line = trace(figure, f"{curves.n_validation:,} validation")
    np.testing.assert_allclose(line.x, curves.validation_steps / curves.steps_per_epoch)
    np.testing.assert_allclose(line.y, curves.validation_loss)
    assert list(line.customdata) == curves.validation_steps.tolist()
    raw = trace(figure, "training loss, as logged")
    np.testing.assert_allclose(raw.y, curves.training_loss)
    texts = [note.text for note in figure.layout.annotations]
    assert any(text.startswith(f"<b>{read.verdict.capitalize()}</b>") for text in texts)
    assert ("turns here" in texts) == (read.verdict == "overlearning")
    assert any(read.advice[0][:30] in text for text in texts) if read.advice else True
    (band,) = figure.layout.shapes
    late = next(item for item in read.evidence.itertuples() if item.name == "late_step")
    assert band.x0 == pytest.approx(late.value / curves.steps_per_epoch)
    assert band.x1 == pytest.approx(curves.validation_steps[-1] / curves.steps_per_epoch)


def test_the_smoothed_loss_is_a_running_mean():
    curves, _ = drawn("could learn more")
    smooth = trace(plots.learning_curves(report(curves)), "training loss, smoothed")
    steps, loss = curves.training_steps, curves.training_loss
    half = 0.04 * (steps[-1] - steps[0])
    slow = [loss[(steps >= at - half) & (steps <= at + half)].mean() for at in steps]
    np.testing.assert_allclose(smooth.y, slow)


def test_a_report_brings_its_verdict_and_the_step_that_was_kept():
    curves, read = drawn("overlearning")
    kept = int(curves.validation_steps[2])
    figure = plots.learning_curves(report(curves, read, kept))
    rings = [each for each in figure.data if each.name == "kept: best validation"]
    assert [ring.customdata[0] for ring in rings] == [kept, kept]
    assert "Overlearning" in figure.layout.annotations[0].text


def test_without_metric_and_sample():
    curves, _ = drawn("just right")
    nothing = np.full(len(curves.validation_steps), np.nan)
    curves = dataclasses.replace(curves, metric=nothing, sample_loss=nothing, metric_name="")
    figure = plots.learning_curves(report(curves))
    assert len(figure.data) == 3  # noted, smoothed, validation
    assert figure.layout.yaxis.domain == (0, 1)


def test_losses_that_are_no_numbers_are_gaps():
    curves, _ = drawn("just right")
    loss = curves.validation_loss.copy()
    loss[-2:] = np.nan, np.inf
    curves = dataclasses.replace(curves, validation_loss=loss)
    figure = plots.learning_curves(report(curves))
    assert trace(figure, f"{curves.n_validation:,} val").y[-2:] == (None, None)
    assert np.isfinite(figure.layout.yaxis.range).all()


def cut_at(curves, step):
    """Return the curves of a run that ended at a step."""
    noted, looked = curves.training_steps <= step, curves.validation_steps <= step
    names = {"training_steps": noted, "training_loss": noted, "validation_steps": looked,
             "validation_loss": looked, "sample_loss": looked, "metric": looked}  # fmt: skip
    kept = {name: getattr(curves, name)[rows] for name, rows in names.items()}
    return dataclasses.replace(curves, **kept)


@pytest.mark.parametrize("share", [1.0, 0.4, 0.0])
def test_the_axis_ends_where_the_run_did_and_names_its_plan(share):
    curves, _ = drawn("could learn more")
    planned = max(curves.training_steps[-1], curves.validation_steps[-1])
    curves = dataclasses.replace(curves, n_steps_planned=int(planned))
    curves = cut_at(curves, share * planned)
    axis = plots.learning_curves(report(curves)).layout.xaxis2
    last = max([0, *curves.training_steps, *curves.validation_steps]) / curves.steps_per_epoch
    width = axis.range[1] - axis.range[0]
    assert axis.range[0] <= 0 <= last <= axis.range[1]
    if share:
        assert axis.range[1] - last < 0.05 * width
    assert ("planned" in axis.title.text) == (share < 1)


def test_names_and_findings_are_no_markup():
    curves, _ = drawn("just right")
    curves = dataclasses.replace(curves, metric_name=HOSTILE)
    read = Diagnosis("learns nothing", 1.0, {}, NO_EVIDENCE, (HOSTILE,))
    written = plots.learning_curves(report(curves, read)).to_json()
    assert "<b onclick" not in written and "$x$" not in written


def test_what_cannot_be_drawn_is_refused():
    curves, read = drawn("just right")
    names = ("validation_steps", "validation_loss", "sample_loss", "metric")
    none = {name: getattr(curves, name)[:0] for name in names}
    with refuses("report"):
        plots.learning_curves(report(dataclasses.replace(curves, **none), read))


def changed(*changes):
    """Return a report with these changes."""
    return report(drawn("just right")[0], changes=changes)


CHANGES = changed(
    Change("test", "Spearman", 0.8, 0.85, 0.05, 0.02, 0.07, 1379, "better", 3, "A <b> & $x$ note."),
    Change("stsb", "Spearman", 0.82, 0.75, -0.07, -0.09, -0.05, 1379, "worse", 1),
    Change("corpus", "neighbours kept", 1.0, 0.4, -0.6, -0.62, -0.58, 500, "descriptive"),
    Change("test", "Pearson", 0.8, 0.79, -0.01, -0.04, 0.02, 1379, "no difference shown", 3),
    Change("test", "AUC", 0.8, math.nan, math.nan, math.nan, math.nan, 9, "no difference shown"),
)


@pytest.mark.parametrize("changes", [CHANGES.before_after, [], (), None])
def test_rows_of_a_report_are_no_report(changes):
    with refuses("report"):
        before_after(changes)


def points(figure, axis):
    """Return value, low and high by the name of the row."""
    found = {}
    rows = figure.layout[f"yaxis{axis}"]
    for trace in figure.data:
        if (trace.yaxis or "y") != f"y{axis}" or trace.error_x.array is None:
            continue
        for x, y, up, down in zip(
            trace.x, trace.y, trace.error_x.array, trace.error_x.arrayminus, strict=True
        ):
            name = rows.ticktext[rows.tickvals.index(y)].strip()
            found[name] = (None,) * 3 if x is None else (x, x - down, x + up)
    return found


def test_dots_and_lines_are_the_differences_and_their_intervals():
    figure = before_after(CHANGES)
    scores = points(figure, "")
    assert list(figure.layout.yaxis.ticktext) == [
        "<b>test</b><br>Spearman  ", "Pearson  ", "AUC (unknown)  ", "<b>stsb</b><br>Spearman  ",
    ]  # fmt: skip
    assert scores["<b>test</b><br>Spearman"] == pytest.approx((0.05, 0.02, 0.07))
    assert scores["<b>stsb</b><br>Spearman"] == pytest.approx((-0.07, -0.09, -0.05))
    assert scores["AUC (unknown)"] == (None, None, None)
    assert points(figure, "2") == {
        "<b>corpus</b><br>neighbours kept": pytest.approx((0.4, 0.38, 0.42))
    }
    (hollow,) = [trace for trace in figure.data if trace.hoverinfo == "skip"]
    assert list(hollow.x) == [1.0]
    low, high = figure.layout.xaxis.range
    assert low < -0.09 and high > 0.07


def test_hover_says_how_many_examples_and_looks_and_shows_notes_as_text():
    (better,) = [trace for trace in before_after(CHANGES).data if trace.name == "better"]
    (text,) = better.text
    assert "1,379 examples, test set log: use 3" in text
    assert "0.800 before, 0.850 after: +0.050 (+0.020 to +0.070)" in text
    assert "A &lt;b&gt; &amp; &#36;x&#36; note." in text
    hostile = Change("<script>", "<i>", 0, 1, 1, 0.5, 1.5, 1, "better")
    assert "<script" not in before_after(changed(hostile)).to_json().replace("\\u003c", "<")
