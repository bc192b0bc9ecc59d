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
from embedtopics.errors import InputError, MissingExtraError, ModelLoadError
from embedtopics.evaluation._coherence import npmi_of_pairs
from embedtopics.protocols import Encoder, Float64Array, FloatArray, Int64Array
from embedtopics.terms._keywords import keywords as best_keywords
from embedtopics.terms._keywords import term_embeddings, unique_labels
from embedtopics.terms._parts_of_speech import PATTERNS, parse_patterns, pattern_counts, tag_words
from embedtopics.terms._representative import best_terms, choose_diverse
from embedtopics.terms._stop_words import repeats, stems_of
from embedtopics.topics._describe import languages_of
from embedtopics.topics._relabel import checked_topic_id, edit_of
from embedtopics.topics._vectors import encode_documents, encoder_of_fit
from embedtopics.topics.results import TopicResult

Keywords: TypeAlias = list[list[tuple[str, float]]]
"""For each topic its terms, best first, with their scores."""

DOCUMENTS = "documents"
"""In place of an encoder: a term is the mean of the documents that hold it."""


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
        Of the terms of largest weight,

        - "embedding" takes those nearest to the mean of the topic's representative documents, as
          KeyBERT (Grootendorst 2020). Scores are cosines;
        - "diverse" takes terms by maximal marginal relevance (Carbonell and Goldstein 1998): the
          next is the highest of ``(1 - diversity) cos(i, topic) - diversity max_j cos(i, j)``;
        - "npmi" ranks by ``(1 - weight) (1 - rank / n) + weight c / max c``, with c the mean NPMI
          with the other candidates (Aletras and Stevenson 2013). Never compare the coherence of
          such lists with that of others: they were chosen by it;
        - "part_of_speech" keeps terms most of whose occurrences in the topic's central documents
          are noun phrases, or match other patterns.
    n_terms : int
        Keywords of each topic at most.
    n_candidates : int, optional
        Terms of each topic to choose from; by default 30 for "diverse" and "npmi", else 100.
    candidates : sequence of sequence of (str, float), optional
        Lists to choose from instead, such as those of another method.
    keep_repeats : bool
        Whether a keyword may share a stem at its ends with a better one.
    **options
        - "embedding" and "diverse": `encoder` of the candidates, by default that of the fit
          ("documents": a term is the mean of the documents that hold it);
        - "diverse": `diversity`, from 0 (as "embedding") to 1 (0.3);
        - "npmi": `weight`, from 0 (the order of the candidates) to 1 (0.5); `window` in words (10),
          None for whole documents;
        - "part_of_speech": `nlp`, a spaCy pipeline or its name; `patterns` of universal parts of
          speech, "|" between alternatives; `n_documents` that are read (200); `min_share` of a
          term's occurrences that match (0.5).

    Returns
    -------
    list of list of (str, float)
        For each topic its keywords, best first, with their scores.

    Raises
    ------
    InputError
        Where the encoder cannot be made again or does not match, or a parameter is bad.
    MissingExtraError, ModelLoadError
        Where spaCy is not installed, or there is no such pipeline.

    Examples
    --------
    >>> found = keywords(result, "diverse", encoder="documents")  # doctest: +SKIP
    >>> with_keywords(result, found, method="diverse")  # doctest: +SKIP
    """
    if method not in METHODS:
        raise InputError("method", f"one of {', '.join(METHODS)}", method)
    choose, default = METHODS[method]
    known = list(inspect.signature(choose).parameters)[4:]
    for name in options:
        if name not in known:
            raise InputError(name, f"left out; {method!r} takes {', '.join(known)}")
    n_terms = checked_count(n_terms, "n_terms")
    n_candidates = checked_count(default if n_candidates is None else n_candidates, "n_candidates")
    if candidates is not None:
        lists = checked_keywords(result, candidates, "candidates", range(result.n_topics))
    elif method == "npmi":
        lists = best_keywords(
            result.topic_terms, result.term_counts, result.embeddings, n=n_candidates,
            languages=languages_of(result),
        )  # fmt: skip
    else:
        lists = candidates_of(result, n_candidates)
    return choose(result, lists, n_terms, keep_repeats, **options)


def candidates_of(result: TopicResult, n: int) -> Keywords:
    """Return the terms of largest weight of each topic."""
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
    chosen = []
    for row, topic, terms in zip(lists, topic_vectors, term_vectors, strict=True):
        cosines = np.einsum("id,d->i", terms, topic, dtype=np.float64)
        similarity = np.einsum("id,jd->ij", terms, terms, dtype=np.float64)
        stems = [stems_of(term, languages) for term, _ in row]

        def clash(i: int, j: int, stems: list[Any] = stems) -> bool:
            return not keep_repeats and repeats(stems[i], stems[j])

        picked = choose_diverse(cosines, similarity, n_terms, diversity, clash, least=-1.0)
        chosen.append([(row[i][0], float(cosines[i])) for i in picked])
    return chosen


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
    chosen = []
    for row, measured in zip(lists, pairs, strict=True):
        stems = [stems_of(term, languages) for term, _ in row]
        places = 1.0 - np.arange(len(row)) / max(len(row), 1)
        clash = np.array([[repeats(a, b) for b in stems] for a in stems], dtype=bool)
        known = ~(clash.reshape(measured.shape) | np.isnan(measured))
        total = np.where(known, measured, 0.0).sum(axis=1)
        together = total / np.maximum(known.sum(axis=1), 1)
        highest = together.max(initial=0.0)
        scores = (1 - weight) * places + weight * together / (highest if highest > 0 else 1.0)
        chosen.append(_first_distinct(result, row, scores, n_terms, keep_repeats))
    return chosen


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
    n_documents = checked_count(n_documents, "n_documents")
    min_share = checked_share(min_share, "min_share")
    parsed = parse_patterns(patterns)
    pipeline = _pipeline(nlp)
    texts = result.corpus.texts
    chosen = []
    for row, members in zip(lists, _documents_to_read(result, lists, n_documents), strict=True):
        rows = result.documents.first_rows[members].tolist()
        docs = _read(pipeline, [texts[i] for i in rows])
        tagged = tag_words(docs, result.tokens.rules)
        counted = pattern_counts([term for term, _ in row], tagged, parsed)
        kept = [
            (term, score)
            for term, score in row
            if counted[term][0] > 0 and counted[term][0] >= min_share * counted[term][1]
        ]
        chosen.append(_first_distinct(result, kept, None, n_terms, keep_repeats))
    return chosen


METHODS: Mapping[str, tuple[Callable[..., Keywords], int]] = {
    "diverse": (_diverse, 30),
    "embedding": (_by_embedding, 100),
    "npmi": (_by_npmi, 30),
    "part_of_speech": (_by_part_of_speech, 100),
}
"""The functions, and how many candidates they choose from."""


def _first_distinct(
    result: TopicResult,
    row: Sequence[tuple[str, float]],
    scores: Float64Array | None,
    n: int,
    keep_repeats: bool,
) -> list[tuple[str, float]]:
    """Return the best `n`, each without a stem at its ends that a better one has."""
    if scores is not None:
        order = np.argsort(-scores, kind="stable").tolist()
        row = [(row[i][0], float(scores[i])) for i in order]
    if keep_repeats:
        return list(row[:n])
    languages = languages_of(result)
    chosen: list[tuple[str, float]] = []
    seen: list[Any] = []
    for term, score in row:
        stems = stems_of(term, languages)
        if len(chosen) == n:
            break
        if not any(repeats(stems, other) for other in seen):
            chosen.append((term, score))
            seen.append(stems)
    return chosen


def _columns_of(result: TopicResult, lists: Keywords) -> tuple[Int64Array, list[Int64Array]]:
    """Return the terms that occur in lists, each once, and where each list's terms are there."""
    wanted = {term for row in lists for term, _ in row}
    column = {term: i for i, term in enumerate(result.term_counts.terms) if term in wanted}
    pool = np.array(sorted(column.values()), dtype=np.int64)
    ids = [np.array([column[term] for term, _ in row], dtype=np.int64) for row in lists]
    return pool, [np.searchsorted(pool, row) for row in ids]


