"""The neighbors of new documents among many: a rough search, refined along the graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from embedtopics._utils.machine import one_blas_thread
from embedtopics.neighbors._approximate import (
    CANDIDATES,
    N_EXPANDED,
    NOBODY,
    PROBED_LISTS,
    RECALL_SAMPLE,
    Neighbors,
    build_corpus,
    exact_neighbors,
    no_neighbors,
    on_threads,
    parts_of,
)
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int64Array

QUERIES_AT_ONCE = 1024
"""Queries per search; fewer queries repeat. So the sums that choose the lists of a query do not
depend on the other queries."""

ENOUGH_RECALL = 0.97
"""Smallest recall of graph neighbors for a sample of documents. New documents, which no list of the
graph contains, then have a recall of about 0.95."""


class QuerySearch:
    """Find the documents nearest to queries: in a few lists, then among their neighbors.

    The search uses as few lists of an inverted file as find enough graph neighbors of a sample. The
    row of a query does not depend on the other queries.

    Parameters
    ----------
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
        Unit vectors.
    graph : NeighborGraph
        Graph of the same documents; the neighbors of `rows` are in `rows`.
    rows : int64 ndarray of shape (n_rows,), optional
        Documents to search; by default all.
    """

    def __init__(
        self, embeddings: FloatArray, graph: NeighborGraph, rows: Int64Array | None = None
    ) -> None:
        corpus = build_corpus(embeddings, rows)
        self._corpus = corpus = replace(corpus, reduced=corpus.reduced[:0])  # only fits need it
        place = np.full(len(embeddings), NOBODY, dtype=np.int32)
        place[corpus.rows] = np.arange(len(corpus.rows), dtype=np.int32)
        self._expanded = place[graph.indices[corpus.rows][:, :N_EXPANDED]]
        sample = np.random.default_rng(0).choice(len(corpus.rows), RECALL_SAMPLE, replace=False)
        least = graph.similarities[corpus.rows[sample], -1:] - np.float32(1e-6)
        for n_lists in PROBED_LISTS:
            self._n_lists = corpus.index.nprobe = min(n_lists, corpus.quantizer.ntotal)
            neighbors = self._search(embeddings[corpus.rows[sample]], graph.k, sample)
            self.recall = float((neighbors[1] >= least).mean())
            if self.recall >= ENOUGH_RECALL:
                break

    def search(self, queries: FloatArray, k: int) -> Neighbors:
        """Return the documents nearest to unit vectors, and similarities, (n_queries, k) each."""
        corpus = self._corpus
        positions, similarities = self._search(queries, k, np.full(len(queries), NOBODY))
        few = np.flatnonzero((positions == NOBODY).any(axis=1))
        positions = np.where(positions == NOBODY, NOBODY, corpus.rows[positions]).astype(np.int32)
        if len(few):
            near = exact_neighbors(
                queries[few], corpus.embeddings, k, row_ids=corpus.rows, rows=corpus.rows
            )
            positions[few], similarities[few] = corpus.rows[near[0]], near[1]
        return positions, np.clip(similarities, -1.0, 1.0)

    def _search(self, queries: FloatArray, k: int, exclude: Int64Array) -> Neighbors:
        """Return positions in the corpus, without those in `exclude`, and similarities."""
        corpus, neighbors = self._corpus, no_neighbors(len(queries), k)
        parts = list(parts_of(len(queries), QUERIES_AT_ONCE))
        whole = (QUERIES_AT_ONCE, queries.shape[1])
        with one_blas_thread():
            blocks = [np.resize(queries[part], whole) @ corpus.axes for part in parts]

        def work(part: slice) -> None:
            reduced = blocks[part.start // QUERIES_AT_ONCE]
            lists = corpus.quantizer.search(reduced, self._n_lists)[1]
            near = corpus.index.search_preassigned(reduced, CANDIDATES, lists, None)[1]
            indices, similarities = neighbors[0][part], neighbors[1][part]
            block = (indices, similarities), queries[part]
            corpus.keep_near(*block, near[: len(indices)], exclude[part])
            expanded = self._expanded[indices].reshape(len(indices), -1)
            corpus.keep_near(*block, expanded, exclude[part])

        if parts:
            on_threads(work, parts)
        return neighbors
