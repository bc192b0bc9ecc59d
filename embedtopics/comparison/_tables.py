"""Scores of the encoders, tables of a comparison, and the documents that moved most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.display import excerpt
from embedtopics.comparison._maps import displacement
from embedtopics.comparison._vectors import Vectors
from embedtopics.comparison.results import DIFFERENCES, Comparison, Overlap
from embedtopics.evaluation._bootstrap import (
    bounded_interval,
    interval,
    resampled_means,
    resampled_sums,
)
from embedtopics.evaluation._labels import neighbor_votes, probe_classes, silhouettes
from embedtopics.evaluation._maps import (
    chance_overlap,
    jaccard_overlap,
    rank_biased_overlap,
    trustworthiness_and_continuity,
)
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Float64Array, FloatArray, Int32Array
from embedtopics.results import Decision
from embedtopics.terms._weighting import log_odds
from embedtopics.terms.results import TermCounts

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

MEASURES = (
    "knn_accuracy", "probe_accuracy", "probe_macro_f1", "silhouette", "trustworthiness",
    "continuity",
)  # fmt: skip
"""Measures with an interval, in display order; larger is better."""

PREDICTED = "probe_prediction"
VOTERS = 10
FOLDS = 5
MOST_RANKED = 2000
"""Maximum number of documents by which a map is measured, each against all others."""

PerDocument = dict[str, npt.NDArray[Any]]


def measure_by_labels(
    decisions: list[Decision],
    encoders: Sequence[Vectors],
    graphs: Sequence[NeighborGraph],
    classes: Int32Array,
    seed: int,
) -> PerDocument:
    """Measure how well every encoder predicts the classes, (n_documents,)."""
    shape = (len(encoders), len(classes))
    asked = classes >= 0
    measures: PerDocument = {
        name: np.full(shape, np.nan, dtype=np.float32)
        for name in ("knn_accuracy", "probe_accuracy", "silhouette")
    }
    measures[PREDICTED] = np.full(shape, -1, dtype=np.int32)
    for row, (vectors, graph) in enumerate(zip(encoders, graphs, strict=True)):
        voted = neighbor_votes(graph.indices[:, :VOTERS], graph.similarities[:, :VOTERS], classes)
        measures["knn_accuracy"][row, asked] = (voted == classes)[asked]
        predicted, converged = probe_classes(vectors.rows, classes, n_folds=FOLDS, seed=seed)
        if not converged:
            message = f"The linear probe on {vectors.name} did not converge."
            note = Decision("comparison", "probe_not_converged", vectors.name, message)
            decisions.append(note)
        measures[PREDICTED][row] = predicted
        measures["probe_accuracy"][row, asked] = (predicted == classes)[asked]
        measures["silhouette"][row] = silhouettes(vectors.rows, classes)
    return measures


def measure_maps(
    decisions: list[Decision],
    encoders: Sequence[Vectors],
    graphs: Sequence[NeighborGraph],
    maps: Sequence[FloatArray],
    seed: int,
) -> PerDocument:
    """Measure trustworthiness and continuity of every map, on the same documents, at most 2,000."""
    n_documents = len(maps[0])
    k = min(graphs[0].k, (n_documents - 1) // 2)
    able = np.flatnonzero(np.all([(g.similarities > 0).all(axis=1) for g in graphs], axis=0))
    measures: PerDocument = {
        name: np.full((len(encoders), n_documents), np.nan, dtype=np.float32)
        for name in ("trustworthiness", "continuity")
    }
    if not len(able):
        message = "The maps were not measured: no text has all its neighbours with every encoder."
        decisions.append(Decision("comparison", "maps_not_judged", True, message))
        return measures
    drawn = np.random.default_rng(seed).permutation(len(able))[:MOST_RANKED]
    rows = np.sort(able[drawn])
    if len(rows) < n_documents:
        message = f"The maps were measured on {len(rows):,} of {n_documents:,} texts, each against "
        note = Decision("comparison", "documents_ranked", len(rows), f"{message}all others.")
        decisions.append(note)
    for place, (vectors, positions) in enumerate(zip(encoders, maps, strict=True)):
        values = trustworthiness_and_continuity(vectors.rows, positions, k, rows=rows)
        measures["trustworthiness"][place, rows], measures["continuity"][place, rows] = values
    return measures


def resample(
    per_document: Mapping[str, npt.NDArray[Any]], classes: Int32Array, n_resamples: int, seed: int
) -> dict[str, tuple[Float64Array, Float64Array]]:
    """Return each measure (n_encoders,), and on resampled documents (n_resamples, n_encoders)."""
    measured = [name for name in MEASURES if name in per_document]
    stacked = np.concatenate([per_document[name] for name in measured]).T
    means = np.split(resampled_means(stacked, n_resamples, seed), len(measured), axis=1)
    means_by_measure: dict[str, tuple[Any, Any]] = {
        name: (_means(per_document[name]), drawn)
        for name, drawn in zip(measured, means, strict=True)
    }
    if PREDICTED in per_document:
        values, drawn = [], []
        for row in per_document[PREDICTED]:
            marks = _marks(row, classes)
            whole = np.asarray(marks.sum(axis=0), dtype=np.float64).reshape(1, -1)
            values.append(float(_macro_f1(whole)[0]))
            drawn.append(_macro_f1(resampled_sums(marks, n_resamples, seed)))
        means_by_measure["probe_macro_f1"] = np.array(values), np.column_stack(drawn)
    return {name: means_by_measure[name] for name in MEASURES if name in means_by_measure}


def score_frame(
    encoders: Sequence[Vectors],
    per_document: Mapping[str, npt.NDArray[Any]],
    classes: Int32Array,
    n_resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Tabulate scores and costs, one row per encoder and measure."""
    import pandas as pd

    names = [vectors.name for vectors in encoders]
    rows: list[tuple[Any, ...]] = []
    n = len(classes)
    for measure, (values, drawn) in resample(per_document, classes, n_resamples, seed).items():
        is_f1 = measure == "probe_macro_f1"
        is_measured = per_document[PREDICTED] >= 0 if is_f1 else ~np.isnan(per_document[measure])
        looked_at = is_measured.sum(axis=1)
        bounds = (-1.0 if measure == "silhouette" else 0.0, 1.0)
        low, high = bounded_interval(values, drawn, looked_at, bounds=bounds)
        rows += list(zip(names, [measure] * len(names), values, low, high, looked_at, strict=True))
    speeds = [(v.name, "documents_per_second", n / np.float64(v.seconds)) for v in encoders]
    sizes = [(v.name, "megabytes", v.megabytes) for v in encoders]
    rows += [(*cost, np.nan, np.nan, n) for cost in (*speeds, *sizes)]
    frame = pd.DataFrame(rows, columns=["encoder", "measure", "value", "low", "high", "n"])
    return frame.astype({"value": float, "low": float, "high": float, "n": int})


