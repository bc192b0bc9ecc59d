"""What can be measured on learning curves, for many drawn at once."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Float64Array
from embedtopics.training.results import Curves

WARMUP = 0.1
"""Share of the steps over which the learning rate is taken to rise: the curves do not hold the true
one. Half of it changed no verdict in 300 drawn runs, twice of it changed one."""

_RATES = (0.3, 0.8, 1.5, 2.5, 4.0, 6.0, 9.0, 14.0, 25.0, 60.0)
_STRETCHED = ((0.5, (2.0, 4.0, 7.0, 12.0, 20.0)), (1.5, (4.0, 10.0, 25.0, 60.0, 150.0)))
_POWERS = ((3.0, 1.0), (10.0, 1.0), (30.0, 0.7), (30.0, 1.5))
_TURNS = (0.0, 0.06, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
_FINE = 61
_FINEST = 1e-3
"""Share of a curve's range below which a misfit is no concern."""


@dataclass(frozen=True, eq=False)
class Fits:
    """The best shape for each of several curves at the same validations."""

    values: Float64Array  # (n_curves, n_points), the shape where the curve was measured
    fine: Float64Array  # (n_curves, 61)
    noise: Float64Array  # (n_curves,)

    @property
    def fall(self) -> Float64Array:
        """From the start to the least value."""
        return np.asarray(self.fine[:, 0] - self.fine.min(axis=1))

    @property
    def rise(self) -> Float64Array:
        """From the least value to the end."""
        return np.asarray(self.fine[:, -1] - self.fine.min(axis=1))


def learning_done(steps: npt.ArrayLike, n_steps_planned: int) -> Float64Array:
    """Return the sum of the rate up to each step, 1 at the end: over steps every curve flattens."""
    share = np.asarray(steps, dtype=np.float64) / n_steps_planned
    falling = WARMUP + ((1 - WARMUP) ** 2 - (1 - share) ** 2) / (1 - WARMUP)
    return np.where(share < WARMUP, share**2 / WARMUP, falling)


def step_at(done: float, n_steps_planned: int) -> int:
    """Return the step at which so much of the learning was done, the inverse of `learning_done`."""
    if done < WARMUP:
        share = np.sqrt(done * WARMUP)
    else:
        left = (1 - WARMUP) ** 2 - (done - WARMUP) * (1 - WARMUP)
        share = 1 - np.sqrt(max(left, 0.0))
    return round(float(share) * n_steps_planned)


def fit_shapes(done: Float64Array, curves: Float64Array) -> Fits:
    """Fit a constant, fall, rise, or fall and rise to each curve; a grid and the BIC choose."""
    falls, rises = _falls(done), _rises(done)
    fall_means, rise_means = falls.mean(axis=1), rises.mean(axis=1)
    d, d_norms = _unit(falls)
    e, e_norms = _unit(rises)
    center = curves.mean(axis=1)
    y = curves - center[:, None]
    size = np.ptp(curves, axis=1)
    size = np.where(size > 0, size, 1.0)
    y /= size[:, None]
    of_fall, of_rise = _coefficients(d @ y.T, e @ y.T, d @ e.T)
    total = np.square(y).sum(axis=1)
    explained = of_fall * np.pad(d @ y.T, ((0, 1), (0, 0)))[:, None]
    explained = explained + of_rise * np.pad(e @ y.T, ((0, 1), (0, 0)))[None]
    left = np.maximum(total - explained, 0.0)
    n = len(done)
    n_parameters = 1 + 2 * np.add.outer(
        np.arange(len(d) + 1) < len(d), np.arange(len(e) + 1) < len(e)
    ).astype(int)
    score = n * np.log(left / n + _FINEST**2) + (n_parameters * np.log(n))[..., None]
    score[n_parameters >= n] = np.inf
    score[np.isnan(score)] = np.inf
    best = score.reshape(-1, len(y)).argmin(axis=0)
    f, g = np.divmod(best, len(e) + 1)
    each = np.arange(len(y))
    b = of_fall[f, g, each] / np.append(d_norms, 1.0)[f]
    c = of_rise[f, g, each] / np.append(e_norms, 1.0)[g]
    start = -b * np.append(fall_means, 0.0)[f] - c * np.append(rise_means, 0.0)[g]

    def shape(at: Float64Array) -> Float64Array:
        falling = np.vstack([_falls(at), np.zeros(len(at))])[f]
        rising = np.vstack([_rises(at), np.zeros(len(at))])[g]
        drawn = start[:, None] + b[:, None] * falling + c[:, None] * rising
        return np.asarray(center[:, None] + size[:, None] * drawn)

    freedom = np.maximum(n - n_parameters[f, g], 1)
    return Fits(
        values=shape(done),
        fine=shape(np.linspace(done[0], done[-1], _FINE)),
        noise=size * np.sqrt(left[f, g, each] / freedom),
    )


