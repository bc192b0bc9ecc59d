"""Topics of texts, seen or new, from the stored result alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.neighbors import nearest
from embedtopics.protocols import Encoder, FloatArray, Int32Array, Int64Array
from embedtopics.results import NOISE, TopicResult
from embedtopics.topics.memberships import FAR, LEAST_RATIO, clearness, closeness, rank, vote
from embedtopics.topics.vectors import (
    encode_documents,
    given_vectors,
    matching_encoder,
    recorded_encoder,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "Assignment", "Judgement", "assign", "decide", "find_documents", "judge", "known_documents",
    "least_ratio_of", "standing", "vectors_of",
]  # fmt: skip

QUERIES_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Assignment:
    """Topics of some texts.

    Parameters
    ----------
    labels : int32 ndarray of shape (n_texts,)
        -1 for texts that belong to no topic, and for empty ones.
    memberships : csr_matrix of float32, shape (n_texts, n_topics)
        Share of each topic in each text; a row sums to at most 1.
    novelty : float32 ndarray of shape (n_texts,)
        Share of the fitted documents that are nearer to their neighbours than the text is to
        its own: near 0 for the familiar, near 1 for what the collection does not hold. NaN
        for empty texts.
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
    """Find the topics of texts.

    A text of the fit, found again by its content, gets what it got in the fit. A new text
    gets the vote of its nearest documents, or -1 where these are of two topics alike, most of
    them in none, or all of them far. What a text gets does not depend on the texts beside it.

    Parameters
    ----------
    result : TopicResult
    texts : Corpus or anything that `Corpus.of` takes
    embeddings : array_like of shape (n_texts, n_dimensions), optional
        Vectors of the texts.
    encoder : Encoder or str, optional
        Who makes the vectors of new texts; by default the encoder of the fit, made again.
        An encoder with another fingerprint than the fit's is refused.

    Returns
    -------
    Assignment

    Raises
    ------
    InputError
        Where vectors are needed and neither given nor to be made, or of the wrong width.
    """
    corpus = Corpus.of(texts)
    queries = corpus.distinct()
    known = known_documents(result, corpus)
    labels = np.full(len(queries), NOISE, dtype=np.int32)
    seen = known >= 0
    labels[seen] = result.clustering.labels[known[seen]]
    novelty = np.empty(len(queries), dtype=np.float32)
    near = closeness(result.graph.similarities)
    novelty[seen] = rank(near if result.added is None else near[~result.added], near[known[seen]])
    new = np.flatnonzero(~seen)
    memberships = _stack(result, known, seen, None)
    if len(new):
        found = judge(result, vectors_of(result, corpus, new, embeddings, encoder))
        novelty[new], labels[new] = found.novelty, found.labels
        memberships = _stack(result, known, seen, found.shares)
    return _by_row(labels, memberships, novelty, queries.of_row)


@dataclass(frozen=True, eq=False)
class Judgement:
    """What the documents of the fit say of new ones, each by itself.

    Parameters
    ----------
    labels : int32 ndarray of shape (n_new,)
    shares : csr_matrix of float32, shape (n_new, n_topics)
    novelty : float32 ndarray of shape (n_new,)
    indices : int32 ndarray of shape (n_new, k)
        The nearest documents of the fit.
    similarities : float32 ndarray of shape (n_new, k)
    """

    labels: Int32Array
    shares: csr_matrix
    novelty: FloatArray
    indices: Int32Array
    similarities: FloatArray


def judge(result: TopicResult, vectors: FloatArray) -> Judgement:
    """Let the documents of the fit tell where new ones belong; those added later have no say.

    Parameters
    ----------
    result : TopicResult
    vectors : float32 ndarray of shape (n_new, n_dimensions)
        Unit vectors.

    Returns
    -------
    Judgement
    """
    asked = None if result.added is None else np.flatnonzero(~result.added)
    embeddings = result.embeddings if asked is None else result.embeddings[asked]
    fitted = closeness(
        result.graph.similarities if asked is None else result.graph.similarities[asked]
    )
    k = max(1, result.graph.k)
    found = [
        nearest(vectors[begin : begin + QUERIES_AT_ONCE], embeddings, k)
        for begin in range(0, max(1, len(vectors)), QUERIES_AT_ONCE)
    ]
    indices, similarities = (np.concatenate(part) for part in zip(*found, strict=True))
    if asked is not None:
        indices = asked[indices].astype(np.int32)
    shares = vote(indices, similarities, result.clustering.labels, result.n_topics)
    novelty = rank(fitted, closeness(similarities))
    labels = decide(shares, novelty, least_ratio_of(result))
    return Judgement(labels, shares, novelty, indices, similarities)


def known_documents(result: TopicResult, corpus: Corpus) -> Int64Array:
    """Return the document of the fit that has each distinct text of a corpus; -1 if none has."""
    return find_documents(result.documents.hashes, corpus.distinct().hashes)


