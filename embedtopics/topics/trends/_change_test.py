"""The permutation test of `changes`: units change places in time.

A unit with rows in one period moves with all of them to another period. Where units have rows in
several periods, their places stay, and each unit gets the topics of another one with about as many
rows, in the order of time but from a random row on, as in a circle: an author who always writes
about the same is then no change, and a change that many authors make at the same time is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaincc, ndtr

from embedtopics.protocols import BoolArray, Float64Array, Int64Array
from embedtopics.topics.results import TopicTrends

CELLS_AT_ONCE = 2_000_000

MIN_GROUP = 10
"""Units in a group of sizes, at least."""

SAME_SIZE = 1.25
"""Ratio of rows up to which units belong to one group."""


@dataclass(frozen=True, eq=False)
class UnitTable:
    """Rows of each topic by unit, in periods with rows; the parts of a unit are one a period.

    If units have several parts, these are ordered by unit and period, and `blocks` are theirs.
    """

    period: Int64Array  # (n_parts,), of each unit in a period
    size: Float64Array  # (n_parts,), its rows
    part: Int64Array  # (n_entries,), as the next two: its rows of topics
    topic: Int64Array
    n: Float64Array
    counts: Float64Array  # (n_topics, n_periods)
    sizes: Float64Array  # (n_periods,)
    n_units: Float64Array  # (n_periods,)
    variance: Float64Array  # (n_topics,), of a unit's rows in the topic less the expected ones
    blocks: UnitRows | None

    @classmethod
    def of(cls, trends: TopicTrends, topics: Int64Array, periods: Int64Array) -> UnitTable:
        counts = trends.unit_counts
        size = np.asarray(counts.sum(axis=1)).ravel()
        # Units with equal contents have one order, whatever that of the rows.
        content = counts @ np.random.default_rng(0).random(counts.shape[1])
        order = np.lexsort([content, size, trends.unit_periods])
        unit = None
        if trends.units is not None:
            unit = _number_by_content(trends.units, trends.unit_periods, content)
            order = np.lexsort([trends.unit_periods, unit])

        ours = counts[order][:, topics].tocoo()
        period = np.searchsorted(periods, trends.unit_periods[order])
        n_units = np.bincount(period, minlength=len(periods)).astype(np.float64)

        share = trends.counts[topics].sum(axis=1) / trends.totals.sum()
        of_topic = [
            np.bincount(ours.col, weights, len(topics))
            for weights in (ours.data**2, ours.data * size[order][ours.row])
        ]
        squares = of_topic[0] - 2 * share * of_topic[1] + share**2 * np.square(size).sum()

        blocks = None
        if unit is not None:
            blocks = UnitRows.of(unit[order], period, size[order], ours, len(topics))

        return cls(
            period=period,
            size=size[order],
            part=ours.row.astype(np.int64),
            topic=ours.col.astype(np.int64),
            n=ours.data,
            counts=trends.counts[topics][:, periods].astype(np.float64),
            sizes=trends.totals[periods].astype(np.float64),
            n_units=n_units,
            variance=np.maximum(squares, 1e-9) / max(len(size) - 1, 1),
            blocks=blocks,
        )

    def residuals(self, period: Int64Array) -> Float64Array:
        """Return the standardized residuals of topics (n_topics, n_periods), for any `period`."""
        n_topics, n_periods = self.counts.shape
        cell = self.topic * n_periods + period[self.part]
        counts = np.bincount(cell, self.n, n_topics * n_periods).reshape(n_topics, n_periods)
        sizes = np.bincount(period, self.size, n_periods)
        return self._scaled(np.asarray(counts, dtype=np.float64), np.asarray(sizes, np.float64))

    def drawn(self, rng: np.random.Generator) -> Float64Array:
        """Return the residuals of a draw in which the units changed places."""
        if self.blocks is None:
            return self.residuals(rng.permutation(self.period))
        return self._scaled(self.blocks.drawn(rng, *self.counts.shape), self.sizes)

    def spread(self, topic: int, from_periods: BoolArray, to_periods: BoolArray) -> float:
        """Return the variance of a difference between periods over that of independent parts."""
        if self.blocks is None:
            return 1.0
        contrast = to_periods / self.sizes[to_periods].sum()
        contrast = contrast - from_periods / self.sizes[from_periods].sum()
        share = self.counts[topic].sum() / self.sizes.sum()
        is_topic = self.topic == topic
        n = np.bincount(self.part[is_topic], self.n[is_topic], len(self.size))
        parts = contrast[self.period] * (n - share * self.size)
        together = np.bincount(self.blocks.unit, parts)
        return max(float(together @ together) / max(float(parts @ parts), 1e-300), 1.0)

    def _scaled(self, counts: Float64Array, sizes: Float64Array) -> Float64Array:
        share = counts.sum(axis=1) / sizes.sum()
        scaled: Float64Array = (counts - np.outer(share, sizes)) / np.sqrt(
            np.outer(self.variance, self.n_units)
        )
        return scaled


@dataclass(frozen=True, eq=False)
class UnitRows:
    """The rows of each unit in the order of time, and units of about as many rows together.

    Rows are ordered by group of sizes, unit and period.
    """

    unit: Int64Array  # (n_parts,), of each part of the table
    starts: Int64Array  # (n_units,), the first row of each unit
    lengths: Int64Array  # (n_units,)
    group: Int64Array  # (n_units,), ascending
    period: Int64Array  # (n_rows,)
    topic: Int64Array  # (n_rows,), -1 for topics that are not tested

    @classmethod
    def of(
        cls, unit: Int64Array, period: Int64Array, size: Float64Array, ours: Any, n_topics: int
    ) -> UnitRows:
        """Make blocks of parts, which are ordered by unit and period."""
        n_rows = size.astype(np.int64)
        lengths = np.bincount(unit, n_rows).astype(np.int64)
        group = _groups_of_sizes(lengths)

        # The topics of the rows of a part, the tested ones first.
        topic = np.full(int(n_rows.sum()), -1, dtype=np.int64)
        of_part = ours.tocsr()
        first = np.cumsum(n_rows) - n_rows
        counts = of_part.data.astype(np.int64)
        inside = np.repeat(np.arange(len(n_rows)), np.diff(of_part.indptr))
        before = np.cumsum(counts) - counts
        of_first = np.append(before, counts.sum())[of_part.indptr[:-1]]
        place = np.repeat(first[inside] + before - of_first[inside], counts)
        place += np.arange(len(place)) - np.repeat(before, counts)
        topic[place] = np.repeat(of_part.indices, counts)

        # Put units of a group side by side.
        order = np.lexsort([np.arange(len(topic)), np.repeat(group[unit], n_rows)])
        units = np.argsort(group, kind="stable")
        sorted_lengths = lengths[units]
        return cls(
            unit=unit,
            starts=np.cumsum(sorted_lengths) - sorted_lengths,
            lengths=sorted_lengths,
            group=group[units],
            period=np.repeat(period, n_rows)[order],
            topic=topic[order],
        )

    def drawn(self, rng: np.random.Generator, n_topics: int, n_periods: int) -> Float64Array:
        """Return rows by topic and period, (n_topics, n_periods), of units that changed places."""
        order = np.lexsort([rng.random(len(self.group)), self.group])
        lengths = self.lengths[order]
        shifts = rng.integers(0, lengths)
        inside = np.arange(len(self.topic)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        inside = (inside + np.repeat(shifts, lengths)) % np.repeat(lengths, lengths)
        topic = self.topic[np.repeat(self.starts[order], lengths) + inside]
        is_tested = topic >= 0
        cell = topic[is_tested] * n_periods + self.period[is_tested]
        counts = np.bincount(cell, minlength=n_topics * n_periods)
        return counts.reshape(n_topics, n_periods).astype(np.float64)


def _groups_of_sizes(lengths: Int64Array) -> Int64Array:
    """Return groups of units with similar numbers of rows, of ten units or more if possible."""
    order = np.argsort(lengths, kind="stable")
    group = np.zeros(len(lengths), dtype=np.int64)
    number = 0
    first = int(lengths[order[0]])
    n_inside = 0

    for unit in order.tolist():
        length = int(lengths[unit])
        if n_inside >= MIN_GROUP and length > SAME_SIZE * first:
            number += 1
            first = length
            n_inside = 0
        group[unit] = number
        n_inside += 1

    if n_inside < MIN_GROUP and number > 0:
        group[group == number] = number - 1
    return group


def _number_by_content(units: Int64Array, periods: Int64Array, content: Float64Array) -> Int64Array:
    """Return the number of the unit of each part, in an order of contents, not of rows."""
    number = np.unique(units, return_inverse=True)[1]
    of_period = np.random.default_rng(1).random(int(periods.max()) + 1)
    key = np.bincount(number, content * of_period[periods])
    rank = np.empty(len(key), dtype=np.int64)
    rank[np.argsort(key, kind="stable")] = np.arange(len(key))
    return rank[number]


def permutation_p(table: UnitTable, residuals: Float64Array, n_draws: int) -> Float64Array:
    """Return the share of permutations with as extreme a statistic; ties count half."""
    observed = _statistic(residuals, table.n_units)
    rng = np.random.default_rng(0)
    extreme = np.zeros(len(residuals))
    step = max(CELLS_AT_ONCE // residuals.size, 1)
    for begin in range(0, n_draws, step):
        drawn = np.array([table.drawn(rng) for _ in range(min(step, n_draws - begin))])
        ratio = _statistic(drawn, table.n_units) / observed
        extreme += (ratio < 1 + 1e-9).mean(axis=0) * len(drawn) / 2
        extreme += (ratio < 1 - 1e-9).mean(axis=0) * len(drawn) / 2
    p: Float64Array = (extreme + 1) / (n_draws + 1)
    return p


def _statistic(residuals: Float64Array, n_units: Float64Array) -> Float64Array:
    """Return the smallest p-value of several tests of `residuals` (..., n_periods)."""
    n_periods = len(n_units)
    middles = np.arange(n_periods) + 0.5
    waves = np.cos(np.pi / n_periods * np.outer(middles, np.arange(n_periods)))
    smooth = np.linalg.qr(np.sqrt(n_units)[:, None] * waves).Q[:, 1:]
    squares = np.cumsum(np.square(residuals @ smooth), axis=-1)

    powers = [2**i for i in range(n_periods) if 2**i < n_periods - 1]
    degrees = np.array([*powers, n_periods - 1])
    p = gammaincc(degrees / 2, squares[..., degrees - 1] / 2)
    p[..., -1] /= 2  # the only part that is sensitive to all changes weighs twice

    highest = np.max(np.abs(residuals) / np.sqrt(1 - n_units / n_units.sum()), axis=-1)
    smallest: Float64Array = np.minimum(p.min(axis=-1), 2 * n_periods * ndtr(-highest))
    return np.maximum(smallest, 1e-300)
