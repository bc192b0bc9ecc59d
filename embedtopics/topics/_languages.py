"""Mutual information of topics and languages, and the keywords of topics by language."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pandas as pd

from embedtopics._utils.checks import checked_count
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._languages import language_of
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.evaluation.results import Estimate
from embedtopics.protocols import Float64Array, FloatArray, Int32Array
from embedtopics.terms._counts import count_by_topic
from embedtopics.terms._keywords import keywords, term_embeddings
from embedtopics.topics._describe import languages_of, weigh, weighting_of
from embedtopics.topics.results import TopicResult

TEXTS_TO_TELL = 1_000
"""Texts with a topic whose language is detected."""


def language_information(topics: Int32Array, codes: Sequence[str], seed: int = 0) -> Estimate:
    """Return Theil's U: the share of the entropy of the languages that the topics explain.

    It is the mutual information over the entropy of the languages, less the bias to first order,
    (n_topics - 1) (n_languages - 1) / 2n (Miller 1955).
    """
    from embedtopics.evaluation._bootstrap import estimate_of_counts

    topic, language = (np.unique(values, return_inverse=True)[1] for values in (topics, codes))
    n, n_topics, n_languages = len(topic), topic.max() + 1, language.max() + 1
    cell = np.zeros((n, n_topics * n_languages))
    cell[np.arange(n), topic * n_languages + language] = 1
    chance = (n_topics - 1) * (n_languages - 1) / (2 * n)

    def measure(times: Float64Array) -> Float64Array:
        table = (times @ cell).reshape(-1, n_topics, n_languages) / n
        of_topic, of_language = table.sum(axis=2), table.sum(axis=1)
        entropies = [_entropy(p.reshape(len(p), -1)) for p in (of_topic, of_language, table)]
        information = entropies[0] + entropies[1] - entropies[2] - chance
        return np.asarray(np.clip(information / np.maximum(entropies[1], 1e-12), 0.0, 1.0))

    return estimate_of_counts(measure, n, 500, seed)


def _entropy(shares: Float64Array) -> Float64Array:
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logs).sum(axis=1))


def leakage_decisions(
    texts: Sequence[str], labels: Int32Array, languages: tuple[str, ...]
) -> list[Decision]:
    """Return a decision on how much the topics depend on the languages; none for one language."""
    inside = np.flatnonzero(labels >= 0)  # documents are in the order of their hashes
    codes = {row: language_of(texts[row]) for row in inside[:TEXTS_TO_TELL].tolist()}
    pairs = [(labels[row], code) for row, code in codes.items() if code in languages]
    if len({code for _, code in pairs}) < 2:
        return []
    topics, detected = zip(*pairs, strict=True)
    share = language_information(np.array(topics, dtype=np.int32), detected)
    message = (
        f"The topic of a text explains {share.value:.0%} (95 % interval {share.low:.0%} to "
        f"{share.high:.0%}) of the entropy of its language ({', '.join(languages)}; "
        f"{len(pairs):,} texts). To reduce this, use a multilingual encoder and set "
        "across_languages=True in the model."
    )
    figures = {"share": share.value, "low": share.low, "high": share.high}
    value = {name: round(figure, 4) for name, figure in figures.items()}
    return [Decision("clustering", "language_information", value, message)]


TEXTS_TO_READ = 200
"""Texts of a topic whose language is detected for its keywords."""


def keywords_by_language(
    result: TopicResult, *, n_terms: int = 5, by: str | None = None
) -> pd.DataFrame:
    """Tabulate the keywords of topics in each language, side by side.

    Terms are weighted within each language. A row holds terms of different languages that are each
    other's nearest, by the mean vector of the texts with the term, relative to the mean of the
    language. With a multilingual encoder these are often translations.

    Parameters
    ----------
    result : TopicResult
    n_terms : int
        Keywords of a topic in each language.
    by : str, optional
        Column of the corpus with the languages. By default the languages of the result (see
        ``languages=`` of the model) are detected in at most 200 texts of each topic.

    Returns
    -------
    DataFrame
        Columns topic, label, and one column of terms per language, most texts first; "" if the
        language has no matching term.

    Raises
    ------
    InputError
        If fewer than two languages have texts in topics.

    Examples
    --------
    >>> import numpy as np
    >>> from embedtopics import Corpus, TopicModel
    >>> points = np.repeat([[1.0, 0.0], [0.0, 1.0]], 20, axis=0)
    >>> points = points + 0.1 * np.random.default_rng(0).normal(size=points.shape)
    >>> pairs = [["the apple", "la pomme"], ["the station", "la gare"]]
    >>> texts = [f"{pairs[i // 20][i % 2]} {i}" for i in range(40)]
    >>> corpus = Corpus({"text": texts, "language": ["en", "fr"] * 20})
    >>> result = TopicModel(languages=["en", "fr"]).fit(corpus, embeddings=points).result_
    >>> sorted(keywords_by_language(result, by="language")[["en", "fr"]].values.tolist())
    [['apple', 'pomme'], ['station', 'gare']]
    """
    checked_count(n_terms, "n_terms", 1)
    codes, labels = _codes(result, by), result.clustering.labels
    named, sizes = np.unique(codes[(labels != NOISE) & (codes != "")], return_counts=True)
    languages = named[np.argsort(-sizes, kind="stable")].tolist()
    if len(languages) < 2:
        detected, remedy = ", ".join(languages) or "none", "give the column of the languages"
        raise InputError("by", "two languages or more", found=detected, remedy=remedy)
    lists = [_of_language(result, codes == code, code, n_terms) for code in languages]
    rows = [
        {"topic": topic.topic_id, "label": topic.label, **dict(zip(languages, row, strict=True))}
        for topic in result.topics
        for row in _side_by_side([of_topic[topic.topic_id] for of_topic in lists])
    ]
    return pd.DataFrame(rows, columns=["topic", "label", *languages])


def _codes(result: TopicResult, by: str | None) -> np.ndarray:
    """Return the language of each document, "" if it was not detected."""
    documents, labels = result.documents, result.clustering.labels
    codes = np.full(len(documents), "", dtype=object)
    if by is not None:
        if by not in result.corpus.metadata.columns:
            raise InputError("by", "a column of the corpus", by)
        codes[:] = result.corpus.metadata[by].iloc[documents.first_rows].fillna("").astype(str)
        return codes
    texts, languages = result.corpus.document_texts(), languages_of(result)
    for topic in range(result.n_topics):
        for row in np.flatnonzero(labels == topic)[:TEXTS_TO_READ].tolist():
            code = language_of(texts[row])
            codes[row] = code if code in languages else ""
    return codes


def _of_language(
    result: TopicResult, is_in: np.ndarray, code: str, n_terms: int
) -> list[tuple[list[str], FloatArray]]:
    """Return each topic's terms in one language, and their vectors (n_terms, n_dimensions)."""
    counts, vectors = result.term_counts, result.embeddings[is_in]
    labels = np.where(is_in, result.clustering.labels, NOISE)
    of_topics = count_by_topic(counts.counts, labels, result.n_topics, result.documents.weights)
    weighed = weigh(weighting_of(result), of_topics, counts.terms)
    within = dataclasses.replace(counts, counts=counts.counts[np.flatnonzero(is_in)])
    lists = keywords(weighed, within, vectors, n=n_terms, languages=(code,))
    number = {term: column for column, term in enumerate(counts.terms)}
    terms = [[term for term, _ in row] for row in lists]
    columns = [np.array([number[term] for term in row], dtype=np.int64) for row in terms]
    middle = vectors.mean(axis=0)
    of_terms = [term_embeddings(within.counts, vectors, c, origin=middle) for c in columns]
    return list(zip(terms, of_terms, strict=True))


def _side_by_side(lists: list[tuple[list[str], FloatArray]]) -> list[list[str]]:
    """Return rows of terms, a column for each language, translations in one row."""
    (terms, vectors), *others = lists
    rows = [[term, *[""] * len(others)] for term in terms]
    for column, (more, of_more) in enumerate(others, start=1):
        mates = {}
        if terms and more:
            cosines = vectors @ of_more.T
            nearest, back = cosines.argmax(axis=1), cosines.argmax(axis=0)
            mates = {j: i for i, j in enumerate(nearest.tolist()) if back[j] == i}
        for j, term in enumerate(more):
            if j in mates:
                rows[mates[j]][column] = term
            else:
                rows.append([""] * column + [term] + [""] * (len(others) - column))
    return rows