def find_documents(stored: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> Int64Array:
    """Return the position of each wanted hash among the stored ones, ascending; -1 if absent."""
    pair = np.dtype([("high", np.uint64), ("low", np.uint64)])
    have = np.ascontiguousarray(stored).view(pair).ravel()
    want = np.ascontiguousarray(wanted).view(pair).ravel()
    if not len(have):
        return np.full(len(want), -1, dtype=np.int64)
    position = np.minimum(np.searchsorted(have, want), len(have) - 1)
    return np.where(have[position] == want, position, -1).astype(np.int64)


def vectors_of(
    result: TopicResult,
    corpus: Corpus,
    documents: Int64Array,
    embeddings: npt.ArrayLike | None,
    encoder: Encoder | str | None,
) -> FloatArray:
    """Return the unit vectors of some documents of the queries, given or made."""
    if embeddings is not None:
        vectors, _ = given_vectors(embeddings, corpus, documents)
    else:
        if encoder is None:
            encoder = recorded_encoder(result)
        texts = corpus.document_texts()
        rows = corpus.distinct().first_rows[documents]
        # A shard on disk for every question would cost more than it could save.
        matching = matching_encoder(encoder, result)
        vectors, _ = encode_documents(
            getattr(matching, "uncached", matching), [texts[d] for d in documents], rows, None
        )
    width = result.embeddings.shape[1]
    if vectors.shape[1] != width:
        raise InputError(
            f"embeddings must have the {width} dimensions of the fit; got {vectors.shape[1]}; "
            "make them with the encoder of the fit"
        )
    return vectors


def least_ratio_of(result: TopicResult) -> float:
    """Return how clear a new text's best topic must be: as clear as in the fit."""
    return float(result.settings.get("least_ratio", LEAST_RATIO))


def decide(shares: csr_matrix, novelty: FloatArray, least_ratio: float) -> Int32Array:
    """Return the topic with the most votes, unless it is not clear or the text is far."""
    best, top, second, none = standing(shares)
    sure = (clearness(top, second, none) >= least_ratio) & (novelty <= FAR) & (top > 0)
    return np.where(sure, best, NOISE).astype(np.int32)


def standing(shares: csr_matrix) -> tuple[Int64Array, FloatArray, FloatArray, FloatArray]:
    """Return the best topic of each text, its share, that of the next, and that of none."""
    if shares.shape[1] == 0 or shares.shape[0] == 0:
        nothing = np.zeros(shares.shape[0], dtype=np.float32)
        return np.zeros(len(nothing), dtype=np.int64), nothing, nothing, nothing + 1
    best = np.asarray(shares.argmax(axis=1)).ravel()
    top = np.asarray(shares.max(axis=1).todense()).ravel()
    total = np.asarray(shares.sum(axis=1)).ravel()
    rest = shares.copy()
    rows = np.repeat(np.arange(len(best)), np.diff(rest.indptr))
    rest.data[rest.indices == best[rows]] = 0.0
    second = np.asarray(rest.max(axis=1).todense()).ravel()
    return best, top, second, np.clip(1.0 - total, 0.0, 1.0)


def _stack(
    result: TopicResult,
    known: Int64Array,
    seen: npt.NDArray[np.bool_],
    new_shares: csr_matrix | None,
) -> csr_matrix:
    """Put the rows of seen and new texts back in their order."""
    from scipy.sparse import csr_matrix, vstack

    stored = result.memberships[known[seen]]
    if new_shares is None:
        new_shares = csr_matrix(np.zeros((int((~seen).sum()), result.n_topics), np.float32))
    order = np.empty(len(seen), dtype=np.int64)
    order[np.concatenate([np.flatnonzero(seen), np.flatnonzero(~seen)])] = np.arange(len(seen))
    return csr_matrix(vstack([stored, new_shares], format="csr")[order])


def _by_row(
    labels: Int32Array, memberships: csr_matrix, novelty: FloatArray, of_row: Int64Array
) -> Assignment:
    """Spread the values of distinct texts over the rows."""
    from scipy.sparse import csr_matrix

    has_text = of_row >= 0
    row_labels = np.full(len(of_row), NOISE, dtype=np.int32)
    row_labels[has_text] = labels[of_row[has_text]]
    row_novelty = np.full(len(of_row), np.nan, dtype=np.float32)
    row_novelty[has_text] = novelty[of_row[has_text]]
    spread = csr_matrix(
        (
            np.ones(int(has_text.sum()), dtype=np.float32),
            (np.flatnonzero(has_text), of_row[has_text]),
        ),
        shape=(len(of_row), memberships.shape[0]),
    )
    return Assignment(row_labels, csr_matrix(spread @ memberships), row_novelty)
