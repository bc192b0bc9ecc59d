"""The verdict on learning curves."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from embedtopics.evaluation._bootstrap import interval
from embedtopics.protocols import Float64Array
from embedtopics.training.curves._measures import (
    Measured,
    Series,
    measure,
    prepare,
    ratio,
    redraw,
    step_at,
)
from embedtopics.training.results import VERDICTS, Curves, Diagnosis, Evidence

THRESHOLDS = {
    # Share of the range of the validation loss that is gone back and forth a validation: white
    # noise without a trend has about 0.2; a calm curve that fell seldom has more than 0.03.
    "back_and_forth": 0.06,
    # Noise of the validation loss in standard errors of the mean training loss: the error of
    # measurement is far below 1 of them; swings of the weights move the training loss as well.
    "swing": 2.4,
    "fall": 4.0,  # of the validation loss in units of its noise
    "learned": 4.5,  # that fall in standard errors of the mean training loss; drifts stay below
    # Where few steps leave that mean unknown: a fall in units of its noise, and as a share of the
    # loss before training.
    "clear": 25.0,
    "share": 0.03,
    # A gain that nothing speaks against: `fall` times its noise, and this share of the loss before
    # training, or so much of the metric where the loss fell by a hundredth. Of 200 runs drawn to
    # learn nothing, none has more than 0.045 of the one, and one in a hundred 0.033 of the other;
    # of 60 trained ones, a sixth has the metric without the loss.
    "gained": 0.08,
    "gained_metric": 0.04,
    "gained_with": 0.01,
    "least": 0.005,  # smaller shares of the loss before training are of no account
    # Speed over the last third of the learning, as a share of the mean speed: an exponential fall
    # that has 3 % left to fall has 0.2, one that has 6 % left 0.3, one that has 10 % left 0.4.
    "late_share": 0.3,
    "rise": 3.0,  # of the validation loss in units of its noise
    "rise_share": 0.1,  # of its fall; half of it is enough where the losses have parted
    "risen": 15.0,  # in standard errors of the mean training loss, where it never fell
    "known": 2.5,  # fall of the loss on what is learned from, in standard errors
    "gap": 0.6,  # share of the fall of the sample loss that the validation loss did not follow
}
"""What the figures are compared with."""


def decide(found: Measured) -> npt.NDArray[np.int64]:
    """Return the place in `VERDICTS` for each curve; swings first, for they hide all else."""
    limit = THRESHOLDS
    swing = _swing(found)
    # the surer it is that the weights swing, the fewer swings have to be seen
    enough = limit["back_and_forth"] - 0.02 * np.clip(swing, 0.0, 1.5)
    chaotic = (swing > 0) & (found.back_and_forth > enough)
    gained = _has_gained(found)
    parted = found.gap > limit["gap"]
    of_account = limit["least"] * found.start
    turned = (
        (found.rise > of_account)
        & (ratio(found.rise, found.noise) > limit["rise"])
        & (found.rise > np.where(parted, 0.5, 1.0) * limit["rise_share"] * found.fall)
        & (found.known > limit["known"])
        & ((found.learned > limit["learned"]) | (found.risen > limit["risen"]) | gained)
    )
    # Worse on the training examples as well: the steps are too large; nothing is memorized.
    undone = (found.known < -limit["known"]) & (found.risen > limit["risen"])
    beyond = ratio(found.fall, found.noise)
    clear = (beyond > limit["clear"]) & (found.fall > limit["share"] * found.start)
    learned = (beyond > limit["fall"]) & (found.fall > of_account)
    learned &= (found.learned > limit["learned"]) | clear
    learned |= gained
    unfinished = found.late_share > limit["late_share"]
    names = np.select(
        [chaotic | undone, turned, ~learned, parted, unfinished],
        ["chaotic", "overlearning", "learns nothing", "uncertain", "could learn more"],
        "just right",
    )
    return np.array([VERDICTS.index(name) for name in names], dtype=np.int64)


def _has_gained(found: Measured) -> npt.NDArray[np.bool_]:
    """Return whether loss or metric show a gain, however noisy the training loss is."""
    limit = THRESHOLDS
    falls = (found.fall > limit["fall"] * found.noise) & (
        found.fall > limit["gained"] * found.start
    )
    rises = (
        (found.metric_gain > limit["fall"] * found.metric_noise)
        & (found.metric_gain > limit["gained_metric"])
        & (found.fall > limit["gained_with"] * found.start)
    )
    return np.asarray(falls | rises)


def _swing(found: Measured) -> Float64Array:
    """Return how far noise is beyond that of measurement, on a log scale; above 0 it is."""
    # By noise in units of the training loss; by the sample, which swings with the validation loss
    # only if the weights do; and by the metric, which measures the same examples each time.
    with np.errstate(divide="ignore"):
        witness = np.log(np.clip(found.swing / THRESHOLDS["swing"], 1e-3, 1e3))
        metric = np.log(np.clip(found.metric_swing / 0.6, 1e-3, 1e3))
    sample = 2.0 * (found.together - 0.7)
    score = witness + np.nan_to_num(sample) + 0.5 * np.nan_to_num(np.clip(metric, -1.0, 2.0))
    return np.asarray(score)


_CALM = (
    "Lower the learning rate to a third.",
    "Or take batches four times as large (accumulation=4 costs no memory).",
    "Trust no single checkpoint: its score may be one side of a swing.",
)
_CALMER = (
    "Lower the learning rate to a tenth.",
    "Keep to float32 where half precision was used, and lower max_gradient.",
)


def advise(
    verdict: str, curves: Curves, shares: Mapping[str, float], evidence: Mapping[str, Evidence]
) -> tuple[str, ...]:
    """Return what to do next, the most promising first."""
    if verdict == "just right":
        return ()
    if verdict == "chaotic":
        return _CALM
    if verdict == "uncertain":
        return _unsure(shares)
    if verdict == "learns nothing":
        return _nothing(curves, evidence)
    adviser = _more if verdict == "could learn more" else _overlearning
    return adviser(curves, evidence)


def _more(curves: Curves, evidence: Mapping[str, Evidence]) -> tuple[str, ...]:
    epochs = curves.n_steps_planned / curves.steps_per_epoch
    done = float(curves.validation_steps[-1])
    if done < 0.95 * curves.n_steps_planned:
        first = (
            f"Let the run go on from step {done:,.0f}; after early stopping, with more patience."
        )
    else:
        first = f"Train for about {2 * epochs:.2g} epochs instead of {epochs:.2g}."
    fall = evidence["learned"].value * min(1.0, evidence["late_slope"].value)
    return (
        first,
        "Or take a learning rate two to three times as large.",
        f"As much learning again would lower the validation loss by {fall:.2g} at most.",
    )


def _nothing(curves: Curves, evidence: Mapping[str, Evidence]) -> tuple[str, ...]:
    advice = [
        "Take a learning rate five to ten times as large.",
        "Or smaller batches, which make more steps of the same examples.",
        "Check the labels against the texts by hand: labels that do not fit cannot be learned.",
        f"Label more: {curves.n_validation:,} validation examples do not show small gains.",
    ]
    if np.isfinite(curves.metric).all() and curves.metric.mean() > 0.9:
        advice.insert(
            0,
            f"{curves.metric_name} is {curves.metric.mean():.2f} from the start: the encoder may "
            "know all that these examples teach.",
        )
    gain = evidence.get("metric_gain")
    if gain is not None and gain.value > THRESHOLDS["gained_metric"]:
        advice.insert(
            0,
            f"{curves.metric_name} rose by {100 * gain.value:.1f} points with hardly any fall of "
            "the loss: what was gained may be kept, and larger steps bring more.",
        )
    return tuple(advice)


def _overlearning(curves: Curves, evidence: Mapping[str, Evidence]) -> tuple[str, ...]:
    has_metric = bool(np.isfinite(curves.metric).all())
    best = np.argmax(curves.metric) if has_metric else np.argmin(curves.validation_loss)
    step = int(curves.validation_steps[best])
    turn = evidence["turn_step"].value
    kept = (
        f"The best validation was at step {step:,} (epoch "
        f"{step / curves.steps_per_epoch:.2g}): keep the checkpoint of that step."
        if step
        else "The best validation was before training: the encoder as it was is the better one."
    )
    if step and has_metric and step > evidence["turn_step"].high:
        kept += (
            " That is after the validation loss turned: errors are made with more confidence, and "
            "are not more."
        )
    epochs = max(turn, curves.validation_steps[1]) / curves.steps_per_epoch
    return (
        kept,
        "Label more: examples are memorized where they are too few.",
        f"Train for about {1.5 * epochs:.2g} epochs, or take half the learning rate.",
        "Take ten times the weight decay.",
    )


def _unsure(shares: Mapping[str, float]) -> tuple[str, ...]:
    if shares["uncertain"] >= 0.5:
        return (
            "The loss on training examples fell much further than that on validation examples, "
            "which has not turned: label more, or take ten times the weight decay.",
            "More epochs will hardly help.",
        )
    first, second = sorted(shares, key=lambda verdict: -shares[verdict])[:2]
    return (
        f"The curves may be read as {first!r} ({100 * shares[first]:.0f} %) or {second!r} "
        f"({100 * shares[second]:.0f} %).",
        "Validate more often (validations_per_epoch), or on more examples.",
    )


def describe(
    curves: Curves, series: Series, found: Measured, redrawn: Measured
) -> tuple[Evidence, ...]:
    """Return the evidence; items whose name ends in "_step" are places on the curves."""
    return (
        _learned(curves, found, redrawn),
        *_metric(curves, found, redrawn),
        *_turn(curves, found, redrawn),
        *_late(curves, series, found, redrawn),
        *_gap(series, found, redrawn),
        *_swings(found, redrawn),
    )


def _item(
    name: str, value: Float64Array, drawn: Float64Array, threshold: float, says: str
) -> Evidence:
    low, high = interval(np.where(np.isfinite(drawn), drawn, np.nan), np.inf)
    return Evidence(name, float(value[0]), float(low), float(high), threshold, says)


def _learned(curves: Curves, found: Measured, redrawn: Measured) -> Evidence:
    fall, noise = float(found.fall[0]), float(found.noise[0])
    times = float(ratio(found.fall, found.noise)[0])
    of_training = THRESHOLDS["learned"] * float(ratio(found.fall, found.learned)[0]) if fall else 0
    start = float(found.start[0])
    clear = max(THRESHOLDS["clear"] * noise, THRESHOLDS["share"] * start)
    least = min(of_training, clear, THRESHOLDS["gained"] * start)
    threshold = max(THRESHOLDS["fall"] * noise, THRESHOLDS["least"] * start, least)
    best = int(np.argmin(curves.validation_loss))
    first, least_loss = (float(curves.validation_loss[place]) for place in (0, best))
    where = f"at step {curves.validation_steps[best]:,} of {curves.n_steps_planned:,}"
    if fall <= noise:
        says = f"The validation loss did not fall beyond its noise, {_number(noise)}."
    else:
        much = f"{times:,.0f} times" if times < 1000 else "over 1,000 times"
        says = (
            f"The validation loss fell from {_number(first)} to {_number(least_loss)} {where}, "
            f"by {much} its noise."
        )
    return _item("learned", found.fall, redrawn.fall, threshold, says)


def _late(curves: Curves, series: Series, found: Measured, redrawn: Measured) -> list[Evidence]:
    first, last = series.done[0], series.done[-1]
    begin = step_at(last - (last - first) / 3.0, curves.n_steps_planned)
    end = int(curves.validation_steps[-1])
    epochs = max((end - begin) / curves.steps_per_epoch, 1e-12)
    share = float(found.late_share[0])
    slope = found.fall[0] * share / 3.0 / epochs if np.isfinite(share) else 0.0
    while_late = "over the last third of the learning"
    if not np.isfinite(share) or found.fall[0] <= found.noise[0]:
        says = "The validation loss did not fall, so that it has no late speed."
    elif share < 0 and found.rise[0] > _rise_threshold(found):
        says = f"The validation loss rose {while_late}."
    elif share < 0.01:
        says = f"The validation loss was level {while_late}."
    else:
        says = (
            f"The validation loss fell at {100 * share:.0f} % of its mean speed {while_late} "
            f"({_number(slope)} an epoch)."
        )
    where = (
        f"The last third of the learning begins at step {begin:,} of {curves.n_steps_planned:,}."
    )
    return [
        _item("late_slope", found.late_share, redrawn.late_share, THRESHOLDS["late_share"], says),
        Evidence("late_step", float(begin), float(begin), float(end), np.nan, where),
    ]


def _turn(curves: Curves, found: Measured, redrawn: Measured) -> list[Evidence]:
    steps = [step_at(float(done), curves.n_steps_planned) for done in (*found.turn, *redrawn.turn)]
    rise, threshold = float(found.rise[0]), _rise_threshold(found)
    if rise <= threshold:
        says = "The validation loss did not turn: what it rose at its end is small or noise."
    else:
        epoch = steps[0] / curves.steps_per_epoch
        says = (
            f"The validation loss turned at about epoch {epoch:.2g}, and rose by {_number(rise)}."
        )
    low, high = interval(np.array(steps[1:], dtype=np.float64), np.inf)
    where = f"Its shape is lowest at step {steps[0]:,}."
    return [
        _item("turn", found.rise, redrawn.rise, threshold, says),
        Evidence("turn_step", float(steps[0]), float(low), float(high), np.nan, where),
    ]


def _rise_threshold(found: Measured) -> float:
    of_noise = THRESHOLDS["rise"] * float(found.noise[0])
    of_account = THRESHOLDS["least"] * float(found.start[0])
    return max(of_noise, of_account, THRESHOLDS["rise_share"] * float(found.fall[0]))


def _gap(series: Series, found: Measured, redrawn: Measured) -> list[Evidence]:
    if np.isnan(found.gap[0]):
        return []
    which = "training loss" if series.sample is None else "loss on the sample of training examples"
    share = 100 * float(np.clip(found.gap[0], 0, 2))
    says = (
        f"The {which} fell, and the validation loss followed it in full."
        if share < 5
        else f"{share:.0f} % of the fall of the {which} is not seen on validation examples."
        if share <= 100
        else f"The {which} fell while the validation loss ended above its start."
    )
    return [_item("gap", found.gap, redrawn.gap, THRESHOLDS["gap"], says)]


def _swings(found: Measured, redrawn: Measured) -> list[Evidence]:
    share = 100 * float(found.back_and_forth[0])
    says = f"The validation loss goes {share:.1f} % of its range back and forth at each validation."
    limit = THRESHOLDS["back_and_forth"]
    items = [_item("back_and_forth", found.back_and_forth, redrawn.back_and_forth, limit, says)]
    if np.isfinite(found.together[0]):
        together = float(found.together[0])
        says = (
            f"Around their shapes the losses on both kinds of examples correlate by {together:.2f}."
        )
        items.append(_item("together", found.together, redrawn.together, np.nan, says))
    return items


def _metric(curves: Curves, found: Measured, redrawn: Measured) -> list[Evidence]:
    if np.isnan(found.metric_gain[0]):
        return []
    best = int(np.argmax(curves.metric))
    gain = 100 * float(found.metric_gain[0])
    says = (
        f"{curves.metric_name or 'The metric'} gained {gain:.1f} points; its best, "
        f"{100 * curves.metric[best]:.1f}, was at step {curves.validation_steps[best]:,}."
    )
    return [_item("metric_gain", found.metric_gain, redrawn.metric_gain, np.nan, says)]


def _number(value: float) -> str:
    return f"{value:.2g}" if abs(value) < 10 else f"{value:,.0f}"


FEWEST_VALIDATIONS = 5
LEAST_CONFIDENCE = 0.5
"""Share of the redrawn curves that a verdict needs: more of them say it than say anything else."""

_DRAWS = 100


def read_curves(curves: Curves) -> Diagnosis:
    """Return the verdict on learning curves."""
    infinite = [
        int(steps[~np.isfinite(loss)].min())
        for steps, loss in (
            (curves.training_steps, curves.training_loss),
            (curves.validation_steps, curves.validation_loss),
        )
        if not np.isfinite(loss).all()
    ]
    if infinite:
        return diverged_at(min(infinite))
    n = len(curves.validation_steps)
    if n < FEWEST_VALIDATIONS:
        shares = {verdict: float(verdict == "uncertain") for verdict in VERDICTS}
        says = f"There are {n} validations; curves are read from {FEWEST_VALIDATIONS} on."
        count = Evidence("validations", float(n), n, n, float(FEWEST_VALIDATIONS), says)
        often = "Validate more often (validations_per_epoch) or train for more epochs."
        return Diagnosis("uncertain", 1.0, shares, (count,), (often,))
    series = prepare(curves)
    found = measure(series)
    redrawn = measure(redraw(series, _DRAWS, np.random.default_rng(0)))
    counts = np.bincount(decide(redrawn), minlength=len(VERDICTS))
    shares = dict(zip(VERDICTS, (counts / _DRAWS).tolist(), strict=True))
    likely = VERDICTS[int(decide(found)[0])]
    # Where the curve itself is on an edge, most of those drawn from it say on which side it lies.
    verdict = max(shares, key=lambda one: (shares[one], one == likely))
    confidence = shares[verdict]
    evidence = describe(curves, series, found, redrawn)
    in_vain = _learned_in_vain(curves) if verdict in ("just right", "could learn more") else ()
    if in_vain or confidence < LEAST_CONFIDENCE:
        verdict, confidence = "uncertain", max(shares.values())
    items = {item.name: item for item in evidence}
    advice = in_vain or advise(verdict, curves, shares, items)
    return Diagnosis(verdict, confidence, shares, evidence, advice)


def _learned_in_vain(curves: Curves) -> tuple[str, ...]:
    """Return advice where the metric was best before training, while the loss fell."""
    metric = curves.metric
    if not np.isfinite(metric).all() or metric[0] < metric.max() or metric[-1] >= metric[0]:
        return ()
    return (
        f"{curves.metric_name} was best before training ({metric[0]:.3f}, at the end "
        f"{metric[-1]:.3f}) although the loss fell: the weights of step 0 were kept, and nothing "
        "was gained.",
        "Take another objective, whose loss is nearer to the metric, or a smaller learning rate.",
    )


def diverged_at(step: int) -> Diagnosis:
    """Return the verdict on a run that ended because the loss of a step was no finite number."""
    shares = {verdict: float(verdict == "chaotic") for verdict in VERDICTS}
    says = f"The loss was no finite number at step {step}, where the run ended."
    evidence = Evidence("not_finite", step, step, step, np.nan, says)
    return Diagnosis("chaotic", 1.0, shares, (evidence,), _CALMER)
