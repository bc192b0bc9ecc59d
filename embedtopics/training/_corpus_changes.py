"""What another encoder changes for texts of one's own: their neighbors, topics and classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.comparison._compare import Groups, dense_groups, given_groups, scored_classes
from embedtopics.comparison._maps import edges_of
from embedtopics.comparison._tables import real_neighbors
from embedtopics.comparison._vectors import Log, Vectors, neighbor_graph
from embedtopics.corpus._corpus import Corpus, require_text
from embedtopics.errors import InputError
from embedtopics.evaluation._agreement import Contingency
from embedtopics.evaluation._bootstrap import resampled_means, resampled_sums
from embedtopics.evaluation._label_probes import neighbor_votes
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Float64Array, FloatArray, Int32Array
from embedtopics.training._figures import (
    Difference,
    Figure,
    compare_scores,
    mean,
    p_of,
    wide_interval,
)
from embedtopics.training.results import Change

if TYPE_CHECKING:
    from collections.abc import Callable


TASK = "corpus"
NEIGHBORS = 10
"""Neighbours that are kept or lost, and that vote on a class."""

GRAPH = 15
"""Neighbours by which texts are grouped, as by the topic model."""

MOST_DOCUMENTS = 5000
"""Documents that are looked at where nothing else is asked for."""

N_RUNS = 2
"""Groupings by each encoder, from different seeds: what they differ by is no encoder's doing."""


@dataclass(frozen=True, eq=False)
class CorpusTexts:
    """The documents that are looked at."""

    texts: tuple[str, ...]
    weights: npt.NDArray[np.int64]  # (n_documents,), rows that hold each
    classes: Int32Array | None  # (n_documents,), -1 where there is none
    note: str  # what was left out


@dataclass(frozen=True, eq=False)
class _View:
    graph: NeighborGraph
    runs: tuple[Int32Array, ...]


def corpus_texts(corpus: Any, classes: Any, most: int) -> CorpusTexts:
    """Read distinct texts of a corpus, of many those with the lowest hashes, a random sample."""
    corpus = Corpus.of(corpus)
    require_text(corpus)
    documents = corpus.distinct()
    if len(documents) < GRAPH + 2:
        raise InputError("corpus", f"one of {GRAPH + 2} different texts or more", len(documents))
    log, part = Log(), slice(0, most)
    known = None
    if classes is not None:
        found = given_groups(log, classes, corpus)
        sampled = Groups(found.of_document[part], found.names, found.grouped_by)
        known = scored_classes(log, sampled)
    said = [decision.message for decision in log.decisions]
    if len(documents) > most:
        said.insert(0, f"A random sample of {most:,} of {len(documents):,} texts.")
    texts = tuple(corpus.document_texts()[part])
    return CorpusTexts(texts, documents.weights[part], known, " ".join(said))


def _view(rows: FloatArray, corpus: CorpusTexts, name: str, seed: int) -> _View:
    vectors = Vectors(name, rows, np.asarray(rows.any(axis=1)), float("nan"), {})
    graph = neighbor_graph(Log(), vectors, GRAPH, seed)
    edges = edges_of(graph)
    runs = [dense_groups(vectors, edges, corpus.weights, seed + run) for run in range(N_RUNS)]
    return _View(graph, tuple(runs))


def score_neighborhoods(
    rows: tuple[FloatArray, FloatArray], corpus: CorpusTexts, n_resamples: int, seed: int
) -> tuple[list[Change], list[tuple[str, Difference]]]:
    """Measure what changes in the neighbors and topics of the texts, and in their classes.

    Shapes: `rows` (n_documents, n_dimensions).
    """
    views = tuple(
        _view(made, corpus, name, seed)
        for made, name in zip(rows, ("before", "after"), strict=True)
    )
    described = [
        _neighbors_kept(views, n_resamples, seed, corpus.note),
        _topics_kept(views, n_resamples, seed, corpus.note),
    ]
    judged = []
    if corpus.classes is not None:
        judged = score_classes(views, corpus.classes, n_resamples, seed)
    return described, judged


def _neighbors_kept(views: tuple[_View, ...], n_resamples: int, seed: int, note: str) -> Change:
    lists = [real_neighbors(view.graph)[:, :NEIGHBORS] for view in views]
    n = len(lists[0])
    shared = np.zeros(n)
    for column in lists[0].T:
        shared += (column[:, None] == lists[1]).any(axis=1) & (column >= 0)
    there = (lists[0] >= 0).sum(axis=1)
    kept = np.divide(shared, there, out=np.full(n, np.nan), where=there > 0)
    value = float(np.nanmean(kept)) if (there > 0).any() else float("nan")
    drawn = resampled_means(kept[:, None], n_resamples, seed)[:, 0]
    low, high = wide_interval(drawn - 1.0, n)
    chance = NEIGHBORS / (n - 1)
    note = f"Of neighbours drawn at random, {chance:.1%} would be kept. {note}"
    return _described(f"{NEIGHBORS} nearest neighbours kept", (1.0, value, low, high), n, note)


