"""Two sets of documents as one: where each one goes, and what follows for arrays of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.corpus import Corpus, join_corpora, recall_hashes
from embedtopics.neighbors import nearest
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.results import DistinctDocuments, NeighborGraph, TopicResult
from embedtopics.topics.assign import QUERIES_AT_ONCE, find_documents

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["Merged", "grown_graph", "merge_documents", "widened"]

DOCUMENTS_TO_MEASURE = 200
"""Documents of which the recall of a graph is measured."""


@dataclass(frozen=True, eq=False)
class Merged:
    """Documents of a result, and of another corpus, in one order.

    Parameters
    ----------
    corpus : Corpus
        The rows of the result, then the others.
    documents : DistinctDocuments
        Of that corpus.
    old : int64 ndarray of shape (n_old,)
        Number of each document of the result among all.
    new : int64 ndarray of shape (n_new,)
        Number of each document of the other corpus that the result does not have, ascending.
    added : int64 ndarray of shape (n_new,)
        Number of these documents in the other corpus.
    """

    corpus: Corpus
    documents: DistinctDocuments
    old: Int64Array
    new: Int64Array
    added: Int64Array

    @property
    def order(self) -> Int64Array:
        """For each document its number among the old ones with the new ones after them."""
        order = np.empty(len(self.documents), dtype=np.int64)
        order[self.old] = np.arange(len(self.old))
        order[self.new] = len(self.old) + np.arange(len(self.new))
        return order

    def put(self, old: npt.NDArray[Any], new: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return values of old and new documents in the joint order, of the type of the old."""
        values = np.empty((len(self.documents), *old.shape[1:]), dtype=old.dtype)
        values[self.old], values[self.new] = old, new
        return values

    def put_rows(self, old: csr_matrix, new: csr_matrix) -> csr_matrix:
        """Return the rows of two sparse matrices in the joint order."""
        from scipy.sparse import csr_matrix, vstack

        if not len(self.new):
            return old
        both = vstack([old, new], format="csr", dtype=old.dtype)
        return csr_matrix(both[self.order])


def merge_documents(result: TopicResult, added: Corpus) -> Merged:
    """Put the rows of a corpus below those of a result, and find the documents of all."""
    # Known from the fit; hashing all texts again would be the slowest step of an extension.
    corpus = join_corpora(recall_hashes(result.corpus, result.documents), added)
    documents = corpus.distinct()
    theirs = added.distinct().hashes
    is_new = find_documents(result.documents.hashes, theirs) < 0
    return Merged(
        corpus=corpus,
        documents=documents,
        old=find_documents(documents.hashes, result.documents.hashes),
        new=find_documents(documents.hashes, theirs[is_new]),
        added=np.flatnonzero(is_new),
    )


def widened(memberships: csr_matrix, n_topics: int) -> csr_matrix:
    """Return the shares with room for more topics, in which nothing has a share yet."""
    from scipy.sparse import csr_matrix

    parts = (memberships.data, memberships.indices, memberships.indptr)
    return csr_matrix(parts, shape=(memberships.shape[0], n_topics), copy=True)


def grown_graph(
    result: TopicResult,
    merged: Merged,
    embeddings: FloatArray,
    is_added: npt.NDArray[np.bool_],
    found: tuple[Int32Array, FloatArray],
) -> NeighborGraph:
    """Return the graph of all documents: new ones get neighbours, old ones keep theirs.

    Parameters
    ----------
    result : TopicResult
    merged : Merged
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
        Of all documents.
    is_added : bool ndarray of shape (n_documents,)
        Documents that came after the fit.
    found : (int32 ndarray, float32 ndarray), both of shape (n_new, k)
        The nearest documents of the fit, by their number in the result, and how near they are.
    """
    k = result.graph.k
    graph = result.graph
    others = np.flatnonzero(is_added)
    indices, similarities = merged.old[found[0][:, :k]], found[1][:, :k]
    if k and len(others) > 1:
        near, close = _nearest_others(embeddings, merged.new, others, k)
        indices = np.concatenate([indices, near], axis=1)
        similarities = np.concatenate([similarities, close], axis=1)
        order = np.lexsort((indices, -similarities), axis=1)[:, :k]
        indices = np.take_along_axis(indices, order, axis=1)
        similarities = np.take_along_axis(similarities, order, axis=1)
    all_indices = merged.put(merged.old[graph.indices].astype(np.int32), indices)
    all_similarities = merged.put(graph.similarities, similarities)
    recall = _recall(embeddings, all_indices) if k else graph.recall
    return NeighborGraph(all_indices, all_similarities, "extended", recall)


def _nearest_others(
    embeddings: FloatArray, queries: Int64Array, others: Int64Array, k: int
) -> tuple[Int64Array, FloatArray]:
    """Return the nearest of some documents to each query, which is one of them itself."""
    vectors = embeddings[others]
    n_wanted = min(k + 1, len(others))
    parts = [
        nearest(embeddings[queries[begin : begin + QUERIES_AT_ONCE]], vectors, n_wanted)
        for begin in range(0, len(queries), QUERIES_AT_ONCE)
    ]
    near, close = (np.concatenate(part) for part in zip(*parts, strict=True))
    indices = others[near]
    # Below all that a cosine can be, so that a query is never among its own neighbours.
    return indices, np.where(indices == queries[:, None], np.float32(-2.0), close)


def _recall(embeddings: FloatArray, indices: Int32Array) -> float:
    """Return the share of true neighbours in the lists of some documents, a fair sample."""
    sample = np.arange(min(DOCUMENTS_TO_MEASURE, len(embeddings)))
    k = indices.shape[1]
    true, _ = nearest(embeddings[sample], embeddings, k + 1)
    n_found = sum(
        len(set(kept.tolist()) & set(truth[truth != itself][:k].tolist()))
        for itself, kept, truth in zip(sample, indices[sample], true, strict=True)
    )
    return float(n_found / (k * len(sample)))
