"""How topics spread over time and over groups, and what their share depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.results.inputs import Decision
from embedtopics.results.parts import NOISE

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CellTerms", "TopicEffects", "TopicGroups", "TopicTrends"]

Float64Array = npt.NDArray[np.float64]
Times = npt.NDArray[np.datetime64]

NO_TOPIC = "(no topic)"


@dataclass(frozen=True, eq=False)
class CellTerms:
    """The best terms of each topic in each period, or in each group.

    Parameters
    ----------
    vocabulary : tuple of str
        All terms.
    ids : int32 ndarray of shape (n_topics, n_cells, n_terms)
        Places in the vocabulary, best first; -1 where there are fewer terms.
    weights : float64 ndarray of shape (n_topics, n_cells, n_terms)
        0 where there are fewer terms.
    """

    vocabulary: tuple[str, ...]
    ids: Int32Array
    weights: Float64Array

    def of(self, topic: int, cell: int) -> tuple[str, ...]:
        """Return the terms of a topic in a period or group, best first."""
        found = self.ids[topic, cell].tolist() if topic != NOISE else []
        return tuple(self.vocabulary[i] for i in found if i >= 0)


@dataclass(frozen=True, eq=False)
class TopicTrends:
    """Topics by calendar period.

    In the arrays by topic, row `i` is topic `i` and the last row is that of no topic, so that
    each is found under its id. Figures count rows of the input that have a text and a date.

    Parameters
    ----------
    every : str
        "day", "week", "month", "quarter", "year", "decade" or, for periods of equal length,
        "bin".
    names : tuple of str
        Of the periods, such as "2021-05"; without gaps from the first date to the last.
    starts, ends : datetime64[us] ndarray of shape (n_periods,)
        A period holds its start and ends before its end.
    time_zone : str
        "UTC" where dates were converted to it, else "as given".
    labels : tuple of str, one a topic
    counts : int64 ndarray of shape (n_topics + 1, n_periods)
        Rows.
    totals : int64 ndarray of shape (n_periods,)
        Rows of all topics and of none.
    shares, low, high : float64 ndarray of shape (n_topics + 1, n_periods)
        Share of the rows of the period, or of the `smooth` periods around it, and its interval;
        NaN where there are none.
    terms : CellTerms
    confidence : float
        Of the intervals.
    interval : {"wilson", "bootstrap"}
    smooth : int
        Periods whose rows are taken together in a share; 1 for each period alone.
    n_undated : int
        Rows with text that are left out because they have no date.
    decisions : tuple of Decision
    parts : mapping of str to TopicTrends
        The same of the rows of each group, in the same periods, where that was asked for.
    """

    every: str
    names: tuple[str, ...]
    starts: Times
    ends: Times
    time_zone: str
    labels: tuple[str, ...]
    counts: Int64Array
    totals: Int64Array
    shares: Float64Array
    low: Float64Array
    high: Float64Array
    terms: CellTerms
    confidence: float
    interval: str
    smooth: int
    n_undated: int
    decisions: tuple[Decision, ...] = ()
    parts: Mapping[str, TopicTrends] = field(default_factory=dict)

    @property
    def n_topics(self) -> int:
        """Number of topics, noise left out."""
        return len(self.labels)

    @property
    def n_periods(self) -> int:
        """Number of periods, those without rows counted."""
        return len(self.names)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each topic and period, those without rows included.

        Returns
        -------
        DataFrame
            Columns topic (-1 for none), label, period, start, end, count, total, share, low, high
            and terms (joined by commas); first the column group, where there are parts.
        """
        import pandas as pd

        if self.parts:
            frames = {name: part.to_frame() for name, part in self.parts.items()}
            return pd.concat(
                [frame.assign(group=name) for name, frame in frames.items()], ignore_index=True
            )[["group", *next(iter(frames.values())).columns]]
        names = np.array(self.names, dtype=object)
        frame = _by_topic(self, names, "period")
        place = np.tile(np.arange(self.n_periods), self.n_topics + 1)
        frame.insert(3, "start", self.starts[place])
        frame.insert(4, "end", self.ends[place])
        return frame


