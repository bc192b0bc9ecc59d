"""How the metric grows with the number of labeled examples, and what more would bring."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, is_number
from embedtopics._utils.progress import progress_bar
from embedtopics.decisions import Decision, counted
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import interval
from embedtopics.protocols import Float64Array, Int64Array
from embedtopics.training._examples import Examples
from embedtopics.training.results import LabelCurve

_EXPONENTS = np.geomspace(0.05, 2.0, 120)
"""From a curve that is nearly logarithmic to one that has its ceiling at once."""

_RATES = np.geomspace(0.02, 10.0, 60)
"""Of curves that near their ceiling exponentially: with power laws alone the band holds few truths
that saturate."""

_REFUTED = 0.01
"""p-value of lack of fit from which on nothing is forecast."""

_SHARED = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
"""What the figures of a seed may share: its variance as a multiple of that of their own errors."""

_DECLINES = (0.0, 0.25, 0.5)
"""Powers by which errors may shrink with the size, from none to that of means."""

_DRAWS = 4000
_FEWEST_DRAWS = 100


@dataclass(frozen=True, eq=False)
class Law:
    """``ceiling - scale * decay(size)``, the likeliest one and others that may be."""

    name: str  # "power": size ** -exponent; "exponential": exp(-exponent * size); or "none"
    ceiling: float
    scale: float
    exponent: float
    drawn: Float64Array  # (n_draws, 3), ceiling, scale and which decay, by how likely they are
    base: float  # size in whose units the decays of `drawn` are
    growth: float
    growth_error: float
    freedom: int  # degrees of freedom of that error

    def at(self, sizes: npt.ArrayLike) -> Float64Array:
        """Return the likeliest law at some sizes."""
        n = np.asarray(sizes, dtype=np.float64)
        is_power = self.name != "exponential"
        decay = n**-self.exponent if is_power else np.exp(-self.exponent * n)
        return np.asarray(self.ceiling - self.scale * decay)

    def drawn_at(self, sizes: npt.ArrayLike) -> Float64Array:
        """Return all drawn laws at some sizes, shape (n_draws, n_sizes)."""
        decays = _decays(np.asarray(sizes, dtype=np.float64) / self.base)
        ceiling, scale = (column[:, None] for column in self.drawn[:, :2].T)
        return np.asarray(ceiling - scale * decays[self.drawn[:, 2].astype(np.int64)])


def fit_law(sizes: Int64Array, seeds: Int64Array, metric: Float64Array, highest: float) -> Law:
    """Fit laws by generalised least squares, for each decay of a grid in closed form."""
    base = np.exp(np.log(sizes).mean())
    relative = sizes / base  # keeps the scale of the law near that of the figures
    flat = np.ones(len(sizes))
    powers, exponentials = slice(len(_EXPONENTS)), slice(len(_EXPONENTS), None)
    decays = _decays(relative)
    first = _best(relative, metric, np.diag(flat), highest, powers)
    whitener = _whitener(sizes, seeds, metric - (first[0] - first[1] * decays[int(first[2])]))
    # The first law that the figures do not refute; where they refute both, the power, by name none.
    name, likeliest = "none", _best(relative, metric, whitener, highest, powers)
    is_level = likeliest[1] == 0
    for kind, laws in (("power", powers), ("exponential", exponentials)):
        ceiling, scale, which = _best(relative, metric, whitener, highest, laws)
        fitted = ceiling - scale * decays[which]
        if _lack_of_fit(sizes, whitener, metric, fitted) > _REFUTED:
            name, likeliest = kind, (ceiling, scale, which)
            break
    drawn = _draw(relative, metric, _whiteners(sizes, seeds), highest, is_level)
    growth, error = _slope(np.log(relative), metric, whitener)
    ceiling, scale, which = likeliest
    if name == "exponential":
        exponent = float(_RATES[which - len(_EXPONENTS)] / base)
    else:
        exponent = float(_EXPONENTS[which])
        scale *= float(base**exponent)
    return Law(name, ceiling, scale, exponent, drawn, float(base), growth, error, len(sizes) - 2)


def _decays(relative: Float64Array) -> Float64Array:
    """Return what all laws fall by, powers first, shape (n_laws, n_sizes)."""
    powers = relative[None] ** -_EXPONENTS[:, None]
    return np.concatenate([powers, np.exp(-_RATES[:, None] * relative[None])])


def _lack_of_fit(
    sizes: Int64Array, whitener: Float64Array, metric: Float64Array, fitted: Float64Array
) -> float:
    """Return the p-value of an F test of a law against a mean for each size of its own."""
    from scipy.stats import f

    held, of_size = np.unique(sizes, return_inverse=True)
    means = whitener @ (of_size[:, None] == np.arange(len(held)))
    target = whitener @ metric
    left = target - means @ np.linalg.lstsq(means, target, rcond=None)[0]
    pure, total = float(left @ left), float(np.square(whitener @ (metric - fitted)).sum())
    more, freedom = max(len(held) - 3, 1), len(sizes) - len(held)
    # Figures that are all on the law differ by rounding alone.
    if freedom < 1 or total - pure <= 1e-9 * float(target @ target):
        return 1.0
    return float(f.sf((total - pure) / more / max(pure / freedom, 1e-300), more, freedom))


def _columns(relative: Float64Array, whitener: Float64Array) -> Float64Array:
    """Return the whitened columns of each law, shape (n_laws, n, 2)."""
    decay = -_decays(relative)
    both = np.stack([np.ones_like(decay), decay], axis=-1)
    return np.asarray(np.einsum("ij,ejc->eic", whitener, both))


def _best(
    relative: Float64Array,
    metric: Float64Array,
    whitener: Float64Array,
    highest: float,
    laws: slice,
) -> tuple[float, float, int]:
    """Return ceiling, scale and decay of least squares among those that rise up to `highest`."""
    columns = _columns(relative, whitener)[laws]
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
    return float(chosen[best, 0]), float(chosen[best, 1]), best + (laws.start or 0)


def _whitener(sizes: Int64Array, seeds: Int64Array, left: Float64Array) -> Float64Array:
    """Return the matrix that makes the errors independent and of equal variance."""
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
    decays = _decays(relative)
    n_laws = len(decays)
    y = np.repeat(whiteners @ metric, n_laws, axis=0)
    of_errors = np.log(np.diagonal(whiteners, axis1=1, axis2=2)).sum(axis=1)
    # The prior of the scale is for columns of any length: the length of the second is divided out.
    # Powers and exponentials are as likely before the figures are seen.
    kinds = np.repeat([1 / len(_EXPONENTS), 1 / len(_RATES)], [len(_EXPONENTS), len(_RATES)])
    prior = np.tile(np.log(np.linalg.norm(decays, axis=1) * kinds), len(whiteners))
    prior += np.repeat(of_errors, n_laws)
    which, law = _posterior(columns, y, prior, rng)
    kept = (law[:, 1] >= 0) & (law[:, 0] <= highest)
    if np.count_nonzero(kept) >= _FEWEST_DRAWS:
        return np.column_stack([law, which % n_laws])[kept]
    # The figures lie beyond what laws may be: what is left is a level, or a law up to the highest.
    if is_level:
        one = columns[::n_laws, :, :1]
        which, level = _posterior(one, y[::n_laws], of_errors, rng)
        flat = np.zeros_like(level)
        return np.column_stack([np.minimum(level, highest), flat, flat])
    which, scale = _posterior(columns[..., 1:], y - highest * columns[..., 0], prior, rng)
    top = np.full_like(scale, highest)
    return np.column_stack([top, np.maximum(scale, 0.0), which % n_laws])


def _posterior(
    columns: Float64Array, y: Float64Array, prior: Float64Array, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], Float64Array]:
    """Draw models by marginal likelihood, variances, then coefficients (n_draws, n_columns)."""
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
    design = whitener @ np.column_stack([np.ones_like(x), x])
    target = whitener @ y
    inverse = np.linalg.inv(design.T @ design)
    found = inverse @ design.T @ target
    left = target - design @ found
    variance = float(left @ left) / max(len(y) - 2, 1)
    return float(found[1]), float(np.sqrt(variance * inverse[1, 1]))


FEWEST_SIZES = 4
_STEPS = 5
"""Sizes that are tried by default, each twice the one before."""

_FEWEST = 8
"""Examples of the smallest subset."""

_SEEDS = "All fits have one seed: what another seed would change is in no interval."
_ONE_SEED = Decision("training", "one_seed", True, _SEEDS)


def fit_label_curve(
    sizes: npt.ArrayLike,
    seeds: npt.ArrayLike,
    metric: npt.ArrayLike,
    *,
    metric_name: str = "",
    unit: str = "pairs",
    more: Sequence[int] | None = None,
    highest: float = 1.0,
    decisions: tuple[Decision, ...] = (),
) -> LabelCurve:
    """Fit a law to the metric over the number of labels, and forecast more."""
    if not is_number(highest) or not np.isfinite(highest):
        raise InputError("highest", "a finite number", highest)
    n, which, figures = _checked(sizes, seeds, metric, highest)
    largest = int(n.max())
    steps = _default_more(largest) if more is None else [checked_count(m, "more") for m in more]
    law = fit_law(n, which, figures, float(highest))
    ahead = np.unique(np.concatenate([np.unique(n), largest + np.array(steps, dtype=np.int64)]))
    low, high = interval(law.drawn_at(ahead), len(n))
    forecast = law.at(ahead)
    if law.name == "none":
        forecast[ahead > largest] = np.nan
    return LabelCurve(
        sizes=n,
        seeds=which,
        metric=figures,
        metric_name=metric_name,
        law=law.name,
        ceiling=law.ceiling,
        scale=law.scale,
        exponent=law.exponent,
        forecast_sizes=ahead.astype(np.int64),
        forecast=forecast,
        low=np.minimum(low, forecast),
        high=np.maximum(high, forecast),
        gains=_gains(law, largest, steps, unit, 100.0 if highest == 1 else 1.0),
        decisions=decisions if len(np.unique(which)) > 1 else (*decisions, _ONE_SEED),
    )


def label_curve(
    fit: Callable[[Examples, int], float],
    examples: Examples,
    validation: Examples,
    *,
    sizes: Sequence[int] | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    metric_name: str = "",
    unit: str = "pairs",
    more: Sequence[int] | None = None,
    highest: float = 1.0,
    show_progress: bool | None = None,
) -> LabelCurve:
    """Train on more and more of the examples, to forecast whether more labels would help.

    The subsets of one seed are nested, and do not depend on the order of the examples.

    Parameters
    ----------
    fit : callable
        ``fit(subset, seed)`` trains and returns the metric on `validation`; higher is better.
    examples : Examples
    validation : Examples
        What `fit` measures on. Examples that are in it as well are left out of the subsets.
    sizes : sequence of int, optional
        Ascending, at least four; by default five, each twice the one before, up to all examples.
    seeds : sequence of int
    metric_name, unit : str
        What is measured, and what the examples are called.
    more : sequence of int, optional
        How many further examples are forecast; by default about half, as many, and three times the
        largest size.
    highest : float
        Value of the metric that cannot be passed.
    show_progress : bool, optional

    Returns
    -------
    LabelCurve

    Raises
    ------
    InputError
        If sizes or seeds are bad, or `fit` returns no finite number.

    Notes
    -----
    The band weighs power laws and exponential ones by how likely they are (a posterior over both);
    an F test of lack of fit decides which is drawn, or that nothing is forecast. In simulations it
    holds truths that saturate exponentially in 95 to 100 % of the cases, with power laws alone in
    0 to 90 %. Growth that ends all at once beyond the largest size cannot be
    seen in the figures, and is not in the band.
    """
    order, decisions = _usable(examples, validation)
    tried = _checked_sizes(sizes, len(order))
    if sizes is None:
        message = f"Training was tried with {', '.join(f'{size:,}' for size in tried)} {unit}."
        decisions += (Decision("training", "sizes", [str(size) for size in tried], message),)
    chosen = [checked_count(seed, "seeds", 0) for seed in seeds]
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError("seeds", "one or more different integers", list(seeds))
    rows: list[tuple[int, int, float]] = []
    total = len(chosen) * len(tried)
    with progress_bar(total=total, unit="fit", description="labels", show=show_progress) as bar:
        for seed in chosen:
            drawn = order[np.random.default_rng(seed).permutation(len(order))]
            for size in tried:
                figure = float(fit(examples.take(drawn[:size]), seed))
                if not np.isfinite(figure):
                    where = f"{figure} for {size:,} examples and seed {seed}"
                    raise InputError("fit", "a function that returns a finite metric", found=where)
                rows.append((size, seed, figure))
                bar.update(1)
    n, which, figures = zip(*rows, strict=True)
    named: dict[str, Any] = {"metric_name": metric_name, "unit": unit, "more": more}
    return fit_label_curve(n, which, figures, highest=highest, decisions=decisions, **named)


def _checked(
    sizes: npt.ArrayLike, seeds: npt.ArrayLike, metric: npt.ArrayLike, highest: float
) -> tuple[Int64Array, Int64Array, npt.NDArray[np.float64]]:
    n, which = np.asarray(sizes), np.asarray(seeds)
    figures = np.asarray(metric, dtype=np.float64)
    if n.ndim != 1 or not n.shape == which.shape == figures.shape:
        found = f"shapes {n.shape}, {which.shape} and {figures.shape}"
        raise InputError("metric", "a column as long as sizes and seeds", found=found)
    for name, values, least in (("sizes", n, 1), ("seeds", which, 0)):
        if values.dtype.kind not in "iu" or (len(values) and values.min() < least):
            raise InputError(name, f"integers from {least} up", values)
    wrong = np.flatnonzero(~np.isfinite(figures) | (figures > highest))
    if len(wrong):
        remedy = "set highest where the metric has another scale"
        row = int(wrong[0])
        raise InputError("metric", f"finite, up to {highest:g}", figures[row], remedy, row=row)
    if len(np.unique(n)) < FEWEST_SIZES or len(n) < FEWEST_SIZES + 2:
        found = f"{len(np.unique(n))} sizes in {len(n)} fits"
        wanted = f"{FEWEST_SIZES} different ones or more, in {FEWEST_SIZES + 2} fits or more"
        raise InputError("sizes", wanted, found=found)
    order = np.lexsort((which, n))
    return n[order].astype(np.int64), which[order].astype(np.int64), figures[order]


def _usable(examples: Examples, validation: Examples) -> tuple[Int64Array, tuple[Decision, ...]]:
    """Return the places of usable examples, ordered by their content."""
    keys, held_out = _keys(examples), set(_keys(validation))
    usable = [place for place, key in enumerate(keys) if key not in held_out]
    order = np.array(sorted(usable, key=lambda place: (keys[place], place)), dtype=np.int64)
    left_out = len(keys) - len(usable)
    message = "examples that are in the validation examples, too, were left out."
    return order, tuple(counted("training", "validation_overlap", left_out, message))


def _keys(examples: Examples) -> list[bytes]:
    """Return a hash of the texts of each example; another label makes no other example."""
    texts = [
        repr(list(row)).encode("utf-8", "surrogatepass")
        for row in zip(*examples.columns, strict=True)
    ]
    return [hashlib.sha256(each).digest() for each in texts]


def _checked_sizes(sizes: Sequence[int] | None, n: int) -> list[int]:
    if sizes is None:
        tried = [n >> step for step in reversed(range(_STEPS))]
        if tried[0] < _FEWEST:
            wanted = f"{_FEWEST << (_STEPS - 1)} or more for a curve over their number"
            raise InputError("examples", wanted, n, "label more, or give sizes")
        return tried
    tried = [checked_count(size, "sizes") for size in sizes]
    if len(tried) < FEWEST_SIZES or sorted(set(tried)) != tried or tried[-1] > n:
        wanted = f"{FEWEST_SIZES} ascending ones or more, up to the {n:,} examples"
        raise InputError("sizes", wanted, tried)
    return tried


def _default_more(largest: int) -> list[int]:
    """Return about half, as many, and three times the largest size, as round numbers."""
    power = 10 ** (len(str(largest)) - 1)
    round_numbers = np.array([d * power / 10 for d in (1, 2, 5, 10, 20, 50, 100, 200, 500)])
    aims = np.log(largest * np.array([0.5, 1.0, 3.0]))
    nearest = np.abs(np.log(round_numbers) - aims[:, None]).argmin(axis=1)
    return sorted({max(1, int(round_numbers[place])) for place in nearest})


def _gains(
    law: Law, largest: int, steps: Sequence[int], unit: str, points: float
) -> tuple[str, ...]:
    from scipy.stats import t

    # Figures that are all the same differ by rounding alone.
    least = 1e-9 * abs(law.ceiling)
    noise, surely = (
        max(law.growth_error * float(t.ppf(level, law.freedom)), least) for level in (0.95, 0.99)
    )
    if law.growth < -surely:
        return (f"Up to {largest:,} {unit} the metric fell: check labels and settings first.",)
    if law.growth <= noise:
        advice = "try more seeds, or more validation examples, before labelling more"
        return (f"Up to {largest:,} {unit}, growth is within noise: {advice}.",)
    if law.name == "none":
        found = "No forecast: neither a power law nor an exponential fits the figures"
        return (f"{found}. Look at them by size and seed, or add sizes.",)
    now = law.drawn_at([largest])
    gained = points * (law.drawn_at([largest + step for step in steps]) - now)
    low, high = interval(gained, law.freedom + 2)
    digits = ".1f" if points == 100 else ".3g"
    return tuple(
        f"{step:,} more {unit}: {(a + b) / 2:+{digits}} ± {(b - a) / 2:{digits}}"
        for step, a, b in zip(steps, low.tolist(), high.tolist(), strict=True)
    )
