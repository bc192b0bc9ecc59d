"""Topics of texts, from the fit or new, by a result alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, vstack

from embedtopics.clustering.results import NOISE
from embedtopics.corpus._corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import EXACT_LIMIT, nearest
from embedtopics.neighbors._queries import QuerySearch
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Encoder, FloatArray, Int32Array, Int64Array
from embedtopics.topics._propagation import FAR, MIN_MARGIN, closeness, margin, rank, vote
from embedtopics.topics._vectors import encode_documents, encoder_of_fit, given_vectors
from embedtopics.topics.results import TopicResult

QUERIES_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Assignment:
    """Topics of some texts.

    Parameters
    ----------
    labels : int32 ndarray of shape (n_texts,)
        Topic of each text, -1 for none.
    memberships : csr_matrix of float32, shape (n_texts, n_topics)
        Share of each topic in each text.
    novelty : float32 ndarray of shape (n_texts,)
        Share of the fitted documents that are nearer to their neighbors than the text is to its
        own: near 1 for new subjects, NaN for empty texts.
    """

    labels: Int32Array
    memberships: csr_matrix
    novelty: FloatArray


def assign(
    result: TopicResult,
    texts: Any,
    *,
    embeddings: npt.ArrayLike | None = None,
    encoder: Encoder | str | None = None,
) -> Assignment:
    """Assign texts to topics.

    A text of the fit keeps its topic. The nearest documents decide for a new text; it gets -1 if
    two topics tie, if most of these documents are in no topic, or if all of them are far. The
    answer does not depend on the other texts in the batch. For a fit of more than 20,000 documents
    the search is approximate and finds about 95 % of the nearest; the first call prepares it in a
    few seconds.

    Parameters
    ----------
    result : TopicResult
    texts : Corpus or anything that `Corpus.of` takes
    embeddings : array_like of shape (n_texts, n_dimensions), optional
        Vectors of the texts.
    encoder : Encoder or str, optional
        Encodes new texts; by default the encoder of the fit, loaded again. An encoder with another
        fingerprint is refused.

    Returns
    -------
    Assignment

    Raises
    ------
    InputError
        If there are new texts and no vectors of the right width for them.
    """
    corpus = Corpus.of(texts)
    queries = corpus.distinct()
    of_fit = known_documents(result, corpus)
    seen, new = np.flatnonzero(of_fit >= 0), np.flatnonzero(of_fit < 0)
    documents = of_fit[seen]
    labels = np.full(len(queries), NOISE, dtype=np.int32)
    labels[seen] = result.clustering.labels[documents]
    novelty = np.empty(len(queries), dtype=np.float32)
    near = closeness(result.graph.similarities)
    novelty[seen] = rank(near if result.added is None else near[~result.added], near[documents])
    shares = result.memberships[:0]
    if len(new):
        judged = judge(result, vectors_of(result, corpus, new, embeddings, encoder))
        novelty[new], labels[new], shares = judged.novelty, judged.labels, judged.shares
    order = np.empty(len(queries), dtype=np.int64)
    order[np.concatenate([seen, new])] = np.arange(len(queries))
    memberships = csr_matrix(vstack([result.memberships[documents], shares], format="csr")[order])
    # From distinct texts to rows; rows without text have index -1.
    of_row = queries.of_row
    rows = np.flatnonzero(of_row >= 0)
    row_labels = np.append(labels, np.int32(NOISE))[of_row]
    row_novelty = np.append(novelty, np.float32(np.nan))[of_row]
    ones = np.ones(len(rows), dtype=np.float32)
    spread = csr_matrix((ones, (rows, of_row[rows])), shape=(len(of_row), len(queries)))
    return Assignment(row_labels, csr_matrix(spread @ memberships), row_novelty)


@dataclass(frozen=True, eq=False)
class Judgement:
    """Topics of new documents, and their nearest documents of the fit, (n_new, k) each."""

    labels: Int32Array
    shares: csr_matrix
    novelty: FloatArray
    indices: Int32Array
    similarities: FloatArray


def judge(result: TopicResult, vectors: FloatArray) -> Judgement:
    """Assign new documents by the documents of the fit, without documents added later."""
    indices, similarities = _nearest_of_fit(result, vectors)
    similar = result.graph.similarities
    similar = similar if result.added is None else similar[~result.added]
    shares = vote(indices, similarities, result.clustering.labels, result.n_topics)
    novelty = rank(closeness(similar), closeness(similarities))
    labels = decide(shares, novelty, min_margin_of(result))
    return Judgement(labels, shares, novelty, indices, similarities)


_searches: WeakKeyDictionary[NeighborGraph, QuerySearch] = WeakKeyDictionary()
"""One search per neighbor graph; edits do not change the graph."""


def _nearest_of_fit(result: TopicResult, vectors: FloatArray) -> tuple[Int32Array, FloatArray]:
    """Return the nearest documents of the fit; approximately for a large fit."""
    embeddings, graph, k = result.embeddings, result.graph, max(1, result.graph.k)
    fitted = None if result.added is None else np.flatnonzero(~result.added)
    if len(embeddings if fitted is None else fitted) > EXACT_LIMIT:
        if graph not in _searches:
            _searches[graph] = QuerySearch(embeddings, graph, fitted)
        return _searches[graph].search(vectors, k)
    embeddings = embeddings if fitted is None else embeddings[fitted]
    blocks = [
        nearest(vectors[begin : begin + QUERIES_AT_ONCE], embeddings, k)
        for begin in range(0, max(1, len(vectors)), QUERIES_AT_ONCE)
    ]
    indices, similarities = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return indices if fitted is None else fitted[indices].astype(np.int32), similarities


def known_documents(result: TopicResult, corpus: Corpus) -> Int64Array:
    """Return the document of the fit of each distinct text of a corpus, or -1."""
    return find_documents(result.documents.hashes, corpus.distinct().hashes)


def find_documents(stored: npt.NDArray[np.uint64], hashes: npt.NDArray[np.uint64]) -> Int64Array:
    """Return the position of each hash among the stored, ascending ones; -1 if absent."""
    pair = np.dtype([("high", np.uint64), ("low", np.uint64)])
    ordered = np.ascontiguousarray(stored).view(pair).ravel()
    queries = np.ascontiguousarray(hashes).view(pair).ravel()
    if not len(ordered):
        return np.full(len(queries), -1, dtype=np.int64)
    position = np.minimum(np.searchsorted(ordered, queries), len(ordered) - 1)
    return np.where(ordered[position] == queries, position, -1).astype(np.int64)


def vectors_of(
    result: TopicResult,
    corpus: Corpus,
    documents: Int64Array,
    embeddings: npt.ArrayLike | None,
    encoder: Encoder | str | None,
) -> FloatArray:
    """Return the unit vectors of some documents of a corpus, given or encoded."""
    if embeddings is not None:
        vectors, _ = given_vectors(embeddings, corpus, documents)
    else:
        model, texts = encoder_of_fit(result, encoder), corpus.document_texts()
        rows = corpus.distinct().first_rows[documents]
        # Writing every question to the cache would cost more than it saves.
        vectors, _ = encode_documents(model.uncached, [texts[d] for d in documents], rows, None)
    width = result.embeddings.shape[1]
    if vectors.shape[1] != width:
        expected = f"of {width} dimensions, like those of the fit"
        remedy = "compute them with the encoder of the fit"
        raise InputError("embeddings", expected, vectors.shape[1], remedy)
    return vectors


def min_margin_of(result: TopicResult) -> float:
    """Return the smallest margin of an assigned text, as in the fit."""
    return float(result.settings.get("min_margin", MIN_MARGIN))


def decide(shares: csr_matrix, novelty: FloatArray, min_margin: float) -> Int32Array:
    """Return the topic with the largest share; -1 for an unclear topic or a far text."""
    best, top, second, none = standing(shares)
    is_clear = (margin(top, second, none) >= min_margin) & (novelty <= FAR) & (top > 0)
    return np.where(is_clear, best, NOISE).astype(np.int32)


def standing(shares: csr_matrix) -> tuple[Int64Array, FloatArray, FloatArray, FloatArray]:
    """Return the best topic of each text, its share, the next share, and the share of none."""
    if 0 in shares.shape:
        nothing = np.zeros(shares.shape[0], dtype=np.float32)
        return nothing.astype(np.int64), nothing, nothing, nothing + 1
    counts = np.diff(shares.indptr)
    rows = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((shares.indices, -shares.data, rows))
    best = np.zeros(len(counts), dtype=np.int64)
    top, second = np.zeros((2, len(counts)), dtype=np.float32)
    first, next_one = (shares.indptr[:-1][counts > n] + n for n in (0, 1))
    best[counts > 0] = shares.indices[order[first]]
    top[counts > 0] = shares.data[order[first]]
    second[counts > 1] = shares.data[order[next_one]]
    total = np.asarray(shares.sum(axis=1)).ravel()
    return best, top, second, np.clip(1.0 - total, 0.0, 1.0)
