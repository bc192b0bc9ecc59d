"""Topics by calendar period."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, checked_level
from embedtopics._randomness import resolve_seed
from embedtopics.errors import InputError
from embedtopics.evaluation.shares import wilson
from embedtopics.protocols import Int64Array, RandomState, TermWeighting
from embedtopics.results import CellTerms, Decision, TopicResult, TopicTrends
from embedtopics.topics.trends.cell_terms import (
    Tuning,
    best_cell_terms,
    count_cells,
    no_terms,
    weigh_cells,
)
from embedtopics.topics.trends.intervals import bootstrap, share_of
from embedtopics.topics.trends.periods import Periods, cut_into_periods
from embedtopics.topics.trends.rows import dates_of, groups_of

__all__ = ["count_rows", "over_time"]

MAX_GROUPS = 20


@dataclasses.dataclass(frozen=True)
class _Options:
    n_terms: int
    smooth: int
    interval: str
    confidence: float
    seed: int
    tuning: Tuning
    weighting: TermWeighting | None


def over_time(
    result: TopicResult,
    every: str | int = "auto",
    *,
    dates: Any = None,
    by: Any = None,
    n_terms: int = 10,
    evolution_tuning: bool = True,
    global_tuning: bool = True,
    smooth: int = 1,
    interval: str = "wilson",
    confidence: float = 0.95,
    max_groups: int = MAX_GROUPS,
    weighting: TermWeighting | None = None,
    random_state: RandomState = 0,
) -> TopicTrends:
    """Follow the topics through time: their rows, their shares, and what is said in them.

    Parameters
    ----------
    result : TopicResult
    every : "auto", "day", "week", "month", "quarter", "year", "decade" or int
        Length of a period; a number asks for so many periods of equal length; "auto" takes the
        finest that the dates allow and that makes at most 40 periods of ten rows or more.
    dates : str or array_like of shape (n_rows,), optional
        A column, or a date for each row as `embedtopics.corpus.parse_dates` reads it; by default
        the time column of the corpus. Times with a zone are converted to UTC, in which periods
        begin and end; others are taken as they are.
    by : str or array_like of shape (n_rows,), optional
        A column of groups, or a group for each row: the same figures within each group, in the
        `parts` of the answer.
    n_terms : int
        Terms of a topic in a period; 0 for none.
    evolution_tuning : bool
        Average the term weights of a topic in a period with those in the period before, as these
        came out there, so that terms change less abruptly.
    global_tuning : bool
        Average them with the topic's weights in the whole fit, so that few documents do not decide
        alone what it is about. Switch both off to see the terms of the period by themselves.
    smooth : int
        An odd number of periods, whose rows are taken together in the share of the middle one, and
        in its interval. Counts stay those of the period.
    interval : {"wilson", "bootstrap"}
        Wilson takes each row as an observation; the bootstrap draws distinct texts, so that rows
        which repeat a text do not pass for many observations.
    confidence : float
    max_groups : int
        With `by`, more groups than these are put together, the smallest first.
    weighting : TermWeighting, optional
        The one that the result was made with, where it was the user's own.
    random_state : int, numpy.random.Generator or None
        For the bootstrap.

    Returns
    -------
    TopicTrends

    Raises
    ------
    InputError
        Without dates; where their number is not that of the rows; where a parameter is bad.

    Notes
    -----
    Term weights are class-TF-IDF: the share of a term among those of the topic in the period,
    times the factor that the whole fit gives the term (Grootendorst 2022, "BERTopic", section
    3.4). With either tuning they are first scaled to sum 1.
    """
    options = _options(
        n_terms, smooth, interval, confidence, random_state,
        Tuning(bool(evolution_tuning), bool(global_tuning)), weighting,
    )  # fmt: skip
    moments, zone, decisions = dates_of(result, dates)
    has_text = result.documents.of_row >= 0
    n_undated = int(np.sum(has_text & np.isnat(moments)))
    if n_undated:
        message = f"{n_undated:,} of {int(has_text.sum()):,} rows with text have no date."
        decisions = (*decisions, Decision("trends", "rows_without_date", n_undated, message))
    periods = cut_into_periods(np.where(has_text, moments, np.datetime64("NaT")), every)
    decisions = (*decisions, *periods.decisions)
    trends = _trends(result, periods, periods.of_row, options, zone, n_undated)
    if by is None:
        return dataclasses.replace(trends, decisions=decisions)
    groups = groups_of(result, by, max_groups)
    parts = {
        name: _trends(
            result, periods, np.where(groups.of_row == code, periods.of_row, -1), options, zone, 0
        )
        for code, name in enumerate(groups.names)
    }
    return dataclasses.replace(trends, decisions=(*decisions, *groups.decisions), parts=parts)


def _options(
    n_terms: Any, smooth: Any, interval: Any, confidence: Any, random_state: Any,
    tuning: Tuning, weighting: TermWeighting | None,
) -> _Options:  # fmt: skip
    if interval not in ("wilson", "bootstrap"):
        raise InputError(f"interval must be 'wilson' or 'bootstrap'; got {interval!r}")
    if checked_count(smooth, "smooth") % 2 == 0:
        raise InputError(f"smooth must be an odd number of periods; got {smooth}")
    return _Options(
        checked_count(n_terms, "n_terms", 0), int(smooth), interval, checked_level(confidence),
        resolve_seed(random_state), tuning, weighting,
    )  # fmt: skip


def count_rows(labels: npt.NDArray[np.int32], cells: Int64Array, shape: tuple[int, int]) -> Any:
    """Count rows by topic and cell; those of no topic in the last row.

    Parameters
    ----------
    labels : int32 ndarray of shape (n_rows,)
    cells : int64 ndarray of shape (n_rows,)
        -1 for rows that are not counted.
    shape : (int, int)
        Topics and one for none; cells.

    Returns
    -------
    int64 ndarray of shape `shape`
    """
    counted = cells >= 0
    place = (labels[counted] % shape[0]).astype(np.int64) * shape[1] + cells[counted]
    return np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape)


def _trends(
    result: TopicResult,
    periods: Periods,
    of_row: Int64Array,
    options: _Options,
    zone: str,
    n_undated: int,
) -> TopicTrends:
    """Count and weigh the rows that are in a period."""
    n_periods = len(periods.names)
    shape = (result.n_topics + 1, n_periods)
    labels = result.labels
    counts = count_rows(labels, of_row, shape)
    totals = counts.sum(axis=0)
    window = np.abs(np.subtract.outer(np.arange(n_periods), np.arange(n_periods)))
    pooled = (window <= options.smooth // 2).astype(np.float64)
    together, below = counts @ pooled, totals @ pooled
    if options.interval == "wilson":
        low, high = wilson(together, below, options.confidence)
    else:
        rows = np.flatnonzero(of_row >= 0)
        low, high = bootstrap(
            labels[rows].astype(np.int64), result.documents.of_row[rows], of_row[rows], shape,
            pooled, options.confidence, options.seed,
        )  # fmt: skip
    return TopicTrends(
        every=periods.every,
        names=periods.names,
        starts=periods.starts,
        ends=periods.ends,
        time_zone=zone,
        labels=tuple(topic.label for topic in result.topics),
        counts=counts,
        totals=totals,
        shares=share_of(together, below),
        low=low,
        high=high,
        terms=_terms(result, of_row, totals > 0, options),
        confidence=options.confidence,
        interval=options.interval,
        smooth=options.smooth,
        n_undated=n_undated,
    )


def _terms(
    result: TopicResult, of_row: Int64Array, filled: npt.NDArray[np.bool_], options: _Options
) -> CellTerms:
    n_cells = len(filled)
    if options.n_terms == 0 or result.n_topics == 0 or not result.term_counts.counts.nnz:
        return no_terms(result, n_cells)
    counts = count_cells(result, of_row, n_cells)
    weights = weigh_cells(result, counts, options.weighting)
    return best_cell_terms(result, weights, n_cells, options.n_terms, options.tuning, filled)
