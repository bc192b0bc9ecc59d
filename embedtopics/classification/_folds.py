"""Which texts belong together, and folds that never split them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embedtopics.corpus._hashing import normalize_text
from embedtopics.evaluation._label_probes import stratified_folds
from embedtopics.protocols import Int32Array, Int64Array

NEAR_COPY = 0.95
"""Least similarity of near-copies, where 0 is that of two texts of the collection on average."""

N_NEAREST, MANY = 5, 5_000


def near_copies(texts: Sequence[str], vectors: Any) -> Int64Array:
    """Return the group of each text, (n_texts,): equal texts and near-copies have one.

    Groups are the connected components of texts that are equal once normalized, or whose dense
    vectors (n_texts, n_dimensions) are nearly parallel.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(texts)
    first: dict[str, int] = {}
    partner = np.array([first.setdefault(normalize_text(t), row) for row, t in enumerate(texts)])
    rows, others = [np.arange(n)], [partner]
    if isinstance(vectors, np.ndarray) and n > 2:
        from embedtopics.neighbors._graph import build_graph, unit_rows

        units = unit_rows(vectors, keep_zeros=True)
        graph = build_graph(units, N_NEAREST)
        usual = float(np.square(units.mean(axis=0, dtype=np.float64)).sum())
        near = graph.similarities >= usual + NEAR_COPY * (1 - usual)
        rows.append(np.repeat(np.arange(n), near.sum(axis=1)))
        others.append(graph.indices[near].astype(np.int64))
    pairs = np.concatenate(rows), np.concatenate(others)
    links = coo_matrix((np.ones(len(pairs[0]), dtype=np.int8), pairs), shape=(n, n))
    return connected_components(links, directed=False)[1].astype(np.int64)


def grouped_folds(codes: Int64Array, groups: Int64Array, n_folds: int, seed: int) -> Int32Array:
    """Split texts into folds, (n_texts,): the classes evenly, and groups never.

    The class of a group is that of its first text; of several labels a text, the rarest.
    """
    if codes.ndim == 2:
        rare = np.where(codes == 1, codes.sum(axis=0), len(codes) + 1)
        codes = np.where(codes.any(axis=1), rare.argmin(axis=1) + 1, 0)
    _, first, of_text = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(stratified_folds(codes[first], n_folds, seed)[of_text])


def n_folds_for(codes: Int64Array, most: int = 5) -> int:
    """Return in how many folds labels are split: as many as the rarest class has texts, 2 to 5.

    Of thousands of texts 3 are enough, and take half the time.
    """
    most = 3 if len(codes) > MANY else most
    counts = codes.sum(axis=0) if codes.ndim == 2 else np.bincount(codes)
    return int(np.clip(counts[counts > 0].min(initial=most), 2, most))
