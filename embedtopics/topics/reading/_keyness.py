"""The terms that set one set of documents apart from another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_choice, checked_count, optional_count
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Float64Array, Int64Array
from embedtopics.terms._weighting import log_odds
from embedtopics.topics.reading._rows import rows_of_topics, rows_where, string_column
from embedtopics.topics.results import TopicResult

if TYPE_CHECKING:
    import pandas as pd


MEASURES = ("log_odds", "g2", "chi2", "log_ratio")

Z_OF_95 = 1.959963984540054
"""Standard errors to either side that hold 95 % of a normal distribution."""


class Table(NamedTuple):
    """Counts of terms on two sides, float64 each, shape (n_terms,).

    `target` of the `n_target` places at which a term of its length might occur are its own, and
    `shares` of those of a larger collection. When the sides change places, only signs change.
    """

    target: Float64Array
    reference: Float64Array
    n_target: Float64Array
    n_reference: Float64Array
    shares: Float64Array


class Association(NamedTuple):
    """A measure of each term, float64, shape (n_terms,); the target's are above 0.

    An effect and its 95 % interval, or NaN; z, or chi-squared with the sign of the effect.
    """

    effect: Float64Array
    low: Float64Array
    high: Float64Array
    statistic: Float64Array
    p: Float64Array


def associate(table: Table, measure: str, lengths: npt.ArrayLike | None = None) -> Association:
    """Measure each term of a table; `lengths` (n_terms,) are in words."""
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


def _cells(table: Table) -> list[tuple[Float64Array, Float64Array]]:
    """Return what was counted in the four cells, and what is expected of equal sides."""
    n = table.n_target + table.n_reference
    taken = table.target + table.reference
    return [
        (table.target, taken * (table.n_target / n)),
        (table.reference, taken * (table.n_reference / n)),
        (table.n_target - table.target, (n - taken) * (table.n_target / n)),
        (table.n_reference - table.reference, (n - taken) * (table.n_reference / n)),
    ]


def _g2(table: Table) -> Float64Array:
    """Return the log-likelihood ratio (Dunning 1993, "Accurate Methods", section 4), 0 or more."""
    from scipy.special import xlogy

    total = np.zeros(len(table.target))
    for counted, expected in _cells(table):
        total += xlogy(counted, np.where(expected > 0, counted / np.maximum(expected, 1e-300), 1))
    return np.maximum(2.0 * total, 0.0)


def _chi2(table: Table) -> Float64Array:
    """Return Pearson's chi-squared, without a correction for continuity."""
    total = np.zeros(len(table.target))
    for counted, expected in _cells(table):
        total += np.where(expected > 0, (counted - expected) ** 2 / np.maximum(expected, 1e-300), 0)
    return total


def _log_ratio(table: Table) -> Association:
    """Return how many times the rate doubles from the reference to the target; a count of 0 is 1/2.

    Hardie (2014), "Log Ratio: an informal introduction"; the interval is of Katz et al. (1978),
    "Obtaining confidence intervals for the risk ratio in cohort studies".
    """
    target, reference = np.maximum(table.target, 0.5), np.maximum(table.reference, 0.5)
    n_target, n_reference = np.maximum(table.n_target, 1), np.maximum(table.n_reference, 1)
    effect = np.log2(target / n_target) - np.log2(reference / n_reference)
    variance = 1 / target - 1 / n_target + 1 / reference - 1 / n_reference
    error = np.sqrt(np.maximum(variance, 0.0)) / np.log(2)
    return _normal(effect, error)


