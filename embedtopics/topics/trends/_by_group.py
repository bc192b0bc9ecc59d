"""Topics by group; counts, shares and terms of topics in cells, which are groups or periods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import csr_matrix

from embedtopics._utils.display import spell_count
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._alignment import as_series
from embedtopics.corpus._classes import ClassColumn, read_classes
from embedtopics.corpus._windows import PASSAGE_COLUMNS
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import wilson
from embedtopics.inference._design import OTHER
from embedtopics.protocols import BoolArray, Float64Array, Int64Array
from embedtopics.results import Decision
from embedtopics.terms._counts import sum_rows
from embedtopics.terms._representative import largest
from embedtopics.terms._weighting import log_odds
from embedtopics.topics._describe import fitted_weighting
from embedtopics.topics.results import CellTerms, TopicGroups, TopicResult

MAX_GROUPS = 30


def by_group(
    result: FittedTopics, by: Any = None, *, n_terms: int = 10, units: Any = None
) -> TopicGroups:
    """Compare the topics of groups, such as sources: their shares and their terms.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    by : str or array_like of shape (n_rows,), optional
        A column, or a group for each row; by default the group column of the corpus. Rows without
        a value are left out, and the smallest of more than 30 groups are pooled. Bin continuous
        numbers beforehand, for example with ``pandas.qcut``.
    n_terms : int
        Number of terms, and of distinctive terms, of a topic in a group; 0 for none.
    units : str or array_like of shape (n_rows,), optional
        A column, or a value for each row, of the independent units, such as authors; by default
        each distinct text. The intervals use the effective sample size, given the correlation of
        topics within units (Kish 1965, "Survey Sampling", section 5.4).

    Returns
    -------
    TopicGroups
        Its `decisions` list pooled groups and dropped rows.

    Raises
    ------
    InputError
        If there are no groups, or if their number differs from the number of rows.

    Notes
    -----
    Intervals are Wilson's, at 95 %. `terms` are weighted by class-TF-IDF, averaged with the weights
    of the topic in the whole fit. `distinctive` terms are those that a
    group uses more than the other groups within the topic, by log-odds with an informative prior
    (Monroe, Colaresi and Quinn 2008). The prior weighs as much as the words of an average group.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> et.topics.by_group(model, "source")
    TopicGroups(4 topics, 4 groups by 'source')
    """
    result = result_of(result)
    values, name = values_of(result, result.corpus.group_column if by is None else by, "by")
    if values.name is None:  # a list or an array
        name = "group"
    has_text = result.distinct.of_row >= 0
    codes, names, decisions = _number_groups(values, has_text, name)
    if not names:
        raise InputError("by", "a column with values in rows with text", name)
    if n_missing := int(np.sum((codes < 0) & has_text)):
        message = f"Left out: {spell_count(n_missing, 'row', 'rows')} without a value in {name!r}."
        decisions = (*decisions, Decision("trends", "rows_without_group", n_missing, message))
    n_groups, of_row = len(names), np.where(has_text, codes, -1)
    rows = count_rows(result, of_row, n_groups, units)
    terms = distinctive = no_terms(result, n_groups)
    if n_terms and result.n_topics and result.term_counts.counts.nnz:
        cell_counts = count_cells(result, of_row, n_groups)
        terms = best_cell_terms(result, cell_counts, n_terms, rows.totals > 0)
        distinctive = _distinctive(result, cell_counts, n_groups, n_terms)
    return TopicGroups(
        by=name,
        names=names,
        topic_names=tuple(topic.name for topic in result.topics),
        counts=rows.counts,
        totals=rows.totals,
        shares=rows.shares,
        low=rows.low,
        high=rows.high,
        terms=terms,
        distinctive=distinctive,
        decisions=(*decisions, *rows.decisions),
    )


def _distinctive(result: TopicResult, counts: csr_matrix, n_groups: int, n_terms: int) -> CellTerms:
    """Choose the terms of a topic with the highest log-odds in a group against other groups."""
    n_words = len(result.term_counts.terms)
    shape = (result.n_topics, n_groups, n_terms)
    ids, values = np.full(shape, -1, dtype=np.int32), np.zeros(shape)
    for topic in range(result.n_topics):
        first = topic * (n_groups + 1)
        pointers = counts.indptr[first : first + n_groups + 1]
        of_topic = slice(pointers[0], pointers[-1])
        sums = np.bincount(counts.indices[of_topic], counts.data[of_topic], minlength=n_words)
        together = sums.astype(np.float64)
        nonempty = np.flatnonzero(np.diff(pointers))
        for group in nonempty.tolist():
            entries = slice(pointers[group], pointers[group + 1])
            support = counts.indices[entries]
            # Terms that a group lacks cannot be distinctive. Only their sum matters, which stands
            # for one more term.
            rest = float(together.sum()) - together[support].sum()
            group_counts = np.append(counts.data[entries], 0.0)
            all_of = np.append(together[support], rest)
            z = log_odds(group_counts, all_of - group_counts, all_of / len(nonempty))[:-1]
            # Rounding must not mark a term that all groups use equally.
            best = largest(np.where(z > 1e-9, z, 0.0), n_terms)
            ids[topic, group, : len(best)] = support[best]
            values[topic, group, : len(best)] = z[best]
    return CellTerms(result.term_counts.terms, ids, values)


def values_of(result: TopicResult, source: Any, name: str) -> tuple[pd.Series, str]:
    """Return one value for each row, and a name for messages."""
    metadata = result.corpus.metadata
    there = ", ".join(repr(str(column)) for column in metadata.columns) or "none"
    expected = f"a column of the corpus ({there}) or a value for each row"
    if isinstance(source, str) and source in metadata.columns:
        return metadata[source], source
    if isinstance(source, (str, bytes)) or not isinstance(source, Iterable):
        raise InputError(name, expected, source)
    values = as_series(source, result.corpus, name, expected)
    return values, str(values.name) if values.name is not None else name


def _number_groups(
    values: pd.Series, has_text: BoolArray, by: str
) -> tuple[Int64Array, tuple[str, ...], tuple[Decision, ...]]:
    """Return codes and names: ascending numbers, or else the largest first; pool the smallest."""
    column = read_classes(values.tolist())
    texts = pd.Series(_as_names(column), dtype=object)
    sizes = texts[has_text].dropna().value_counts()
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)

    def order(name: str) -> tuple[float, str]:
        return float(name) if is_number else -float(sizes[name]), name

    names = sorted(sizes.index, key=order)
    decisions = column.notes("trends", repr(by))
    code_of = {}

    if len(names) > MAX_GROUPS:
        several = set(sorted(names, key=lambda name: -sizes[name])[: MAX_GROUPS - 1])
        n_rest = len(names) - len(several)
        names = [name for name in names if name in several]
        code_of = dict.fromkeys(sizes.index, len(names))
        other = OTHER
        while other in names:  # a group of this name in the data stays separate
            other = f"({other})"
        names.append(other)
        message = f"{by!r} has {len(sizes):,} groups; {n_rest:,} of them are pooled as {other!r}."
        decisions += (Decision("trends", "groups_put_together", n_rest, message),)

    code_of |= {name: code for code, name in enumerate(names)}
    codes = np.array([code_of.get(name, -1) for name in texts], dtype=np.int64)
    return codes, tuple(names), decisions


def _as_names(column: ClassColumn) -> list[str | None]:
    """Return each value as text, or None if it is missing or blank."""
    return [None if value is None else str(value) for value in column.values]


class CellCounts(NamedTuple):
    """Rows by topic and cell, the last topic being none, and how far they are independent."""

    counts: Int64Array  # (n_topics + 1, n_cells)
    totals: Int64Array  # (n_cells,)
    n_effective: Float64Array  # (n_cells,), the effective sample size
    shares: Float64Array  # (n_topics + 1, n_cells), as the two ends of their intervals
    low: Float64Array
    high: Float64Array
    correlation: float  # of topics within units
    unit_cells: Int64Array  # (n_parts,), the cell of each unit in a cell
    unit_counts: csr_matrix  # (n_parts, n_topics + 1), its rows by topic
    unit_numbers: Int64Array | None  # (n_parts,), its unit; None if no unit is in several cells
    decisions: tuple[Decision, ...]


def units_of(result: TopicResult, units: Any) -> Int64Array:
    """Return the unit of each row, by default the document of a passage, or the text."""
    of_text = result.distinct.of_row
    if units is None and PASSAGE_COLUMNS[0] not in result.corpus.metadata:
        return np.asarray(of_text, dtype=np.int64)
    units = PASSAGE_COLUMNS[0] if units is None else units
    values, _ = values_of(result, units, "units")
    names = _as_names(read_classes(values.tolist()))
    codes = np.asarray(pd.factorize(pd.Series(names, dtype=object))[0])
    # Rows of one text without a value are one unit.
    return np.where(codes >= 0, codes, codes.max(initial=-1) + 1 + of_text)


def count_rows(result: TopicResult, cells: Int64Array, n_cells: int, units: Any) -> CellCounts:
    """Count rows by topic and cell (n_rows,), and measure the correlation of topics within units.

    The estimate of Fleiss and Cuzick (1979, "The reliability of dichotomous judgments: unequal
    numbers of judges per subject"), summed over topics and cells, with a correction for few units.
    """
    rows = np.flatnonzero(cells >= 0)
    unit_of_row = units_of(result, units)[rows]
    parts, part = np.unique(np.stack([cells[rows], unit_of_row]), axis=1, return_inverse=True)
    place = part.ravel()
    cell = parts[0]
    n_parts = parts.shape[1]
    sizes = np.bincount(place, minlength=n_parts).astype(np.float64)
    n = np.bincount(cell, sizes, n_cells)
    k = np.bincount(cell, np.ones(n_parts), n_cells)

    topic = result.labels[rows] % (result.n_topics + 1)  # noise is -1 and thus the last
    shape = n_parts, result.n_topics + 1
    unit_counts = csr_matrix((np.ones(len(rows)), (place, topic)), shape=shape)
    agreeing = np.asarray(unit_counts.power(2).sum(axis=1)).ravel() / sizes
    of_cell = csr_matrix((np.ones(n_parts), (cell, np.arange(n_parts))), shape=(n_cells, n_parts))
    in_cells = of_cell @ unit_counts

    same_topic = share_of(np.asarray(in_cells.power(2).sum(axis=1)).ravel(), n**2)
    by_chance = np.where(k > 1, (n - k) * (1 - same_topic) * k / np.maximum(k - 1, 1), 0.0)
    differing = float((sizes - agreeing)[k[cell] > 1].sum())
    expected = float(by_chance.sum())
    correlation = min(max(1 - differing / expected, 0.0), 1.0) if expected > 0 else 1.0

    decisions: tuple[Decision, ...] = ()
    if units is not None or PASSAGE_COLUMNS[0] in result.corpus.metadata:
        message = (
            f"{int(n.sum()):,} rows come from {len(np.unique(unit_of_row)):,} units. Topics within "
            f"units correlate by {correlation:.2f}, which the intervals allow for."
        )
        decisions = (Decision("trends", "correlation_in_units", correlation, message),)

    squares = np.bincount(cell, sizes**2, n_cells)
    n_effective = share_of(n * n, n + correlation * (squares - n))
    counts = in_cells.toarray().T.astype(np.int64)
    shares = share_of(counts, n)
    low, high = wilson(shares * n_effective, n_effective)
    unit_numbers = np.unique(parts[1], return_inverse=True)[1].ravel()
    is_single = len(unit_numbers) == unit_numbers.max(initial=-1) + 1

    return CellCounts(
        counts=counts,
        totals=n.astype(np.int64),
        n_effective=n_effective,
        shares=shares,
        low=low,
        high=high,
        correlation=correlation,
        unit_cells=cell,
        unit_counts=unit_counts,
        unit_numbers=None if is_single else unit_numbers,
        decisions=decisions,
    )


def share_of(counts: npt.ArrayLike, totals: npt.ArrayLike) -> Float64Array:
    """Divide counts by totals; NaN if the total is 0."""
    above, below = (np.asarray(values, dtype=np.float64) for values in (counts, totals))
    shares = np.full(np.broadcast_shapes(above.shape, below.shape), np.nan)
    np.divide(above, below, out=shares, where=below > 0)
    return shares


def count_cells(result: TopicResult, cell_of_row: Int64Array, n_cells: int) -> csr_matrix:
    """Count terms by topic and cell, (n_topics * (n_cells + 1), n_terms); the last is no cell."""
    labels = result.labels
    rows = np.flatnonzero(labels != NOISE)
    cells = cell_of_row[rows] % (n_cells + 1)
    place = labels[rows].astype(np.int64) * (n_cells + 1) + cells
    documents = result.distinct.of_row[rows]
    return sum_rows(result.term_counts.counts, documents, place, result.n_topics * (n_cells + 1))


def best_cell_terms(
    result: TopicResult,
    counts: csr_matrix,
    n_terms: int,
    filled: BoolArray,
    *,
    evolution: bool = False,
) -> CellTerms:
    """Choose terms of cells by `count_cells`, averaged with the cell before if `evolution`."""
    vocabulary, n_cells = result.term_counts.terms, len(filled)
    ids = np.full((result.n_topics, n_cells, n_terms), -1, dtype=np.int32)
    values = np.zeros((result.n_topics, n_cells, n_terms))
    order = np.cumsum(filled) - 1
    rows = np.arange(counts.shape[0])
    shape = result.n_topics, len(rows)
    summed = csr_matrix((np.ones(len(rows)), (rows // (n_cells + 1), rows)), shape=shape) @ counts
    weights = csr_matrix(fitted_weighting(result, summed).transform(counts), dtype=np.float64)
    scaled, whole = _unit_sums(weights), _unit_sums(result.topic_terms)
    is_positive = not scaled.nnz or scaled.data.min() >= 0
    place = np.zeros(len(vocabulary), dtype=np.int64)
    for topic in range(result.n_topics):
        first = topic * (n_cells + 1)
        pointers = scaled.indptr[first : first + n_cells + 1]
        nonempty = np.flatnonzero(np.diff(pointers))
        used = scaled.indices[pointers[0] : pointers[-1]]
        of_topic = whole[topic]
        # Only these terms can be among the best in a cell.
        leading = of_topic.indices[largest(of_topic.data, n_terms)]
        support = np.union1d(used, leading).astype(np.int64)
        background = of_topic[:, support].toarray().ravel()
        place[support] = np.arange(len(support))
        before, last, floor = np.zeros(len(support)), -2, 0.0
        if len(background) >= n_terms and is_positive:
            floor = float(np.partition(background, -n_terms)[-n_terms]) / 2  # of the averages
        for cell in nonempty.tolist():
            entries = slice(pointers[cell], pointers[cell + 1])
            current = np.zeros(len(support))
            current[place[scaled.indices[entries]]] = scaled.data[entries]
            if evolution and order[cell] == last + 1:
                current = (current + before) / 2
            current = (current + background) / 2
            before, last = current, int(order[cell])
            best = largest(current, n_terms, floor)
            ids[topic, cell, : len(best)] = support[best]
            values[topic, cell, : len(best)] = current[best]
    return CellTerms(vocabulary, ids, values)


def no_terms(result: TopicResult, n_cells: int) -> CellTerms:
    """Return empty lists of terms."""
    shape = (result.n_topics, n_cells, 0)
    return CellTerms(result.term_counts.terms, np.zeros(shape, np.int32), np.zeros(shape))


def _unit_sums(weights: csr_matrix) -> csr_matrix:
    """Scale each row so that the sizes of its weights sum to 1."""
    scaled = weights.copy()
    sums = np.asarray(abs(scaled).sum(axis=1)).ravel()
    scaled.data = scaled.data / np.repeat(np.where(sums > 0, sums, 1.0), np.diff(scaled.indptr))
    return scaled
