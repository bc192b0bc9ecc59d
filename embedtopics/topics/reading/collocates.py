"""The words that stand near a term more often than elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, optional_count
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import TopicResult
from embedtopics.topics.reading.columns import string_column
from embedtopics.topics.reading.concordance import document_weights
from embedtopics.topics.reading.measures import (
    MEASURES,
    Table,
    associate,
    false_discovery_rates,
)
from embedtopics.topics.reading.occurrences import Occurrences, find_occurrences
from embedtopics.topics.reading.selecting import (
    BoolArray,
    Period,
    rows_of_topics,
    selected_rows,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["collocates"]


def collocates(
    result: TopicResult,
    term: str,
    *,
    topic: int | Sequence[int] | None = None,
    window: int = 5,
    n: int | None = 20,
    measure: str = "log_odds",
    min_count: int = 3,
    stop_words: bool = False,
    regex: bool = False,
    period: Period = None,
    group: Any = None,
    where: Any = None,
) -> pd.DataFrame:
    """Find the words that stand near a term more often than in the rest of the same documents.

    Parameters
    ----------
    result : TopicResult
    term : str
        As in `concordance`.
    topic : int or sequence of int, optional
        Only documents of these topics, for the places near the term and those elsewhere.
    window : int
        Words on each side that are near. A place near two occurrences counts once; the words of
        the term itself count nowhere.
    n : int or None
        Words shown; None for all.
    measure : {"log_odds", "g2", "chi2", "log_ratio"}
        As in `keyness`; the words are in the order of its statistic.
    min_count : int
        Least count near the term.
    stop_words : bool
        Whether words are shown, too, that the result takes for stop words or function words.
    regex : bool
        Whether the term is a pattern, as in `concordance`.
    period, group, where
        Only rows of a period, of a group or of a mask, as in `read`.

    Returns
    -------
    DataFrame
        Columns word, count_near, count_left, count_right (a place can be on both sides, of two
        occurrences), count_elsewhere, rows_near (rows in which it stands near the term), effect,
        statistic, p and q, as in `keyness`. Repeated texts count as often as they stand in the
        input.

    Raises
    ------
    InputError
        If no document of the result holds the term, or an argument is bad.
    """
    import pandas as pd

    optional_count(n, "n")
    checked_count(window, "window")
    checked_count(min_count, "min_count")
    if measure not in MEASURES:
        raise InputError(f"expected a measure among {', '.join(MEASURES)}; got {measure!r}")
    rows = selected_rows(result, period=period, group=group, where=where)
    if topic is not None:
        rows &= rows_of_topics(result, topic)
    weights, _ = document_weights(result, rows)
    found = find_occurrences(result, term, regex=regex, within=weights > 0)
    tokens, n_words = result.tokens, len(result.tokens.words)
    left, right, both, node = _around(result, found, window)

    def counted(places: Int64Array) -> npt.NDArray[np.float64]:
        documents = np.searchsorted(tokens.offsets, places, side="right") - 1
        times = weights[documents].astype(np.float64)
        return np.bincount(tokens.ids[places], times, minlength=n_words).astype(np.float64)

    times = np.repeat(weights.astype(np.float64), np.diff(tokens.offsets))
    near = counted(both)
    everywhere = np.bincount(tokens.ids, times, minlength=n_words) - counted(node)
    words = np.flatnonzero(near >= min_count)
    if near.sum() == 0 or everywhere.sum() == near.sum():
        words = words[:0]  # there is no elsewhere to compare with
    table = Table(
        near[words], (everywhere - near)[words],
        np.full(len(words), near.sum()), np.full(len(words), (everywhere - near).sum()),
        everywhere[words] / max(everywhere.sum(), 1.0),
    )  # fmt: skip
    about = associate(table, measure)
    q = false_discovery_rates(about.p)
    shown = np.lexsort((-about.effect, -about.statistic))
    shown = shown[(about.statistic[shown] > 0) & (stop_words | _telling(result, words[shown]))][:n]
    at = words[shown]
    return pd.DataFrame(
        {
            "word": string_column([tokens.words[i] for i in at.tolist()]),
            "count_near": near[at].astype(np.int64),
            "count_left": counted(left)[at].astype(np.int64),
            "count_right": counted(right)[at].astype(np.int64),
            "count_elsewhere": (everywhere - near)[at].astype(np.int64),
            "rows_near": _rows_near(result, both, weights, at),
            "effect": about.effect[shown],
            "statistic": about.statistic[shown],
            "p": about.p[shown],
            "q": q[shown],
        }
    )


def _around(result: TopicResult, found: Occurrences, window: int) -> tuple[Int64Array, ...]:
    """Return places before an occurrence, after one, on either side, and of one; ascending."""
    offsets, n_tokens = result.tokens.offsets, len(result.tokens.ids)
    begin, end = offsets[found.documents], offsets[found.documents + 1]
    left, right, node = (np.zeros(n_tokens, dtype=bool) for _ in range(3))
    for step in range(found.n_words):
        node[found.places + step] = True
    for step in range(window):
        before, after = found.places - 1 - step, found.places + found.n_words + step
        left[before[before >= begin]] = True
        right[after[after < end]] = True
    left &= ~node
    right &= ~node
    return tuple(np.flatnonzero(places) for places in (left, right, left | right, node))


def _telling(result: TopicResult, words: Int64Array) -> BoolArray:
    """Return which words are neither stop words, single letters nor mere numbers."""
    counts = result.term_counts
    left_out = {*counts.stop_words, *counts.function_words}
    return np.array(
        [
            len(word) > 1 and word not in left_out and any(map(str.isalpha, word))
            for word in (result.tokens.words[i] for i in words.tolist())
        ],
        dtype=bool,
    )


def _rows_near(
    result: TopicResult, near: Int64Array, weights: Int64Array, words: Int64Array
) -> Int64Array:
    """Return how many rows have each of some words near the term."""
    near = near[np.isin(result.tokens.ids[near], words)]
    documents = np.searchsorted(result.tokens.offsets, near, side="right") - 1
    n_words = len(result.tokens.words)
    pairs = np.sort(documents * n_words + result.tokens.ids[near])
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    rows = np.bincount(pairs % n_words, weights[pairs // n_words], minlength=n_words)
    return rows[words].astype(np.int64)
