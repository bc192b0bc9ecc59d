"""Keywords by part of speech, as a spaCy pipeline reads the topic's documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from embedtopics._checks import checked_count, checked_share
from embedtopics.errors import InputError, MissingExtraError, ModelLoadError
from embedtopics.protocols import Int64Array
from embedtopics.results import TopicResult
from embedtopics.terms.parts_of_speech import PATTERNS, parse_patterns, pattern_counts, tag_words
from embedtopics.topics.naming.candidates import (
    Keywords,
    candidates_of,
    columns_of,
    first_distinct,
)

__all__ = ["keywords_by_part_of_speech"]

MOST_CHARACTERS = 20_000
"""Beginning of a document that is read."""

NOT_NEEDED = ("parser", "ner", "lemmatizer", "entity_linker", "textcat", "senter")
"""Parts of a pipeline that have no say in parts of speech, and take most of its time."""


def keywords_by_part_of_speech(
    result: TopicResult,
    nlp: Any,
    *,
    patterns: Iterable[str] = PATTERNS,
    n: int = 10,
    n_candidates: int = 100,
    n_documents: int = 200,
    min_share: float = 0.5,
    candidates: Any = None,
    keep_repeats: bool = False,
) -> Keywords:
    """Choose the terms that are noun phrases, or whatever else is asked for.

    A term stays where most of its occurrences in the topic's central documents match a pattern:
    one chance reading of a verb as a noun does not make it a keyword.

    Parameters
    ----------
    result : TopicResult
    nlp : spacy.Language or str
        A pipeline that assigns parts of speech, or its name or folder, for ``spacy.load``.
    patterns : iterable of str
        Universal parts of speech, with spaces between words and "|" between alternatives.
    n : int
        Keywords of each topic at most.
    n_candidates : int
        Terms of each topic that are looked at, those of highest weight.
    n_documents : int
        Central documents of each topic that are read, at most; and for each candidate that none
        of them holds, the most central one that does.
    min_share : float
        Least share of a term's occurrences there that match a pattern.
    candidates : sequence of sequence of (str, float), optional
        Lists of another road to choose from.
    keep_repeats : bool
        Whether a keyword may share a stem at its ends with a better one.

    Returns
    -------
    list of list of (str, float)
        For each topic those of its candidates that match, in their order and with their scores;
        empty where none does.

    Raises
    ------
    MissingExtraError
        Where spaCy is needed and not installed.
    ModelLoadError
        Where there is no such pipeline.
    InputError
        Where the pipeline assigns no parts of speech, or a parameter is bad.
    """
    n, n_documents = checked_count(n, "n"), checked_count(n_documents, "n_documents")
    min_share = checked_share(min_share, "min_share")
    parsed = parse_patterns(patterns)
    lists = candidates_of(result, candidates, n_candidates)
    pipeline = _pipeline(nlp)
    texts = result.corpus.texts
    read = _documents_to_read(result, lists, n_documents)
    chosen = []
    for row, members in zip(lists, read, strict=True):
        rows = result.documents.first_rows[members].tolist()
        docs = _read(pipeline, [texts[i] for i in rows])
        counted = pattern_counts([term for term, _ in row], tag_words(docs), parsed)
        kept = [
            (term, score)
            for term, score in row
            if counted[term][0] > 0 and counted[term][0] >= min_share * counted[term][1]
        ]
        chosen.append(first_distinct(result, kept, n, keep_repeats))
    return chosen


def _pipeline(nlp: Any) -> Any:
    """Return a spaCy pipeline, loaded where a name is given."""
    if not isinstance(nlp, str):
        if not callable(getattr(nlp, "pipe", None)):
            raise InputError(
                "expected a spaCy pipeline, or its name such as 'en_core_web_sm'; "
                f"got {type(nlp).__name__}"
            )
        return nlp
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError(
            "parts of speech need spaCy, which is not installed; run pip install 'embedtopics[pos]'"
        ) from error
    try:
        return spacy.load(nlp)
    except (OSError, ValueError) as error:
        raise ModelLoadError(
            f"there is no spaCy pipeline {nlp!r} here; run python -m spacy download {nlp}, or "
            "give a pipeline that is loaded"
        ) from error


def _read(pipeline: Any, texts: Sequence[str]) -> list[Any]:
    """Let the pipeline read texts; refuse one that leaves all words without a part of speech."""
    most = min(MOST_CHARACTERS, int(getattr(pipeline, "max_length", MOST_CHARACTERS)))
    cut = [text[:most] for text in texts]
    docs = list(pipeline.pipe(cut, disable=list(NOT_NEEDED)))
    words = [token for doc in docs for token in doc if not token.is_space]
    if words and not any(token.pos_ for token in words):
        parts = ", ".join(getattr(pipeline, "pipe_names", [])) or "no components"
        raise InputError(
            f"expected a pipeline that assigns parts of speech; this one ({parts}) leaves all "
            "words without; take one with a tagger or morphologizer, such as en_core_web_sm"
        )
    return docs


def _documents_to_read(result: TopicResult, lists: Keywords, n: int) -> list[Int64Array]:
    """Return the central documents of each topic, and some for the terms that these lack."""
    labels = result.clustering.labels
    pool, places = columns_of(result, lists)
    presence = result.term_counts.counts[:, pool].astype(bool)
    chosen = []
    for topic in range(result.n_topics):
        members = np.flatnonzero(labels == topic)
        vectors = result.embeddings[members]
        middle = vectors.mean(axis=0, dtype=np.float64)
        near = np.einsum("id,d->i", vectors, middle)
        ordered = members[np.argsort(-near, kind="stable")]
        holds = presence[ordered][:, places[topic]].tocsc()
        # By columns and sorted, the first entry of a column is the most central document.
        holds.sort_indices()
        held = np.flatnonzero(np.diff(holds.indptr))
        first = holds.indices[holds.indptr[held]]
        chosen.append(ordered[np.union1d(np.arange(min(n, len(ordered))), first)])
    return chosen