def _means(values: npt.NDArray[Any]) -> Float64Array:
    is_measured = ~np.isnan(values)
    total = np.where(is_measured, values, 0).sum(axis=1, dtype=np.float64)
    return np.where(is_measured.any(axis=1), total / np.maximum(is_measured.sum(axis=1), 1), np.nan)


def _marks(predicted: Int32Array, classes: Int32Array) -> csr_matrix:
    """Mark documents by class: true positives, members, predictions."""
    from scipy.sparse import csr_matrix

    asked = np.flatnonzero(predicted >= 0)
    truth, guess = classes[asked], predicted[asked]
    n_classes = int(max(truth.max(), guess.max())) + 1
    right = asked[truth == guess], truth[truth == guess]
    rows = np.concatenate([right[0], asked, asked])
    columns = np.concatenate([right[1], n_classes + truth, 2 * n_classes + guess])
    shape = (len(classes), 3 * n_classes)
    return csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)


def _macro_f1(sums: Float64Array) -> Float64Array:
    """Return the mean F1 over the classes that occur as truth or prediction."""
    right, true, guess = np.split(sums, 3, axis=1)
    f1 = 2 * right / np.maximum(true + guess, 1)
    occurs = (true + guess) > 0
    n_there = occurs.sum(axis=1)
    return np.where(n_there > 0, f1.sum(axis=1) / np.maximum(n_there, 1), np.nan)


def difference_table(result: Comparison) -> pd.DataFrame:
    """Tabulate the differences of the encoders from the first; see `Comparison.differences`."""
    import pandas as pd

    first, *others = result.names
    n_resamples, seed = result.settings["n_resamples"], result.settings["seed"]
    looked_at = result.scores.groupby("measure")["n"].min()
    rows = []
    measured = resample(result.per_document, result.groups, n_resamples, seed)
    for measure, (values, drawn) in measured.items():
        if np.isnan(values).all():
            continue
        n = int(looked_at[measure])
        low, high = interval(drawn - drawn[:, [0]], n)
        rows += [
            (measure, name, first, values[place] - values[0], low[place], high[place], n)
            for place, name in enumerate(others, start=1)
        ]
    return pd.DataFrame(rows, columns=DIFFERENCES)


def overlap_table(result: Comparison) -> pd.DataFrame:
    """Tabulate the overlap for each pair of encoders; see `Comparison.overlaps`."""
    import pandas as pd

    n_resamples, seed = result.settings["n_resamples"], result.settings["seed"]
    n_documents, k = len(result.distinct), result.encoders[0].graph.k
    chance = chance_overlap(n_documents, k)
    rows = []
    for overlap in result.neighbor_overlaps:
        first, second = (result.encoders[place] for place in (overlap.first, overlap.second))
        both = first.has_neighbors & second.has_neighbors
        figures = np.column_stack([overlap.jaccard, overlap.rank_biased]).astype(np.float64)
        figures[~both] = np.nan
        n = int(both.sum())
        means = figures[both].mean(axis=0) if n else np.full(2, np.nan)
        ends = bounded_interval(means, resampled_means(figures, n_resamples, seed), n)
        row: dict[str, object] = {"first": first.name, "second": second.name}
        for name, *values in zip(("jaccard", "rank_biased"), means, *ends, chance, strict=True):
            names = (name, f"{name}_low", f"{name}_high", f"{name}_chance")
            row |= dict(zip(names, map(float, values), strict=True))
        row |= {"displacement": float(displacement(first.map, second.map).mean()), "n": n}
        rows.append(row)
    return pd.DataFrame(rows)


