"""Topics for a query, and samples of documents to read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.checks import checked_choice, checked_count, is_whole, resolve_seed
from embedtopics._utils.display import excerpt
from embedtopics._utils.fitted import FittedTopics, fitted_encoder, result_of
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._classes import read_class
from embedtopics.corpus._texts import normalize_text
from embedtopics.corpus.filters._rows import passing_rows
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Encoder, Float64Array, FloatArray, Int64Array
from embedtopics.terms._representative import NEAR_DUPLICATE, select_representatives
from embedtopics.terms._tokens import words_of
from embedtopics.topics._relabel import checked_topic_id, listed_topics
from embedtopics.topics._tables import EXCERPT
from embedtopics.topics._vectors import (
    core_centroid,
    core_centroids,
    encode_uncached,
    encoder_of_fit,
    unit_term_rows,
)
from embedtopics.topics.results import NO_TOPIC, Reason, TopicResult


def string_column(values: Sequence[str], index: pd.Index | None = None) -> pd.Series:
    """Return strings as a column of pandas' string type, also if empty."""
    return pd.Series(list(values), index=index, dtype=pd.Series([""]).dtype)


def rows_of_topics(result: TopicResult, topics: Any) -> BoolArray:
    """Return a mask of the rows with text in one of the topics, (n_rows,)."""
    ids = [_topic_or_none(result, topic) for topic in listed_topics(topics)]
    return np.isin(result.labels, ids) & (result.distinct.of_row >= 0)


def _topic_or_none(result: TopicResult, topic: Any) -> int:
    """Return the id of a topic, given by id or name; -1 stands for no topic."""
    if is_whole(topic) and topic == NOISE:
        return NOISE
    return checked_topic_id(result, topic)


def rows_where(result: TopicResult, where: Any, parameter: str = "where") -> BoolArray:
    """Return a mask of the rows with text that pass a filter, (n_rows,)."""
    corpus = result.corpus
    has_text = result.distinct.of_row >= 0
    if not isinstance(where, Mapping):
        return has_text & passing_rows(where, corpus.metadata, corpus, parameter)

    passes = has_text
    for column, values in where.items():
        listed = list(values) if isinstance(values, (list, tuple, set, frozenset)) else [values]
        has_value = np.zeros(len(has_text), dtype=bool)
        for value in listed:
            has_value |= _rows_with(corpus.metadata, column, value, parameter)
        passes = passes & has_value
    return passes


def _rows_with(metadata: Any, column: Any, value: Any, parameter: str) -> BoolArray:
    """Return a mask of the rows with a value in any spelling; one that no row has is refused."""
    is_equal = passing_rows({column: value}, metadata, parameter=parameter)

    spelled_value = read_class(value)
    if isinstance(spelled_value, str):  # in any spelling of its letters and spaces
        spelled = [read_class(cell) for cell in metadata[column].tolist()]
        is_equal = is_equal | np.array([cell == spelled_value for cell in spelled], dtype=bool)

    if not is_equal.any():
        frequent = metadata[column].value_counts().index[:12].tolist()
        remedy = f"frequent values are {', '.join(map(repr, frequent)) or 'none'}"
        raise InputError(parameter, f"values of column {column!r}", value, remedy)
    return is_equal


def document_weights(result: TopicResult, rows: BoolArray) -> tuple[Int64Array, Int64Array]:
    """Return the number of selected rows of each document, and the first such row or -1."""
    row_numbers = np.flatnonzero(rows)
    of_row, n_documents = result.distinct.of_row[row_numbers], len(result.distinct)
    first_rows = np.full(n_documents, -1, dtype=np.int64)
    first_rows[of_row[::-1]] = row_numbers[::-1]
    return np.bincount(of_row, minlength=n_documents).astype(np.int64), first_rows


def random_keys(
    hashes: npt.NDArray[np.uint64], seed: int, places: Any = 0
) -> npt.NDArray[np.uint64]:
    """Return a pseudorandom number for each document, which depends on its text only."""
    with np.errstate(over="ignore"):
        mixed = _mixed(hashes[:, 0] ^ _mixed(np.full(len(hashes), seed, dtype=np.uint64)))
        mixed = _mixed(mixed ^ hashes[:, 1])
        return _mixed(mixed ^ np.asarray(places, dtype=np.uint64))


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Mix the bits of numbers: SplitMix64 (Steele, Lea and Flood 2014)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


STRATEGIES = ("central", "representative", "boundary", "random")


def similar_terms(result: TopicResult, term: str) -> list[str]:
    """Return up to five terms of a result with a similar spelling."""
    vocabulary = result.term_counts.terms if " " in term else result.tokens.words
    # Comparing all words would take seconds. Few misspellings change the first letter.
    same_letter = [name for name in vocabulary if name[:1] == term[:1] and name != term]
    similar = [name for name in same_letter if abs(len(name) - len(term)) <= 2]
    return difflib.get_close_matches(term, similar, n=5, cutoff=0.7)