@dataclass(frozen=True, eq=False)
class TopicGroups:
    """Topics by group, such as sources.

    In the arrays by topic, row `i` is topic `i` and the last row is that of no topic.

    Parameters
    ----------
    by : str
        What the groups are of, for people.
    names : tuple of str
        Largest group first; from the smallest value up where groups are made of numbers.
    labels : tuple of str, one a topic
    counts : int64 ndarray of shape (n_topics + 1, n_groups)
        Rows.
    totals : int64 ndarray of shape (n_groups,)
        Rows of all topics and of none.
    shares, low, high : float64 ndarray of shape (n_topics + 1, n_groups)
        Share of the rows of the group, and its Wilson interval.
    terms : CellTerms
        What the topic is about in the group.
    distinctive : CellTerms
        What the group says and the other groups do not, within the topic; weights are z-scores of
        log-odds, above 0.
    confidence : float
    decisions : tuple of Decision
    """

    by: str
    names: tuple[str, ...]
    labels: tuple[str, ...]
    counts: Int64Array
    totals: Int64Array
    shares: Float64Array
    low: Float64Array
    high: Float64Array
    terms: CellTerms
    distinctive: CellTerms
    confidence: float
    decisions: tuple[Decision, ...] = ()

    @property
    def n_topics(self) -> int:
        """Number of topics, noise left out."""
        return len(self.labels)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each topic and group.

        Returns
        -------
        DataFrame
            Columns topic (-1 for none), label, group, count, total, share, low, high, terms and
            distinctive (joined by commas).
        """
        frame = _by_topic(self, np.array(self.names, dtype=object), "group")
        frame["distinctive"] = _joined(self.distinctive, self.n_topics, len(self.names))
        return frame


@dataclass(frozen=True, eq=False)
class TopicEffects:
    """What the share of each topic depends on: coefficients of one linear model a topic.

    In the arrays by topic, row `i` is topic `i` and the last row is that of no topic.

    Parameters
    ----------
    columns : tuple of str
        Coefficients, the intercept first.
    covariates : tuple of str
        Covariate of each coefficient; "" for the intercept.
    levels : tuple of str
        Level of each coefficient of a categorical covariate; "" for others.
    references : mapping of str to str
        Level that the others are compared with, by categorical covariate.
    units : mapping of str to str
        What a numeric covariate is counted in: "year" for dates, else "unit".
    origins : mapping of str to float
        Zero of each numeric covariate, its mean: in seconds since 1970 for dates.
    ranges : mapping of str to (float, float)
        Smallest and largest value of each numeric covariate, seen from its origin.
    means : float64 ndarray of shape (n_columns,)
        Mean of each column of the design, in which other covariates are held in predictions.
    labels : tuple of str, one a topic
    coefficients, low, high : float64 ndarray of shape (n_topics + 1, n_columns)
        Change of the share for a unit of the covariate, or from the reference to the level.
    draws : float64 ndarray of shape (n_resamples, n_topics + 1, n_columns)
        Coefficients in the resamples; NaN where a resample cannot tell them.
    outcome : {"label", "membership"}
        Whether a row counts wholly for its topic, or by its shares in all topics.
    n_rows, n_documents : int
        Rows in the model, and distinct texts among them.
    n_replicates : int
        Replicates of the clustering behind the intervals; 0 where these carry only the error of
        sampling documents, and take the topics as given.
    confidence : float
    decisions : tuple of Decision
    """

    columns: tuple[str, ...]
    covariates: tuple[str, ...]
    levels: tuple[str, ...]
    references: Mapping[str, str]
    units: Mapping[str, str]
    origins: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]]
    means: Float64Array
    labels: tuple[str, ...]
    coefficients: Float64Array
    low: Float64Array
    high: Float64Array
    draws: Float64Array
    outcome: str
    n_rows: int
    n_documents: int
    n_replicates: int
    confidence: float
    decisions: tuple[Decision, ...] = ()

    @property
    def n_topics(self) -> int:
        """Number of topics, noise left out."""
        return len(self.labels)

    @property
    def carries(self) -> str:
        """What the intervals allow for, in words."""
        if not self.n_replicates:
            return "sampling error of the documents only; the topics are taken as given"
        return (
            "sampling error of the documents, and the topics' own instability in "
            f"{self.n_replicates} replicates"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each topic and coefficient, the intercept left out.

        Returns
        -------
        DataFrame
            Columns topic (-1 for none), label, covariate, level and reference (empty for numeric
            covariates), unit (empty for others), effect, low and high (of a share from 0 to 1).
        """
        import pandas as pd

        rows = [
            {
                "topic": topic,
                "label": label,
                "covariate": self.covariates[column],
                "level": self.levels[column],
                "reference": self.references.get(self.covariates[column], ""),
                "unit": self.units.get(self.covariates[column], ""),
                "effect": self.coefficients[topic, column],
                "low": self.low[topic, column],
                "high": self.high[topic, column],
            }
            for topic, label in [*enumerate(self.labels), (NOISE, NO_TOPIC)]
            for column in range(1, len(self.columns))
        ]
        return pd.DataFrame(rows)


def _by_topic(
    found: TopicTrends | TopicGroups, cells: npt.NDArray[np.object_], what: str
) -> pd.DataFrame:
    """Return the columns that periods and groups have in common."""
    import pandas as pd

    n_rows, n_cells = found.n_topics + 1, len(cells)
    labels = np.array([*found.labels, NO_TOPIC], dtype=object)
    return pd.DataFrame(
        {
            "topic": np.repeat([*range(found.n_topics), NOISE], n_cells),
            "label": np.repeat(labels, n_cells),
            what: np.tile(cells, n_rows),
            "count": found.counts.ravel(),
            "total": np.tile(found.totals, n_rows),
            "share": found.shares.ravel(),
            "low": found.low.ravel(),
            "high": found.high.ravel(),
            "terms": _joined(found.terms, found.n_topics, n_cells),
        }
    )


def _joined(terms: CellTerms, n_topics: int, n_cells: int) -> list[str]:
    """Return the terms of every topic and cell as text; none for the rows of no topic."""
    topics = [*range(n_topics), NOISE]
    return [", ".join(terms.of(topic, cell)) for topic in topics for cell in range(n_cells)]
