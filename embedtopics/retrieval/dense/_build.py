"""Building the index of a segment, and measuring its recall."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.retrieval.dense._codes import build_codes, open_codes
from embedtopics.retrieval.dense._exact import nearest_among, nearest_exactly
from embedtopics.retrieval.dense._segment import (
    ABOUT,
    FORMAT,
    DenseSegment,
    DenseSettings,
    choose_kind,
    read_vectors,
    write_vectors,
)

K, MIN_RECALL = 10, 0.95
"""Neighbors for the measurement of recall, and the share of them that an index has to find."""

MOST_QUERIES = 500
"""Maximum queries of a sample."""

MARGIN = 0.4
"""Share of the permitted loss of recall that is reserved for the error of the sample, about half a
point of recall, and for queries that differ from it."""

LOST_TO_CODES = 0.25
"""Share of the permitted loss that is due to few candidates; the rest is due to the lists."""

CANDIDATES = (20, 30, 50, 75, 100, 150, 200, 300, 400, 600, 800)
"""Numbers of candidates to try."""


@dataclass(frozen=True, eq=False)
class QuerySample:
    """Vectors of the segment as queries, with the similarity of their exact k-th neighbors."""

    queries: FloatArray  # (n_queries, d)
    rows: Int64Array  # (n_queries,), which do not count as neighbors
    kth_similarities: FloatArray  # (n_queries,)
    k: int


def samples(vectors: FloatArray, seed: int) -> tuple[QuerySample, QuerySample]:
    """Return a sample for calibration and a disjoint one for measurement."""
    rng = np.random.default_rng([seed, 1])
    nonzero = np.flatnonzero(vectors.any(axis=1))
    n = len(nonzero)
    drawn = nonzero[rng.choice(n, min(2 * MOST_QUERIES, n), replace=False)]
    first, second = np.sort(drawn[::2]), np.sort(drawn[1::2] if n > 1 else drawn)
    return _with_truth(vectors, first), _with_truth(vectors, second)


def _with_truth(vectors: FloatArray, rows: Int64Array) -> QuerySample:
    n = len(vectors)
    queries = np.ascontiguousarray(vectors[rows])
    k = min(K, max(0, n - 1))
    near, neighbors = nearest_exactly(queries, vectors, np.arange(n), min(k + 1, n))
    near, _ = _exclude(rows, near, neighbors, k)
    least = near[:, -1] if k else np.zeros(len(rows), dtype=np.float32)
    return QuerySample(queries, rows, least, k)


def _exclude(
    rows: Int64Array, near: FloatArray, neighbors: Int64Array, k: int
) -> tuple[FloatArray, Int64Array]:
    order = np.argsort(neighbors == rows[:, None], axis=1, kind="stable")[:, :k]
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(neighbors, order, axis=1)


def measure_recall(segment: DenseSegment, sample: QuerySample, vectors: FloatArray) -> float:
    """Return the recall at ten; other rows that are as near as the tenth count as well."""
    if not sample.k or not len(sample.queries):
        return 1.0
    near, neighbors = segment.search(sample.queries, min(sample.k + 1, len(segment)))
    _, neighbors = _exclude(sample.rows, near, neighbors, sample.k)
    exact = nearest_among(sample.queries, vectors, neighbors, sample.k)[0]
    return float((exact >= sample.kth_similarities[:, None]).mean())


def calibrate(
    segment: DenseSegment, sample: QuerySample, vectors: FloatArray, min_recall: float
) -> DenseSegment:
    """Return the segment with the least effort that reaches a recall, or with the largest."""
    index = segment.index
    if index is None:
        return segment
    loss = 1.0 - min_recall

    def recall_at(n_probe: int, n_candidates: int) -> float:
        trial = replace(segment, n_probe=n_probe, n_candidates=n_candidates)
        return measure_recall(trial, sample, vectors)

    share = LOST_TO_CODES if index.n_lists > 1 else 1.0 - MARGIN
    choice = _least(
        lambda choice: recall_at(index.n_lists, CANDIDATES[choice]),
        0, len(CANDIDATES) - 1, 1.0 - share * loss,
    )  # fmt: skip
    n_candidates = CANDIDATES[choice]
    n_probe = _least(
        lambda n_probe: recall_at(n_probe, n_candidates),
        1, index.n_lists, 1.0 - (1.0 - MARGIN) * loss,
    )  # fmt: skip
    return replace(segment, n_probe=n_probe, n_candidates=n_candidates)


def _least(recall: Callable[[int], float], low: int, high: int, min_recall: float) -> int:
    """Return the least number with a recall, by doubling and halving; else the highest."""
    step, top = 1, low
    while top < high and recall(top) < min_recall:
        low, step = top + 1, 2 * step
        top = min(high, top + step)
    while low < top:
        middle = (low + top) // 2
        if recall(middle) < min_recall:
            low = middle + 1
        else:
            top = middle
    return top


def build_dense(
    folder: str | Path, vectors: npt.ArrayLike, settings: DenseSettings
) -> dict[str, Any]:
    """Write the unit vectors (n, d) of a segment and their index, and measure the index."""
    folder = Path(folder)
    values = np.ascontiguousarray(vectors, dtype=np.float32)
    n, d = values.shape
    kind, why = choose_kind(n, d, settings)
    (folder / "dense").mkdir(exist_ok=True)
    write_vectors(folder, values)
    if kind != "flat":
        build_codes(folder / "dense", values, settings.seed)
    stored = read_vectors(folder, n, d)
    index = None if kind == "flat" else open_codes(folder / "dense", n, d)
    calibration, held_out = samples(values, settings.seed)
    segment = DenseSegment(kind, stored, index, 1, 1, {})
    segment = calibrate(segment, calibration, values, MIN_RECALL)
    recall = measure_recall(segment, held_out, values)
    about = {
        "format": FORMAT,
        "kind": kind,
        "why": why,
        "asked": settings.kind,
        "n": n,
        "d": d,
        "settings": asdict(settings),
        "parameters": {} if index is None else {
            "n_candidates": segment.n_candidates, "n_probe": segment.n_probe,
            "n_lists": index.n_lists,
            "n_dimensions_coded": len(index.axes), "bytes_per_code": int(index.index.pq.M) // 2,
        },
        "measured": {
            "k": held_out.k,
            "n_queries": len(held_out.queries),
            "recall": recall,
            "reached": recall >= MIN_RECALL,
        },
    }  # fmt: skip
    (folder / ABOUT).write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", "utf-8")
    return about
