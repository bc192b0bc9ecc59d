"""How the metric grows with the number of labelled examples, and what more of them would bring."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, is_number
from embedtopics._progress import progress_bar
from embedtopics.errors import InputError
from embedtopics.evaluation.bootstrap import interval
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision, LabelCurve
from embedtopics.training.curves.power_law import PowerLaw, fit_power_law
from embedtopics.training.examples import Examples

__all__ = ["fit_label_curve", "label_curve"]

FEWEST_SIZES = 4
_STEPS = 5
"""Sizes that are tried by default, each twice the one before."""

_FEWEST = 8
"""Examples of the smallest subset."""

_ONE_SEED = Decision(
    "training",
    "one_seed",
    True,
    "All fits have one seed: how far another seed would do better or worse throughout is in no "
    "interval.",
)


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
    """Fit a power law to the metric over the number of labels, and say what more would bring.

    Learning curves of this kind are close to ``ceiling - scale * size ** -exponent`` (Cortes et al.
    1993, "Learning curves: asymptotic values and rate of convergence"; Hestness et al. 2017, "Deep
    learning scaling is predictable, empirically"). Intervals are of the mean over seeds, and hold
    what is not known of the exponent, too, which is most of it. With a single seed they cannot hold
    that another would have done better or worse throughout; and where the figures follow no such
    law, they say nothing of sizes beyond those tried.

    Parameters
    ----------
    sizes, seeds, metric : array_like of shape (n_fits,)
        Training examples, seed and figure of each fit; higher is better.
    metric_name : str
    unit : str
        What is labelled, in the plural.
    more : sequence of int, optional
        How many more labels to forecast for; by default about half as many, as many, and three
        times as many as the largest size.
    highest : float
        What the metric cannot pass: 100 for percentages, 0 for a loss with its sign turned.
    decisions : tuple of Decision
        To be kept with the curve.

    Returns
    -------
    LabelCurve
        Gains stand with the half of their 95 % interval: in points, hundredths of a metric that
        ends at 1; of metrics of another scale, in its own units. Where the figures do not grow
        beyond their noise (one-sided, about 5 %), or surely fall (1 %), the gains say so.

    Raises
    ------
    InputError
        With fewer than four sizes, fewer than six fits, figures that are not finite or above
        `highest`, or a `highest` that is no finite number.
    """
    if not is_number(highest) or not np.isfinite(highest):
        raise InputError(f"expected highest to be a finite number; got {highest!r}")
    n, which, figures = _checked(sizes, seeds, metric, highest)
    largest = int(n.max())
    steps = _default_more(largest) if more is None else [checked_count(m, "more") for m in more]
    law = fit_power_law(n, which, figures, float(highest))
    ahead = np.unique(np.concatenate([np.unique(n), largest + np.array(steps, dtype=np.int64)]))
    low, high = interval(law.drawn_at(ahead))
    forecast = law.at(ahead)
    return LabelCurve(
        sizes=n,
        seeds=which,
        metric=figures,
        metric_name=metric_name,
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
    """Train on ever more of the examples, and see whether more labels would help.

    The subsets of one seed are nested: each holds the ones before it, so that a step along the
    curve is what the added examples brought. They depend on the texts and the seed, not on the
    order of the examples.

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
    metric_name, unit, more, highest
        As in `fit_label_curve`.
    show_progress : bool, optional

    Returns
    -------
    LabelCurve

    Raises
    ------
    InputError
        If sizes or seeds are bad, or `fit` returns no finite number.
    """
    order, decisions = _usable(examples, validation)
    tried = _checked_sizes(sizes, len(order))
    if sizes is None:
        decisions += (
            Decision("training", "sizes", [str(size) for size in tried],
                     f"Training was tried with {', '.join(f'{size:,}' for size in tried)} {unit}."),
        )  # fmt: skip
    chosen = [checked_count(seed, "seeds", 0) for seed in seeds]
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError(f"expected one or more different seeds; got {list(seeds)!r}")
    rows: list[tuple[int, int, float]] = []
    total = len(chosen) * len(tried)
    with progress_bar(total=total, unit="fit", description="labels", show=show_progress) as bar:
        for seed in chosen:
            drawn = order[np.random.default_rng(seed).permutation(len(order))]
            for size in tried:
                figure = float(fit(examples.take(drawn[:size]), seed))
                if not np.isfinite(figure):
                    raise InputError(
                        "expected fit(examples, seed) to return a finite metric; got "
                        f"{figure} for {size:,} examples and seed {seed}"
                    )
                rows.append((size, seed, figure))
                bar.update(1)
    n, which, figures = zip(*rows, strict=True)
    return fit_label_curve(
        n, which, figures, metric_name=metric_name, unit=unit, more=more, highest=highest,
        decisions=decisions,
    )  # fmt: skip


def _checked(
    sizes: npt.ArrayLike, seeds: npt.ArrayLike, metric: npt.ArrayLike, highest: float
) -> tuple[Int64Array, Int64Array, npt.NDArray[np.float64]]:
    n, which = np.asarray(sizes), np.asarray(seeds)
    figures = np.asarray(metric, dtype=np.float64)
    if n.ndim != 1 or not n.shape == which.shape == figures.shape:
        raise InputError(
            "expected sizes, seeds and metric as columns of one length; got shapes "
            f"{n.shape}, {which.shape} and {figures.shape}"
        )
    for name, values, least in (("sizes", n, 1), ("seeds", which, 0)):
        if values.dtype.kind not in "iu" or (len(values) and values.min() < least):
            raise InputError(f"expected {name} to be integers from {least} up; got {values!r}")
    wrong = np.flatnonzero(~np.isfinite(figures) | (figures > highest))
    if len(wrong):
        raise InputError(
            f"expected finite metrics up to {highest:g}; got {figures[wrong[0]]} in row "
            f"{wrong[0]}: set highest where the metric has another scale"
        )
    if len(np.unique(n)) < FEWEST_SIZES or len(n) < FEWEST_SIZES + 2:
        raise InputError(
            f"expected {FEWEST_SIZES} different sizes or more, in {FEWEST_SIZES + 2} fits or more; "
            f"got {len(np.unique(n))} sizes in {len(n)} fits: add sizes or seeds"
        )
    order = np.lexsort((which, n))
    return n[order].astype(np.int64), which[order].astype(np.int64), figures[order]


def _usable(examples: Examples, validation: Examples) -> tuple[Int64Array, tuple[Decision, ...]]:
    """Return the places of usable examples, ordered by their content."""
    keys = [_key(examples, place) for place in range(len(examples))]
    held_out = {_key(validation, place) for place in range(len(validation))}
    usable = [place for place, key in enumerate(keys) if key not in held_out]
    order = np.array(sorted(usable, key=lambda place: (keys[place], place)), dtype=np.int64)
    left_out = len(keys) - len(usable)
    if not left_out:
        return order, ()
    message = f"{left_out:,} examples that are in the validation examples, too, were left out."
    return order, (Decision("training", "validation_overlap", left_out, message),)


def _key(examples: Examples, place: int) -> bytes:
    """Return a hash of the texts of an example; the label of the same texts is no other example."""
    texts = repr([column[place] for column in examples.columns])
    return hashlib.sha256(texts.encode("utf-8", "surrogatepass")).digest()


def _checked_sizes(sizes: Sequence[int] | None, n: int) -> list[int]:
    if sizes is None:
        tried = [n >> step for step in reversed(range(_STEPS))]
        if tried[0] < _FEWEST:
            raise InputError(
                f"expected {_FEWEST << (_STEPS - 1)} examples or more for a curve over their "
                f"number; got {n}: label more, or give sizes"
            )
        return tried
    tried = [checked_count(size, "sizes") for size in sizes]
    if len(tried) < FEWEST_SIZES or sorted(set(tried)) != tried or tried[-1] > n:
        raise InputError(
            f"expected {FEWEST_SIZES} ascending sizes or more, up to the {n:,} examples that there "
            f"are; got {tried}"
        )
    return tried


def _default_more(largest: int) -> list[int]:
    """Return about half, as many, and three times the largest size, as round numbers."""
    power = 10 ** (len(str(largest)) - 1)
    round_numbers = np.array([d * power / 10 for d in (1, 2, 5, 10, 20, 50, 100, 200, 500)])
    aims = np.log(largest * np.array([0.5, 1.0, 3.0]))
    nearest = np.abs(np.log(round_numbers) - aims[:, None]).argmin(axis=1)
    return sorted({max(1, int(round_numbers[place])) for place in nearest})


def _gains(
    law: PowerLaw, largest: int, steps: Sequence[int], unit: str, points: float
) -> tuple[str, ...]:
    from scipy.stats import t

    # Figures that are all the same differ by rounding alone.
    least = 1e-9 * abs(law.ceiling)
    noise, surely = (
        max(law.growth_error * float(t.ppf(level, law.freedom)), least) for level in (0.95, 0.99)
    )
    if law.growth < -surely:
        return (
            f"Up to {largest:,} {unit}, the metric fell the more of them there were: look at the "
            "labels and the settings before labelling more.",
        )
    if law.growth <= noise:
        return (
            f"Up to {largest:,} {unit}, no growth can be told from noise: try more seeds, or more "
            "validation examples, before labelling more.",
        )
    now = law.drawn_at([largest])
    low, high = interval(points * (law.drawn_at([largest + step for step in steps]) - now))
    digits = ".1f" if points == 100 else ".3g"
    return tuple(
        f"{step:,} more {unit}: {(a + b) / 2:+{digits}} ± {(b - a) / 2:{digits}}"
        for step, a, b in zip(steps, low.tolist(), high.tolist(), strict=True)
    )
