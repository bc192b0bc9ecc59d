"""Scores of the encoders: per document, and as means with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.comparison._vectors import ComparisonLog, Vectors
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_means, resampled_sums
from embedtopics.evaluation._labels import neighbor_votes, probe_classes, silhouettes
from embedtopics.evaluation._maps import trustworthiness_and_continuity
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Float64Array, FloatArray, Int32Array

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
    log: ComparisonLog,
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
            log.note("comparison", "probe_not_converged", vectors.name, message)
        measures[PREDICTED][row] = predicted
        measures["probe_accuracy"][row, asked] = (predicted == classes)[asked]
        measures["silhouette"][row] = silhouettes(vectors.rows, classes)
    return measures


def measure_maps(
    log: ComparisonLog,
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
        log.note("comparison", "maps_not_judged", True, message)
        return measures
    drawn = np.random.default_rng(seed).permutation(len(able))[:MOST_RANKED]
    rows = np.sort(able[drawn])
    if len(rows) < n_documents:
        log.note("comparison", "documents_ranked", len(rows),
                 f"The maps were measured on {len(rows):,} of {n_documents:,} texts, each against "
                 "all others.")  # fmt: skip
    for place, (vectors, positions) in enumerate(zip(encoders, maps, strict=True)):
        values = trustworthiness_and_continuity(vectors.rows, positions, k, rows=rows)
        measures["trustworthiness"][place, rows], measures["continuity"][place, rows] = values
    return measures


def resample(
    per_document: Mapping[str, npt.NDArray[Any]], classes: Int32Array, n_resamples: int, seed: int
) -> dict[str, tuple[Float64Array, Float64Array]]:
    """Return each measure (n_encoders,), and on resampled documents (n_resamples, n_encoders)."""
    measured = [name for name in MEASURES if name in per_document]
    means_by_measure: dict[str, tuple[Any, Any]] = {}
    if measured:
        stacked = np.concatenate([per_document[name] for name in measured]).T
        means = resampled_means(stacked, n_resamples, seed)
        n_encoders = len(per_document[measured[0]])
        for place, name in enumerate(measured):
            columns = slice(place * n_encoders, (place + 1) * n_encoders)
            means_by_measure[name] = _means(per_document[name]), means[:, columns]
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
        if measure == "probe_macro_f1":
            looked_at = (per_document[PREDICTED] >= 0).sum(axis=1)
        else:
            looked_at = (~np.isnan(per_document[measure])).sum(axis=1)
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