def _vectors(
    result: TopicResult,
    lists: Keywords,
    encoder: Encoder | str | None,
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return a unit vector for each topic, and one for each of its candidates."""
    pool, places = _columns_of(result, lists)
    origin: Float64Array = np.zeros(result.embeddings.shape[1])
    if isinstance(encoder, str) and encoder == DOCUMENTS:
        if result.n_topics > 1:  # a single topic has nothing to differ from
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
    """Return the vectors of terms by the encoder of the fit, made again or given."""
    or_else = ', or "documents" for the mean of the documents that hold a term'
    encoder = encoder_of_fit(result, encoder, or_else)
    width = result.embeddings.shape[1]
    if not len(pool):
        return np.zeros((0, width), dtype=np.float32)
    terms = [result.term_counts.terms[column] for column in pool.tolist()]
    made, _ = encode_documents(encoder, terms, np.arange(len(terms)), None)
    if made.shape[1] != width:
        expected = f"one of {width} dimensions, as the documents have"
        found = f"{encoder.name} with {made.shape[1]}"
        raise InputError("encoder", expected, found=found)
    return made


def _central(result: TopicResult) -> list[Int64Array]:
    """Return the documents whose mean stands for each topic."""
    labels = result.clustering.labels
    return [
        result.documents.of_row[np.array(topic.representatives, dtype=np.int64)]
        if len(topic.representatives)
        else np.flatnonzero(labels == topic.topic_id)
        for topic in result.topics
    ]


MOST_CHARACTERS = 20_000
"""Beginning of a document that is read."""

NOT_NEEDED = ("parser", "ner", "lemmatizer", "entity_linker", "textcat", "senter")
"""Parts of a pipeline that have no say in parts of speech, and take most of its time."""


def _pipeline(nlp: Any) -> Any:
    """Return a spaCy pipeline, loaded where a name is given."""
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
            f"there is no spaCy pipeline {nlp!r} here; run python -m spacy download {nlp}, or "
            "give a pipeline that is loaded"
        ) from error


def _read(pipeline: Any, texts: Sequence[str]) -> list[Any]:
    """Run the pipeline on texts; refuse one that leaves all words without a part of speech."""
    most = min(MOST_CHARACTERS, int(getattr(pipeline, "max_length", MOST_CHARACTERS)))
    docs = list(pipeline.pipe([text[:most] for text in texts], disable=list(NOT_NEEDED)))
    words = [token for doc in docs for token in doc if not token.is_space]
    if words and not any(token.pos_ for token in words):
        expected = "a pipeline that assigns parts of speech, such as en_core_web_sm"
        parts = ", ".join(getattr(pipeline, "pipe_names", [])) or "no components"
        raise InputError("nlp", expected, found=parts)
    return docs


def _documents_to_read(result: TopicResult, lists: Keywords, n: int) -> list[Int64Array]:
    """Return the central documents of each topic, and some for the terms that these lack."""
    pool, places = _columns_of(result, lists)
    presence = result.term_counts.counts[:, pool].astype(bool)
    chosen = []
    for topic in range(result.n_topics):
        members = np.flatnonzero(result.clustering.labels == topic)
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


def with_keywords(
    result: TopicResult, keywords: Any, *, method: str = "given", topics: Any = None
) -> TopicResult:
    """Return the result with other keywords, and automatic names made of them.

    Clusters, weights of all terms, and stability stay as they are; so do the names of topics that
    were named by hand or asked for before the fit, or keep their keywords. An edit that describes
    topics anew, such as a merge, chooses their keywords by class-TF-IDF again.

    Parameters
    ----------
    result : TopicResult
    keywords : sequence of sequence of (str, float)
        For each topic its keywords, best first, with their scores, as `keywords` returns them. A
        topic whose list is empty keeps the keywords that it has, which is recorded.
    method : str
        How they were found, for the record.
    topics : sequence of int, optional
        Where the lists are for some topics only: which, in the order of the lists.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        Where lists are missing, or hold what is no term of the result; or a topic is named twice.
    """
    if not isinstance(method, str) or not method.strip():
        raise InputError("method", "a few words on how the keywords were found", method)
    ids = list(range(result.n_topics))
    if topics is not None:
        if isinstance(topics, (str, bytes)) or not isinstance(topics, Sequence):
            raise InputError("topics", "a list of topic ids", topics)
        ids = [checked_topic_id(result, topic) for topic in topics]
        if len(set(ids)) < len(ids):
            raise InputError("topics", "topic ids, each once", ids)
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
    kept = [topic.label for topic in described if topic.topic_id not in ids_renamed]
    made = unique_labels((topic.keywords for topic in renamed), taken=kept)
    for topic, label in zip(renamed, made, strict=True):
        described[topic.topic_id] = dataclasses.replace(topic, label=label, label_auc=None)
    parameters = {"topics": list(by_topic), "keywords": list(by_topic.values()), "method": method}
    message = f"{len(changed)} topics have keywords by another method: {method}"
    stay = range(result.n_topics)
    edit = edit_of(result, "with_keywords", parameters, message, sorted(by_topic), stay)
    decisions = result.decisions
    without = [str(topic) for topic in sorted(by_topic) if not by_topic[topic]]
    if without:
        ids_kept = ", ".join(without)
        message = f"Topics that keep the keywords they had, as {method} found none: {ids_kept}."
        decisions = (*decisions, Decision("terms", "keywords_kept", without, message))
    return dataclasses.replace(
        result, topics=tuple(described), decisions=decisions, history=(*result.history, edit)
    )


def checked_keywords(
    result: TopicResult, given: Any, parameter: str, topics: Sequence[int]
) -> Keywords:
    """Return lists of terms after making sure that they belong to a result."""
    if not _is_list(given) or len(given) != len(topics):
        raise InputError(
            parameter, f"a list of (term, score) for each of the {len(topics)} topics", given
        )
    known = set(result.term_counts.terms)
    checked = []
    for topic, items in zip(topics, given, strict=True):
        where = f"of topic {topic}"
        if not _is_list(items):
            raise InputError(parameter, f"a list of (term, score) {where}", items)
        found: dict[str, float] = {}
        for item in items:
            if not _is_list(item) or len(item) != 2 or not isinstance(item[0], str):
                raise InputError(parameter, f"pairs (term, score) {where}", item)
            term, score = item
            if not is_number(score) or not math.isfinite(score):
                raise InputError(parameter, f"finite scores {where}", score)
            if term not in known:
                remedy = "write terms as in result.term_counts.terms"
                raise InputError(parameter, f"terms of the result {where}", term, remedy)
            if term in found:
                raise InputError(parameter, f"terms {where}, each once", term)
            found[term] = float(score)
        checked.append(list(found.items()))
    return checked


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
