"""A power law through noisy figures of nested subsets, and how far it is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int64Array

__all__ = ["PowerLaw", "fit_power_law"]

Float64Array = npt.NDArray[np.float64]

_EXPONENTS = np.geomspace(0.05, 2.0, 120)
"""From a curve that is nearly logarithmic to one that has its ceiling at once."""

_SHARED = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
"""What the figures of a seed may share: its variance as a multiple of that of their own errors."""

_DECLINES = (0.0, 0.25, 0.5)
"""Powers by which errors may shrink with the size, from none to that of means."""

_DRAWS = 4000
_FEWEST_DRAWS = 100


@dataclass(frozen=True, eq=False)
class PowerLaw:
    """``ceiling - scale * size ** -exponent``, the likeliest one and others that may be.

    Parameters
    ----------
    ceiling, scale, exponent : float
    drawn : float64 ndarray of shape (n_draws, 3)
        Ceiling, scale and exponent drawn by how likely they are.
    growth, growth_error : float
        Slope of the figures over the natural logarithm of the size, and its standard error.
    freedom : int
        Degrees of freedom of that error.
    """

    ceiling: float
    scale: float
    exponent: float
    drawn: Float64Array
    growth: float
    growth_error: float
    freedom: int

    def at(self, sizes: npt.ArrayLike) -> Float64Array:
        """Return the likeliest law at some sizes."""
        n = np.asarray(sizes, dtype=np.float64)
        return np.asarray(self.ceiling - self.scale * n**-self.exponent)

    def drawn_at(self, sizes: npt.ArrayLike) -> Float64Array:
        """Return all drawn laws at some sizes, shape (n_draws, n_sizes)."""
        n = np.asarray(sizes, dtype=np.float64)
        ceiling, scale, exponent = (column[:, None] for column in self.drawn.T)
        return np.asarray(ceiling - scale * n**-exponent)


def fit_power_law(
    sizes: Int64Array, seeds: Int64Array, metric: Float64Array, highest: float
) -> PowerLaw:
    """Fit a power law by generalised least squares, for each exponent of a grid in closed form.

    Given the exponent the law is linear (Golub and Pereyra 1973). The figures of one seed share an
    error, since their subsets are nested, and small subsets have larger errors: for the likeliest
    law both are estimated from what a first fit leaves. Laws are then drawn from their joint
    posterior: the exponent, with a flat prior on its logarithm, together with how much of the
    error is shared and how fast it shrinks, by their marginal likelihood; then the variance, then
    ceiling and scale, with laws that fall with the size or pass `highest` thrown away. With few
    sizes the exponent is hardly known, and with few seeds what they share is not: intervals that
    take either as given are too narrow. What one seed shares with no other cannot be seen at all.
    """
    base = np.exp(np.log(sizes).mean())
    relative = sizes / base  # keeps the scale of the law near that of the figures
    flat = np.ones(len(sizes))
    first = _best(relative, metric, np.diag(flat), highest)
    whitener = _whitener(sizes, seeds, metric - (first[0] - first[1] * relative ** -first[2]))
    ceiling, scale, exponent = _best(relative, metric, whitener, highest)
    drawn = _draw(relative, metric, _whiteners(sizes, seeds), highest, scale == 0)
    growth, error = _slope(np.log(relative), metric, whitener)
    drawn[:, 1] *= base ** drawn[:, 2]
    return PowerLaw(
        float(ceiling), float(scale * base**exponent), float(exponent), drawn, growth, error,
        len(sizes) - 2,
    )  # fmt: skip


def _columns(relative: Float64Array, whitener: Float64Array) -> Float64Array:
    """Return the whitened columns of the law for each exponent, shape (n_exponents, n, 2)."""
    power = -(relative[None] ** -_EXPONENTS[:, None])
    both = np.stack([np.ones_like(power), power], axis=-1)
    return np.asarray(np.einsum("ij,ejc->eic", whitener, both))


def _best(
    relative: Float64Array, metric: Float64Array, whitener: Float64Array, highest: float
) -> tuple[float, float, float]:
    """Return the law of least squares among those that rise and stay below `highest`."""
    columns = _columns(relative, whitener)
    y = whitener @ metric
    one, power = columns[..., 0], columns[..., 1]
    free = np.stack([np.linalg.lstsq(design, y, rcond=None)[0] for design in columns])
    at_top = ((y - highest * one) * power).sum(axis=1) / (power**2).sum(axis=1)
    bounded = np.stack([np.full(len(power), highest), np.maximum(at_top, 0.0)], axis=1)
    chosen = np.where((free[:, :1] > highest), bounded, free)
    level = (y * one).sum(axis=1) / (one**2).sum(axis=1)
    falling = chosen[:, 1] < 0
    chosen[falling] = np.stack([level, np.zeros_like(level)], axis=1)[falling]
    misfit = np.square(y - np.einsum("eic,ec->ei", columns, chosen)).sum(axis=1)
    best = int(np.argmin(misfit))
    return float(chosen[best, 0]), float(chosen[best, 1]), float(_EXPONENTS[best])


def _whitener(sizes: Int64Array, seeds: Int64Array, left: Float64Array) -> Float64Array:
    """Return the matrix that makes the errors independent and alike, up to one variance."""
    names, of_seed = np.unique(seeds, return_inverse=True)
    shared = 0.0
    if len(names) > 1:
        counts = np.bincount(of_seed)
        means = np.bincount(of_seed, weights=left) / counts
        within = left - means[of_seed]
        inside = float(within @ within) / max(len(left) - len(names), 1)
        shared = max(0.0, float(np.var(means, ddof=1)) - inside * float(np.mean(1.0 / counts)))
        left = within
    variance = float(left @ left) / max(len(left) - len(names), 1) + 1e-12
    spread = _decline(sizes, left)
    own = variance * (sizes / np.exp(np.log(sizes).mean())) ** (-2.0 * spread)
    covariance = np.diag(own) + shared * (of_seed[:, None] == of_seed[None])
    return np.asarray(np.linalg.inv(np.linalg.cholesky(covariance)))


def _decline(sizes: Int64Array, left: Float64Array) -> float:
    """Return the power by which errors shrink with the size, from 0 to that of means, 1/2."""
    grid = np.linspace(0.0, 0.5, 11)
    logarithm = np.log(sizes / np.exp(np.log(sizes).mean()))
    scaled = left[None] * np.exp(grid[:, None] * logarithm)
    # the likelihood of a normal distribution; the weights' product is 1 by the choice of base
    return float(grid[np.argmin(np.square(scaled).sum(axis=1))])


def _whiteners(sizes: Int64Array, seeds: Int64Array) -> Float64Array:
    """Return the matrices for all that the errors may be like, shape (n_kinds, n, n)."""
    middle = sizes / np.exp(np.log(sizes).mean())
    same = (seeds[:, None] == seeds[None]).astype(np.float64)
    shares = _SHARED if len(np.unique(seeds)) > 1 else (0.0,)
    kinds = [np.diag(middle ** (-2.0 * d)) + share * same for d in _DECLINES for share in shares]
    return np.asarray(np.linalg.inv(np.linalg.cholesky(np.array(kinds))))


def _draw(
    relative: Float64Array,
    metric: Float64Array,
    whiteners: Float64Array,
    highest: float,
    is_level: bool,
) -> Float64Array:
    """Draw laws from their posterior, always the same for the same figures."""
    rng = np.random.default_rng(0)
    columns = np.concatenate([_columns(relative, whitener) for whitener in whiteners])
    y = np.repeat(whiteners @ metric, len(_EXPONENTS), axis=0)
    exponents = np.tile(_EXPONENTS, len(whiteners))
    of_errors = np.log(np.diagonal(whiteners, axis1=1, axis2=2)).sum(axis=1)
    # The prior of the scale is for columns of any length: the length of the second is divided out.
    prior = np.log(np.linalg.norm(relative[:, None] ** -exponents, axis=0))
    prior += np.repeat(of_errors, len(_EXPONENTS))
    which, law = _posterior(columns, y, prior, rng)
    kept = (law[:, 1] >= 0) & (law[:, 0] <= highest)
    if np.count_nonzero(kept) >= _FEWEST_DRAWS:
        return np.column_stack([law, exponents[which]])[kept]
    # The figures lie beyond what laws may be: what is left is a level, or a law up to the highest.
    if is_level:
        one = columns[:: len(_EXPONENTS), :, :1]
        which, level = _posterior(one, y[:: len(_EXPONENTS)], of_errors, rng)
        flat = np.zeros_like(level)
        return np.column_stack([np.minimum(level, highest), flat, flat + _EXPONENTS[0]])
    which, scale = _posterior(columns[..., 1:], y - highest * columns[..., 0], prior, rng)
    top = np.full_like(scale, highest)
    return np.column_stack([top, np.maximum(scale, 0.0), exponents[which]])


def _posterior(
    columns: Float64Array, y: Float64Array, prior: Float64Array, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], Float64Array]:
    """Draw models by their marginal likelihood, then the variance, then the coefficients.

    Coefficients have flat priors, and so has the logarithm of the variance.

    Parameters
    ----------
    columns : float64 ndarray of shape (n_models, n, n_columns)
        Whitened.
    y : float64 ndarray of shape (n_models, n)
    prior : float64 ndarray of shape (n_models,)
        Logarithm of the prior, and of the determinant of the whitening matrix.

    Returns
    -------
    which : int64 ndarray of shape (n_draws,)
    coefficients : float64 ndarray of shape (n_draws, n_columns)
    """
    n, width = columns.shape[1:]
    normal = np.einsum("mic,mid->mcd", columns, columns)
    inverse = np.linalg.inv(normal)
    center = np.einsum("mcd,mid,mi->mc", inverse, columns, y, optimize=True)
    misfit = np.square(y - np.einsum("mic,mc->mi", columns, center)).sum(axis=1)
    misfit = np.maximum(misfit, 1e-9 * np.square(y).sum(axis=1) + 1e-300)
    freedom = n - width
    logarithm = prior - freedom / 2 * np.log(misfit) - np.linalg.slogdet(normal)[1] / 2
    weights = np.exp(logarithm - logarithm.max())
    which = rng.choice(len(weights), size=_DRAWS, p=weights / weights.sum())
    variance = misfit[which] / rng.chisquare(freedom, size=_DRAWS)
    roots = np.linalg.cholesky(inverse)[which]
    noise = np.einsum("ncd,nd->nc", roots, rng.normal(size=(_DRAWS, width)))
    return which, center[which] + np.sqrt(variance)[:, None] * noise


def _slope(x: Float64Array, y: Float64Array, whitener: Float64Array) -> tuple[float, float]:
    """Return the slope of `y` over `x`, and its standard error."""
    design = whitener @ np.column_stack([np.ones_like(x), x])
    target = whitener @ y
    inverse = np.linalg.inv(design.T @ design)
    found = inverse @ design.T @ target
    left = target - design @ found
    variance = float(left @ left) / max(len(y) - 2, 1)
    return float(found[1]), float(np.sqrt(variance * inverse[1, 1]))
