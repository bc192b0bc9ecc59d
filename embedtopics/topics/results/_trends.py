"""Results: topics over time, by group, and effects of covariates on their shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.display import Displayed, spell_count
from embedtopics.clustering.results import NOISE
from embedtopics.inference.results import Coefficients, latex_regression
from embedtopics.protocols import Float64Array, Int32Array, Int64Array
from embedtopics.results import Decision

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
        Indices into the vocabulary, best first; -1 if there are fewer terms.
    weights : float64 ndarray of shape (n_topics, n_cells, n_terms)
        0 if there are fewer terms.
    """

    vocabulary: tuple[str, ...]
    ids: Int32Array
    weights: Float64Array

    def of(self, topic: int, cell: int) -> tuple[str, ...]:
        """Return the terms of a topic in a period or group, best first."""
        term_ids = self.ids[topic, cell].tolist() if topic != NOISE else []
        return tuple(self.vocabulary[i] for i in term_ids if i >= 0)

    def joined(self) -> list[str]:
        """Return the terms of every topic and cell as text, empty for no topic."""
        n_topics, n_cells, _ = self.ids.shape
        topics = [*range(n_topics), NOISE]
        return [", ".join(self.of(topic, cell)) for topic in topics for cell in range(n_cells)]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _ByTopic(Displayed):
    """The shares of topics, and of no topic in the last row, in cells: periods or groups."""

    names: tuple[str, ...]
    topic_names: tuple[str, ...]
    counts: Int64Array
    totals: Int64Array
    shares: Float64Array
    low: Float64Array
    high: Float64Array
    terms: CellTerms
    decisions: tuple[Decision, ...] = ()

    @property
    def n_topics(self) -> int:
        """Number of topics, noise left out."""
        return len(self.topic_names)

    def _frame(self, cell: str) -> pd.DataFrame:
        """Return one row for each topic and cell, whose names are in the column `cell`."""
        n_rows, n_cells = self.n_topics + 1, len(self.names)
        topic_names = np.array([*self.topic_names, NO_TOPIC], dtype=object)
        return pd.DataFrame(
            {
                "topic": np.repeat([*range(self.n_topics), NOISE], n_cells),
                "topic_name": np.repeat(topic_names, n_cells),
                cell: np.tile(np.array(self.names, dtype=object), n_rows),
                "count": self.counts.ravel(),
                "total": np.tile(self.totals, n_rows),
                "share": self.shares.ravel(),
                "low": self.low.ravel(),
                "high": self.high.ravel(),
                "terms": self.terms.joined(),
            }
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TopicTrends(_ByTopic):
    """Topics by calendar period.

    In the arrays by topic, row `i` is topic `i` and the last row is that of no topic.

    Parameters
    ----------
    every : str
        Length of a period, such as "month".
    names : tuple of str
        Names of the periods, such as "2021-05", without gaps from the first date to the last.
    starts, ends : datetime64[us] ndarray of shape (n_periods,)
        A period includes its start and excludes its end.
    time_zone : str
        "UTC", "local" if times have other zones, whose clocks count, or "as given" without zones.
    topic_names : tuple of str, one a topic
    counts : int64 ndarray of shape (n_topics + 1, n_periods)
        Rows with a text and a date.
    totals : int64 ndarray of shape (n_periods,)
        Rows of all topics and of no topic.
    n_effective : float64 ndarray of shape (n_periods,)
        Effective number of independent rows, given several rows of one text or author.
    shares, low, high : float64 ndarray of shape (n_topics + 1, n_periods)
        Share among the rows of the period, with interval.
    unit_periods : int64 ndarray of shape (n_units,)
        Period of each independent unit; a unit of several periods counts in each.
    unit_counts : float64 csr_matrix of shape (n_units, n_topics + 1)
        Its rows in that period.
    units : int64 ndarray of shape (n_units,) or None
        Number of each unit, equal in all of its periods; None if each has rows in one period.
    terms : CellTerms
    decisions : tuple of Decision
    """

    every: str
    starts: Times
    ends: Times
    time_zone: str
    n_effective: Float64Array
    unit_periods: Int64Array
    unit_counts: Any
    units: Int64Array | None = None

    @property
    def min_rows(self) -> int:
        """Rows below which a share says little: 20, or a tenth of those of the median period."""
        median = float(np.median([1, *self.totals[self.totals > 0]]))
        return int(np.ceil(max(0.1 * median, min(20, median))))

    @property
    def n_periods(self) -> int:
        """Number of periods, including those without rows."""
        return len(self.names)

    def _summary(self) -> str:
        span = f"{self.names[0]} to {self.names[-1]}" if self.names else "none"
        return f"{self.n_topics} topics, {self.n_periods} periods: {span}, every {self.every}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each topic and period, including periods without rows.

        Returns
        -------
        DataFrame
            Columns topic (-1 for none), topic_name, period, start, end, count, total, share, low,
            high and terms (joined by commas).
        """
        frame = self._frame("period")
        place = np.tile(np.arange(self.n_periods), self.n_topics + 1)
        frame.insert(3, "start", self.starts[place])
        frame.insert(4, "end", self.ends[place])
        return frame


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TopicGroups(_ByTopic):
    """Topics by group, such as sources.

    In the arrays by topic, row `i` is topic `i` and the last row is that of no topic.

    Parameters
    ----------
    by : str
        Column of the groups.
    names : tuple of str
        Ascending numbers, or else the largest group first.
    topic_names : tuple of str, one a topic
    counts : int64 ndarray of shape (n_topics + 1, n_groups)
    totals : int64 ndarray of shape (n_groups,)
        Rows of all topics and of no topic.
    shares, low, high : float64 ndarray of shape (n_topics + 1, n_groups)
        Share among the rows of the group, and its Wilson interval.
    terms, distinctive : CellTerms
        Terms of the topic in the group, and those that it uses more than other groups.
    decisions : tuple of Decision
    """

    by: str
    distinctive: CellTerms

    def _summary(self) -> str:
        return f"{self.n_topics} topics, {len(self.names)} groups by {self.by!r}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each topic and group.

        Returns
        -------
        DataFrame
            Columns topic (-1 for none), topic_name, the column of the groups by its name, count,
            total, share, low, high, terms and distinctive (joined by commas).
        """
        frame = self._frame("group")
        frame["distinctive"] = self.distinctive.joined()
        # The name of the group column may equal another column of the table.
        return frame if self.by in frame else frame.rename(columns={"group": self.by})


@dataclass(frozen=True, eq=False, repr=False)
class TopicEffects(Displayed):
    """Effects of covariates on the share of each topic: coefficients of one model each.

    Row `i` of the arrays by topic is that of ``topics[i]``.

    Parameters
    ----------
    columns, covariates, levels : tuple of str
        Names of the coefficients, the intercept first; their covariates; and their levels, or "".
    references : mapping of str to str
        Reference level of each categorical covariate.
    units : mapping of str to str
        Unit of each numeric covariate: "day", "month" or "year" for dates, else "unit".
    topics : tuple of int or str
        Topic ids, -1 for no topic; of topics that were added up, such as "3+7".
    topic_names : tuple of str, one a topic
    link : {"identity", "logit"}
    shares : float64 ndarray of shape (n_topics,)
        Share of each topic among the rows of the model.
    coefficients, errors, low, high, p : float64 ndarray of shape (n_topics, n_columns)
        Change of the share, or of its log odds, for one unit of the covariate, or from the
        reference to the level; its standard error, interval and p-value.
    marginal : DataFrame
        Average marginal effects, topic by topic; see `marginal_effects`.
    n_rows, n_documents : int
        Rows in the model, and distinct texts among them.
    n_replicates : int
        Replicates of the clustering behind the intervals.
    decisions : tuple of Decision
    """

    columns: tuple[str, ...]
    covariates: tuple[str, ...]
    levels: tuple[str, ...]
    references: Mapping[str, str]
    units: Mapping[str, str]
    topics: tuple[Any, ...]
    topic_names: tuple[str, ...]
    link: str
    shares: Float64Array
    coefficients: Float64Array
    errors: Float64Array
    low: Float64Array
    high: Float64Array
    p: Float64Array
    marginal: pd.DataFrame
    n_rows: int
    n_documents: int
    n_replicates: int
    decisions: tuple[Decision, ...] = ()

    @property
    def carries(self) -> str:
        """The errors that the intervals allow for, in words."""
        if not self.n_replicates:
            return "sampling error only; the topics are taken as given"
        return (
            "sampling error of the documents, and the topics' own instability in "
            f"{self.n_replicates} replicates"
        )

    def _summary(self) -> str:
        names = ", ".join(dict.fromkeys(self.covariates[1:]))
        scale = "" if self.link == "identity" else " in log odds"
        shares = spell_count(len(self.topics), "share", "shares")
        return f"{shares}{scale} by {names}; {self.n_rows:,} rows; {self.carries}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each topic and coefficient, without the intercept.

        Returns
        -------
        DataFrame
            Columns topic (-1 for none), topic_name, share (of the topic in all rows), covariate,
            level and reference (empty for numeric covariates), unit (empty for others), effect (of
            a share from 0 to 1, or of its log odds), low, high and p. Each p-value is that of its
            effect alone: of 20 without any effect, one is below 0.05 by chance.
        """
        changes = list(zip(self.covariates[1:], self.levels[1:], strict=True))
        arrays = (self.coefficients, self.low, self.high, self.p)
        return self._frame(changes, np.stack([one[:, 1:] for one in arrays], axis=2))

    def marginal_effects(self) -> pd.DataFrame:
        """Return the average effect of each variable on the share, with the columns of `to_frame`.

        It is the mean over the rows of the change of the share (from 0 to 1) if the variable
        changes from its reference to the level, or by one unit, and the others stay as they are.
        With the identity link and without interactions or splines it equals the coefficients.
        """
        n = len(self.marginal) // max(len(self.topics), 1)
        first = self.marginal.head(n)
        changes = list(zip(first["variable"], first["level"], strict=True))
        values = self.marginal[["effect", "low", "high", "p"]].to_numpy(dtype=np.float64)
        return self._frame(changes, values.reshape(len(self.topics), n, 4))

    def _frame(self, changes: list[tuple[str, str]], values: Float64Array) -> pd.DataFrame:
        about = zip(self.topics, self.topic_names, self.shares, strict=True)
        cells = [
            (*topic, *change, self.references.get(change[0], ""), self.units.get(change[0], ""))
            for topic in about
            for change in changes
        ]
        columns = ["topic", "topic_name", "share", "covariate", "level", "reference", "unit"]
        frame = pd.DataFrame(cells, columns=columns)
        frame[["effect", "low", "high", "p"]] = values.reshape(-1, 4)
        return frame

    def to_latex(self) -> str:
        """Return a regression table for LaTeX, with a column for each topic and booktabs.

        Choose the topics by ``effects(result, ..., topics=[0, 3])``.
        """
        arrays = (self.coefficients, self.errors, self.low, self.high, self.p)
        rows = map(Coefficients, *arrays)
        models = {one: (fit, self.n_rows) for one, fit in zip(self.topic_names, rows, strict=True)}
        return latex_regression(self.columns, models)
