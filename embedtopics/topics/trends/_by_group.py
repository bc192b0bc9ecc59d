"""Topics by group; and the counts, shares and terms of a topic in any cell: a group or a period."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import csr_matrix

from embedtopics._utils.checks import checked_count, checked_level
from embedtopics._utils.display import spell_count
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._texts import is_missing
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.evaluation._shares import wilson
from embedtopics.protocols import Float64Array, Int64Array
from embedtopics.terms._counts import sum_rows
from embedtopics.terms._representative import largest
from embedtopics.terms._weighting import log_odds
from embedtopics.topics._describe import fitted_weighting
from embedtopics.topics.results import TopicResult
from embedtopics.topics.trends.results import CellTerms, TopicGroups

OTHER = "(other)"


def by_group(
    result: TopicResult,
    group: Any = None,
    *,
    groups: Sequence[str] | None = None,
    max_groups: int = 30,
    n_terms: int = 10,
    global_tuning: bool = True,
    confidence: float = 0.95,
    units: Any = None,
) -> TopicGroups:
    """Compare groups, such as sources: their share of each topic, and the terms they use in it.

    Parameters
    ----------
    result : TopicResult
    group : str or array_like of shape (n_rows,), optional
        A column, or a group for each row; by default the group column of the corpus. Rows without
        a value are left out. Cut many numbers beforehand, as by ``pandas.qcut``.
    groups : sequence of str, optional
        Names of the groups to compare, in this order; the others are put together.
    max_groups : int
        Without `groups`, the smallest of more groups than these are put together.
    n_terms : int
        Terms of a topic in a group, of both kinds; 0 for none.
    global_tuning : bool
        Average the term weights of a topic in a group with those in the whole fit.
    confidence : float
        Of the Wilson intervals.
    units : str or array_like of shape (n_rows,), optional
        A column, or a value for each row, of what is independent, such as authors; by default each
        distinct text. Intervals have the effective sample size of rows whose topics correlate
        within units as they do here (Kish 1965, "Survey Sampling", section 5.4).

    Returns
    -------
    TopicGroups
        Its `decisions` record what was put together or left out.

    Raises
    ------
    InputError
        If there are no groups, their number is not that of the rows, or a parameter is bad.

    Notes
    -----
    `terms` are weighted by class-TF-IDF, as over time. `distinctive` are the terms that the group
    uses more than the other groups within the topic: log-odds with an informative prior (Monroe,
    Colaresi and Quinn 2008) that weighs as much as the words of a group on average.
    """
    checked_count(n_terms, "n_terms", 0)
    confidence = checked_level(confidence)
    checked_count(max_groups, "max_groups", 2)
    values, by = values_of(result, result.corpus.group_column if group is None else group, "group")
    has_text = result.documents.of_row >= 0
    codes, names = _coded(values, has_text)
    sizes = np.bincount(codes[(codes >= 0) & has_text], minlength=len(names))
    if not sizes.any():
        raise InputError("group", "a column with values in rows with text", by)
    codes, names, decisions = _kept(codes, names, sizes, max_groups, groups, by)
    if n_missing := int(np.sum((codes < 0) & has_text)):
        message = f"Left out: {spell_count(n_missing, 'row', 'rows')} without a value in {by!r}."
        decisions = (*decisions, Decision("trends", "rows_without_group", n_missing, message))
    n_groups, of_row = len(names), np.where(has_text, codes, -1)
    counts = count_rows(result.labels, of_row, (result.n_topics + 1, n_groups))
    totals = counts.sum(axis=0)
    rows = repeated_rows(result, of_row, n_groups, units)
    effective = rows.effective_sizes(totals)
    low, high = wilson(share_of(counts, totals) * effective, effective, confidence)
    terms = distinctive = no_terms(result, n_groups)
    if n_terms and result.n_topics and result.term_counts.counts.nnz:
        held = count_cells(result, of_row, n_groups)
        weights = weigh_cells(result, held)
        terms = best_cell_terms(result, weights, n_terms, totals > 0, overall=bool(global_tuning))
        distinctive = _distinctive(result, held, n_groups, n_terms)
    return TopicGroups(
        by=by,
        names=names,
        labels=tuple(topic.label for topic in result.topics),
        counts=counts,
        totals=totals,
        shares=share_of(counts, totals),
        low=low,
        high=high,
        terms=terms,
        distinctive=distinctive,
        confidence=confidence,
        decisions=(*decisions, *rows.decisions),
    )


def _distinctive(result: TopicResult, counts: csr_matrix, n_groups: int, n_terms: int) -> CellTerms:
    """Choose the terms whose odds in a group are highest against the others of the topic."""
    n_words = len(result.term_counts.terms)
    shape = (result.n_topics, n_groups, n_terms)
    ids, values = np.full(shape, -1, dtype=np.int32), np.zeros(shape)
    for topic in range(result.n_topics):
        first = topic * (n_groups + 1)
        pointers = counts.indptr[first : first + n_groups + 1]
        of_topic = slice(pointers[0], pointers[-1])
        sums = np.bincount(counts.indices[of_topic], counts.data[of_topic], minlength=n_words)
        together = sums.astype(np.float64)
        held = np.flatnonzero(np.diff(pointers))
        for group in held.tolist():
            entries = slice(pointers[group], pointers[group + 1])
            support = counts.indices[entries]
            # Terms that a group does not hold are less its own than the others', whatever their
            # counts: all that matters of them is their sum, which stands for one more term.
            rest = float(together.sum()) - together[support].sum()
            own, all_of = np.append(counts.data[entries], 0.0), np.append(together[support], rest)
            z = log_odds(own, all_of - own, all_of / len(held))[:-1]
            # Rounding must not mark a term that all groups use equally.
            best = largest(np.where(z > 1e-9, z, 0.0), n_terms)
            ids[topic, group, : len(best)] = support[best]
            values[topic, group, : len(best)] = z[best]
    return CellTerms(result.term_counts.terms, ids, values)


def values_of(result: TopicResult, given: Any, name: str) -> tuple[pd.Series, str]:
    """Return the values of a column, or those given, one a row; and what messages call them."""
    metadata = result.corpus.metadata
    there = ", ".join(repr(str(column)) for column in metadata.columns) or "none"
    expected = f"a column of the corpus ({there}) or a value for each row"
    if isinstance(given, str) and given in metadata.columns:
        return metadata[given], given
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InputError(name, expected, given)
    values = given if isinstance(given, pd.Series) else pd.Series(list(given))
    if len(values) != len(result.corpus):
        found = f"{len(values)} values for {len(result.corpus)} rows"
        raise InputError(name, expected, found=found)
    return values, str(values.name) if values.name is not None else name


def _coded(
    values: pd.Series, has_text: npt.NDArray[np.bool_]
) -> tuple[Int64Array, tuple[str, ...]]:
    """Return codes and names: numbers from the smallest up, else the largest group first."""
    texts = pd.Series(_names(values), dtype=object)
    sizes = texts[has_text].dropna().value_counts()
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)

    def order(name: str) -> tuple[float, str]:
        return float(name) if is_number else -float(sizes[name]), name

    names = tuple(sorted(sizes.index, key=order))
    place = {name: code for code, name in enumerate(names)}
    return np.array([place.get(name, -1) for name in texts], dtype=np.int64), names


def _names(values: pd.Series) -> list[str | None]:
    """Return each value as text; None where there is nothing to see."""

    def spell(value: Any) -> str | None:
        if is_missing(value):
            return None
        if isinstance(value, float | np.floating) and float(value).is_integer():
            value = int(value)
        return str(value).strip() or None

    return [spell(value) for value in values.tolist()]


def _kept(
    codes: Int64Array,
    names: tuple[str, ...],
    sizes: Int64Array,
    max_groups: int,
    chosen: Any,
    by: str,
) -> tuple[Int64Array, tuple[str, ...], tuple[Decision, ...]]:
    """Keep the chosen or the largest groups, and put the rest together."""
    if chosen is not None:
        wanted = [chosen] if isinstance(chosen, str) else [str(name) for name in chosen]
        unknown = [name for name in wanted if name not in names]
        if unknown or not wanted or len(set(wanted)) < len(wanted):
            expected = f"different groups of {by!r} ({', '.join(names[:12])})"
            raise InputError("groups", expected, unknown[0] if unknown else chosen)
        kept = np.array([names.index(name) for name in wanted], dtype=np.int64)
    elif len(names) <= max_groups:
        return codes, names, ()
    else:
        kept = np.sort(np.argsort(-sizes, kind="stable")[: max_groups - 1])
    n_rest = len(names) - len(kept)
    new = np.full(len(names) + 1, len(kept), dtype=np.int64)
    new[kept] = np.arange(len(kept))
    new[-1] = -1
    held = tuple(names[code] for code in kept.tolist())
    if not n_rest:
        return new[codes], held, ()
    other = OTHER
    while other in held:  # what the data call so is a group of its own
        other = f"({other})"
    message = f"{by!r} has {len(names):,} groups; {n_rest:,} of them are put together as {other!r}."
    decision = Decision("trends", "groups_put_together", n_rest, message)
    return new[codes], (*held, other), (decision,)


def count_rows(labels: npt.NDArray[np.int32], cells: Int64Array, shape: tuple[int, int]) -> Any:
    """Count rows by topic and cell, both (n_rows,); those of no topic in the last row."""
    counted = cells >= 0
    place = (labels[counted] % shape[0]).astype(np.int64) * shape[1] + cells[counted]
    return np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape)


@dataclass(frozen=True, eq=False)
class RepeatedRows:
    """Rows of one unit in one cell, `squares` (n_cells,) of their numbers, and how they agree."""

    squares: Float64Array
    correlation: float
    decisions: tuple[Decision, ...] = ()

    def effective_sizes(self, totals: npt.ArrayLike, pooled: Any = None) -> Float64Array:
        """Return how many independent rows those of each cell are worth, (n_cells,)."""
        n = np.asarray(totals, dtype=np.float64)
        squares = self.squares if pooled is None else self.squares @ pooled
        return share_of(n * n, n + self.correlation * (squares - n))


def units_of(result: TopicResult, given: Any) -> Int64Array:
    """Return the number of each row's unit: its text, unless other units are given."""
    of_text = result.documents.of_row
    if given is None:
        return np.asarray(of_text, dtype=np.int64)
    values, _ = values_of(result, given, "units")
    codes = np.asarray(pd.factorize(pd.Series(_names(values), dtype=object))[0])
    # A row without a value is a unit with the others of its text.
    return np.where(codes >= 0, codes, codes.max(initial=-1) + 1 + of_text)


