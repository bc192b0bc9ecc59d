"""The terms that set one set of documents apart from another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, optional_count
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import TopicResult
from embedtopics.topics.reading.columns import string_column
from embedtopics.topics.reading.measures import (
    MEASURES,
    Association,
    Table,
    associate,
    false_discovery_rates,
)
from embedtopics.topics.reading.selecting import (
    BoolArray,
    rows_of_group,
    rows_of_mask,
    rows_of_topics,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["keyness", "places_for"]


def keyness(
    result: TopicResult,
    target: Any,
    reference: Any = None,
    *,
    measure: str = "log_odds",
    n: int | None = 50,
    min_count: int = 5,
) -> pd.DataFrame:
    """Find the terms that set one set of rows apart from another.

    A row counts as often as it stands in the input, repeated texts too. A term competes with the
    terms of its length: a word is counted among all words, stop words with them, a term of two
    words among all pairs of words.

    Parameters
    ----------
    result : TopicResult
    target, reference
        Two sets of rows without a row in common, each given as a topic id or a list of them (-1
        for the rows in none), as ``{"column": value}`` or the value of the group column, or as a
        mask over the rows, such as ``(result.labels == 3) & (frame["source"] == "Le Monde")``.
        Without a reference, it is all other rows with text.
    measure : {"log_odds", "g2", "chi2", "log_ratio"}
        What the terms are ordered by.

        - "log_odds": difference of the log-odds (natural logarithm) under an informative Dirichlet
          prior, with its z value; see `embedtopics.terms.log_odds`. The prior is the term's share
          in the whole input, and weighs as much as the smaller side.
        - "g2": Dunning's log-likelihood ratio. It favours frequent terms.
        - "chi2": Pearson's chi-squared, without correction. It favours rare terms.
        - "log_ratio": binary logarithm of the ratio of both rates; 1 is twice as frequent. The
          order is that of the end of its interval which is nearer to 0, for rare terms have large
          ratios by chance (Evert, 2022, "Measuring Keyness").
    n : int or None
        Terms of each side; None for all.
    min_count : int
        Least count of a term, both sides together.

    Returns
    -------
    DataFrame
        The terms of the target, the strongest first, then those of the reference, the strongest
        last. Columns

        - term;
        - count_target, count_reference: how often it occurs;
        - rate_target, rate_reference: the same in a million words (or pairs of words, ...);
        - rows_target, rows_reference: rows that hold it. A term of a few rows is of these rows
          rather than of the side, whatever its p-value;
        - effect, low, high: the log-odds or, for the other measures, the log ratio, with a 95 %
          interval (NaN for "g2" and "chi2"); above 0 for terms of the target;
        - statistic: z, or the chi-squared value with the sign of the effect;
        - p, q: two-sided p-value of one term, and the false discovery rate (Benjamini and
          Hochberg) over all terms that were tested, shown or not. Both take words for independent
          draws. Words of one text are not, so that real p-values are larger.

    Raises
    ------
    InputError
        If a side is unknown or holds no text, both share rows, or another argument is bad.
    """
    import pandas as pd

    optional_count(n, "n")
    checked_count(min_count, "min_count")
    if measure not in MEASURES:
        raise InputError(f"expected a measure among {', '.join(MEASURES)}; got {measure!r}")
    sides = _weights(result, target, reference)
    counts, lengths = result.term_counts.counts, result.term_counts.lengths.astype(np.int64)
    counted = [np.asarray(counts.T @ weights) for weights in sides]
    longest = int(lengths.max(initial=1))
    places = [places_for(result, weights, longest)[lengths] for weights in sides]
    tested = np.flatnonzero(
        (counted[0] + counted[1] >= min_count) & (places[0] > 0) & (places[1] > 0)
    )
    everyone = result.documents.weights
    everywhere = (counts.T @ everyone) / np.maximum(
        places_for(result, everyone, longest)[lengths], 1
    )
    table = Table(*(x[tested].astype(np.float64) for x in (*counted, *places, everywhere)))
    found = associate(table, measure, lengths[tested])
    shown = _strongest(found, n, cautious=measure == "log_ratio")
    holders = _holders(result, sides, tested[shown])
    columns: dict[str, Any] = {
        "term": string_column([result.term_counts.terms[t] for t in tested[shown].tolist()])
    }
    for side, name in enumerate(("target", "reference")):
        columns[f"count_{name}"] = counted[side][tested[shown]].astype(np.int64)
    for side, name in enumerate(("target", "reference")):
        columns[f"rate_{name}"] = 1e6 * (counted[side] / np.maximum(places[side], 1))[tested[shown]]
    for side, name in enumerate(("target", "reference")):
        columns[f"rows_{name}"] = holders[side]
    columns |= {
        "effect": found.effect[shown], "low": found.low[shown], "high": found.high[shown],
        "statistic": found.statistic[shown], "p": found.p[shown],
        "q": false_discovery_rates(found.p)[shown],
    }  # fmt: skip
    return pd.DataFrame(columns)


def _weights(result: TopicResult, target: Any, reference: Any) -> tuple[Int64Array, Int64Array]:
    """Return how many rows of each document are on each side."""
    first = _side(result, target, "target")
    has_text = result.documents.of_row >= 0
    second = has_text & ~first if reference is None else _side(result, reference, "reference")
    n_shared = int((first & second).sum())
    if n_shared:
        raise InputError(
            f"expected a target and a reference without common rows; {n_shared:,} rows are in both "
            "(rows without text left out); take them out of one"
        )
    for rows, name in ((first, "target"), (second, "reference")):
        if not rows.any():
            raise InputError(f"the {name} holds no row with text; there is nothing to compare")
    of_row, n_documents = result.documents.of_row, len(result.documents)
    weights = [np.bincount(of_row[rows], minlength=n_documents) for rows in (first, second)]
    return weights[0].astype(np.int64), weights[1].astype(np.int64)


def _side(result: TopicResult, side: Any, name: str) -> BoolArray:
    """Return the rows with text of one side."""
    import pandas as pd

    if side is None:
        raise InputError(f"expected a {name}: a topic id, a group or a mask; got None")
    if isinstance(side, (Mapping, str)):
        rows = rows_of_group(result, side)
    elif isinstance(side, (pd.Series, np.ndarray)) and not (
        isinstance(side, np.ndarray) and side.dtype.kind in "iu"
    ):
        rows = rows_of_mask(result, side)
    elif isinstance(side, (list, tuple)) and side and all(isinstance(v, bool) for v in side):
        rows = rows_of_mask(result, np.array(side))
    else:
        rows = rows_of_topics(result, side)
    return np.asarray(rows & (result.documents.of_row >= 0))


def places_for(
    result: TopicResult, weights: npt.NDArray[Any], longest: int
) -> npt.NDArray[np.int64]:
    """Return how many places there are for a term of each length, shape (longest + 1,).

    A text of ten words has ten places for a word, nine for a pair.
    """
    n_words = np.diff(result.tokens.offsets)
    return np.array(
        [0, *(int(weights @ np.maximum(n_words - k, 0)) for k in range(longest))], dtype=np.int64
    )


def _strongest(found: Association, n: int | None, *, cautious: bool) -> npt.NDArray[np.int64]:
    """Return the places of the terms to show, from those of the target to those of the reference.

    Ties go to the larger statistic, then to the larger effect, then to the alphabet, in which the
    terms come.
    """
    size = np.abs(found.statistic)
    strength = np.maximum(np.maximum(found.low, -found.high), 0.0) if cautious else size
    order = np.lexsort((-np.abs(found.effect), -size, -strength))
    sign = np.sign(np.where(found.statistic == 0, found.effect, found.statistic))[order]
    sides = [order[sign > 0][:n], order[sign < 0][:n]]
    neither = order[sign == 0] if n is None else order[:0]
    return np.concatenate([sides[0], neither, sides[1][::-1]])


def _holders(
    result: TopicResult, sides: tuple[Int64Array, Int64Array], columns: Int64Array
) -> list[Int64Array]:
    """Return the rows of each side that hold each of some terms."""
    held = result.term_counts.counts[:, columns] > 0
    return [np.asarray(held.T @ weights).astype(np.int64) for weights in sides]
