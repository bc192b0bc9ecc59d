"""Read learning curves: whether the loss fell, whether it turned, where it was best, its noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.evaluation._bootstrap import interval
from embedtopics.protocols import Float64Array
from embedtopics.training._rows import Evidence, frame_of
from embedtopics.training.results import VERDICTS, Curves, Diagnosis

# The limits were set on 1,000 drawn and 300 simulated runs, others than those of the benchmark
# learning_curves.
SWINGS = 0.05
"""Movement back and forth, as a share of the range of the validation loss, above which a run is
chaotic. Noise without a trend has about 0.2."""
FALL, RISE = 4.0, 3.0
"""Noise that the validation loss must fall by to have fallen, and rise by to have turned."""
LEAST = 0.02
"""Share of the first validation loss below which a fall, a rise or a swing is of no account."""
RISE_OF_FALL = 0.1
"""Share of its fall that the validation loss must rise by. Where the losses part, half of both."""
LATE = 0.3
"""Speed over the last third of the learning, as a share of the mean speed, above which more can be
learned: an exponential fall that has 6 % left to fall has 0.3."""
GAP = 0.6
"""Share of the fall on training examples, not seen in validation, that parts the losses."""
SEEN = 2.5
"""Noise that the loss on training examples must fall by before it counts as learned."""

WARMUP = 0.1
"""Share of the steps over which the learning rate is taken to rise: curves do not hold the true
one. Half of it changed no verdict in 300 drawn runs, twice of it changed one."""
FEWEST_VALIDATIONS, FEWEST_NOTES = 5, 6
"""Validations, and notes of the training loss, that can be read."""
LEAST_CONFIDENCE = 0.5
N_DRAWS = 100
NONE = dict.fromkeys(VERDICTS, 0.0)

_RATES = (0.05, 0.3, 0.8, 1.5, 2.5, 4.0, 6.0, 9.0, 14.0, 25.0, 60.0)
_TURNS = (0.0, 0.06, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
_N_GRID = 61
_NEGLIGIBLE = 1e-3
"""Share of the range of a curve that a fit may miss it by without a penalty."""
_MEAN_STEP = 2.0 / np.sqrt(np.pi)
"""Mean distance between two draws of a normal distribution, in standard deviations."""


def learning_done(steps: npt.ArrayLike, n_steps_planned: int) -> Float64Array:
    """Return the sum of the learning rate up to each step, 1 at the end."""
    share = np.asarray(steps, dtype=np.float64) / n_steps_planned
    falling = WARMUP + ((1 - WARMUP) ** 2 - (1 - share) ** 2) / (1 - WARMUP)
    return np.where(share < WARMUP, share**2 / WARMUP, falling)


def step_at(done: Any, n_steps_planned: int) -> Float64Array:
    """Return the step after which a share of the learning is done."""
    steps = np.arange(n_steps_planned + 1)
    return np.asarray(np.round(np.interp(done, learning_done(steps, n_steps_planned), steps)))


@dataclass(frozen=True, eq=False)
class Shapes:
    """The smooth shape of each of several curves."""

    values: Float64Array  # (n_curves, n_points)
    grid: Float64Array  # (n_curves, 61), from the first point to the last
    noise: Float64Array  # (n_curves,), standard deviation around the shape

    @property
    def change(self) -> Float64Array:
        """From the start to the end, positive where the curve falls."""
        return np.asarray(self.grid[:, 0] - self.grid[:, -1])

    @property
    def fall(self) -> Float64Array:
        """From the start to the minimum."""
        return np.asarray(self.grid[:, 0] - self.grid.min(axis=1))

    @property
    def rise(self) -> Float64Array:
        """From the minimum to the end."""
        return np.asarray(self.grid[:, -1] - self.grid.min(axis=1))


def fit_shapes(done: Float64Array, curves: Float64Array) -> Shapes:
    """Fit a constant, an exponential, a rise from a turn on, or a fall and a rise; by the BIC."""
    n = curves.shape[1]
    size = np.ptp(curves, axis=1)
    size = np.where(size > 0, size, 1.0)
    points = np.concatenate([done, np.linspace(done[0], done[-1], _N_GRID)])
    none = np.zeros_like(points)
    falls, rises = [none, *(np.exp(-rate * points) for rate in _RATES)], [none]
    for turn in _TURNS:
        beyond = np.maximum(points - turn, 0.0)
        rises += [beyond, 1.0 - np.exp(-4.0 * beyond)]
    designs = np.stack([[none + 1.0, fall, rise] for fall, rise in product(falls, rises)])
    is_used = np.asarray(designs.any(axis=2))  # (n_shapes, 3)
    n_parameters = 2 * is_used.sum(axis=1) - 1
    inverse = np.linalg.pinv(designs[:, :, :n], rcond=1e-12) * is_used[:, None]
    weights = curves @ inverse  # (n_shapes, n_curves, 3)
    squares = np.square(curves - weights @ designs[:, :, :n]).sum(axis=2)
    scores = n * np.log(squares / n / size**2 + _NEGLIGIBLE**2)
    scores += (n_parameters * np.log(n))[:, None]
    # An exponential alone may rise, as the loss of a run that collapses at once.
    is_allowed = (weights[:, :, 1:] >= 0).all(axis=2) | ~is_used[:, 2:]
    is_allowed &= (n_parameters < n)[:, None]
    best, each = np.where(is_allowed, scores, np.inf).argmin(axis=0), np.arange(len(curves))
    fitted = np.einsum("ij,ijk->ik", weights[best, each], designs[best])
    noise = np.sqrt(squares[best, each] / (n - n_parameters[best]))
    return Shapes(values=fitted[:, :n], grid=fitted[:, n:], noise=noise)


@dataclass(frozen=True, eq=False)
class Series:
    """Several curves of one run; those of n_draws = 1 are the measured ones."""

    done: Float64Array  # (n_validations,)
    validation: Float64Array  # (n_draws, n_validations)
    sample: Float64Array | None  # (n_draws, n_validations)
    metric: Float64Array | None  # (n_draws, n_validations), its sign turned: it falls
    training_change: Float64Array  # (n_draws,), fall of the training loss
    training_error: float  # its standard error


def series_of(curves: Curves) -> Series:
    """Return the measured curves."""
    change, error = np.zeros(1), 0.0
    n_notes = len(curves.training_steps)
    if n_notes >= FEWEST_NOTES:
        clock = learning_done(curves.training_steps, curves.n_steps_planned)
        shape = fit_shapes(clock, curves.training_loss[None])
        change, error = shape.change, float(shape.noise[0]) / np.sqrt(n_notes)
    return Series(
        done=learning_done(curves.validation_steps, curves.n_steps_planned),
        validation=curves.validation_loss[None],
        sample=_smoothed(curves.sample_loss) if np.isfinite(curves.sample_loss).all() else None,
        metric=-curves.metric[None] if np.isfinite(curves.metric).all() else None,
        training_change=change,
        training_error=error,
    )


def _smoothed(losses: Float64Array) -> Float64Array:
    """Return medians of three neighbours, (1, n): one hard example makes a spike that hides all."""
    padded = np.pad(losses, 1, mode="edge")
    return np.asarray(np.median([padded[:-2], losses, padded[2:]], axis=0)[None])


def redraw(series: Series, rng: np.random.Generator) -> Series:
    """Draw curves with the same shapes, and residuals of other validations."""
    n = len(series.done)
    # The same for all curves: where the weights swing, the curves swing together.
    picks = rng.integers(0, n, (N_DRAWS, n))

    def redrawn(curve: Float64Array | None) -> Float64Array | None:
        if curve is None:
            return None
        shape = fit_shapes(series.done, curve)
        residuals = (curve - shape.values)[0]
        spread = np.sqrt(np.mean(residuals**2))
        if spread > 0:
            residuals = residuals * shape.noise[0] / spread
        # Minus their neighbours: a misfit of the shape, which neighbours share, is no noise.
        padded = np.pad(residuals, 1, mode="reflect")
        residuals = np.sqrt(2.0 / 3.0) * (residuals - (padded[:-2] + padded[2:]) / 2.0)
        return np.asarray(shape.values + residuals[picks])

    validation = redrawn(series.validation)
    assert validation is not None
    return replace(
        series,
        validation=validation,
        sample=redrawn(series.sample),
        metric=redrawn(series.metric),
        training_change=series.training_change + series.training_error * rng.normal(size=N_DRAWS),
    )


@dataclass(frozen=True, eq=False)
class Facts:
    """Figures of several curves, each of shape (n_draws,)."""

    start: Float64Array  # the validation loss before training
    fall: Float64Array
    rise: Float64Array
    turn: Float64Array  # learning done at the minimum
    noise: Float64Array
    swings: Float64Array  # movement back and forth, as a share of the range
    spread: Float64Array  # the range
    late: Float64Array  # speed over the last third, as a share of the mean, of the slower loss
    seen: Float64Array  # fall of the loss on training examples, in units of its noise
    gap: Float64Array  # share of that fall that the validation loss did not follow
    gain: Float64Array  # of the metric, from the first to the last validation; NaN without one


def measure(series: Series) -> Facts:
    """Measure each of the curves."""
    validation = series.validation
    shape = fit_shapes(series.done, validation)
    change, error = series.training_change, np.full(len(validation), series.training_error)
    if series.sample is not None:
        sample = fit_shapes(series.done, series.sample)
        change, error = sample.change, sample.noise
    seen, late = ratio(change, error), late_speed(shape)
    if series.sample is not None:
        # What is learned in full on training examples has nothing more to teach.
        late = np.where(seen > SEEN, np.minimum(late, late_speed(sample)), late)
    spread, lowest = np.ptp(validation, axis=1), validation.min(axis=1)
    straight = validation[:, 0] + validation[:, -1] - 2.0 * lowest
    moved = np.abs(np.diff(validation, axis=1)).sum(axis=1) - straight
    each = np.maximum(moved, 0.0) / (validation.shape[1] - 1) / _MEAN_STEP
    clock = np.linspace(series.done[0], series.done[-1], _N_GRID)
    gain = np.full(len(validation), np.nan)
    if series.metric is not None:
        gain = series.metric[:, 0] - series.metric[:, -1]
    return Facts(
        start=np.maximum(shape.grid[:, 0], shape.fall),
        fall=shape.fall,
        rise=shape.rise,
        turn=clock[shape.grid.argmin(axis=1)],
        noise=shape.noise,
        swings=ratio(each, spread),
        spread=spread,
        late=late,
        seen=seen,
        gap=np.where(seen > SEEN, 1.0 - ratio(shape.change, change), np.nan),
        gain=gain,
    )


def late_speed(shape: Shapes) -> Float64Array:
    """Return the speed over the last third of the learning, as a share of the mean speed."""
    third = _N_GRID // 3
    return ratio(3.0 * (shape.grid[:, -1 - third] - shape.grid[:, -1]), shape.fall)


def ratio(part: Float64Array, whole: Float64Array) -> Float64Array:
    """Divide, with 0 for 0 / 0 and infinity for x / 0."""
    of_nothing = np.where(part == 0, 0.0, np.copysign(np.inf, part))
    return np.divide(part, whole, out=of_nothing, where=whole != 0)


def decide(facts: Facts) -> npt.NDArray[np.int64]:
    """Return the place in `VERDICTS` for each curve; swings first, for they hide all else."""
    # A fall or a rise that is large compared with the noise is visible in spite of it.
    is_visible = (facts.fall > 2.0 * FALL * facts.noise) | (facts.rise > 2.0 * RISE * facts.noise)
    swings = (facts.swings > SWINGS) & ~is_visible
    chaotic = swings & (facts.swings * facts.spread > LEAST * facts.start)
    parted = facts.gap > GAP
    rose = (facts.rise > RISE * facts.noise) & (facts.rise > LEAST * facts.start)
    # Worse on the training examples as well: the steps are too large; nothing is memorized.
    chaotic |= rose & (facts.seen < -SEEN)
    limit = np.maximum(RISE * facts.noise, RISE_OF_FALL * facts.fall)
    rises = (facts.rise > np.where(parted, 0.5, 1.0) * limit) & (
        np.maximum(facts.fall, facts.rise) > LEAST * facts.start
    )
    fell = (facts.fall > FALL * facts.noise) & (facts.fall > LEAST * facts.start)
    names = np.select(
        [chaotic, rises & (facts.seen > SEEN), ~fell, parted | rises, facts.late > LATE],
        ["chaotic", "overlearning", "learns nothing", "uncertain", "could learn more"],
        "just right",
    )
    return np.array([VERDICTS.index(name) for name in names], dtype=np.int64)


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
        text = f"The run has {n} validations; its curves can be read from {FEWEST_VALIDATIONS} on."
        count = Evidence("validations", float(n), n, n, float(FEWEST_VALIDATIONS), text)
        often = "Validate more often (validations_per_epoch) or train for more epochs."
        found = frame_of([count], Evidence)
        return Diagnosis("uncertain", 1.0, {**NONE, "uncertain": 1.0}, found, (often,))
    series = series_of(curves)
    facts, redrawn = measure(series), measure(redraw(series, np.random.default_rng(0)))
    counts = np.bincount(decide(redrawn), minlength=len(VERDICTS))
    shares = dict(zip(VERDICTS, (counts / N_DRAWS).tolist(), strict=True))
    likely = VERDICTS[int(decide(facts)[0])]
    verdict = max(shares, key=lambda name: (shares[name], name == likely))
    evidence = evidence_of(curves, series, facts, redrawn)
    against = _against_the_metric(verdict, curves) if series.metric is not None else ()
    confidence = shares[verdict]
    # The evidence is that of the measured curve: a verdict that speaks against it is none.
    if against or confidence < LEAST_CONFIDENCE or verdict != likely:
        verdict, confidence = "uncertain", max(shares.values())
    advice = against or advise(verdict, curves, shares, {item.name: item for item in evidence})
    return Diagnosis(verdict, confidence, shares, frame_of(evidence, Evidence), advice)


def diverged_at(step: int) -> Diagnosis:
    """Return the verdict on a run that ended because the loss was not finite."""
    text = f"The loss was not finite at step {step}, where the run ended."
    evidence = Evidence("not_finite", step, step, step, np.nan, text)
    advice = (
        "Lower the learning rate to a tenth.",
        "Use float32 instead of half precision, and lower max_gradient.",
    )
    found = frame_of([evidence], Evidence)
    return Diagnosis("chaotic", 1.0, {**NONE, "chaotic": 1.0}, found, advice)


def _against_the_metric(verdict: str, curves: Curves) -> tuple[str, ...]:
    """Return advice where the metric speaks against what the loss says."""
    name, (first, *_, last) = curves.metric_name or "The metric", curves.metric
    if verdict in ("just right", "could learn more") and last < first == curves.metric.max():
        return (
            f"{name} was best before training ({first:.3f}, at the end {last:.3f}), although the "
            "loss fell.",
            "Choose an objective whose loss is nearer to the metric, or a smaller learning rate.",
        )
    noise = np.std(np.diff(curves.metric)) / np.sqrt(2.0)
    if verdict == "learns nothing" and last - first > max(LEAST, FALL * noise):
        return (
            f"{name} rose from {first:.3f} to {last:.3f}, although the loss hardly fell.",
            "Compare the encoder before and after on examples that training did not see.",
        )
    return ()


def advise(
    verdict: str, curves: Curves, shares: Mapping[str, float], evidence: Mapping[str, Evidence]
) -> tuple[str, ...]:
    """Return what to do next, the most promising first."""
    epochs = curves.n_steps_planned / curves.steps_per_epoch
    if verdict == "chaotic":
        return (
            "Lower the learning rate to a third.",
            "Or use batches four times as large (accumulation=4 needs no more memory).",
            "The encoder before training was better than this one."
            if "collapse" in evidence
            else "Do not trust a single checkpoint: its score may be an extreme of the swings.",
        )
    if verdict == "could learn more":
        done = int(curves.validation_steps[-1])
        first = f"Train for about {2 * epochs:.2g} epochs instead of {epochs:.2g}."
        if done < 0.95 * curves.n_steps_planned:
            first = f"Continue the run from step {done:,}; after early stopping, raise patience."
        return first, "Or use a learning rate two to three times as large."
    if verdict == "learns nothing":
        advice = [
            "Use a learning rate five to ten times as large.",
            "Or use smaller batches, which make more steps of the same examples.",
            "Read some of the examples: what is wrong or random in them cannot be learned.",
            f"Add examples: {curves.n_validation:,} for validation cannot show small gains.",
        ]
        if np.isfinite(curves.metric).all() and curves.metric.mean() > 0.9:
            text = f"{curves.metric_name} is {curves.metric.mean():.2f} from the start: the encoder"
            advice.insert(0, f"{text} may already know what these examples teach.")
        return tuple(advice)
    if verdict == "overlearning":
        return _against_overlearning(curves, evidence)
    if verdict == "uncertain" and shares["uncertain"] >= LEAST_CONFIDENCE:
        if "gap" not in evidence:
            return (
                "The validation loss rose, although the loss on training examples hardly moved.",
                "Validate on more examples: these may differ from those that training reads.",
            )
        return (
            "The loss on training examples fell much further than that on validation examples, "
            "which has not turned: add examples, or use ten times the weight decay.",
            "More epochs will hardly help."
            if evidence["late_slope"].value <= LATE
            else "Both losses still fell at the end: more epochs may help as well.",
        )
    if verdict == "uncertain":
        first, second = sorted(shares, key=lambda name: -shares[name])[:2]
        return (
            f"The curves may be read as {first!r} ({shares[first]:.0%}) or {second!r} "
            f"({shares[second]:.0%}).",
            "Validate more often (validations_per_epoch), or on more examples.",
        )
    return ()


def _against_overlearning(curves: Curves, evidence: Mapping[str, Evidence]) -> tuple[str, ...]:
    has_metric, turn = bool(np.isfinite(curves.metric).all()), evidence["turn_step"]
    best = np.argmax(curves.metric) if has_metric else np.argmin(curves.validation_loss)
    step = int(curves.validation_steps[best])
    first = "The best validation was before training: keep the encoder as it was."
    if step:
        epoch = step / curves.steps_per_epoch
        first = f"The best validation was at step {step:,} (epoch {epoch:.2g}): keep that step."
    if step and has_metric and step > turn.high:
        first += " By then the validation loss was rising: errors get more confident, not more."
    epochs = max(turn.value, curves.validation_steps[1]) / curves.steps_per_epoch
    return (
        first,
        "Add examples: a small training set is memorized.",
        f"Train for about {1.5 * epochs:.2g} epochs, or use half the learning rate.",
        "Use ten times the weight decay.",
    )


def evidence_of(
    curves: Curves, series: Series, facts: Facts, redrawn: Facts
) -> tuple[Evidence, ...]:
    """Return figures with intervals; those whose name ends in "_step" are steps of the run."""
    noise, start = float(facts.noise[0]), float(facts.start[0])
    losses, steps = curves.validation_loss, curves.validation_steps
    best = int(np.argmin(losses))
    text = f"The validation loss did not fall beyond its noise, {_number(noise)}."
    if facts.fall[0] > FALL * noise:
        share, first, least = facts.fall[0] / start, _number(losses[0]), _number(losses[best])
        text = f"The validation loss fell by {share:.1%}; less than {LEAST:.0%} is not learning."
        if share > LEAST:
            text = f"The validation loss fell from {first} to {least} at step {steps[best]:,}."
    limit = max(FALL * noise, LEAST * start)
    items = [_item("learned", facts.fall, redrawn.fall, limit, text)]
    if series.metric is not None:
        metric = 100 * curves.metric
        top = int(np.argmax(metric))
        text = (
            f"{curves.metric_name or 'The metric'} was {metric[0]:.1f} at first, at best "
            f"{metric[top]:.1f} at step {steps[top]:,}, and {metric[-1]:.1f} at the end."
        )
        items.append(_item("metric_gain", facts.gain, redrawn.gain, np.nan, text))
    limit = max(RISE * noise, RISE_OF_FALL * float(facts.fall[0]))
    turn = step_at(facts.turn, curves.n_steps_planned)
    epoch, rise = turn[0] / curves.steps_per_epoch, _number(facts.rise[0])
    when = f"turned at about epoch {epoch:.2g}, and rose by {rise}"
    text = f"The validation loss {when if turn[0] > 0 else f'rose by {rise} from the start'}."
    if facts.rise[0] <= limit:
        text = "The validation loss did not turn: its rise at the end is small or noise."
    items.append(_item("turn", facts.rise, redrawn.rise, limit, text))
    text = f"The shape of the validation loss is lowest at step {turn[0]:,.0f}."
    turns = step_at(redrawn.turn, curves.n_steps_planned)
    items.append(_item("turn_step", turn, turns, np.nan, text))
    first, last = series.done[0], series.done[-1]
    begin, end = float(step_at(last - (last - first) / 3.0, curves.n_steps_planned)), int(steps[-1])
    share, when = float(facts.late[0]), "over the last third of the learning"
    slower = "validation loss" if series.sample is None else "slower of both losses"
    text = f"The {slower} fell at {share:.0%} of its mean speed {when}."
    if not np.isfinite(share) or facts.fall[0] <= FALL * noise:
        text = "The validation loss did not fall, and has no late speed."
    elif share < 0.01:
        rose = share < 0 and facts.rise[0] > limit
        text = f"The {slower} {'rose' if rose else 'was level'} {when}."
    items.append(_item("late_slope", facts.late, redrawn.late, LATE, text))
    text = f"The last third of the learning begins at step {begin:,.0f}."
    items.append(Evidence("late_step", begin, begin, float(end), np.nan, text))
    if np.isfinite(facts.gap[0]):
        which = "training loss" if series.sample is None else "loss on training examples"
        missing = float(np.clip(facts.gap[0], 0, 2))
        text = f"{missing:.0%} of the fall of the {which} is not seen on validation examples."
        if missing < 0.05:
            text = f"The {which} fell, and the validation loss followed it in full."
        elif missing > 1:
            text = f"The {which} fell while the validation loss ended above its start."
        items.append(_item("gap", facts.gap, redrawn.gap, GAP, text))
    if facts.seen[0] < -SEEN:
        text = "The loss on training examples rose as well: the steps are too large."
        items.append(_item("collapse", facts.seen, redrawn.seen, -SEEN, text))
    swings = f"swings by {facts.swings[0]:.1%} of its range from one validation to the next"
    text = f"The validation loss {swings if facts.swings[0] >= 0.01 else 'hardly swings'}."
    items.append(_item("swings", facts.swings, redrawn.swings, SWINGS, text))
    return tuple(items)


def _item(
    name: str, value: Float64Array, drawn: Float64Array, threshold: float, text: str
) -> Evidence:
    low, high = interval(np.where(np.isfinite(drawn), drawn, np.nan), np.inf)
    return Evidence(name, float(value[0]), float(low), float(high), threshold, text)


def _number(value: float) -> str:
    return f"{value:.2g}" if abs(value) < 10 else f"{value:,.0f}"
