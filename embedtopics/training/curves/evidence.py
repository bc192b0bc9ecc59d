"""What was measured on learning curves, in words and with intervals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedtopics.evaluation.bootstrap import interval
from embedtopics.results import Curves, Evidence
from embedtopics.training.curves.measures import Measured, Series, ratio
from embedtopics.training.curves.rules import THRESHOLDS
from embedtopics.training.curves.shapes import step_at

__all__ = ["describe"]


def describe(
    curves: Curves, series: Series, found: Measured, redrawn: Measured
) -> tuple[Evidence, ...]:
    """Return the evidence, the same items in the same order for every verdict.

    The metric and the gap are left out where they were not measured. Items whose name ends in
    "_step" say where on the curves something is.
    """
    items = [_learned(found, redrawn), *_late(curves, series, found, redrawn)]
    items += _turn(curves, found, redrawn)
    items += _gap(series, found, redrawn)
    items += _swings(found, redrawn)
    items += _metric(curves, found, redrawn)
    return tuple(items)


def _item(
    name: str,
    value: npt.NDArray[np.float64],
    drawn: npt.NDArray[np.float64],
    threshold: float,
    says: str,
) -> Evidence:
    low, high = interval(np.where(np.isfinite(drawn), drawn, np.nan))
    return Evidence(name, float(value[0]), float(low), float(high), threshold, says)


def _learned(found: Measured, redrawn: Measured) -> Evidence:
    fall, noise = float(found.fall[0]), float(found.noise[0])
    times = float(ratio(found.fall, found.noise)[0])
    of_training = THRESHOLDS["learned"] * float(ratio(found.fall, found.learned)[0]) if fall else 0
    start = float(found.start[0])
    clear = max(THRESHOLDS["clear"] * noise, THRESHOLDS["share"] * start)
    threshold = max(
        THRESHOLDS["fall"] * noise, THRESHOLDS["least"] * start, min(of_training, clear)
    )
    if fall <= noise:
        says = f"The validation loss did not fall beyond its noise, {_number(noise)}."
    else:
        much = f"{times:,.0f} times" if times < 1000 else "over 1,000 times"
        says = f"The validation loss fell by {_number(fall)}, {much} its noise."
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
        f"The last third of the learning begins at step {begin:,} of {curves.n_steps_planned:,}, "
        "for the learning rate falls to zero."
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
            f"The validation loss turned at about epoch {epoch:.2g} and rose by {_number(rise)} to "
            "the end."
        )
    low, high = interval(np.array(steps[1:], dtype=np.float64))
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
    items = [
        _item("back_and_forth", found.back_and_forth, redrawn.back_and_forth,
              THRESHOLDS["back_and_forth"], says)
    ]  # fmt: skip
    if np.isfinite(found.together[0]):
        together = float(found.together[0])
        says = (
            "Around their shapes the losses on validation and training examples correlate by "
            f"{together:.2f}."
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