def find(
    result: FittedTopics,
    query: str | Sequence[str],
    *,
    n_topics: int = 5,
    space: str = "auto",
    encoder: Encoder | str | None = None,
) -> pd.DataFrame:
    """Find the topics nearest to a query.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    query : str or sequence of str
        A word, a phrase or a whole text, or several of them.
    n_topics : int
        Maximum number of topics for each query.
    space : {"auto", "embeddings", "terms"}
        Where they are compared. "embeddings" compares the query's vector with the centroids of the
        topics (means of the document vectors, weighted by probabilities). "terms" compares the
        words and n-grams of the query with the weighted terms of the topics, and needs no encoder;
        topics without any of these terms are left out. "auto" uses embeddings if you pass an
        encoder, or if the encoder of the fit can be loaded, and terms otherwise.
    encoder : Encoder or str, optional
        Encoder of the query; by default the encoder of the fit, which each call loads again. Pass
        it, loaded, for several calls. Other encoders are refused.

    Returns
    -------
    DataFrame
        Nearest topics of each query, nearest first. Columns query, rank (from 1), topic,
        topic_name, similarity (cosine), terms (a list) and space ("embeddings" or "terms"). Empty
        if the result has no topics.

    Raises
    ------
    InputError
        If a query holds no term of the result (the error lists similar terms), or cannot be
        encoded.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> et.topics.find(model, "goals in the last match", n_topics=1)["rank"].tolist()
    [1]
    """
    encoder = fitted_encoder(result) if encoder is None else encoder
    result = result_of(result)
    n_topics = checked_count(n_topics, "n_topics")
    queries = [query] if isinstance(query, str) or not isinstance(query, Iterable) else list(query)
    for one_query in queries:
        if not isinstance(one_query, str):
            raise InputError("query", "a text, or several texts", one_query)

    checked_choice(space, "space", ("auto", "embeddings", "terms"))
    if space == "auto":
        has_encoder = isinstance(result.settings.get("encoder_settings"), dict)
        space = "embeddings" if encoder is not None or has_encoder else "terms"

    if space == "terms":
        similarities = _by_terms(result, queries)
    else:
        texts = [normalize_text(text) for text in queries]
        model = encoder_of_fit(result, encoder)
        vectors = encode_uncached(model, texts, result.embeddings.shape[1]).astype(np.float64)
        for text, vector in zip(queries, vectors, strict=True):
            if not vector.any():
                raise InputError("query", "a text with words that the encoder knows", text)
        similarities = np.asarray(np.einsum("qd,td->qt", vectors, core_centroids(result)))

    lines = []
    for text, row in zip(queries, similarities, strict=True):
        order = np.argsort(-row, kind="stable")[:n_topics]
        if space == "terms":
            order = order[row[order] > 0]
        for rank, topic in enumerate(order.tolist(), start=1):
            about = result.topics[topic]
            line = text, rank, topic, about.name, float(row[topic]), list(about.keywords), space
            lines.append(line)

    names = ["query", "rank", "topic", "topic_name", "similarity", "terms", "space"]
    return pd.DataFrame(lines, columns=names)


def _by_terms(result: TopicResult, queries: list[str]) -> Float64Array:
    """Return the cosines of query terms and weighted topic terms, (n_queries, n_topics)."""
    counts = result.term_counts
    column = {term: place for place, term in enumerate(counts.terms)}
    longest = int(counts.lengths.max(initial=1))
    weights = unit_term_rows(result.topic_terms)
    similarities = np.zeros((len(queries), result.n_topics))
    for place, query in enumerate(queries):
        words = words_of(normalize_text(query), result.tokens.rules)
        grams = [
            " ".join(words[i : i + size])
            for size in range(1, longest + 1)
            for i in range(len(words) - size + 1)
        ]
        columns, times = np.unique([column[g] for g in grams if g in column], return_counts=True)
        if not len(columns):
            terms = set(counts.terms)
            near = [term for word in words[:5] for term in similar_terms(result, word)]
            hint = ", ".join([repr(term) for term in near if term in terms][:5])
            remedy = f"similar terms are {hint}" if hint else ""
            raise InputError("query", "a text with terms of the result", query, remedy)
        along = weights[:, columns.astype(np.int64)] @ times.astype(np.float64)
        similarities[place] = along / np.sqrt(float((times**2).sum()))
    return similarities


