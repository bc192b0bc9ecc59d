"""Class-TF-IDF of each topic's documents in each cell: a period, or a group.

A document is a distinct text and may have rows in several cells; it counts in each as often as it
has rows there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, Int64Array, TermWeighting
from embedtopics.results import NOISE, CellTerms, TopicResult
from embedtopics.terms import ClassTfidf, sum_rows
from embedtopics.terms.best_terms import largest
from embedtopics.topics.recorded import weighting_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["Tuning", "best_cell_terms", "count_cells", "no_terms", "weigh_cells"]

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tuning:
    """With what the weights of a cell are averaged, so that few documents do not decide alone.

    Parameters
    ----------
    evolution : bool
        With the weights of the topic in the cell before, if it has documents there.
    overall : bool
        With the weights of the topic in the whole fit.
    """

    evolution: bool = False
    overall: bool = False


def count_cells(result: TopicResult, cell_of_row: Int64Array, n_cells: int) -> csr_matrix:
    """Count the terms of each topic in each cell, in one pass over the documents.

    Parameters
    ----------
    result : TopicResult
    cell_of_row : int64 ndarray of shape (n_rows,)
        -1 for rows in no cell.
    n_cells : int

    Returns
    -------
    csr_matrix of float64, shape (n_topics * (n_cells + 1), n_terms)
        Topic by topic; the last of a topic's cells holds its rows that are in none.
    """
    of_row = result.documents.of_row
    labels = result.labels
    rows = np.flatnonzero(labels != NOISE)
    cells = cell_of_row[rows] % (n_cells + 1)
    place = labels[rows].astype(np.int64) * (n_cells + 1) + cells
    return sum_rows(result.term_counts.counts, of_row[rows], place, result.n_topics * (n_cells + 1))


def weigh_cells(result: TopicResult, counts: csr_matrix, given: TermWeighting | None) -> csr_matrix:
    """Weigh the counts of cells with what the whole fit says of each term.

    Raises
    ------
    InputError
        Where the weighting cannot be fitted on some counts and applied to others.
    """
    from scipy.sparse import csr_matrix

    weighting: Any = weighting_of(result, given)
    if not (hasattr(weighting, "fit") and hasattr(weighting, "transform")):
        raise InputError(
            f"weighting must have fit and transform to weigh parts of topics; {weighting!r} has "
            "not; give another one as weighting="
        )
    if isinstance(weighting, ClassTfidf):
        # It learns from the sums over all topics and from their number, so one row may hold all.
        sums = np.bincount(counts.indices, counts.data, minlength=counts.shape[1])
        used = np.flatnonzero(sums)
        shape = (result.n_topics, counts.shape[1])
        whole = csr_matrix((sums[used], (np.zeros_like(used), used)), shape=shape)
        weighting.fit(whole, terms=result.term_counts.terms)
    else:
        rows = np.arange(counts.shape[0])
        topic = rows // (counts.shape[0] // result.n_topics)
        of_topic = (np.ones(len(rows)), (topic, rows))
        weighting.fit(csr_matrix(of_topic, shape=(result.n_topics, len(rows))) @ counts)
    return csr_matrix(weighting.transform(counts), dtype=np.float64)


def best_cell_terms(
    result: TopicResult,
    weights: csr_matrix,
    n_cells: int,
    n_terms: int,
    tuning: Tuning,
    filled: npt.NDArray[np.bool_],
) -> CellTerms:
    """Choose the terms of highest weight of each topic in each cell.

    Parameters
    ----------
    result : TopicResult
    weights : csr_matrix of shape (n_topics * (n_cells + 1), n_terms)
        As `count_cells` lays them out.
    n_cells, n_terms : int
    tuning : Tuning
        With either, weights of a topic in a cell are scaled to sum 1 before they are averaged.
    filled : bool ndarray of shape (n_cells,)
        Whether there are rows in the cell; the cell before is the last one with rows.

    Returns
    -------
    CellTerms
        No terms where the topic has no documents; ties go to the earlier term.
    """
    vocabulary = result.term_counts.terms
    ids = np.full((result.n_topics, n_cells, n_terms), -1, dtype=np.int32)
    values = np.zeros((result.n_topics, n_cells, n_terms))
    order = np.cumsum(filled) - 1
    is_tuned = tuning.evolution or tuning.overall
    scaled = _unit_sums(weights) if is_tuned else weights
    overall = _unit_sums(result.topic_terms) if tuning.overall else None
    is_positive = not scaled.nnz or scaled.data.min() >= 0
    marked = np.zeros(len(vocabulary), dtype=bool)
    place = np.zeros(len(vocabulary), dtype=np.int64)
    for topic in range(result.n_topics):
        first = topic * (n_cells + 1)
        pointers = scaled.indptr[first : first + n_cells + 1]
        held = np.flatnonzero(np.diff(pointers))
        support, background = _support(scaled, pointers, overall, topic, n_terms, marked, place)
        before, last, floor = np.zeros(len(support)), -2, 0.0
        if background is not None and len(background) >= n_terms and is_positive:
            floor = float(np.partition(background, -n_terms)[-n_terms]) / 2  # of the averages
        for cell in held.tolist():
            entries = slice(pointers[cell], pointers[cell + 1])
            current = np.zeros(len(support))
            current[place[scaled.indices[entries]]] = scaled.data[entries]
            if tuning.evolution and order[cell] == last + 1:
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
    lengths = np.diff(scaled.indptr)
    sums = np.asarray(abs(scaled).sum(axis=1)).ravel()
    scaled.data = scaled.data / np.repeat(np.where(sums > 0, sums, 1.0), lengths)
    return scaled


def _support(
    scaled: csr_matrix,
    pointers: Int32Array,
    overall: csr_matrix | None,
    topic: int,
    n_terms: int,
    marked: npt.NDArray[np.bool_],
    place: Int64Array,
) -> tuple[Int64Array, Float64Array | None]:
    """Return the terms that can be among the best in any cell, and their weights in the whole.

    Terms that occur in no cell rank by the whole alone, so that the first of them are enough.
    Fills `place` for these terms; `marked` is scratch space, left as it was.
    """
    used = scaled.indices[pointers[0] : pointers[-1]]
    marked[used] = True
    if overall is not None:
        entries = slice(overall.indptr[topic], overall.indptr[topic + 1])
        whole, weights = overall.indices[entries], overall.data[entries]
        marked[whole[largest(weights, n_terms)]] = True
    support = np.flatnonzero(marked)
    marked[support] = False
    place[support] = np.arange(len(support))
    if overall is None:
        return support, None
    dense = np.zeros(len(marked))
    dense[whole] = weights
    return support, dense[support]