def repeated_rows(result: TopicResult, cells: Int64Array, n_cells: int, units: Any) -> RepeatedRows:
    """Measure how the topics of rows correlate within the units in a cell; cells (n_rows,).

    The estimate of Fleiss and Cuzick (1979, "The reliability of dichotomous judgments: unequal
    numbers of judges per subject"), summed over topics and cells, with a correction for few units.
    """
    rows = np.flatnonzero(cells >= 0)
    given = units_of(result, units)[rows]
    parts, part = np.unique(np.stack([cells[rows], given]), axis=1, return_inverse=True)
    place, cell, n_parts = part.ravel(), parts[0], parts.shape[1]
    sizes = np.bincount(place, minlength=n_parts).astype(np.float64)
    n, k = (np.bincount(cell, w, n_cells) for w in (sizes, np.ones(n_parts)))
    squares = np.bincount(cell, sizes**2, n_cells)
    topic = result.labels[rows] % (result.n_topics + 1)
    shape = n_parts, result.n_topics + 1
    held = csr_matrix((np.ones(len(rows)), (place, topic)), shape=shape)
    agreeing = np.asarray(held.power(2).sum(axis=1)).ravel() / sizes
    of_cell = csr_matrix((np.ones(n_parts), (cell, np.arange(n_parts))), shape=(n_cells, n_parts))
    same_topic = share_of(np.asarray((of_cell @ held).power(2).sum(axis=1)).ravel(), n**2)
    by_chance = np.where(k > 1, (n - k) * (1 - same_topic) * k / np.maximum(k - 1, 1), 0.0)
    differing, expected = float((sizes - agreeing)[k[cell] > 1].sum()), float(by_chance.sum())
    correlation = min(max(1 - differing / expected, 0.0), 1.0) if expected > 0 else 1.0
    decisions: tuple[Decision, ...] = ()
    if units is not None:
        message = (
            f"{int(n.sum()):,} rows are of {len(np.unique(given)):,} units, within which topics "
            f"correlate by {correlation:.2f}; the intervals allow for it."
        )
        decisions = (Decision("trends", "correlation_in_units", correlation, message),)
    return RepeatedRows(np.asarray(squares, dtype=np.float64), correlation, decisions)