def _topics_kept(views: tuple[_View, ...], n_resamples: int, seed: int, note: str) -> Change:
    """Compare topics of both encoders, and beside that topics of the first with its own.

    All are compared across seeds: runs of one seed share their luck, and would make encoders that
    differ look more similar than one encoder is to itself.
    """
    (own, again), (new, newer) = (view.runs for view in views)
    name = "topics of two runs agree (ARI)"
    without = sum(int(run.max() < 0) for run in (own, again, new, newer))
    if without:
        said = f"In {without} of {2 * N_RUNS} runs no topics were found: nothing can be compared."
        return _described(name, (math.nan,) * 4, len(own), f"{said} {note}")
    first = _resampled([(own, again)], "ARI", n_resamples, seed)
    itself = _agreement(new, newer)
    second = _resampled([(own, newer), (new, again)], "ARI", n_resamples, seed)
    before, after = float(first[0].mean()), float(second[0].mean())
    low, high = _around(after - before, second[1].mean(axis=1) - first[1][:, 0], len(own))
    numbers = " and ".join(
        f"{view.runs[0].max() + 1} topics with {(view.runs[0] >= 0).mean():.0%} of the texts"
        for view in views
    )
    said = (
        "Adjusted Rand index, 0 by chance, of two runs from different seeds; before: both of the "
        "encoder before training, which is what an encoder that stays the same reaches; "
        f"after: one of each encoder. Two runs of one encoder agree by {before:.2f} before and by "
        f"{itself:.2f} after training. {numbers}, before and after."
    )
    return _described(name, (before, after, low, high), len(own), f"{said} {note}")


def _described(
    metric: str, figures: tuple[float, float, float, float], n: int, note: str
) -> Change:
    """Return a change that is neither good nor bad; figures are before, after, low and high."""
    before, after, low, high = figures
    difference = after - before
    return Change(
        TASK, metric, before, after, difference, low, high, n, "descriptive", 0, note.strip()
    )


def _agreement(one: Int32Array, other: Int32Array) -> float:
    table = Contingency.of(one, other)
    return float(table.adjusted_rand(table.counts[None, :])[0])


def score_classes(
    views: tuple[_View, ...], classes: Int32Array, n_resamples: int, seed: int
) -> list[tuple[str, Difference]]:
    """Measure how well neighbors and topics match given classes.

    The topics of an encoder change a little from run to run. Each resample is taken with every
    run of both encoders, so that the interval holds that, too: with two runs, one drawn at random
    varies on average as much as the mean of two.
    """
    asked = np.flatnonzero(classes >= 0)
    right = []
    for view in views:
        near, weights = (
            part[:, :NEIGHBORS] for part in (view.graph.indices, view.graph.similarities)
        )
        right.append((neighbor_votes(near, weights, classes) == classes)[asked].astype(float))
    figure = Figure(
        "accuracy", mean, right[0], right[1], np.ones(len(asked)), np.arange(len(asked))
    )
    judged = [(f"{NEIGHBORS}-NN accuracy", compare_scores(figure, n_resamples, seed))]
    for metric in ("NMI", "AMI"):
        values, drawn = [], []
        for view in views:
            runs = [(classes[asked], run[asked]) for run in view.runs]
            value, resampled = _resampled(runs, metric, n_resamples, seed)
            values.append(float(value.mean()))
            drawn.append(resampled - resampled.mean(axis=0) + value)
        apart = (drawn[1][:, :, None] - drawn[0][:, None, :]).ravel()
        low, high = wide_interval(apart, len(asked))
        p = p_of(apart, len(asked))
        n_changed = int((views[0].runs[0] != views[1].runs[0])[asked].sum())
        name = f"{metric} of topics and classes"
        judged.append((name, Difference(values[0], values[1], low, high, p, len(asked), n_changed)))
    return judged


def _resampled(
    pairs: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]], metric: str, n: int, seed: int
) -> tuple[Float64Array, Float64Array]:
    """Return the agreement of pairs of labels, shape (n_pairs,), and of resamples, (n, n_pairs).

    Noise is one more group.
    """
    from scipy.sparse import csr_matrix

    values, drawn = [], []
    for one, other in pairs:
        table = Contingency.of(one, other)
        n_documents = len(one)
        cells: Any = csr_matrix(
            (np.ones(n_documents), (np.arange(n_documents), table.cell_of)),
            shape=(n_documents, len(table.counts)),
        )
        measure = _measure(table, metric)
        values.append(measure(table.counts[None, :])[0])
        drawn.append(measure(resampled_sums(cells, n, seed)))
    return np.array(values), np.column_stack(drawn)


def _measure(table: Contingency, metric: str) -> Callable[[Float64Array], Float64Array]:
    if metric == "ARI":
        return table.adjusted_rand
    if metric == "NMI":
        return lambda counts: table.information(counts).normalized()
    expected = table.expected_information()
    return lambda counts: table.information(counts).adjusted(expected)


def _around(value: float, drawn: Float64Array, n_units: int) -> tuple[float, float]:
    """Return the interval of resamples, moved to where their mean is the figure.

    Texts that a resample holds twice agree with themselves: its figures are a little high.
    """
    return wide_interval(drawn - np.nanmean(drawn) + value, n_units)
