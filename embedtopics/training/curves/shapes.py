"""The few shapes that a calm learning curve has, fitted to many drawn curves at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Fits", "fit_shapes", "learning_done", "step_at"]

Float64Array = npt.NDArray[np.float64]

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
    """The best shape for each of several curves at the same validations.

    Parameters
    ----------
    values : float64 ndarray of shape (n_curves, n_points)
        The shape where the curve was measured.
    fine : float64 ndarray of shape (n_curves, 61)
        The shape over equal steps of the learning done, from the first validation to the last.
    noise : float64 ndarray of shape (n_curves,)
        Standard deviation of what the shape leaves, for the parameters that it has.
    """

    values: Float64Array
    fine: Float64Array
    noise: Float64Array

    @property
    def fall(self) -> Float64Array:
        """From the start to the least value."""
        return np.asarray(self.fine[:, 0] - self.fine.min(axis=1))

    @property
    def rise(self) -> Float64Array:
        """From the least value to the end."""
        return np.asarray(self.fine[:, -1] - self.fine.min(axis=1))


def learning_done(steps: npt.ArrayLike, n_steps_planned: int) -> Float64Array:
    """Return the sum of the learning rate up to each step; 1 at the end of the plan.

    The learning rate rises over a tenth of the steps and falls to zero in a straight line. Every
    curve flattens at its end over the steps; over this clock only one that has nothing more to
    learn does.

    Examples
    --------
    >>> learning_done([0, 10, 55, 100], 100).round(3).tolist()
    [0.0, 0.1, 0.775, 1.0]
    """
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
    """Fit a constant, a fall, a rise, or a fall and a rise to each curve, by least squares.

    A fall is exponential or a power, a rise begins at a turn and goes on straight or levels off.
    All of their rates and turns are tried from a grid, and the Bayesian information criterion
    (Schwarz 1978) chooses among them; the coefficients of falls and rises have their sign.

    Parameters
    ----------
    done : float64 ndarray of shape (n_points,)
        Clock of the curves, from `learning_done`.
    curves : float64 ndarray of shape (n_curves, n_points)

    Returns
    -------
    Fits
    """
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
    """Solve for the coefficients of every pair of unit columns; the last of each is no column.

    Returns arrays of shape (n_falls + 1, n_rises + 1, n_curves), NaN where a sign is wrong or
    the two cannot be told apart.
    """
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