def share_of(counts: npt.ArrayLike, totals: npt.ArrayLike) -> Float64Array:
    """Divide; NaN where there is nothing to divide by."""
    above, below = (np.asarray(values, dtype=np.float64) for values in (counts, totals))
    shares = np.full(np.broadcast_shapes(above.shape, below.shape), np.nan)
    np.divide(above, below, out=shares, where=below > 0)
    return shares


def count_cells(result: TopicResult, cell_of_row: Int64Array, n_cells: int) -> csr_matrix:
    """Count terms by topic and cell, (n_topics * (n_cells + 1), n_terms); the last cell is none."""
    labels = result.labels
    rows = np.flatnonzero(labels != NOISE)
    cells = cell_of_row[rows] % (n_cells + 1)
    place = labels[rows].astype(np.int64) * (n_cells + 1) + cells
    documents = result.documents.of_row[rows]
    return sum_rows(result.term_counts.counts, documents, place, result.n_topics * (n_cells + 1))


def weigh_cells(result: TopicResult, counts: csr_matrix) -> csr_matrix:
    """Weigh the counts of cells with the factors that terms have in the whole fit."""
    rows = np.arange(counts.shape[0])
    topic = rows // (counts.shape[0] // result.n_topics)
    of_topic = csr_matrix((np.ones(len(rows)), (topic, rows)), shape=(result.n_topics, len(rows)))
    weighting = fitted_weighting(result, of_topic @ counts)
    return csr_matrix(weighting.transform(counts), dtype=np.float64)


