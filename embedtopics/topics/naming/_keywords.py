"""Keywords by other methods than class-TF-IDF, and results that have them."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from embedtopics._utils.checks import checked_count, checked_share, is_number, optional_count
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.evaluation._coherence import npmi_of_pairs
from embedtopics.protocols import Encoder, Float64Array, FloatArray, Int64Array
from embedtopics.terms._keywords import keywords as best_keywords
from embedtopics.terms._keywords import term_embeddings, unique_labels
from embedtopics.terms._representative import best_terms, choose_diverse
from embedtopics.terms._stop_words import repeats, stems_of
from embedtopics.topics._describe import languages_of
from embedtopics.topics._relabel import checked_topic_id, edit_of
from embedtopics.topics._vectors import encode_documents, encoder_of_fit
from embedtopics.topics.naming._parts_of_speech import PATTERNS, matching_terms
from embedtopics.topics.results import TopicResult

Keywords: TypeAlias = list[list[tuple[str, float]]]
"""The terms of each topic, best first, with their scores."""

DOCUMENTS = "documents"
"""Value of `encoder` by which a term gets the mean vector of the documents that hold it."""


def keywords(
    result: TopicResult,
    method: str = "diverse",
    *,
    n_terms: int = 10,
    n_candidates: int | None = None,
    candidates: Any = None,
    keep_repeats: bool = False,
    **options: Any,
) -> Keywords:
    """Choose the keywords of topics by another method than class-TF-IDF; see `with_keywords`.

    Parameters
    ----------
    result : TopicResult
    method : {"diverse", "embedding", "npmi", "part_of_speech"}
        How to choose among the terms with the largest weights:

        - "embedding" takes the terms nearest to the mean of the topic's representative documents,
          as in KeyBERT (Grootendorst 2020). Scores are cosines.
        - "diverse" takes terms by maximal marginal relevance (Carbonell and Goldstein 1998): the
          next term maximizes ``(1 - diversity) cos(i, topic) - diversity max_j cos(i, j)``.
        - "npmi" ranks by ``(1 - weight) (1 - rank / n) + weight c / max c``, where c is the mean
          NPMI with the other candidates (Aletras and Stevenson 2013). Do not compare the coherence
          of such lists with that of others, because they were chosen by it.
        - "part_of_speech" keeps terms if most of their occurrences in the topic's central documents
          are noun phrases, or match other patterns.
    n_terms : int
        Maximum number of keywords of a topic.
    n_candidates : int, optional
        Candidate terms of each topic; by default 30 for "diverse" and "npmi", else 100.
    candidates : sequence of sequence of (str, float), optional
        Candidate lists, such as the keywords of another method.
    keep_repeats : bool
        Whether a keyword may begin or end with a stem of a better keyword.
    **options
        - "embedding" and "diverse": `encoder` of the candidates, by default the encoder of the fit.
          With "documents", the vector of a term is the mean of the documents that hold it.
        - "diverse": `diversity` from 0 (the same as "embedding") to 1, by default 0.3.
        - "npmi": `weight` from 0 (the order of the candidates) to 1, by default 0.5; `window` in
          words, by default 10, or None for whole documents.
        - "part_of_speech": `nlp`, a spaCy pipeline or its name; `patterns` of universal parts of
          speech, with "|" between alternatives; `n_documents` to read for each topic, by default
          200; `min_share` of a term's occurrences that must match, by default 0.5.

    Returns
    -------
    list of list of (str, float)
        The keywords of each topic, best first, with their scores.

    Raises
    ------
    InputError
        If the encoder cannot be loaded or does not match the fit, or if a parameter is invalid.
    MissingExtraError, ModelLoadError
        If spaCy or the pipeline is not installed.

    Examples
    --------
    >>> found = keywords(result, "diverse", encoder="documents")  # doctest: +SKIP
    >>> with_keywords(result, found, method="diverse")  # doctest: +SKIP
    """
    if method not in METHODS:
        raise InputError("method", f"one of {', '.join(METHODS)}", method)
    choose, default = METHODS[method]
    option_names = list(inspect.signature(choose).parameters)[4:]
    for name in options:
        if name not in option_names:
            raise InputError(name, f"left out; {method!r} takes {', '.join(option_names)}")
    n_terms = checked_count(n_terms, "n_terms")
    n_candidates = checked_count(default if n_candidates is None else n_candidates, "n_candidates")
    if candidates is not None:
        lists = checked_keywords(result, candidates, "candidates", range(result.n_topics))
    elif method == "npmi":
        counts, languages = result.term_counts, languages_of(result)
        lists = best_keywords(
            result.topic_terms, counts, result.embeddings, n=n_candidates, languages=languages
        )
    else:
        lists = candidates_of(result, n_candidates)
    return choose(result, lists, n_terms, keep_repeats, **options)


def candidates_of(result: TopicResult, n: int) -> Keywords:
    """Return the terms of each topic with the largest weights."""
    terms = result.term_counts.terms
    return [
        [(terms[i], float(weight)) for i, weight in zip(ids, weights, strict=True)]
        for ids, weights in best_terms(result.topic_terms, result.term_counts, n)
    ]


def _by_embedding(
    result: TopicResult,
    lists: Keywords,
    n_terms: int,
    keep_repeats: bool,
    *,
    encoder: Encoder | str | None = None,
) -> Keywords:
    return _diverse(result, lists, n_terms, keep_repeats, diversity=0.0, encoder=encoder)


def _diverse(
    result: TopicResult,
    lists: Keywords,
    n_terms: int,
    keep_repeats: bool,
    *,
    diversity: float = 0.3,
    encoder: Encoder | str | None = None,
) -> Keywords:
    diversity = checked_share(diversity, "diversity")
    topic_vectors, term_vectors = _vectors(result, lists, encoder)
    languages = languages_of(result)
    keyword_lists = []
    for row, topic, terms in zip(lists, topic_vectors, term_vectors, strict=True):
        cosines = np.einsum("id,d->i", terms, topic, dtype=np.float64)
        similarity = np.einsum("id,jd->ij", terms, terms, dtype=np.float64)
        stems = [stems_of(term, languages) for term, _ in row]

        def clash(i: int, j: int, stems: list[Any] = stems) -> bool:
            return not keep_repeats and repeats(stems[i], stems[j])

        picked = choose_diverse(cosines, similarity, n_terms, diversity, clash, least=-1.0)
        keyword_lists.append([(row[i][0], float(cosines[i])) for i in picked])
    return keyword_lists


def _by_npmi(
    result: TopicResult,
    lists: Keywords,
    n_terms: int,
    keep_repeats: bool,
    *,
    weight: float = 0.5,
    window: int | None = 10,
) -> Keywords:
    weight = checked_share(weight, "weight")
    window = optional_count(window, "window")
    languages = languages_of(result)
    pairs = npmi_of_pairs(
        [[term for term, _ in row] for row in lists], result.tokens, window=window
    )
    keyword_lists = []
    for row, measured in zip(lists, pairs, strict=True):
        stems = [stems_of(term, languages) for term, _ in row]
        places = 1.0 - np.arange(len(row)) / max(len(row), 1)
        clash = np.array([[repeats(a, b) for b in stems] for a in stems], dtype=bool)
        is_pair = ~(clash.reshape(measured.shape) | np.isnan(measured))
        total = np.where(is_pair, measured, 0.0).sum(axis=1)
        together = total / np.maximum(is_pair.sum(axis=1), 1)
        highest = together.max(initial=0.0)
        scores = (1 - weight) * places + weight * together / (highest if highest > 0 else 1.0)
        keyword_lists.append(_first_distinct(result, row, scores, n_terms, keep_repeats))
    return keyword_lists


def _by_part_of_speech(
    result: TopicResult,
    lists: Keywords,
    n_terms: int,
    keep_repeats: bool,
    *,
    nlp: Any = None,
    patterns: Iterable[str] = PATTERNS,
    n_documents: int = 200,
    min_share: float = 0.5,
) -> Keywords:
    matching = matching_terms(result, lists, nlp, patterns, n_documents, min_share)
    return [_first_distinct(result, row, None, n_terms, keep_repeats) for row in matching]


METHODS: Mapping[str, tuple[Callable[..., Keywords], int]] = {
    "diverse": (_diverse, 30),
    "embedding": (_by_embedding, 100),
    "npmi": (_by_npmi, 30),
    "part_of_speech": (_by_part_of_speech, 100),
}
"""The functions, and their default numbers of candidates."""


def _first_distinct(
    result: TopicResult,
    row: Sequence[tuple[str, float]],
    scores: Float64Array | None,
    n: int,
    keep_repeats: bool,
) -> list[tuple[str, float]]:
    """Return the best `n` terms, without terms that begin or end with a stem of a better one."""
    if scores is not None:
        order = np.argsort(-scores, kind="stable").tolist()
        row = [(row[i][0], float(scores[i])) for i in order]
    if keep_repeats:
        return list(row[:n])
    languages = languages_of(result)
    selected: list[tuple[str, float]] = []
    seen: list[Any] = []
    for term, score in row:
        stems = stems_of(term, languages)
        if len(selected) == n:
            break
        if not any(repeats(stems, other) for other in seen):
            selected.append((term, score))
            seen.append(stems)
    return selected


def _columns_of(result: TopicResult, lists: Keywords) -> tuple[Int64Array, list[Int64Array]]:
    """Return the columns of all terms in lists, and the position of each list's terms in them."""
    terms = {term for row in lists for term, _ in row}
    column = {term: i for i, term in enumerate(result.term_counts.terms) if term in terms}
    pool = np.array(sorted(column.values()), dtype=np.int64)
    ids = [np.array([column[term] for term, _ in row], dtype=np.int64) for row in lists]
    return pool, [np.searchsorted(pool, row) for row in ids]


