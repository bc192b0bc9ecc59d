"""Topics for a query, by its vector or by its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count
from embedtopics.corpus._hashing import normalize_text
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import unit_rows
from embedtopics.protocols import Encoder, Float64Array
from embedtopics.topics._vectors import (
    core_centroids,
    encode_documents,
    matching_encoder,
    recorded_encoder,
    unit_term_rows,
)
from embedtopics.topics.reading._concordance import similar_terms, words_of
from embedtopics.topics.results import TopicResult

if TYPE_CHECKING:
    import pandas as pd


MATCHES = ("auto", "embeddings", "terms")


def find(
    result: TopicResult,
    query: str | Sequence[str],
    *,
    n_topics: int = 5,
    by: str = "auto",
    encoder: Encoder | str | None = None,
    embedding: npt.ArrayLike | None = None,
) -> pd.DataFrame:
    """Find the topics that are nearest to a query.

    Parameters
    ----------
    result : TopicResult
    query : str or sequence of str
        A word, a phrase or a whole text; or several.
    n_topics : int
        Topics for each query at most.
    by : {"auto", "embeddings", "terms"}
        "embeddings" compares the query's vector with the centroids of the topics (the mean of
        their documents' vectors, weighted by probabilities). "terms" compares the words and n-grams
        of the query with the weighted terms of the topics, and needs no encoder; topics that hold
        none of them are left out. "auto" takes the embeddings where a vector or an encoder is
        given, or the encoder of the fit is known, and the terms otherwise.
    encoder : Encoder or str, optional
        Encodes the query; by default the encoder of the fit, which is loaded for each call: give
        it, loaded, to ask several times. Another one than that of the fit is refused.
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

    checked_count(n_topics, "n_topics")
    queries = _checked_queries(query)
    if by not in MATCHES:
        raise InputError("by", f"one of {', '.join(MATCHES)}", by)
    given = encoder is not None or embedding is not None
    if by == "terms" and given:
        raise InputError("by", '"embeddings" with an encoder or an embedding', by)
    if by == "auto":
        known = isinstance(result.settings.get("encoder_settings"), dict)
        by = "embeddings" if given or known else "terms"
    if by == "terms":
        similarities = _by_terms(result, queries)
    else:
        vectors = _vectors(result, queries, encoder, embedding)
        similarities = np.asarray(np.einsum("qd,td->qt", vectors, core_centroids(result)))
    lines = []
    for text, row in zip(queries, similarities, strict=True):
        order = np.argsort(-row, kind="stable")[:n_topics]
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
    if isinstance(queries, bytes) or not hasattr(queries, "__iter__") or not list(queries):
        raise InputError("query", "a text or several", query)
    for text in queries:
        if not isinstance(text, str) or not normalize_text(text):
            raise InputError("query", "a text of at least one word", text)
    return list(queries)


def _vectors(
    result: TopicResult, queries: list[str], encoder: Any, embedding: npt.ArrayLike | None
) -> Float64Array:
    """Return the unit vector of each query."""
    width = result.embeddings.shape[1]
    if embedding is not None:
        given = np.asarray(embedding)
        given = given[None, :] if given.ndim == 1 else given
        if given.shape != (len(queries), width):
            raise InputError(
                "embedding",
                f"one vector of {width} dimensions for each of the {len(queries)} queries",
                found=f"shape {np.shape(embedding)}",
            )
        return unit_rows(given, what="the embeddings of the queries").astype(np.float64)
    made = recorded_encoder(result) if encoder is None else matching_encoder(encoder, result)
    texts = [normalize_text(text) for text in queries]
    # A shard on disk for every question would cost more than it could save.
    vectors, _ = encode_documents(
        getattr(made, "uncached", made), texts, np.arange(len(texts)), False
    )
    if vectors.shape[1] != width:
        raise InputError("encoder", f"one of {width} dimensions, as the fit", vectors.shape[1])
    for text, vector in zip(queries, vectors, strict=True):
        if not vector.any():
            raise InputError("query", "in words that the encoder knows", text)
    return vectors.astype(np.float64)


def _by_terms(result: TopicResult, queries: list[str]) -> Float64Array:
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
            known = set(counts.terms)
            near = [term for word in words[:5] for term in similar_terms(result, word)]
            hint = ", ".join([repr(term) for term in near if term in known][:5])
            remedy = f"close to it are {hint}" if hint else ""
            raise InputError("query", "in terms of the result", query, remedy)
        along = weights[:, found.astype(np.int64)] @ times.astype(np.float64)
        similarities[place] = along / np.sqrt(float((times**2).sum()))
    return similarities
