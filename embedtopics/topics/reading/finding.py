"""Topics for a question, by its vector or by its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics.corpus import normalize_text
from embedtopics.errors import InputError
from embedtopics.neighbors import unit_rows
from embedtopics.protocols import Encoder
from embedtopics.results import TopicResult
from embedtopics.topics.likeness import core_centroids, unit_term_rows
from embedtopics.topics.reading.occurrences import close_to, words_of
from embedtopics.topics.vectors import encode_documents, matching_encoder, recorded_encoder

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["find"]

WAYS = ("auto", "embeddings", "terms")
FloatMatrix = npt.NDArray[np.float64]


def find(
    result: TopicResult,
    query: str | Sequence[str],
    *,
    n: int = 5,
    by: str = "auto",
    encoder: Encoder | str | None = None,
    embedding: npt.ArrayLike | None = None,
) -> pd.DataFrame:
    """Find the topics that are nearest to a question.

    Parameters
    ----------
    result : TopicResult
    query : str or sequence of str
        A word, a phrase or a whole text; or several.
    n : int
        Topics for each query at most.
    by : {"auto", "embeddings", "terms"}
        "embeddings" compares the query's vector with the centroids of the topics (the mean of
        their documents' vectors, weighted by strengths). "terms" compares the words and n-grams
        of the query with the weighted terms of the topics, and needs no encoder; topics that hold
        none of them are left out. "auto" takes the embeddings where a vector or an encoder is
        given, or the encoder of the fit is known, and the terms otherwise.
    encoder : Encoder or str, optional
        Who makes the vector; by default the encoder of the fit, which is loaded for each call:
        give it, loaded, to ask several times. Another one than that of the fit is refused.
    embedding : array_like of shape (n_dimensions,) or (n_queries, n_dimensions), optional
        The query's vector, made by the encoder of the fit: of a text, or of anything else that it
        encodes, which `query` then only names.

    Returns
    -------
    DataFrame
        Columns query, rank (from 1), topic, label, similarity (cosine), terms (a list) and by
        ("embeddings" or "terms"): for each query the nearest topics, nearest first. Without rows
        where the result has no topics.

    Raises
    ------
    InputError
        If a query is empty, holds no term of the result (close ones are named), or cannot be
        encoded; or if an argument is bad.
    """
    import pandas as pd

    checked_count(n, "n")
    queries = _checked_queries(query)
    by = _checked_way(result, by, encoder, embedding)
    if by == "terms":
        similarities = _by_terms(result, queries)
    else:
        similarities = _by_vectors(result, _vectors(result, queries, encoder, embedding))
    lines = []
    for text, row in zip(queries, similarities, strict=True):
        order = np.argsort(-row, kind="stable")[:n]
        if by == "terms":
            order = order[row[order] > 0]
        lines += [
            {"query": text, "rank": rank, "topic": topic, "label": result.topics[topic].label,
             "similarity": float(row[topic]), "terms": list(result.topics[topic].keywords),
             "by": by}
            for rank, topic in enumerate(order.tolist(), start=1)
        ]  # fmt: skip
    names = ["query", "rank", "topic", "label", "similarity", "terms", "by"]
    return pd.DataFrame(lines, columns=names)


def _checked_queries(query: Any) -> list[str]:
    queries = [query] if isinstance(query, str) else query
    if isinstance(queries, bytes) or not hasattr(queries, "__iter__"):
        raise InputError(f"expected a query or several, as strings; got {query!r}")
    queries = list(queries)
    for text in queries:
        if not isinstance(text, str) or not normalize_text(text):
            raise InputError(f"expected a query of at least one word; got {text!r}")
    if not queries:
        raise InputError("expected a query or several; got none")
    return queries


def _checked_way(result: TopicResult, by: str, encoder: Any, embedding: Any) -> str:
    """Return "embeddings" or "terms"."""
    if by not in WAYS:
        raise InputError(f"expected by among {', '.join(WAYS)}; got {by!r}")
    given = encoder is not None or embedding is not None
    if by == "terms" and given:
        raise InputError('an encoder or an embedding is of no use with by="terms"; leave it out')
    if by != "auto":
        return by
    known = isinstance(result.settings.get("encoder_settings"), dict)
    return "embeddings" if given or known else "terms"


def _vectors(
    result: TopicResult, queries: list[str], encoder: Any, embedding: npt.ArrayLike | None
) -> FloatMatrix:
    """Return the unit vector of each query."""
    width = result.embeddings.shape[1]
    if embedding is not None:
        given = np.asarray(embedding)
        given = given[None, :] if given.ndim == 1 else given
        if given.shape != (len(queries), width):
            raise InputError(
                f"expected one vector of {width} dimensions for each of the {len(queries)} "
                f"queries; got shape {np.shape(embedding)}"
            )
        return unit_rows(given, what="the embeddings of the queries").astype(np.float64)
    made = recorded_encoder(result) if encoder is None else matching_encoder(encoder, result)
    texts = [normalize_text(text) for text in queries]
    # A shard on disk for every question would cost more than it could save.
    vectors, _ = encode_documents(
        getattr(made, "uncached", made), texts, np.arange(len(texts)), False
    )
    if vectors.shape[1] != width:
        raise InputError(
            f"expected an encoder of the {width} dimensions of the fit; got {vectors.shape[1]}"
        )
    for text, vector in zip(queries, vectors, strict=True):
        if not vector.any():
            raise InputError(
                f"the encoder makes nothing of the query {text!r}; take other words of the texts"
            )
    return vectors.astype(np.float64)


def _by_vectors(result: TopicResult, vectors: FloatMatrix) -> FloatMatrix:
    """Return the cosine of each query with the centroid of each topic."""
    return np.asarray(np.einsum("qd,td->qt", vectors, core_centroids(result)))


def _by_terms(result: TopicResult, queries: list[str]) -> FloatMatrix:
    """Return the cosine of the terms of each query with the weighted terms of each topic."""
    counts = result.term_counts
    column = {term: place for place, term in enumerate(counts.terms)}
    longest = int(counts.lengths.max(initial=1))
    weights = unit_term_rows(result.topic_terms)
    similarities = np.zeros((len(queries), result.n_topics))
    for place, query in enumerate(queries):
        words = words_of(query)
        grams = [
            " ".join(words[i : i + size])
            for size in range(1, longest + 1)
            for i in range(len(words) - size + 1)
        ]
        found, times = np.unique([column[g] for g in grams if g in column], return_counts=True)
        if not len(found):
            raise InputError(_no_terms(result, query, words))
        along = weights[:, found.astype(np.int64)] @ times.astype(np.float64)
        similarities[place] = along / np.sqrt(float((times**2).sum()))
    return similarities


def _no_terms(result: TopicResult, query: str, words: list[str]) -> str:
    known = set(result.term_counts.terms)
    close = [name for word in words[:5] for name in close_to(result, word) if name in known]
    hint = f"; close to it are {', '.join(map(repr, close[:5]))}" if close else ""
    return f"no term of the result is in the query {query!r}{hint}"