def _falls(done: Float64Array) -> Float64Array:
    exponential = np.exp(-np.outer(_RATES, done))
    # another warm-up than the one supposed makes the start steeper, or later
    stretched = [np.exp(-np.outer(k, done**power)) for power, k in _STRETCHED]
    power = np.array([(1.0 + a * done) ** -p for a, p in _POWERS])
    return np.concatenate([exponential, *stretched, power])


def _rises(done: Float64Array) -> Float64Array:
    beyond = np.maximum(done - np.array(_TURNS)[:, None], 0.0)
    return np.concatenate([beyond, beyond**1.5, 1.0 - np.exp(-4.0 * beyond)])


def _unit(columns: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return centred columns of length 1, and their lengths; NaN where a column is constant."""
    centered = columns - columns.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centered, axis=1)
    norms[norms < 1e-9] = np.nan
    return centered / norms[:, None], norms


def _coefficients(
    dy: Float64Array, ey: Float64Array, de: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Solve for all pairs of columns (n_falls + 1, n_rises + 1, n_curves), or NaN."""
    shape = (len(dy) + 1, len(ey) + 1, dy.shape[1])
    b, c = np.zeros(shape), np.zeros(shape)
    apart = 1.0 - de**2
    apart[~(apart > 1e-4)] = np.nan
    b[:-1, :-1] = (dy[:, None] - de[..., None] * ey[None]) / apart[..., None]
    c[:-1, :-1] = (ey[None] - de[..., None] * dy[:, None]) / apart[..., None]
    b[:-1, -1] = dy
    c[-1, :-1] = ey
    wrong = ~((b >= 0) & (c >= 0))
    b[wrong] = c[wrong] = np.nan
    return b, c


_STEP_OF_NOISE = 2.0 / np.sqrt(np.pi)
"""Mean distance between two draws of a normal distribution, in standard deviations."""

_FEWEST_NOTES = 6
"""Training losses without which nothing is said of their noise."""


@dataclass(frozen=True, eq=False)
class Series:
    """Curves made ready for measuring: finite, over one clock, falling where they are good."""

    done: Float64Array  # (n_validations,)
    training_done: Float64Array  # (n_validations,)
    validation: Float64Array  # (n_curves, n_validations), the metric with its sign turned
    sample: Float64Array | None  # (n_curves, n_validations), the metric with its sign turned
    metric: Float64Array | None  # (n_curves, n_validations), the metric with its sign turned
    unit: float
    training_fall: Float64Array  # (n_curves,)
    training_fall_error: float  # standard error of `training_fall`
    metric_error: float  # standard error of a metric for as many validation examples


@dataclass(frozen=True, eq=False)
class Measured:
    """Figures of several curves, each float64 of shape (n_curves,)."""

    noise: Float64Array  # standard deviation of the validation loss around its shape
    fall: Float64Array  # of the shape, from the start to its least value and from there to the end
    rise: Float64Array  # of the shape, from the start to its least value and from there to the end
    turn: Float64Array  # learning done where the shape is least
    late_share: Float64Array
    back_and_forth: Float64Array
    swing: Float64Array  # `noise` in units of `Series.unit`
    together: Float64Array
    metric_noise: Float64Array
    metric_swing: Float64Array  # noise of the metric in standard errors of it
    learned: Float64Array  # `fall` and `rise` in units of `Series.unit`
    risen: Float64Array  # `fall` and `rise` in units of `Series.unit`
    start: Float64Array  # of the shape: the validation loss before training
    gap: Float64Array
    metric_gain: Float64Array  # of the metric's shape, from the start to its best
    known: Float64Array  # fall of the loss on what is learned from, in standard errors


def prepare(curves: Curves) -> Series:
    """Return the curves as measured, a batch of one."""
    n = len(curves.training_steps)
    third = max(1, n // 3)
    unit = fall = error = 0.0
    clock = learning_done(curves.training_steps, curves.n_steps_planned)
    if n >= _FEWEST_NOTES:
        noise = float(fit_shapes(clock, curves.training_loss[None]).noise[0])
        unit = noise / np.sqrt(n)
        fall = curves.training_loss[:third].mean() - curves.training_loss[-third:].mean()
        error = noise * np.sqrt(2.0 / third)
    has_metric = bool(np.isfinite(curves.metric).all())
    level = float(np.clip(np.mean(curves.metric), 0, 1)) if has_metric else np.nan
    return Series(
        done=learning_done(curves.validation_steps, curves.n_steps_planned),
        training_done=clock,
        validation=curves.validation_loss[None],
        sample=curves.sample_loss[None] if np.isfinite(curves.sample_loss).all() else None,
        metric=-curves.metric[None] if has_metric else None,
        unit=unit,
        training_fall=np.array([fall]),
        training_fall_error=error,
        metric_error=float(np.sqrt(max(level * (1 - level), 0.04) / max(1, curves.n_validation))),
    )


def redraw(series: Series, n_draws: int, rng: np.random.Generator) -> Series:
    """Draw curves anew: their shapes, with what the shapes left assigned in another order."""
    n = len(series.done)
    # The same for all curves: swings of the weights stay swings of all three.
    picked = rng.integers(0, n, (n_draws, n))

    def drawn(curve: Float64Array | None) -> Float64Array | None:
        if curve is None:
            return None
        fits = fit_shapes(series.done, curve)
        left = (curve - fits.values)[0]
        spread = np.sqrt(np.mean(left**2))
        if spread > 0:
            left = left * fits.noise[0] / spread  # for the parameters that the shape has
        # A point against its neighbours keeps the noise and not a misfit, which has neighbours on
        # one side; assigned in another order, a misfit would look like swings.
        beside = np.pad(left, 1, mode="reflect")
        left = np.sqrt(2.0 / 3.0) * (left - (beside[:-2] + beside[2:]) / 2.0)
        return np.asarray(fits.values + left[picked])

    noise = series.training_fall_error * rng.normal(size=n_draws)
    curves: dict[str, Any] = {
        name: drawn(getattr(series, name)) for name in ("validation", "sample", "metric")
    }
    return replace(series, training_fall=series.training_fall + noise, **curves)


def measure(series: Series) -> Measured:
    """Measure each of the curves."""
    validation = series.validation
    shape = fit_shapes(series.done, validation)
    n_curves = len(validation)
    nothing = np.full(n_curves, np.nan)
    together = metric_noise = metric_swing = metric_gain = nothing
    fell, error = series.training_fall, np.full(n_curves, series.training_fall_error)
    followed = shape.fine[:, 0] - shape.fine[:, -1]
    if series.sample is None:
        followed = _between_thirds(shape.fine, series)
    else:
        beside = fit_shapes(series.done, series.sample)
        together = _correlation(validation - shape.values, series.sample - beside.values)
        fell = beside.fine[:, 0] - beside.fine[:, -1]
        error = beside.noise * np.sqrt(1.0 + 3.0 / len(series.done))
    if series.metric is not None:
        measured = fit_shapes(series.done, series.metric)
        metric_noise = measured.noise
        metric_swing = metric_noise / series.metric_error
        metric_gain = measured.fall
    third = len(shape.fine[0]) // 3
    late = 3.0 * (shape.fine[:, -1 - third] - shape.fine[:, -1])
    clock = np.linspace(series.done[0], series.done[-1], shape.fine.shape[1])
    return Measured(
        noise=shape.noise,
        fall=shape.fall,
        rise=shape.rise,
        turn=clock[shape.fine.argmin(axis=1)],
        late_share=ratio(late, shape.fall),
        back_and_forth=_back_and_forth(validation),
        swing=ratio(shape.noise, series.unit),
        together=together,
        metric_noise=metric_noise,
        metric_swing=metric_swing,
        learned=ratio(shape.fall, series.unit),
        risen=ratio(shape.rise, series.unit),
        start=np.maximum(shape.fine[:, 0], shape.fall),
        gap=np.where(fell > 5 * error, 1.0 - ratio(followed, fell), np.nan),
        metric_gain=metric_gain,
        known=ratio(fell, error),
    )


def _between_thirds(fine: Float64Array, series: Series) -> Float64Array:
    """Return the fall of shapes between the steps that the training loss fell between."""
    third = max(1, len(series.training_done) // 3)
    share = (series.training_done - series.done[0]) / (series.done[-1] - series.done[0])
    place = np.clip(share, 0.0, 1.0) * (fine.shape[1] - 1)
    at_notes = fine[:, place.round().astype(np.int64)]
    return np.asarray(at_notes[:, :third].mean(axis=1) - at_notes[:, -third:].mean(axis=1))


def ratio(part: Float64Array, whole: Float64Array | float) -> Float64Array:
    """Divide, with 0 for nothing of nothing and infinity for something of nothing."""
    whole = np.broadcast_to(np.asarray(whole, dtype=np.float64), part.shape)
    of_nothing = np.where(part == 0, 0.0, np.copysign(np.inf, part))
    return np.divide(part, whole, out=of_nothing, where=whole != 0)


def _back_and_forth(curves: Float64Array) -> Float64Array:
    """Return what a curve moves beyond going down to its least value and up to its end."""
    moved = np.abs(np.diff(curves, axis=1)).sum(axis=1)
    least = curves.min(axis=1)
    straight = (curves[:, 0] - least) + (curves[:, -1] - least)
    each = (moved - straight) / ((curves.shape[1] - 1) * _STEP_OF_NOISE)
    return ratio(np.maximum(each, 0.0), np.ptp(curves, axis=1))


def _correlation(a: Float64Array, b: Float64Array) -> Float64Array:
    a = a - a.mean(axis=1, keepdims=True)
    b = b - b.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return ratio((a * b).sum(axis=1), np.where(lengths > 0, lengths, 1.0))
