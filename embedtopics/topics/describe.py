"""Labels -> what each topic is about: terms, names, typical documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.protocols import FloatArray, Int32Array, TermWeighting
from embedtopics.results import (
    NOISE,
    Clustering,
    DistinctDocuments,
    TermCounts,
    TokenStream,
    Topic,
    TopicResult,
)
from embedtopics.terms import (
    ClassTfidf,
    count_by_topic,
    count_terms,
    function_words,
    keywords,
    make_labels,
    representatives,
    stop_words_for,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["TermSettings", "count_corpus_terms", "describe_topics", "top_words"]


@dataclass(frozen=True)
class TermSettings:
    """How terms are counted and chosen.

    Parameters
    ----------
    stop_words : "auto" or sequence of str
        "auto" takes the lists of the corpus's languages and adds the words that the corpus
        uses alike everywhere; a sequence, even an empty one, replaces both.
    ngram_range : (int, int)
        Shortest and longest term in words.
    min_df : int, float or None
        Documents that must hold a term; None chooses by the size of the collection.
    n_keywords : int
        Keywords of each topic.
    n_representatives : int
        Typical documents of each topic.
    max_df : int or float
        Documents that may hold a term at most.
    extra_stop_words : sequence of str
        Left out beside what `stop_words` says.
    """

    stop_words: str | Sequence[str] = "auto"
    ngram_range: tuple[int, int] = (1, 2)
    min_df: int | float | None = None
    n_keywords: int = 10
    n_representatives: int = 5
    max_df: int | float = 1.0
    extra_stop_words: Sequence[str] = ()


def count_corpus_terms(
    tokens: TokenStream, labels: Int32Array, settings: TermSettings, languages: Sequence[str]
) -> TermCounts:
    """Count the terms of the documents.

    Parameters
    ----------
    tokens : TokenStream
    labels : int32 ndarray of shape (n_documents,)
        Topics; they tell which words are used alike everywhere.
    settings : TermSettings
    languages : sequence of str
        ISO 639-1 codes.

    Returns
    -------
    TermCounts
    """
    listed: Sequence[str]
    common: Sequence[str]
    if settings.stop_words == "auto":
        listed = stop_words_for(languages)
        common = function_words(tokens, labels)
    else:
        listed, common = tuple(settings.stop_words), ()
    return count_terms(
        tokens,
        ngram_range=settings.ngram_range,
        min_df=settings.min_df,
        max_df=settings.max_df,
        stop_words=[*listed, *settings.extra_stop_words],
        function_words=common,
    )


def describe_topics(
    counts: TermCounts,
    embeddings: FloatArray,
    clustering: Clustering,
    documents: DistinctDocuments,
    weighting: TermWeighting,
    settings: TermSettings,
    languages: Sequence[str],
    known_typical: Mapping[int, tuple[int, ...]] = MappingProxyType({}),
) -> tuple[tuple[Topic, ...], csr_matrix]:
    """Weigh the terms of every topic, and choose its keywords, name and typical documents.

    Those typical documents that are known need not be looked for: the first row of each, by topic.

    Returns
    -------
    topics : tuple of Topic
    topic_terms : csr_matrix of float64, shape (n_topics, n_terms)
    """
    from scipy.sparse import csr_matrix

    labels = clustering.labels
    n_topics = int(labels.max(initial=NOISE)) + 1
    if n_topics == 0:
        return (), csr_matrix((0, len(counts.terms)), dtype=np.float64)
    topic_counts = count_by_topic(counts.counts, labels, n_topics, documents.weights)
    if topic_counts.nnz:
        topic_terms = csr_matrix(_weigh(weighting, topic_counts, counts.terms), dtype=np.float64)
    else:
        topic_terms = csr_matrix(topic_counts.shape, dtype=np.float64)
    chosen = keywords(topic_terms, counts, embeddings, n=settings.n_keywords, languages=languages)
    names = make_labels([[term for term, _ in row] for row in chosen])
    is_known = np.isin(labels, list(known_typical))
    typical = representatives(
        embeddings,
        np.where(is_known, NOISE, labels),
        clustering.strengths,
        n=settings.n_representatives,
        n_topics=n_topics,
    )
    inside = labels != NOISE
    sizes = np.bincount(labels[inside], documents.weights[inside], minlength=n_topics).astype(int)
    n_texts = int(documents.weights.sum())
    topics = tuple(
        Topic(
            topic_id=topic,
            label=names[topic],
            size=int(sizes[topic]),
            share=float(sizes[topic] / n_texts),
            keywords=tuple(term for term, _ in chosen[topic]),
            weights=tuple(float(weight) for _, weight in chosen[topic]),
            representatives=known_typical.get(
                topic, tuple(documents.first_rows[typical[topic]].tolist())
            ),
            persistence=float(clustering.persistence[topic]),
        )
        for topic in range(n_topics)
    )
    return topics, topic_terms


def _weigh(weighting: TermWeighting, topic_counts: csr_matrix, terms: Sequence[str]) -> Any:
    """Weigh the terms; ours is told their names, which it needs where some are to be boosted."""
    if isinstance(weighting, ClassTfidf):
        return weighting.fit(topic_counts, terms=terms).transform(topic_counts)
    return weighting.fit_transform(topic_counts)


def top_words(result: TopicResult, n: int = 10) -> list[list[str]]:
    """Return the best single words of every topic, chosen as its keywords are.

    Useful to compare with models that know single words only.

    Parameters
    ----------
    result : TopicResult
    n : int

    Returns
    -------
    list of list of str
        At most `n` words a topic, best first.
    """
    chosen = keywords(
        result.topic_terms,
        result.term_counts,
        result.embeddings,
        n=n,
        languages=tuple(result.settings.get("languages", ())),
        ngram_range=(1, 1),
    )
    return [[term for term, _ in row] for row in chosen]
