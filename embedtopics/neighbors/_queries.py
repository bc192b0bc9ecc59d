"""The neighbours of new documents among many: a rough search, refined along the known graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from embedtopics.neighbors._approximate import (
    CANDIDATES,
    FRIENDS,
    NOBODY,
    PROBED_LISTS,
    RECALL_SAMPLE,
    Neighbors,
    exact_neighbors,
    lists_near,
    no_neighbors,
    on_threads,
    parts_of,
    stock_of,
)
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int64Array

QUERIES_AT_ONCE = 1024
"""A search is always of so many, which repeat where they are fewer: the sums that choose the lists
are then the same for a query whichever others are asked with it."""

ENOUGH_RECALL = 0.97
"""Of the neighbours in the graph, the share that a search has to find for documents of a sample.
New documents, which no list of the graph names, get about 95 of 100 then."""


class QuerySearch:
    """Finds the documents nearest to others: in a few lists, then among neighbours of those found.

    The lists are those of an inverted file, and as few as find enough of the neighbours that
    documents of the fit have in its graph. A query's row does not depend on the other queries.

    Parameters
    ----------
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
        Unit vectors.
    graph : NeighborGraph
        Of the same documents; of those in `rows` no neighbour may lie outside.
    rows : int64 ndarray of shape (n_rows,), optional
        Documents that are searched; all by default.
    """

    def __init__(
        self, embeddings: FloatArray, graph: NeighborGraph, rows: Int64Array | None = None
    ) -> None:
        stock = stock_of(embeddings, rows)
        self._stock = stock = replace(stock, reduced=stock.reduced[:0])  # which only fits need
        place = np.full(len(embeddings), NOBODY, dtype=np.int32)
        place[stock.at] = np.arange(len(stock.at), dtype=np.int32)
        self._friends = place[graph.indices[stock.at][:, :FRIENDS]]
        sample = np.random.default_rng(0).choice(len(stock.at), RECALL_SAMPLE, replace=False)
        known = graph.similarities[stock.at[sample], -1:] - np.float32(1e-6)
        for n_lists in PROBED_LISTS:
            self._n_lists = stock.index.nprobe = min(n_lists, stock.quantizer.ntotal)
            found = self._search(embeddings[stock.at[sample]], graph.k, sample)
            self.recall = float((found[1] >= known).mean())
            if self.recall >= ENOUGH_RECALL:
                break

    def search(self, queries: FloatArray, k: int) -> Neighbors:
        """Return the documents near to unit vectors, and how similar: (n_queries, k) each."""
        stock = self._stock
        found, similarities = self._search(queries, k, np.full(len(queries), NOBODY))
        few = np.flatnonzero((found == NOBODY).any(axis=1))
        found = np.where(found == NOBODY, NOBODY, stock.at[found]).astype(np.int32)
        if len(few):
            near = exact_neighbors(queries[few], stock.embeddings, k, names=stock.at, at=stock.at)
            found[few], similarities[few] = stock.at[near[0]], near[1]
        return found, np.clip(similarities, -1.0, 1.0)

    def _search(self, queries: FloatArray, k: int, itself: Int64Array) -> Neighbors:
        """Return places in the stock, which is a query's own in `itself`, and similarities."""
        from threadpoolctl import threadpool_limits

        stock, found = self._stock, no_neighbors(len(queries), k)
        parts = list(parts_of(len(queries), QUERIES_AT_ONCE))
        whole = (QUERIES_AT_ONCE, queries.shape[1])
        with threadpool_limits(limits=1, user_api="blas"):
            blocks = [np.resize(queries[part], whole) @ stock.axes for part in parts]

        def work(part: slice) -> None:
            reduced = blocks[part.start // QUERIES_AT_ONCE]
            lists = lists_near(stock.quantizer, reduced, self._n_lists)
            near = stock.index.search_preassigned(reduced, CANDIDATES, lists, None)[1]
            own = found[0][part], found[1][part]
            stock.keep_near(own, queries[part], near[: len(own[0])], itself[part])
            friends = self._friends[own[0]].reshape(len(own[0]), -1)
            stock.keep_near(own, queries[part], friends, itself[part])

        if parts:
            on_threads(work, parts)
        return found