def move_table(result: Comparison, *, n_characters: int = 160) -> pd.DataFrame:
    """Tabulate the documents that move, with their texts; see `Comparison.moves`."""
    import pandas as pd

    corpus = result.corpus
    rows = []
    moved = result.moved.sort_values(["first", "second"], kind="stable")
    for move in moved.to_dict("records"):
        row = int(result.distinct.first_rows[move["document"]])
        group = int(result.groups[move["document"]])
        names = result.names[move["first"]], result.names[move["second"]]
        place = row, corpus.ids[row], result.group_names[group] if group >= 0 else ""
        terms, text = map(", ".join, (move["gained"], move["lost"])), corpus.texts[row]
        rows.append((*names, *place, move["jaccard"], *terms, excerpt(text, n_characters)))
    columns = ["first", "second", "row", "id", "group", "jaccard", "gained", "lost", "text"]
    return pd.DataFrame(rows, columns=columns)


N_TERMS = 5
"""Maximum number of terms for each side of a move."""

FEWEST_HOLDERS = 2
"""Minimum number of neighbours that contain a shared term."""

LEAST_Z = 1.0
"""Minimum z-score of a term that distinguishes one side from the other."""


def real_neighbors(graph: NeighborGraph) -> Int32Array:
    """Return the neighbours of a graph, with -1 for similarities of 0 or below."""
    return np.where(graph.similarities > 0, graph.indices, -1).astype(np.int32)


def compare_neighbors(graphs: Sequence[NeighborGraph]) -> tuple[Overlap, ...]:
    """Compare the neighbours of each document for each pair of encoders."""
    lists = [real_neighbors(graph) for graph in graphs]
    return tuple(
        Overlap(i, j, jaccard_overlap(lists[i], lists[j]), rank_biased_overlap(lists[i], lists[j]))
        for i, j in combinations(range(len(lists)), 2)
    )


def find_moves(
    graphs: Sequence[NeighborGraph], overlaps: Sequence[Overlap], counts: TermCounts, n_moves: int
) -> pd.DataFrame:
    """Find the documents of least rank-biased overlap, and the terms that distinguish them."""
    import pandas as pd

    lists = [real_neighbors(graph) for graph in graphs]
    # The rank of each document's mean similarity, from 0 to 1.
    means = [graph.similarities.mean(axis=1, dtype=np.float64) for graph in graphs]
    nearness = [np.searchsorted(np.sort(mean), mean) / max(1, len(mean) - 1) for mean in means]
    share = np.asarray(counts.counts.sum(axis=0), dtype=np.float64).ravel()
    n_documents = max(1, counts.counts.shape[0])
    moves = []
    for overlap in overlaps:
        one, other = lists[overlap.first], lists[overlap.second]
        # Of ties, those near others come first: a text far from all has other neighbours anyway.
        sure = np.minimum(nearness[overlap.first], nearness[overlap.second])
        order = np.lexsort((-sure, overlap.rank_biased))
        has_both = (one >= 0).any(axis=1) & (other >= 0).any(axis=1)
        changes = has_both & (overlap.jaccard < 1)
        for document in order[changes[order]][:n_moves].tolist():
            before, after = set(one[document].tolist()), set(other[document].tolist())
            left, new = sorted(before - after - {-1}), sorted(after - before - {-1})
            # The prior has as many words as one side on average, so that neither dominates.
            prior = share * ((len(left) + len(new)) / (2 * n_documents))
            sides = [counts.counts[rows] for rows in (new, left)]
            sums = [np.asarray(rows.sum(axis=0), dtype=np.float64).ravel() for rows in sides]
            z = log_odds(sums[0], sums[1], prior)
            gained, lost = _best(counts.terms, z, sides[0]), _best(counts.terms, -z, sides[1])
            jaccard = float(overlap.jaccard[document])
            moves.append((document, overlap.first, overlap.second, jaccard, gained, lost))
    columns = ["document", "first", "second", "jaccard", "gained", "lost"]
    return pd.DataFrame(moves, columns=columns)


def _best(terms: Sequence[str], z: npt.NDArray[np.float64], rows: Any) -> tuple[str, ...]:
    """Return the terms with the highest z-scores that enough rows contain; ties by name."""
    holders = np.bincount(rows.indices, minlength=len(terms))
    shared = np.flatnonzero((holders >= FEWEST_HOLDERS) & (z >= LEAST_Z))
    order = shared[np.argsort(-z[shared], kind="stable")][:N_TERMS]
    return tuple(terms[i] for i in order.tolist())