def sample_documents(
    result: FittedTopics,
    topic: int | str,
    *,
    strategy: str = "central",
    n_documents: int = 10,
    where: Any = None,
    random_state: Any = 0,
) -> pd.DataFrame:
    """Sample documents of a topic to read.

    Each text occurs once, even if several rows hold it. The sample does not depend on the order of
    the rows.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    topic : int or str
        Topic by id or name; -1 for documents in no topic, where "central" means the largest share
        of none.
    strategy : {"central", "representative", "boundary", "random"}
        - "central": nearest to the topic's centroid, without near-duplicates.
        - "representative": central and diverse; the first five of a topic are its representatives.
        - "boundary": with the largest share of another topic.
        - "random": a random sample. Judge a topic by this one.
    n_documents : int
        Maximum number of documents.
    where : str, mapping, or array_like or Series of bool, optional
        Restricts the rows: a filter such as ``year >= 2020 and source == 'Le Monde'``; a mapping of
        columns to a value, or to a list of values, such as ``{"source": "Le Monde"}``; or a mask,
        such as ``corpus.time >= "2021"``.
    random_state : int, Generator or None
        Seed of the random sample, which depends on the texts only.

    Returns
    -------
    DataFrame
        Table with the index labels of the rows. Columns id, text, excerpt, score (which orders the
        documents: the cosine with the centroid, or the share of no topic; for "boundary" the other
        topic's share; for "random" the random number), topic, topic_name, membership, second_topic,
        second_topic_name and second_share (of the other topic with the largest share), reason (why
        the document is in no topic), the dates and the groups under the names of their columns, and
        n (number of rows with this text).

    Raises
    ------
    InputError
        If a topic, column, value or strategy does not exist.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> documents = et.topics.sample_documents(model, 0, strategy="random", n_documents=3)
    >>> documents["topic"].tolist()
    [0, 0, 0]
    """
    result = result_of(result)
    checked_choice(strategy, "strategy", STRATEGIES)
    topic = _topic_or_none(result, topic)
    weights, first_rows = document_weights(
        result, rows_of_topics(result, [topic]) & rows_where(result, where)
    )

    documents = np.flatnonzero(weights)
    second, share = _second_topics(result, documents)
    if topic == NOISE:
        membership = closeness = result.none_shares[documents].astype(np.float64)
    else:
        membership = np.asarray(result.memberships[documents, topic].todense(), np.float64).ravel()
        centre = core_centroid(result, int(topic))
        closeness = np.asarray(np.einsum("id,d->i", result.embeddings[documents], centre))

    if strategy == "central":
        places = _central(result.embeddings[documents], closeness, n_documents)
        scores = closeness
    elif strategy == "representative":
        vectors = result.embeddings
        places = select_representatives(vectors, closeness, n_documents, documents)
        scores = closeness
    elif strategy == "boundary":
        places = np.argsort(-share, kind="stable")[:n_documents]
        scores = share
    else:
        keys = random_keys(result.distinct.hashes[documents], resolve_seed(random_state))
        places = np.argsort(keys, kind="stable")[:n_documents]
        scores = keys / 2.0**64

    rows = first_rows[documents[places]]
    corpus = result.corpus.take(rows)
    index = corpus.index
    topic_name = NO_TOPIC if topic == NOISE else result.topics[topic].name
    second_names = [result.topics[t].name if t != NOISE else "" for t in second[places].tolist()]

    columns = {
        "id": string_column(corpus.ids, index),
        "text": string_column(corpus.texts, index),
        "excerpt": string_column([excerpt(text, EXCERPT) for text in corpus.texts], index),
        "score": scores[places],
        "topic": np.full(len(rows), topic, dtype=np.int32),
        "topic_name": string_column([topic_name] * len(rows), index),
        "membership": membership[places],
        "second_topic": second[places],
        "second_topic_name": string_column(second_names, index),
        "second_share": share[places],
        "reason": string_column([Reason(r).text for r in result.reasons[rows].tolist()], index),
        "n": weights[documents[places]],
    }

    frame = pd.DataFrame(columns, index=index)
    for name, values in ((corpus.time_column, corpus.time), (corpus.group_column, corpus.group)):
        if values is not None:
            free = f"{name}_given" if name in columns else name
            frame.insert(frame.shape[1] - 1, free, values.array)
    return frame


def _second_topics(result: TopicResult, documents: Int64Array) -> tuple[Int64Array, Float64Array]:
    """Return the other topic with the largest share in each document, and this share."""
    shares = result.memberships[documents]
    row = np.repeat(np.arange(len(documents)), np.diff(shares.indptr))
    other = (shares.indices != result.clustering.labels[documents][row]) & (shares.data > 0)
    row, topics, values = row[other], shares.indices[other], shares.data[other]
    order = np.lexsort((topics, -values, row))
    first = order[np.diff(row[order], prepend=-1) > 0]
    second = np.full(len(documents), NOISE, dtype=np.int64)
    share = np.zeros(len(documents))
    second[row[first]], share[row[first]] = topics[first], values[first]
    return second, share


def _central(vectors: FloatArray, closeness: Float64Array, n: int) -> Int64Array:
    """Return the documents nearest to the centroid, without near-duplicates."""
    selected: list[int] = []
    for place in np.argsort(-closeness, kind="stable").tolist():
        if len(selected) == n:
            break
        several = vectors[np.array(selected, np.int64)]
        cosines = np.einsum("id,d->i", several, vectors[place], dtype=np.float64)
        if not (cosines > NEAR_DUPLICATE).any():
            selected.append(place)
    return np.array(selected, dtype=np.int64)
