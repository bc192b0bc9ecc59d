"""The verdict on learning curves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from embedtopics._checks import checked_count
from embedtopics.errors import InputError
from embedtopics.results import Curves, Diagnosis, Evidence
from embedtopics.results.training import VERDICTS
from embedtopics.training.curves.advice import advise
from embedtopics.training.curves.evidence import describe
from embedtopics.training.curves.measures import measure, prepare, redraw
from embedtopics.training.curves.rules import decide

__all__ = ["diverged_at", "read_curves"]

FEWEST_VALIDATIONS = 5
LEAST_CONFIDENCE = 0.5
"""Share of the redrawn curves that a verdict needs: more of them say it than say anything else."""

_DRAWS = 100

_CALMER = (
    "Lower the learning rate to a tenth.",
    "Keep to float32 where half precision was used, and lower max_gradient.",
)


def read_curves(curves: Curves) -> Diagnosis:
    """Say what learning curves show: learned enough, too little, nothing, chaos or by heart.

    A few shapes (level, falling, turning) are fitted to the validation loss, to the loss on the
    sample of training examples and to the metric. What the shapes leave is the noise, and curves
    drawn anew from shape and noise tell how far the verdict hangs on it. All is measured over the
    sum of the learning rate instead of the steps: the rate falls to zero in a straight line, so
    that every run flattens towards its end, and only over that clock does a level curve mean that
    there was nothing more to learn. A run that ended before its plan is read up to where it came.

    Verdicts hang on no unit: a loss multiplied by a constant has the same one. A constant added
    makes what was learned a smaller share of the loss, and can only turn a small gain into
    "learns nothing".

    Parameters
    ----------
    curves : Curves
        Where the sample loss was not measured at each validation, the training loss stands in; a
        metric that was not measured at each is left out.

    Returns
    -------
    Diagnosis
        The verdict that most of the redrawn curves have; "uncertain" with fewer than 5 validations,
        where no verdict has half of them, where the losses part while the validation loss does
        not turn, and where the loss fell but the metric was best before training. The confidence
        is the largest share that any verdict has. The same curves always give the same diagnosis.

    Raises
    ------
    InputError
        If lengths differ, steps are not ascending, or steps lie beyond the plan.
    """
    _check(curves)
    if not (np.isfinite(curves.training_loss).all() and np.isfinite(curves.validation_loss).all()):
        return _diverged(curves)
    n = len(curves.validation_steps)
    if n < FEWEST_VALIDATIONS:
        return _too_few(n)
    series = prepare(curves)
    found = measure(series)
    redrawn = measure(redraw(series, _DRAWS, np.random.default_rng(0)))
    counts = np.bincount(decide(redrawn), minlength=len(VERDICTS))
    shares = dict(zip(VERDICTS, (counts / _DRAWS).tolist(), strict=True))
    likely = VERDICTS[int(decide(found)[0])]
    # Where the curve itself is on an edge, most of those drawn from it say on which side it lies.
    verdict = max(shares, key=lambda one: (shares[one], one == likely))
    confidence = shares[verdict]
    if verdict in ("just right", "could learn more") and _serves_not(curves):
        return _in_vain(curves, shares, describe(curves, series, found, redrawn))
    if confidence < LEAST_CONFIDENCE:
        verdict, confidence = "uncertain", max(shares.values())
    evidence = describe(curves, series, found, redrawn)
    advice = advise(verdict, curves, shares, {item.name: item for item in evidence})
    return Diagnosis(verdict, confidence, shares, evidence, advice)


def _check(curves: Curves) -> None:
    n_training, n = len(curves.training_steps), len(curves.validation_steps)
    if len(curves.training_loss) != n_training:
        raise InputError(
            f"expected a training loss for each of {n_training} steps, got "
            f"{len(curves.training_loss)} of them"
        )
    for name in ("validation_loss", "sample_loss", "metric"):
        if len(getattr(curves, name)) != n:
            raise InputError(
                f"expected a {name} for each of {n} validations, got "
                f"{len(getattr(curves, name))} of them; NaN stands for what was not measured"
            )
    checked_count(curves.steps_per_epoch, "steps_per_epoch")
    checked_count(curves.n_steps_planned, "n_steps_planned")
    for name, least in (("training_steps", 1), ("validation_steps", 0)):
        steps = np.asarray(getattr(curves, name))
        wrong = np.flatnonzero(np.diff(steps) <= 0)
        if len(wrong):
            here = int(wrong[0])
            raise InputError(
                f"expected {name} in ascending order without duplicates; at row {here + 1} "
                f"{steps[here + 1]} follows {steps[here]}: sort the rows and keep one a step"
            )
        if len(steps) and not least <= steps[0] <= steps[-1] <= curves.n_steps_planned:
            raise InputError(
                f"expected {name} from {least} to n_steps_planned, {curves.n_steps_planned}; got "
                f"{steps[0]} to {steps[-1]}"
            )


def _serves_not(curves: Curves) -> bool:
    """Tell whether the metric was best before training, while the loss fell."""
    metric = curves.metric
    return bool(np.isfinite(metric).all() and metric[0] >= metric.max() and metric[-1] < metric[0])


def _in_vain(
    curves: Curves, shares: Mapping[str, float], evidence: tuple[Evidence, ...]
) -> Diagnosis:
    first, last = curves.metric[0], curves.metric[-1]
    return Diagnosis(
        "uncertain", max(shares.values()), shares, evidence,
        (
            f"{curves.metric_name} was best before training ({first:.3f}, at the end {last:.3f}) "
            "although the loss fell: the weights of step 0 were kept, and nothing was gained.",
            "Take another objective, whose loss is nearer to the metric, or a smaller learning "
            "rate.",
        ),
    )  # fmt: skip


def diverged_at(step: int) -> Diagnosis:
    """Return the verdict on a run that ended because the loss of a step was no finite number."""
    shares = {verdict: float(verdict == "chaotic") for verdict in VERDICTS}
    says = f"The loss was no finite number at step {step}, where the run ended."
    return Diagnosis(
        "chaotic", 1.0, shares, (Evidence("not_finite", step, step, step, np.nan, says),), _CALMER
    )


def _too_few(n: int) -> Diagnosis:
    shares = {verdict: float(verdict == "uncertain") for verdict in VERDICTS}
    says = f"There are {n} validations; curves are read from {FEWEST_VALIDATIONS} on."
    count = Evidence("validations", float(n), n, n, float(FEWEST_VALIDATIONS), says)
    return Diagnosis(
        "uncertain", 1.0, shares, (count,),
        ("Validate more often (validations_per_epoch) or train for more epochs.",),
    )  # fmt: skip


def _diverged(curves: Curves) -> Diagnosis:
    """Return the verdict on a loss that became infinite or no number."""
    steps = [
        int(at[~np.isfinite(loss)].min())
        for at, loss in (
            (curves.training_steps, curves.training_loss),
            (curves.validation_steps, curves.validation_loss),
        )
        if not np.isfinite(loss).all()
    ]
    return diverged_at(min(steps))
