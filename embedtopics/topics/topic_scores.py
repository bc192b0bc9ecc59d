"""What can be measured of each topic, by its words, its texts and its replicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.evaluation import (
    c_v,
    npmi,
    topic_significance,
    topic_uniqueness,
    u_mass,
    word_embedding_coherence,
)
from embedtopics.results import TokenStream, TopicResult
from embedtopics.terms import count_by_topic, term_embeddings, tokenize
from embedtopics.topics.describe import top_words

__all__ = ["TopicScores", "reference_tokens", "score_topics"]

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TopicScores:
    """Figures of each topic; NaN where there is none.

    Parameters
    ----------
    words : tuple of tuple of str
        The words that the topics are judged by.
    scores : mapping of str to float64 ndarray of shape (n_topics,)
        By the name of the measure.
    """

    words: tuple[tuple[str, ...], ...]
    scores: dict[str, Float64Array]


def score_topics(result: TopicResult, tokens: TokenStream, n_words: int) -> TopicScores:
    """Measure each topic.

    Parameters
    ----------
    result : TopicResult
    tokens : TokenStream
        Documents in which the words are to go together.
    n_words : int
        Words of each topic, its best single ones.

    Returns
    -------
    TopicScores
    """
    words = top_words(result, n_words) if result.topics else []
    few = np.array([len(topic) < 2 for topic in words], dtype=bool)
    scores = {
        "npmi": npmi(words, tokens),
        "c_v": np.where(few, np.nan, c_v(words, tokens)),  # one word is coherent with itself
        "u_mass": u_mass(words, tokens),
        "embedding_coherence": _in_own_vectors(result, words),
        "uniqueness": topic_uniqueness(words, n_words),
        **_significance(result),
        "persistence": np.array([topic.persistence for topic in result.topics], dtype=np.float64),
    }
    if result.stability is not None:
        scores["recurrence"] = result.stability.recurrence
    return TopicScores(tuple(map(tuple, words)), scores)


def reference_tokens(
    result: TopicResult, reference: TokenStream | Corpus | Sequence[str] | None
) -> TokenStream:
    """Return the words of the documents in which the topics' words are looked for.

    Parameters
    ----------
    result : TopicResult
    reference : TokenStream, Corpus, sequence of str or None
        None takes the documents of the result.
    """
    if reference is None:
        return result.tokens
    if isinstance(reference, TokenStream):
        return reference
    if isinstance(reference, Corpus):
        return tokenize(reference.document_texts())
    if isinstance(reference, str) or not all(isinstance(text, str) for text in reference):
        raise InputError(
            "reference must be a Corpus, a TokenStream or a sequence of texts; got "
            f"{type(reference).__name__} of something else"
        )
    return tokenize(list(reference))


def _in_own_vectors(result: TopicResult, words: list[list[str]]) -> Float64Array:
    """Measure coherence in the embeddings of the result: a word is the mean of its documents."""
    wanted = {word for topic in words for word in topic}
    columns = [i for i, term in enumerate(result.term_counts.terms) if term in wanted]
    vectors = {}
    if columns:
        middle = result.embeddings.mean(axis=0, dtype=np.float64)
        found = term_embeddings(
            result.term_counts.counts, result.embeddings, columns, origin=middle
        )
        vectors = {
            result.term_counts.terms[i]: vector for i, vector in zip(columns, found, strict=True)
        }
    return word_embedding_coherence(words, vectors, max(map(len, words), default=1) or 1)[0]


def _significance(result: TopicResult) -> dict[str, Float64Array]:
    """Return the distances from a topic of everything, and from one in all documents alike."""
    if not result.topics:
        return {"w_vacuous": np.empty(0), "d_background": np.empty(0)}
    single = np.flatnonzero(result.term_counts.lengths == 1)
    counts = count_by_topic(
        result.term_counts.counts,
        result.clustering.labels,
        result.n_topics,
        result.documents.weights,
    )[:, single]
    found = topic_significance(counts, result.memberships)
    background = found.background
    assert background is not None
    return {"w_vacuous": found.vacuous, "d_background": background}
