"""What can be measured on learning curves, for many drawn at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.results import Curves
from embedtopics.training.curves.shapes import fit_shapes, learning_done

__all__ = ["Measured", "Series", "measure", "prepare", "ratio", "redraw"]

Float64Array = npt.NDArray[np.float64]

_STEP_OF_NOISE = 2.0 / np.sqrt(np.pi)
"""Mean distance between two draws of a normal distribution, in standard deviations."""


_FEWEST_NOTES = 6
"""Training losses without which nothing is said of their noise."""


@dataclass(frozen=True, eq=False)
class Series:
    """Curves made ready for measuring: finite, over one clock, falling where they are good.

    Parameters
    ----------
    done, training_done : float64 ndarray of shape (n_validations,) and (n_training,)
        Learning done at the validations, and where the training loss was noted.
    validation, sample, metric : float64 ndarray of shape (n_curves, n_validations) or None
        The metric with its sign turned; None where it was not measured at all validations.
    unit : float
        Standard error of the mean training loss: how well the training run knows its own loss.
    training_fall : float64 ndarray of shape (n_curves,)
        From the first to the last third of the noted training losses.
    training_fall_error : float
        Standard error of `training_fall`.
    metric_error : float
        Standard error of a metric for as many validation examples.
    """

    done: Float64Array
    training_done: Float64Array
    validation: Float64Array
    sample: Float64Array | None
    metric: Float64Array | None
    unit: float
    training_fall: Float64Array
    training_fall_error: float
    metric_error: float


@dataclass(frozen=True, eq=False)
class Measured:
    """Figures of several curves, each float64 of shape (n_curves,).

    Parameters
    ----------
    noise : ndarray
        Standard deviation of the validation loss around its shape.
    fall, rise : ndarray
        Of the shape, from the start to its least value and from there to the end.
    turn : ndarray
        Learning done where the shape is least.
    late_share : ndarray
        Fall over the last third of the learning, times three, as a share of the fall: 1 for a
        straight line, 0 for a curve that is level.
    back_and_forth : ndarray
        Steps of the validation loss that undo one another, a validation, as a share of its range.
    swing : ndarray
        `noise` in units of `Series.unit`.
    together : ndarray
        Correlation of what is left of the validation and the sample loss around their shapes; NaN
        without a sample.
    metric_swing : ndarray
        Noise of the metric in standard errors of it; NaN without a metric.
    learned, risen : ndarray
        `fall` and `rise` in units of `Series.unit`.
    start : ndarray
        Of the shape: the validation loss before training.
    gap : ndarray
        Share of the fall of the sample loss (else the training loss) that the validation loss did
        not follow, from the first validation to the last.
    metric_gain : ndarray
        Of the metric's shape, from the start to its best; NaN without a metric.
    known : ndarray
        Fall of the loss on what is learned from, in standard errors.
    """

    noise: Float64Array
    fall: Float64Array
    rise: Float64Array
    turn: Float64Array
    late_share: Float64Array
    back_and_forth: Float64Array
    swing: Float64Array
    together: Float64Array
    metric_swing: Float64Array
    learned: Float64Array
    risen: Float64Array
    start: Float64Array
    gap: Float64Array
    metric_gain: Float64Array
    known: Float64Array


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
    """Draw curves anew: their shapes, with what the shapes left dealt out in another order.

    What is left of validation loss, sample loss and metric at one validation stays together, so
    that swings of the weights stay swings of all three.
    """
    n = len(series.done)
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
        # one side; dealt out in another order, a misfit would look like swings.
        beside = np.pad(left, 1, mode="reflect")
        left = np.sqrt(2.0 / 3.0) * (left - (beside[:-2] + beside[2:]) / 2.0)
        return np.asarray(fits.values + left[picked])

    validation = drawn(series.validation)
    assert validation is not None
    noise = series.training_fall_error * rng.normal(size=n_draws)
    return Series(
        done=series.done,
        training_done=series.training_done,
        validation=validation,
        sample=drawn(series.sample),
        metric=drawn(series.metric),
        unit=series.unit,
        training_fall=series.training_fall + noise,
        training_fall_error=series.training_fall_error,
        metric_error=series.metric_error,
    )


def measure(series: Series) -> Measured:
    """Measure each of the curves.

    Parameters
    ----------
    series : Series

    Returns
    -------
    Measured
    """
    validation = series.validation
    shape = fit_shapes(series.done, validation)
    n_curves = len(validation)
    nothing = np.full(n_curves, np.nan)
    together = metric_swing = metric_gain = nothing
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
        metric_swing = measured.noise / series.metric_error
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
    """Return what a curve moves beyond going down to its least value and up to its end.

    A curve that falls and then rises moves no more than that, whatever its form: steep falls,
    which no shape fits well, are no swings.
    """
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