def _log_odds(table: Table, lengths: Float64Array) -> Association:
    """Return log-odds under a prior of as many words as the smaller side has; see `log_odds`."""
    effect, error = np.zeros(len(lengths)), np.zeros(len(lengths))
    for length in np.unique(lengths):
        at = np.flatnonzero(lengths == length)
        sizes = table.n_target[at[0]], table.n_reference[at[0]]
        sides = zip((table.target[at], table.reference[at]), sizes, strict=True)
        weight = min(sizes)
        counts = [np.append(counted, max(n - counted.sum(), 0.0)) for counted, n in sides]
        shares = np.append(table.shares[at], max(1.0 - table.shares[at].sum(), 0.0))
        prior = weight * shares / shares.sum()
        z = log_odds(counts[0], counts[1], prior)[:-1]
        posterior = [(counted + prior)[:-1] for counted in counts]
        with np.errstate(divide="ignore"):
            error[at] = np.sqrt(1 / posterior[0] + 1 / posterior[1])
        effect[at] = np.where(z == 0, 0.0, z * error[at])
    return _normal(effect, error)


def _normal(effect: Float64Array, error: Float64Array) -> Association:
    """Return what follows from an effect that is normally distributed, and its standard error."""
    z = np.divide(effect, error, out=np.zeros(len(effect)), where=error > 0)
    return Association(effect, effect - Z_OF_95 * error, effect + Z_OF_95 * error, z, _tail(z))


def _tail(z: Float64Array) -> Float64Array:
    """Return the two-sided p-value of a standard normal variable."""
    from scipy.special import erfc

    return np.asarray(erfc(np.abs(z) / np.sqrt(2)))


