"""Keywords that are noun phrases, by the matcher of a spaCy pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from embedtopics._utils.checks import checked_count, checked_share
from embedtopics.errors import InputError, MissingExtraError, ModelLoadError
from embedtopics.protocols import Int64Array
from embedtopics.terms._tokens import words_of
from embedtopics.topics.results import TopicResult

TAGS = frozenset(
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split()
)
"""Universal parts of speech (Petrov et al. 2012; Universal Dependencies 2)."""

PATTERNS = (
    "NOUN|PROPN",
    "ADJ|NOUN|PROPN NOUN|PROPN",
    "NOUN|PROPN ADJ",
    "ADJ|NOUN|PROPN ADJ|NOUN|PROPN NOUN|PROPN",
    "NOUN|PROPN ADP NOUN|PROPN",
    "NOUN|PROPN ADP DET NOUN|PROPN",
)
"""Noun phrases: *rate*, *interest rate*, *banque centrale*, *bank of england*."""

MAX_CHARACTERS = 20_000
"""Characters of a document that the pipeline reads."""

UNUSED = ("parser", "ner", "lemmatizer", "entity_linker", "textcat", "senter")
"""Components that do not assign parts of speech, and take most of a pipeline's time."""


def matching_terms(
    result: TopicResult,
    lists: Sequence[Sequence[tuple[str, float]]],
    nlp: Any,
    patterns: Iterable[str],
    n_documents: int,
    min_share: float,
) -> list[list[tuple[str, float]]]:
    """Keep the terms that match a pattern in at least a given share of their occurrences."""
    checked_count(n_documents, "n_documents")
    min_share = checked_share(min_share, "min_share")
    parsed = _parse_patterns(patterns)
    pipeline = _load_pipeline(nlp)
    from spacy.matcher import Matcher

    matcher = Matcher(pipeline.vocab)
    matcher.add("keyword", parsed)
    counts, column_of = result.term_counts.counts, {}
    for column, term in enumerate(result.term_counts.terms):
        column_of[term] = column
    selected = []
    for topic, row in enumerate(lists):
        columns = np.array([column_of[term] for term, _ in row], dtype=np.int64)
        documents = _central_documents(result, topic, columns, n_documents)
        matches: Counter[str] = Counter()
        texts = [result.corpus.texts[i] for i in result.documents.first_rows[documents].tolist()]
        for doc in _tag(pipeline, texts):
            for start, end in {(start, end) for _, start, end in matcher(doc)}:
                matches[" ".join(words_of(doc[start:end].text, result.tokens.rules))] += 1
        n_occurrences = np.asarray(counts[documents][:, columns].sum(axis=0)).ravel().tolist()
        selected.append([
            (term, score)
            for (term, score), n in zip(row, n_occurrences, strict=True)
            if matches[term] > 0 and matches[term] >= min_share * n
        ])  # fmt: skip
    return selected


def _parse_patterns(patterns: Iterable[str]) -> list[list[dict[str, Any]]]:
    """Return patterns of parts of speech, such as "ADJ|NOUN NOUN", as spaCy writes them."""
    parsed = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        tokens = [word.split("|") for word in pattern.split()]
        if not tokens or not TAGS.issuperset(tag for tags in tokens for tag in tags):
            tags = ", ".join(sorted(TAGS))
            raise InputError("patterns", f'tags such as "ADJ NOUN", among {tags}', pattern)
        parsed.append([{"POS": {"IN": tags}} for tags in tokens])
    if not parsed:
        raise InputError("patterns", 'tags such as "ADJ NOUN"', found="none")
    return parsed


def _load_pipeline(nlp: Any) -> Any:
    """Return a spaCy pipeline; load it by its name."""
    if not isinstance(nlp, str):
        if not callable(getattr(nlp, "pipe", None)):
            raise InputError("nlp", "a spaCy pipeline, or its name such as en_core_web_sm", nlp)
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
            f"the spaCy pipeline {nlp!r} is not installed; run python -m spacy download {nlp}, or "
            "pass a loaded pipeline"
        ) from error


def _tag(pipeline: Any, texts: Sequence[str]) -> list[Any]:
    """Run the pipeline on texts; refuse one that assigns no parts of speech."""
    docs = list(pipeline.pipe([text[:MAX_CHARACTERS] for text in texts], disable=list(UNUSED)))
    words = [token for doc in docs for token in doc if not token.is_space]
    if words and not any(token.pos_ for token in words):
        expected = "a pipeline that assigns parts of speech, such as en_core_web_sm"
        parts = ", ".join(pipeline.pipe_names) or "no components"
        raise InputError("nlp", expected, found=parts)
    return docs


def _central_documents(result: TopicResult, topic: int, columns: Int64Array, n: int) -> Int64Array:
    """Return the `n` central documents of a topic, and the most central one for each term."""
    members = np.flatnonzero(result.clustering.labels == topic)
    vectors = result.embeddings[members]
    mean = vectors.mean(axis=0, dtype=np.float64)
    ordered = members[np.argsort(-np.einsum("id,d->i", vectors, mean), kind="stable")]
    presence = result.term_counts.counts[ordered][:, columns].tocsc()
    # Sorted by columns, the first entry of a column is the most central document.
    presence.sort_indices()
    first = presence.indices[presence.indptr[np.flatnonzero(np.diff(presence.indptr))]]
    return ordered[np.union1d(np.arange(min(n, len(ordered))), first)]
