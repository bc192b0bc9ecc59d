"""Keywords by their vectors instead of class-TF-IDF, and results that have them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from embedtopics._utils.checks import checked_between, checked_choice
from embedtopics.errors import InputError
from embedtopics.protocols import Encoder, Float64Array, FloatArray, Int64Array
from embedtopics.terms._keywords import term_embeddings, unique_labels
from embedtopics.terms._representative import best_terms, choose_diverse
from embedtopics.terms._stop_words import repeats, stems_of
from embedtopics.topics._describe import languages_of
from embedtopics.topics._relabel import checked_topic_id, edit_of
from embedtopics.topics._vectors import encode_uncached, encoder_of_fit
from embedtopics.topics.naming._score_labels import rescored
from embedtopics.topics.results import TopicResult

Keywords: TypeAlias = list[list[tuple[str, float]]]
"""The terms of each topic, best first, with their scores."""

DOCUMENTS = "documents"
"""Value of `encoder` by which a term gets the mean vector of the documents that hold it."""

N_CANDIDATES = {"diverse": 30, "embedding": 100}


def keywords(
    result: TopicResult,
    method: str = "diverse",
    *,
    n_terms: int = 10,
    diversity: float = 0.3,
    encoder: Encoder | str | None = None,
) -> Keywords:
    """Choose the keywords of topics by another method than class-TF-IDF; see `with_keywords`.

    Parameters
    ----------
    result : TopicResult
    method : {"diverse", "embedding"}
        How to choose among the terms with the largest weights:

        - "embedding" takes the terms nearest to the mean of the topic's representative documents,
          as in KeyBERT (Grootendorst 2020).
        - "diverse" takes terms by maximal marginal relevance (Carbonell and Goldstein 1998): the
          next term maximizes ``(1 - diversity) cos(i, topic) - diversity max_j cos(i, j)``.
    n_terms : int
        Maximum number of keywords of a topic.
    diversity : float
        From 0 (the same as "embedding") to 1, for "diverse".
    encoder : Encoder or str, optional
        Encoder of the terms, by default the encoder of the fit. With "documents", the vector of a
        term is the mean of the documents that hold it.

    Returns
    -------
    list of list of (str, float)
        The keywords of each topic, best first, with their cosines.

    Raises
    ------
    InputError
        If the encoder cannot be loaded or does not match the fit, or if a parameter is invalid.
    """
    method = checked_choice(method, "method", tuple(N_CANDIDATES))
    checked_between(diversity, "diversity", 0, 1, closed=True)
    counts, languages = result.term_counts, languages_of(result)
    candidates = [ids for ids, _ in best_terms(result.topic_terms, counts, N_CANDIDATES[method])]
    keyword_lists, factor = [], diversity if method == "diverse" else 0.0
    for ids, topic, vectors in zip(candidates, *_vectors(result, candidates, encoder), strict=True):
        terms = [counts.terms[i] for i in ids]
        cosines = np.einsum("id,d->i", vectors, topic, dtype=np.float64)
        similarity = np.einsum("id,jd->ij", vectors, vectors, dtype=np.float64)
        stems = [stems_of(term, languages) for term in terms]

        def clash(i: int, j: int, stems: list[Any] = stems) -> bool:
            return repeats(stems[i], stems[j])

        picked = choose_diverse(cosines, similarity, n_terms, factor, clash, least=-1.0)
        keyword_lists.append([(terms[i], float(cosines[i])) for i in picked])
    return keyword_lists


def _vectors(
    result: TopicResult, candidates: Sequence[Int64Array], encoder: Encoder | str | None
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return a unit vector of each topic, and of each of its candidates."""
    pool = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *candidates]))
    origin: Float64Array = np.zeros(result.embeddings.shape[1])
    if isinstance(encoder, str) and encoder == DOCUMENTS:
        if result.n_topics > 1:  # a single topic has no contrast
            origin = result.embeddings.mean(axis=0, dtype=np.float64)
        counts = result.term_counts.counts
        of_terms = term_embeddings(counts, result.embeddings, pool, origin=origin)
    else:
        terms = [result.term_counts.terms[column] for column in pool.tolist()]
        of_terms = encode_uncached(encoder_of_fit(result, encoder), terms, len(origin))
    topics = []
    for topic in result.topics:
        central = result.documents.of_row[np.array(topic.representatives, dtype=np.int64)]
        mean = result.embeddings[central].mean(axis=0, dtype=np.float64) - origin
        length = np.sqrt(np.einsum("d,d->", mean, mean))
        topics.append((mean / (length or 1.0)).astype(np.float32))
    return topics, [of_terms[np.searchsorted(pool, ids)] for ids in candidates]


def with_keywords(result: TopicResult, keywords: Keywords | Mapping[int, Any]) -> TopicResult:
    """Return the result with other keywords, and with automatic names from them.

    Clusters, term weights and stability stay the same. Names from a person or from constraints stay
    as well. A later edit that describes topics again, such as a merge, chooses their keywords by
    class-TF-IDF.

    Parameters
    ----------
    result : TopicResult
    keywords : sequence or mapping of int to sequence of (str, float)
        The keywords of each topic, best first, with their scores, as `keywords` returns them; or
        those of some topics by their ids. A topic with an empty list keeps its keywords.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        If a list is missing or holds unknown terms.
    """
    if not isinstance(keywords, Mapping):
        if len(keywords) != result.n_topics:
            expected = f"a list of (term, score) for each of the {result.n_topics} topics"
            raise InputError("keywords", expected, keywords)
        keywords = dict(enumerate(keywords))
    lists = {checked_topic_id(result, topic): row for topic, row in keywords.items() if row}
    unknown = {term for row in lists.values() for term, _ in row} - set(result.term_counts.terms)
    if unknown:
        raise InputError("keywords", "terms of result.term_counts.terms", sorted(unknown))
    topics = list(result.topics)
    for topic, row in lists.items():
        terms, weights = (tuple(column) for column in zip(*row, strict=True))
        topics[topic] = dataclasses.replace(
            topics[topic], keywords=terms, weights=weights, keywords_auc=None
        )
    renamed = [topics[i] for i in lists if not (topics[i].is_named or topics[i].is_seeded)]
    reserved = {topic.label for topic in topics} - {topic.label for topic in renamed}
    labels = unique_labels((topic.keywords for topic in renamed), reserved=reserved)
    for unnamed, label in zip(renamed, labels, strict=True):
        topics[unnamed.topic_id] = dataclasses.replace(unnamed, label=label, label_auc=None)
    message = f"{len(lists)} topics got keywords by another method"
    edit = edit_of(
        result, "with_keywords", {"keywords": lists}, message, list(lists), range(result.n_topics)
    )
    described = dataclasses.replace(result, topics=tuple(topics), history=(*result.history, edit))
    return rescored(described, result)