def false_discovery_rates(p: npt.ArrayLike) -> Float64Array:
    """Return the share of false discoveries among those with such a p-value (n_tests,) or less.

    Benjamini and Hochberg (1995), "Controlling the false discovery rate"; SciPy's differ in the
    last digits.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    ranks = np.arange(len(values), 0, -1)
    rates = np.empty(len(values))
    rates[order] = np.minimum.accumulate(values[order] * len(values) / ranks)
    return np.minimum(rates, 1.0)


def keyness(
    result: TopicResult,
    target: Any,
    reference: Any = None,
    *,
    measure: str = "log_odds",
    n_terms: int | None = 50,
    min_count: int = 5,
) -> pd.DataFrame:
    """Find the terms that set one set of rows apart from another.

    A row counts as often as it stands in the input. A word is counted among all words, a term of
    two words among all pairs of words.

    Parameters
    ----------
    result : TopicResult
    target, reference
        Two sets of rows without a row in common, each given as a topic id or a list of them (-1
        for the rows in none), as ``{"column": value}`` or a value of the group column (see
        `sample_documents`), or as a mask over the rows. Without a reference, it is all other rows
        with text.
    measure : {"log_odds", "g2", "chi2", "log_ratio"}
        What the terms are ordered by.

        - "log_odds": difference of the log-odds (natural logarithm) under an informative Dirichlet
          prior, with its z value; see `embedtopics.terms.log_odds`.
        - "g2": Dunning's log-likelihood ratio. It favours frequent terms.
        - "chi2": Pearson's chi-squared, without correction. It favours rare terms.
        - "log_ratio": binary logarithm of the ratio of both rates, ordered by the end of its
          interval which is nearer to 0 (Evert, 2022, "Measuring Keyness").
    n_terms : int or None
        Terms of each side; None for all.
    min_count : int
        Least count of a term, both sides together.

    Returns
    -------
    DataFrame
        The terms of the target, the strongest first, then those of the reference, the strongest
        last. Columns term; count_target, count_reference; rate_target, rate_reference (in a million
        words); rows_target, rows_reference (rows that hold it); effect, low, high (the log-odds or,
        for other measures, the log ratio, above 0 for terms of the target; with a 95 % interval,
        NaN for "g2" and "chi2"); statistic (z, or chi-squared with the sign of the effect); p and q
        (the false discovery rate over all terms), which take words for independent draws.

    Raises
    ------
    InputError
        If a side is unknown or holds no text, both share rows, or another argument is bad.
    """
    import pandas as pd

    optional_count(n_terms, "n_terms")
    checked_count(min_count, "min_count")
    checked_choice(measure, "measure", MEASURES)
    sides = _weights(result, target, reference)
    counts, lengths = result.term_counts.counts, result.term_counts.lengths.astype(np.int64)
    counted = [np.asarray(counts.T @ weights) for weights in sides]
    longest = int(lengths.max(initial=1))
    places = [places_for(result, weights, longest)[lengths] for weights in sides]
    is_held = (places[0] > 0) & (places[1] > 0)
    tested = np.flatnonzero((counted[0] + counted[1] >= min_count) & is_held)
    everyone = result.documents.weights
    places_everywhere = np.maximum(places_for(result, everyone, longest)[lengths], 1)
    everywhere = (counts.T @ everyone) / places_everywhere
    table = Table(*(x[tested].astype(np.float64) for x in (*counted, *places, everywhere)))
    found = associate(table, measure, lengths[tested])
    shown = _strongest(found, n_terms, cautious=measure == "log_ratio")
    at = tested[shown]
    is_in = result.term_counts.counts[:, at] > 0
    columns: dict[str, Any] = {
        "count": [one[at].astype(np.int64) for one in counted],
        "rate": [1e6 * (counted[i] / np.maximum(places[i], 1))[at] for i in (0, 1)],
        "rows": [np.asarray(is_in.T @ weights).astype(np.int64) for weights in sides],
    }
    of_sides = {
        f"{name}_{side}": values
        for name, both in columns.items()
        for side, values in zip(("target", "reference"), both, strict=True)
    }
    terms = string_column([result.term_counts.terms[term] for term in at.tolist()])
    q = false_discovery_rates(found.p)
    measured = {name: values[shown] for name, values in found._asdict().items()}
    return pd.DataFrame({"term": terms, **of_sides, **measured, "q": q[shown]})


def _weights(result: TopicResult, target: Any, reference: Any) -> tuple[Int64Array, Int64Array]:
    """Return how many rows of each document are on each side."""
    if target is None:
        raise InputError("target", "a topic id, a group or a mask", target)
    first = _side(result, target, "target")
    has_text = result.documents.of_row >= 0
    second = has_text & ~first if reference is None else _side(result, reference, "reference")
    if n_shared := int((first & second).sum()):
        expected = "without rows of the target"
        raise InputError("reference", expected, found=f"{n_shared:,} rows in both")
    for rows, name in ((first, "target"), (second, "reference")):
        if not rows.any():
            raise InputError(name, "some rows with text", found="none")
    of_row, n_documents = result.documents.of_row, len(result.documents)
    weights = [np.bincount(of_row[rows], minlength=n_documents) for rows in (first, second)]
    return weights[0].astype(np.int64), weights[1].astype(np.int64)


def _side(result: TopicResult, side: Any, name: str) -> BoolArray:
    """Return the rows with text of one side, which are those of topics or meet a condition."""
    is_ids = isinstance(side, np.ndarray) and side.dtype.kind in "iu"
    is_array = hasattr(side, "dtype") and hasattr(side, "__len__")
    is_mask = isinstance(side, (list, tuple)) and side and all(isinstance(v, bool) for v in side)
    if isinstance(side, (Mapping, str)) or is_mask or (is_array and not is_ids):
        return rows_where(result, side, name)
    return rows_of_topics(result, side, name)


def places_for(result: TopicResult, weights: npt.NDArray[Any], longest: int) -> Int64Array:
    """Return how many places there are for a term of each length, shape (longest + 1,)."""
    n_words = np.diff(result.tokens.offsets)
    return np.array(
        [0, *(int(weights @ np.maximum(n_words - k, 0)) for k in range(longest))], dtype=np.int64
    )


def _strongest(found: Association, n: int | None, *, cautious: bool) -> Int64Array:
    """Return the places of the terms to show, those of the target first."""
    size = np.abs(found.statistic)
    strength = np.maximum(np.maximum(found.low, -found.high), 0.0) if cautious else size
    order = np.lexsort((-np.abs(found.effect), -size, -strength))
    sign = np.sign(np.where(found.statistic == 0, found.effect, found.statistic))[order]
    sides = [order[sign > 0][:n], order[sign < 0][:n]]
    neither = order[sign == 0] if n is None else order[:0]
    return np.concatenate([sides[0], neither, sides[1][::-1]])
