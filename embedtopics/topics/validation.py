"""Sheets on which people judge the topics of a result."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from embedtopics.errors import InputError
from embedtopics.evaluation import (
    Sheet,
    coding_sample,
    document_intrusion,
    topic_intrusion,
    word_intrusion,
)
from embedtopics.results import TopicResult
from embedtopics.topics.describe import top_words

__all__ = ["validation_sheets"]

LISTED = 20
"""Words of a topic among which no intruder is."""

N_TEXTS = 50
"""Texts that are asked about on the sheet of intruding topics."""


def validation_sheets(
    result: TopicResult,
    *,
    n_questions: int | None = None,
    n_per_topic: int = 10,
    n_decoys: int = 5,
    seed: int = 0,
) -> tuple[Sheet, ...]:
    """Make sheets on which people find intruders, and say which texts belong to which topic.

    Parameters
    ----------
    result : TopicResult
        Of two topics or more.
    n_questions : int, optional
        On each sheet of intruders; by default one a topic, and fifty texts for the intruding
        topic.
    n_per_topic, n_decoys : int
        See `embedtopics.evaluation.coding_sample`.
    seed : int

    Returns
    -------
    tuple of Sheet
        "word_intrusion", "document_intrusion", "topic_intrusion" and "coding"; one that the topics
        are too few or too small for is left out. Each text of the collection counts once.

    Raises
    ------
    InputError
        Where there are fewer than two topics.

    Examples
    --------
    >>> from embedtopics.evaluation import score_intrusion
    >>> for sheet in validation_sheets(result):  # doctest: +SKIP
    ...     sheet.write("sheets")
    >>> score_intrusion("sheets/word_intrusion.csv", "sheets/keys/word_intrusion.csv")
    ... # doctest: +SKIP
    """
    if result.n_topics < 2:
        raise InputError(
            f"people judge topics against others; the result has {result.n_topics}: fit with more"
        )
    words = top_words(result, LISTED)
    texts = result.corpus.document_texts()
    clustering = result.clustering
    if n_questions is not None and n_questions < 1:
        raise InputError(f"n_questions must be at least 1; got {n_questions}")
    coding = coding_sample(
        texts, clustering.labels, words, n_per_topic=n_per_topic, n_decoys=n_decoys, seed=seed
    )
    terms = result.term_counts.terms
    about_words = partial(word_intrusion, words, result.topic_terms, terms, n_questions=n_questions)
    about_texts = partial(
        document_intrusion, texts, clustering.labels, clustering.strengths, n_questions=n_questions
    )
    about_topics = partial(
        topic_intrusion, texts, result.memberships, words, n_questions=n_questions or N_TEXTS
    )
    sheets = []
    for make in (about_words, about_texts, about_topics):
        with suppress(InputError):  # fewer than two topics are large enough
            sheets.append(make(seed=seed))
    return tuple(sheet for sheet in (*sheets, coding) if len(sheet))
