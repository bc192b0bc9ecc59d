"""The number of gold rows that an interval or an effect needs, and their allocation to strata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from embedtopics._utils.checks import checked_between, checked_count
from embedtopics.errors import InputError
from embedtopics.inference.results import LabelPlan, MeasuredShares
from embedtopics.protocols import Float64Array, Int64Array

MIN_PER_STRATUM = 10
"""Gold rows of a stratum, if it has as many: an expected share may be wrong."""


def power(
    *,
    n_rows: int,
    width: float | None = None,
    effect: float | None = None,
    share: float = 0.5,
    group_share: float = 0.5,
    strata: Mapping[Any, tuple[int, float]] | MeasuredShares | None = None,
    accuracy: float | None = None,
    confidence: float = 0.95,
    power: float = 0.8,
) -> LabelPlan:
    """Return how many gold rows, drawn at random, an interval or a difference needs.

    Parameters
    ----------
    n_rows : int
        Rows of the corpus, each with a prediction.
    width : float, optional
        Width of the interval of a share.
    effect : float, optional
        Difference of a share between two groups, to be detected. Pass either `width` or `effect`.
    share : float
        The share that is expected.
    group_share : float
        Share of the rows in the first group.
    strata : mapping of object to (int, float), or MeasuredShares, optional
        Rows and expected share of each stratum, such as each predicted class, for a `width` without
        further predictions. The plan allocates gold rows in proportion to the rows and the standard
        deviation of each stratum (Neyman 1934). Shares by stratum, as measured so far, give the
        further gold rows of each for the last class; each row counts as a unit.
    accuracy : float, optional
        Share of correct predictions in each class; by default there are no predictions.
    confidence, power : float
        Level of the interval or test, and the probability of detecting the effect.

    Returns
    -------
    LabelPlan

    Examples
    --------
    >>> import embedtopics as et
    >>> et.inference.power(n_rows=10_000, width=0.05, share=0.1, accuracy=0.9)
    LabelPlan(345 gold rows to draw with predictions (correlation 0.62), 554 without)
    """
    if (width is None) == (effect is None):
        raise InputError("width", "given, or effect, but not both", width)
    checked_count(n_rows, "n_rows", 1)
    for value, name in ((width, "width"), (effect, "effect")):
        if value is not None:
            checked_between(value, name, 0, 1)
    checked_between(confidence, "confidence", 0, 1)
    checked_between(power, "power", 0, 1)

    if strata is not None:
        return _stratified(n_rows, width, strata, confidence)

    checked_between(share, "share", 0, 1)
    variance = share * (1 - share)
    explained = 0.0
    if accuracy is not None:  # of predictions that are right with the same probability
        checked_between(accuracy, "accuracy", 0, 1)
        predicted = share * accuracy + (1 - share) * (1 - accuracy)
        shared = share * (accuracy - predicted)
        explained = shared**2 / (variance * predicted * (1 - predicted))

    parts = 1.0
    if width is not None:
        allowed = (width / (2 * ndtri(0.5 + confidence / 2))) ** 2
    elif effect is not None:
        allowed = (effect / (ndtri(0.5 + confidence / 2) + ndtri(power))) ** 2
        parts = 1 / checked_between(group_share, "group_share", 0, 1) + 1 / (1 - group_share)

    rest = allowed - explained * variance * parts / n_rows
    labels = (1 - explained) * variance * parts / rest if rest > 0 else np.inf
    n = float(np.ceil(labels))
    alone = float(np.ceil(variance * parts / allowed))
    return LabelPlan(n, alone, float(explained**0.5))


def _stratified(
    n_rows: int,
    width: float | None,
    strata: Mapping[Any, tuple[int, float]] | MeasuredShares,
    confidence: float,
) -> LabelPlan:
    """Return the plan of a share by strata."""
    if isinstance(strata, MeasuredShares):
        rows = strata._of_class(strata.table["class"].iloc[-1])
        drawn = rows["n_gold"].to_numpy(dtype=np.float64)
        # Half a gold row more of each kind: a stratum with equal gold rows is not certain.
        hits = np.nan_to_num(rows["gold"].to_numpy()) * drawn
        shares_so_far = ((hits + 0.5) / (drawn + 1)).tolist()
        rows_and_shares = zip(rows["n"].tolist(), shares_so_far, strict=True)
        strata = dict(zip(rows["group"], rows_and_shares, strict=True))
    else:
        drawn = np.zeros(len(strata))
    sizes, expected = np.array([*strata.values()], dtype=np.float64).T
    if width is None or sizes.sum() != n_rows or not ((expected >= 0) & (expected <= 1)).all():
        raise InputError("strata", f"{n_rows:,} rows in all, shares, and a width", strata)
    weights = sizes / n_rows
    share = float(weights @ expected)
    allowed = (width / (2 * ndtri(0.5 + confidence / 2))) ** 2
    # The strata explain what their shares differ; their own rows vary among samples of rows.
    between = float(weights @ np.square(expected - share))
    rest, spread = allowed - between / n_rows, weights * np.sqrt(expected * (1 - expected))
    parts = _clipped(
        lambda n: (spread**2 / np.maximum(n, 1e-9)).sum() <= rest, spread, drawn, sizes
    )
    total = float(np.ceil(parts.sum() - 1e-6))
    least = np.maximum(drawn, np.minimum(sizes, MIN_PER_STRATUM))
    further = allocate(int(total), sizes, expected, least) - drawn.astype(np.int64)
    labels = total - drawn.sum() if rest > 0 else np.inf
    alone = float(np.ceil(share * (1 - share) / allowed) - drawn.sum())
    phi = float(np.sqrt(between / (share * (1 - share))))
    return LabelPlan(
        float(labels), max(alone, 0.0), phi, dict(zip(strata, further.tolist(), strict=True))
    )


def allocate(
    n_gold: int, sizes: npt.ArrayLike, shares: npt.ArrayLike, least: Float64Array | None = None
) -> Int64Array:
    """Return the gold rows of each stratum: by rows and standard deviation (Neyman 1934)."""
    rows, expected = np.asarray(sizes, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    least = np.minimum(rows, MIN_PER_STRATUM) if least is None else least
    spread = rows * np.sqrt(expected * (1 - expected))
    parts = _clipped(lambda n: n.sum() >= n_gold, spread, least, rows)
    whole = np.floor(parts + 1e-6).astype(np.int64)
    rank = np.argsort(whole - parts, kind="stable")
    whole[rank[: max(n_gold - int(whole.sum()), 0)]] += 1
    return whole


def _clipped(
    is_enough: Callable[[Float64Array], bool], spread: Float64Array, *bounds: Float64Array
) -> Float64Array:
    """Return the fewest rows that are enough, in proportion to the spread between two bounds."""
    most = bounds[1].sum()
    low, high = 0.0, 2 * float(most) / max(float(spread[spread > 0].min(initial=1.0)), 1e-12)
    for _ in range(100):  # more gold rows with a larger factor
        middle = (low + high) / 2
        enough = is_enough(np.clip(middle * spread, *bounds))
        low, high = (low, middle) if enough else (middle, high)
    return np.clip(high * spread, *bounds)
