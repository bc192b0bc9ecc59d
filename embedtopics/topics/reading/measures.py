"""How much more frequent a term is on one side than on the other, and how sure that is.

All measures are taken of the same table: of `n_target` places for a term on one side it takes
`target`, of `n_reference` places on the other `reference`. They change sign, and nothing else,
when the sides change places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.terms import log_odds

__all__ = ["MEASURES", "Association", "Table", "associate", "false_discovery_rates"]

MEASURES = ("log_odds", "g2", "chi2", "log_ratio")

Z_OF_95 = 1.959963984540054
"""Standard errors to either side that hold 95 % of a normal distribution."""

FloatVector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """Counts of terms on two sides.

    Parameters
    ----------
    target, reference : float64 ndarray of shape (n_terms,)
        How often each term occurs.
    n_target, n_reference : float64 ndarray of shape (n_terms,)
        Places at which it might, above 0: words for a word, pairs of words for a term of two.
    shares : float64 ndarray of shape (n_terms,)
        Share of each term in the places of a larger collection: what is expected of a side of
        which nothing is known.
    """

    target: FloatVector
    reference: FloatVector
    n_target: FloatVector
    n_reference: FloatVector
    shares: FloatVector


@dataclass(frozen=True, eq=False)
class Association:
    """What a measure says of each term; above 0 the target has more of it.

    Parameters
    ----------
    effect, low, high : float64 ndarray of shape (n_terms,)
        How much more, with a 95 % interval (NaN where a measure has none).
    statistic : float64 ndarray of shape (n_terms,)
        How sure: a z value, or a chi-squared with the sign of the effect.
    p : float64 ndarray of shape (n_terms,)
        Two-sided.
    """

    effect: FloatVector
    low: FloatVector
    high: FloatVector
    statistic: FloatVector
    p: FloatVector


def associate(table: Table, measure: str, lengths: npt.ArrayLike | None = None) -> Association:
    """Measure each term of a table.

    Parameters
    ----------
    table : Table
    measure : {"log_odds", "g2", "chi2", "log_ratio"}
    lengths : array_like of int, shape (n_terms,), optional
        Words of each term; only "log_odds" asks, which compares terms with those of their length.

    Raises
    ------
    InputError
        If there is no such measure.
    """
    if measure not in MEASURES:
        raise InputError(f"expected a measure among {', '.join(MEASURES)}; got {measure!r}")
    if measure == "log_odds":
        of_length = np.ones(len(table.target)) if lengths is None else np.asarray(lengths)
        return _log_odds(table, of_length)
    ratio = _log_ratio(table)
    if measure == "log_ratio":
        return ratio
    squared = _g2(table) if measure == "g2" else _chi2(table)
    sign = np.sign(table.target * table.n_reference - table.reference * table.n_target)
    unsure = np.full(len(sign), np.nan)
    return Association(ratio.effect, unsure, unsure, sign * squared, _tail(np.sqrt(squared)))


def _cells(table: Table) -> list[tuple[FloatVector, FloatVector]]:
    """Return what was counted in the four cells, and what would be if the sides were alike."""
    n = table.n_target + table.n_reference
    taken = table.target + table.reference
    return [
        (table.target, taken * (table.n_target / n)),
        (table.reference, taken * (table.n_reference / n)),
        (table.n_target - table.target, (n - taken) * (table.n_target / n)),
        (table.n_reference - table.reference, (n - taken) * (table.n_reference / n)),
    ]


def _g2(table: Table) -> FloatVector:
    """Return the log-likelihood ratio, 0 or more.

    Dunning (1993), "Accurate Methods for the Statistics of Surprise and Coincidence", section 4.
    """
    from scipy.special import xlogy

    total = np.zeros(len(table.target))
    for counted, expected in _cells(table):
        total += xlogy(counted, np.where(expected > 0, counted / np.maximum(expected, 1e-300), 1))
    return np.maximum(2.0 * total, 0.0)


def _chi2(table: Table) -> FloatVector:
    """Return Pearson's chi-squared, without a correction for continuity."""
    total = np.zeros(len(table.target))
    for counted, expected in _cells(table):
        total += np.where(expected > 0, (counted - expected) ** 2 / np.maximum(expected, 1e-300), 0)
    return total


def _log_ratio(table: Table) -> Association:
    """Return how many times the rate doubles from the reference to the target.

    A count of 0 stands for one half (Hardie, 2014, "Log Ratio: an informal introduction"); the
    interval is that of a ratio of two proportions (Katz et al., 1978, "Obtaining confidence
    intervals for the risk ratio in cohort studies").
    """
    target, reference = np.maximum(table.target, 0.5), np.maximum(table.reference, 0.5)
    n_target, n_reference = np.maximum(table.n_target, 1), np.maximum(table.n_reference, 1)
    effect = np.log2(target / n_target) - np.log2(reference / n_reference)
    variance = 1 / target - 1 / n_target + 1 / reference - 1 / n_reference
    error = np.sqrt(np.maximum(variance, 0.0)) / np.log(2)
    return _normal(effect, error)


def _log_odds(table: Table, lengths: npt.NDArray[np.float64]) -> Association:
    """Return log-odds under a prior of as many words as the smaller side has; see `log_odds`.

    What is left of the places is one more term, so that the odds are those of a place.
    """
    effect, error = np.zeros(len(lengths)), np.zeros(len(lengths))
    for length in np.unique(lengths):
        at = np.flatnonzero(lengths == length)
        sides = (table.target[at], table.n_target[at[0]]), (
            table.reference[at], table.n_reference[at[0]],
        )  # fmt: skip
        weight = min(sides[0][1], sides[1][1])
        counts = [np.append(counted, max(n - counted.sum(), 0.0)) for counted, n in sides]
        shares = np.append(table.shares[at], max(1.0 - table.shares[at].sum(), 0.0))
        prior = weight * shares / shares.sum()
        z = log_odds(counts[0], counts[1], prior)[:-1]
        posterior = [(counted + prior)[:-1] for counted in counts]
        with np.errstate(divide="ignore"):
            error[at] = np.sqrt(1 / posterior[0] + 1 / posterior[1])
        effect[at] = np.where(z == 0, 0.0, z * error[at])
    return _normal(effect, error)


def _normal(effect: FloatVector, error: FloatVector) -> Association:
    """Return what follows from an effect that is normally distributed, and its standard error."""
    z = np.divide(effect, error, out=np.zeros(len(effect)), where=error > 0)
    return Association(effect, effect - Z_OF_95 * error, effect + Z_OF_95 * error, z, _tail(z))


def _tail(z: FloatVector) -> FloatVector:
    """Return the two-sided p-value of a standard normal variable."""
    from scipy.special import erfc

    return np.asarray(erfc(np.abs(z) / np.sqrt(2)))


def false_discovery_rates(p: npt.ArrayLike) -> FloatVector:
    """Return the share of false discoveries among those with such a p-value or a smaller one.

    Benjamini and Hochberg (1995), "Controlling the false discovery rate".

    Parameters
    ----------
    p : array_like of shape (n_tests,)

    Returns
    -------
    float64 ndarray of shape (n_tests,)

    Examples
    --------
    >>> false_discovery_rates([0.01, 0.04, 0.03, 0.5]).round(3).tolist()
    [0.04, 0.053, 0.053, 0.5]
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    ranks = np.arange(len(values), 0, -1)
    rates = np.empty(len(values))
    rates[order] = np.minimum.accumulate(values[order] * len(values) / ranks)
    return np.minimum(rates, 1.0)