def _vectors(
    result: TopicResult,
    lists: Keywords,
    encoder: Encoder | str | None,
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return a unit vector of each topic, and of each of its candidates."""
    pool, places = _columns_of(result, lists)
    origin: Float64Array = np.zeros(result.embeddings.shape[1])
    if isinstance(encoder, str) and encoder == DOCUMENTS:
        if result.n_topics > 1:  # a single topic has no contrast
            origin = result.embeddings.mean(axis=0, dtype=np.float64)
        of_terms = term_embeddings(
            result.term_counts.counts, result.embeddings, pool, origin=origin
        )
    else:
        of_terms = _encoded(result, encoder, pool)
    topics = []
    for members in _central(result):
        mean = result.embeddings[members].mean(axis=0, dtype=np.float64) - origin
        length = np.sqrt(np.einsum("d,d->", mean, mean))
        topics.append((mean / (length or 1.0)).astype(np.float32))
    return topics, [of_terms[place] for place in places]


def _encoded(result: TopicResult, encoder: Encoder | str | None, pool: Int64Array) -> FloatArray:
    """Encode terms by the encoder of the fit, loaded or passed."""
    or_else = ', or pass "documents" for the mean of the documents that hold a term'
    encoder = encoder_of_fit(result, encoder, or_else)
    width = result.embeddings.shape[1]
    if not len(pool):
        return np.zeros((0, width), dtype=np.float32)
    terms = [result.term_counts.terms[column] for column in pool.tolist()]
    vectors, _ = encode_documents(encoder, terms, np.arange(len(terms)), None)
    if vectors.shape[1] != width:
        expected = f"one of {width} dimensions, as the documents have"
        reason = f"{encoder.name} with {vectors.shape[1]}"
        raise InputError("encoder", expected, found=reason)
    return vectors


def _central(result: TopicResult) -> list[Int64Array]:
    """Return the documents whose mean represents each topic."""
    labels = result.clustering.labels
    return [
        result.documents.of_row[np.array(topic.representatives, dtype=np.int64)]
        if len(topic.representatives)
        else np.flatnonzero(labels == topic.topic_id)
        for topic in result.topics
    ]


def with_keywords(
    result: TopicResult, keywords: Any, *, method: str = "given", topics: Any = None
) -> TopicResult:
    """Return the result with other keywords, and with automatic names from them.

    Clusters, term weights and stability stay the same. Names from a person or from constraints stay
    as well. A later edit that describes topics again, such as a merge, chooses their keywords by
    class-TF-IDF.

    Parameters
    ----------
    result : TopicResult
    keywords : sequence of sequence of (str, float)
        The keywords of each topic, best first, with their scores, as `keywords` returns them. A
        topic with an empty list keeps its keywords, and a decision reports it.
    method : str
        Description of the method, for the history.
    topics : sequence of int, optional
        Topics of the lists, in their order; by default all.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        If a list is missing or holds unknown terms, or if a topic occurs twice.
    """
    if not isinstance(method, str) or not method.strip():
        raise InputError("method", "a short description of the method", method)
    ids = list(range(result.n_topics))
    if topics is not None:
        ids = [checked_topic_id(result, topic) for topic in topics]
        if len(set(ids)) < len(ids):
            raise InputError("topics", "different topic ids", ids)
    by_topic = dict(zip(ids, checked_keywords(result, keywords, "keywords", ids), strict=True))
    changed = {topic: row for topic, row in by_topic.items() if row}
    described = list(result.topics)
    for number, row in changed.items():
        described[number] = dataclasses.replace(
            described[number],
            keywords=tuple(term for term, _ in row),
            weights=tuple(score for _, score in row),
            keywords_auc=None,
        )
    renamed = [t for t in described if t.topic_id in changed and not (t.is_named or t.is_seeded)]
    ids_renamed = {topic.topic_id for topic in renamed}
    other_labels = [topic.label for topic in described if topic.topic_id not in ids_renamed]
    labels = unique_labels((topic.keywords for topic in renamed), reserved=other_labels)
    for topic, label in zip(renamed, labels, strict=True):
        described[topic.topic_id] = dataclasses.replace(topic, label=label, label_auc=None)
    parameters = {"topics": list(by_topic), "keywords": list(by_topic.values()), "method": method}
    message = f"{len(changed)} topics got keywords by another method: {method}"
    stay = range(result.n_topics)
    edit = edit_of(result, "with_keywords", parameters, message, sorted(by_topic), stay)
    decisions = result.decisions
    without = [str(topic) for topic in sorted(by_topic) if not by_topic[topic]]
    if without:
        ids_kept = ", ".join(without)
        message = f"Topics that keep their keywords, because {method} found none: {ids_kept}."
        decisions = (*decisions, Decision("terms", "keywords_kept", without, message))
    return dataclasses.replace(
        result, topics=tuple(described), decisions=decisions, history=(*result.history, edit)
    )


def checked_keywords(
    result: TopicResult, lists: Any, parameter: str, topics: Sequence[int]
) -> Keywords:
    """Check lists of terms with scores, and that the result has these terms."""
    if not isinstance(lists, Sequence) or len(lists) != len(topics):
        expected = f"a list of (term, score) for each of the {len(topics)} topics"
        raise InputError(parameter, expected, lists)
    terms = set(result.term_counts.terms)
    checked = []
    for topic, items in zip(topics, lists, strict=True):
        scores: dict[str, float] = {}
        for item in items:
            if isinstance(item, str) or not isinstance(item, Sequence) or len(item) != 2:
                raise InputError(parameter, f"pairs (term, score) of topic {topic}", item)
            term, score = item
            if not is_number(score) or not math.isfinite(score):
                raise InputError(parameter, f"finite scores of topic {topic}", score)
            if term not in terms or term in scores:
                expected = f"different terms of result.term_counts.terms for topic {topic}"
                raise InputError(parameter, expected, term)
            scores[term] = float(score)
        checked.append(list(scores.items()))
    return checked
