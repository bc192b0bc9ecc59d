"""From what was measured on learning curves to a verdict."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedtopics.results.training import VERDICTS
from embedtopics.training.curves.measures import Measured, ratio

__all__ = ["THRESHOLDS", "decide"]

THRESHOLDS = {
    "back_and_forth": 0.06,
    "swing": 2.4,
    "fall": 4.0,
    "learned": 4.5,
    "clear": 25.0,
    "share": 0.03,
    "least": 0.005,
    "late_share": 0.3,
    "rise": 3.0,
    "rise_share": 0.1,
    "risen": 15.0,
    "known": 2.5,
    "gap": 0.6,
}
"""What the figures are compared with.

back_and_forth : share of the range of the validation loss that is gone forth and back a validation.
    White noise without a trend has about 0.2; a calm curve that fell seldom has more than 0.03.
swing : noise of the validation loss in standard errors of the mean training loss. The error of
    measurement on examples that stay the same is far below 1 of them, swings of the weights move
    the training loss as well.
fall, rise : of the validation loss in units of its noise.
learned : fall of the validation loss in standard errors of the mean training loss. Smooth drifts
    that are real and of no use stay below.
clear, share : what is enough instead, for few steps leave that mean unknown: a fall in units of its
    noise, and as a share of the loss before training.
least : falls and rises that are a smaller share of the loss before training are of no account.
late_share : speed over the last third of the learning, as a share of the mean speed. An exponential
    fall that has 3 % left to fall has 0.2, one that has 6 % left 0.3, one that has 10 % left 0.4.
rise_share : rise of the validation loss as a share of its fall; half of it will do where the losses
    have parted.
risen : rise of the validation loss in standard errors of the mean training loss, where it never
    fell: losses that drift by less have learned nothing, by heart neither.
known : fall of the loss on what is learned from, in standard errors.
gap : share of the fall of the sample loss that the validation loss did not follow.
"""


def decide(found: Measured) -> npt.NDArray[np.int64]:
    """Return the place in `VERDICTS` for each of several curves.

    Swings come first, for they hide all else; then a turn; then whether anything was learned; then
    whether there was more to come.
    """
    limit = THRESHOLDS
    swing = _swing(found)
    # the surer it is that the weights swing, the fewer swings have to be seen
    enough = limit["back_and_forth"] - 0.02 * np.clip(swing, 0.0, 1.5)
    chaotic = (swing > 0) & (found.back_and_forth > enough)
    parted = found.gap > limit["gap"]
    of_account = limit["least"] * found.start
    turned = (
        (found.rise > of_account)
        & (ratio(found.rise, found.noise) > limit["rise"])
        & (found.rise > np.where(parted, 0.5, 1.0) * limit["rise_share"] * found.fall)
        & (found.known > limit["known"])
        & ((found.learned > limit["learned"]) | (found.risen > limit["risen"]))
    )
    # Worse on what it learns from as well: the steps throw the weights about, by heart is nothing.
    undone = (found.known < -limit["known"]) & (found.risen > limit["risen"])
    beyond = ratio(found.fall, found.noise)
    clear = (beyond > limit["clear"]) & (found.fall > limit["share"] * found.start)
    learned = (beyond > limit["fall"]) & (found.fall > of_account)
    learned &= (found.learned > limit["learned"]) | clear
    unfinished = found.late_share > limit["late_share"]
    names = np.select(
        [chaotic | undone, turned, ~learned, parted, unfinished],
        ["chaotic", "overlearning", "learns nothing", "uncertain", "could learn more"],
        "just right",
    )
    return np.array([VERDICTS.index(name) for name in names], dtype=np.int64)


def _swing(found: Measured) -> npt.NDArray[np.float64]:
    """Return how far noise is beyond that of measurement, on a log scale; above 0 it is.

    Three witnesses, each where there is one: noise in units of the training loss; the sample,
    which knows nothing of the validation examples and swings with them only if the weights do; and
    the metric, which measures the same examples each time.
    """
    with np.errstate(divide="ignore"):
        witness = np.log(np.clip(found.swing / THRESHOLDS["swing"], 1e-3, 1e3))
        metric = np.log(np.clip(found.metric_swing / 0.6, 1e-3, 1e3))
    sample = 2.0 * (found.together - 0.7)
    score = witness + np.nan_to_num(sample) + 0.5 * np.nan_to_num(np.clip(metric, -1.0, 2.0))
    return np.asarray(score)
