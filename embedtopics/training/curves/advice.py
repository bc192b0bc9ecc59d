"""What to do next, by the verdict on the learning curves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from embedtopics.results import Curves, Evidence

__all__ = ["advise"]


def advise(
    verdict: str,
    curves: Curves,
    shares: Mapping[str, float],
    evidence: Mapping[str, Evidence],
) -> tuple[str, ...]:
    """Return what to do next, the most promising first.

    Parameters
    ----------
    verdict : str
    curves : Curves
    shares : mapping of str to float
        Of the redrawn curves, by verdict.
    evidence : mapping of str to Evidence
        By name.
    """
    if verdict == "just right":
        return ()
    if verdict == "could learn more":
        return _more(curves, evidence)
    if verdict == "learns nothing":
        return _nothing(curves)
    if verdict == "chaotic":
        return (
            "Lower the learning rate to a third.",
            "Or take batches four times as large (accumulation=4 costs no memory).",
            "Trust no single checkpoint: what it scored may be one side of a swing.",
        )
    if verdict == "overlearning":
        return _by_heart(curves, evidence)
    return _unsure(shares, evidence)


def _more(curves: Curves, evidence: Mapping[str, Evidence]) -> tuple[str, ...]:
    epochs = curves.n_steps_planned / curves.steps_per_epoch
    done = float(curves.validation_steps[-1])
    if done < 0.95 * curves.n_steps_planned:
        first = (
            f"Let the run go on: it ended at step {done:,.0f} of {curves.n_steps_planned:,}; where "
            "that was early stopping, with a larger patience."
        )
    else:
        first = f"Train for about {2 * epochs:.2g} epochs instead of {epochs:.2g}."
    fall = evidence["learned"].value * min(1.0, evidence["late_slope"].value)
    return (
        first,
        "Or take a learning rate two to three times as large.",
        f"As much learning again would lower the validation loss by at most {fall:.2g} at the "
        "speed that it had last.",
    )


def _nothing(curves: Curves) -> tuple[str, ...]:
    advice = [
        "Take a learning rate five to ten times as large.",
        "Or smaller batches, which make more steps of the same examples.",
        "Check the labels against the texts by hand: labels that do not fit cannot be learned.",
        f"Label more; and with {curves.n_validation:,} validation examples small gains are not "
        "seen.",
    ]
    if np.isfinite(curves.metric).all() and curves.metric.mean() > 0.9:
        advice.insert(
            0,
            f"{curves.metric_name} is {curves.metric.mean():.2f} from the start: the encoder may "
            "know all that these examples teach.",
        )
    return tuple(advice)


def _by_heart(curves: Curves, evidence: Mapping[str, Evidence]) -> tuple[str, ...]:
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
            " That is after the validation loss turned: it rises since errors are made with more "
            "confidence, not since there are more of them."
        )
    epochs = max(turn, curves.validation_steps[1]) / curves.steps_per_epoch
    return (
        kept,
        "Label more: what is learned by heart is learned from too few examples.",
        f"Train for about {1.5 * epochs:.2g} epochs, or take half the learning rate.",
        "Take ten times the weight decay.",
    )


def _unsure(shares: Mapping[str, float], evidence: Mapping[str, Evidence]) -> tuple[str, ...]:
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