def best_cell_terms(
    result: TopicResult,
    weights: csr_matrix,
    n_terms: int,
    filled: npt.NDArray[np.bool_],
    *,
    evolution: bool = False,
    overall: bool = False,
) -> CellTerms:
    """Choose the best terms of cells by the weights of `count_cells`; `filled` (n_cells,)."""
    vocabulary, n_cells = result.term_counts.terms, len(filled)
    ids = np.full((result.n_topics, n_cells, n_terms), -1, dtype=np.int32)
    values = np.zeros((result.n_topics, n_cells, n_terms))
    order = np.cumsum(filled) - 1
    scaled = _unit_sums(weights) if evolution or overall else weights
    whole = _unit_sums(result.topic_terms) if overall else None
    is_positive = not scaled.nnz or scaled.data.min() >= 0
    place = np.zeros(len(vocabulary), dtype=np.int64)
    for topic in range(result.n_topics):
        first = topic * (n_cells + 1)
        pointers = scaled.indptr[first : first + n_cells + 1]
        held = np.flatnonzero(np.diff(pointers))
        used = scaled.indices[pointers[0] : pointers[-1]]
        support, background = _support(used, whole, topic, n_terms, len(vocabulary))
        place[support] = np.arange(len(support))
        before, last, floor = np.zeros(len(support)), -2, 0.0
        if background is not None and len(background) >= n_terms and is_positive:
            floor = float(np.partition(background, -n_terms)[-n_terms]) / 2  # of the averages
        for cell in held.tolist():
            entries = slice(pointers[cell], pointers[cell + 1])
            current = np.zeros(len(support))
            current[place[scaled.indices[entries]]] = scaled.data[entries]
            if evolution and order[cell] == last + 1:
                current = (current + before) / 2
            if background is not None:
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


def _support(
    used: npt.NDArray[np.int32], whole: csr_matrix | None, topic: int, n_terms: int, n_words: int
) -> tuple[Int64Array, Float64Array | None]:
    """Return the terms that can be among the best in any cell, and their weights in the whole."""
    if whole is None:
        return np.unique(used).astype(np.int64), None
    entries = slice(whole.indptr[topic], whole.indptr[topic + 1])
    terms, weights = whole.indices[entries], whole.data[entries]
    support = np.union1d(used, terms[largest(weights, n_terms)]).astype(np.int64)
    dense = np.zeros(n_words)
    dense[terms] = weights
    return support, dense[support]
