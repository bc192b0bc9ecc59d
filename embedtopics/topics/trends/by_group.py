"""Topics by group: how often each group has them, and what it says in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, checked_level
from embedtopics.evaluation.shares import wilson
from embedtopics.protocols import TermWeighting
from embedtopics.results import CellTerms, TopicGroups, TopicResult
from embedtopics.terms.best_terms import largest
from embedtopics.terms.log_odds import z_scores
from embedtopics.topics.trends.cell_terms import (
    Tuning,
    best_cell_terms,
    count_cells,
    no_terms,
    weigh_cells,
)
from embedtopics.topics.trends.intervals import share_of
from embedtopics.topics.trends.over_time import count_rows
from embedtopics.topics.trends.rows import groups_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["by_group"]

Float64Array = npt.NDArray[np.float64]


def by_group(
    result: TopicResult,
    group: Any = None,
    *,
    n_terms: int = 10,
    global_tuning: bool = True,
    confidence: float = 0.95,
    max_groups: int = 30,
    weighting: TermWeighting | None = None,
) -> TopicGroups:
    """Compare groups, such as sources: how much they have of each topic, and how they speak of it.

    Parameters
    ----------
    result : TopicResult
    group : str or array_like of shape (n_rows,), optional
        A column, or a group for each row; by default the group column of the corpus. Rows without
        a value are left out. Numbers of more than twelve values are cut at their quartiles.
    n_terms : int
        Terms of a topic in a group, of both kinds; 0 for none.
    global_tuning : bool
        Average the term weights of a topic in a group with the topic's weights in the whole fit,
        so that few documents do not decide alone what it is about; both are scaled to sum 1 first.
    confidence : float
        Of the intervals (Wilson's, in which each row is an observation).
    max_groups : int
        More groups than these are put together, the smallest first.
    weighting : TermWeighting, optional
        The one that the result was made with, where it was the user's own.

    Returns
    -------
    TopicGroups
        What was put together, cut or left out is in its `decisions`.

    Raises
    ------
    InputError
        Without groups; where their number is not that of the rows; where a parameter is bad.

    Notes
    -----
    `terms` say what a topic is about in a group: class-TF-IDF, as over time. `distinctive` say
    what the group says differently from the other groups within the topic: log-odds with an
    informative prior (Monroe, Colaresi and Quinn 2008), the words of the topic in their shares, as
    many as a group has in the topic on average. A term that only one group holds, and rarely, thus
    does not pass for its mark.
    """
    checked_count(n_terms, "n_terms", 0)
    confidence = checked_level(confidence)
    groups = groups_of(result, group, max_groups)
    n_groups = len(groups.names)
    of_row = np.where(result.documents.of_row >= 0, groups.of_row, -1)
    counts = count_rows(result.labels, of_row, (result.n_topics + 1, n_groups))
    totals = counts.sum(axis=0)
    low, high = wilson(counts, totals, confidence)
    terms = distinctive = no_terms(result, n_groups)
    if n_terms and result.n_topics and result.term_counts.counts.nnz:
        held = count_cells(result, of_row, n_groups)
        weights = weigh_cells(result, held, weighting)
        tuning = Tuning(overall=bool(global_tuning))
        terms = best_cell_terms(result, weights, n_groups, n_terms, tuning, totals > 0)
        distinctive = _distinctive(result, held, n_groups, n_terms)
    return TopicGroups(
        by=groups.by,
        names=groups.names,
        labels=tuple(topic.label for topic in result.topics),
        counts=counts,
        totals=totals,
        shares=share_of(counts, totals),
        low=low,
        high=high,
        terms=terms,
        distinctive=distinctive,
        confidence=confidence,
        decisions=groups.decisions,
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
            support, own = counts.indices[entries], counts.data[entries]
            z = _against_others(own, together[support], float(together.sum()), len(held))
            # Rounding must not turn a term that all groups use alike into a mark of one.
            best = largest(np.where(z > 1e-9, z, 0.0), n_terms)
            ids[topic, group, : len(best)] = support[best]
            values[topic, group, : len(best)] = z[best]
    return CellTerms(result.term_counts.terms, ids, values)


def _against_others(
    own: Float64Array, together: Float64Array, total: float, n_groups: int
) -> Float64Array:
    """Return the z-scores of the terms that a group holds.

    Terms that it does not hold are less its own than the others', whatever their counts: all that
    matters of them is their sum, which stands for them as one more term.
    """
    own = np.append(own, 0.0)
    together = np.append(together, total - together.sum())
    return z_scores(own, together - own, together / n_groups)[:-1]
