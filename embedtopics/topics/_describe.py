"""From labels to topics: term weights, keywords, labels and representative documents."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from embedtopics._utils.display import excerpt, spell_count
from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.corpus._texts import repeated_lines
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int32Array, TermWeighting
from embedtopics.results import Decision
from embedtopics.terms._counts import count_by_topic, count_terms
from embedtopics.terms._keywords import keywords, unique_labels
from embedtopics.terms._languages import language_of
from embedtopics.terms._phrases import common_phrases, phrases_of
from embedtopics.terms._representative import representatives
from embedtopics.terms._rules import is_emoji
from embedtopics.terms._stop_words import account_names, function_words, stop_words_for
from embedtopics.terms._tokens import clean, skip_lines, social_pattern, tokenize
from embedtopics.terms._weighting import ClassTfidf
from embedtopics.terms.results import TermCounts, TokenStream, WordRules
from embedtopics.topics.results import Topic, TopicResult


@dataclass(frozen=True)
class TermSettings:
    """Parameters of counting terms and choosing keywords."""

    stop_words: str | Sequence[str] = "auto"
    ngram_range: tuple[int, int] = (1, 2)
    min_df: int | float | None = None
    n_keywords: int = 10
    n_representatives: int = 5
    extra_stop_words: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.stop_words != "auto" and "auto" in self.stop_words:
            more = tuple(word for word in self.stop_words if word != "auto")
            object.__setattr__(self, "stop_words", "auto")
            object.__setattr__(self, "extra_stop_words", (*more, *self.extra_stop_words))


def count_corpus_terms(
    tokens: TokenStream, labels: Int32Array, settings: TermSettings, languages: Sequence[str]
) -> TermCounts:
    """Count the terms of the documents."""
    if settings.stop_words != "auto":
        return count_by_settings(tokens, settings, languages)
    common = function_words(tokens, labels, languages)
    phrases = _phrases(tokens, labels, settings, languages, common)
    return count_by_settings(tokens, settings, languages, common, phrases)


def count_again(result: TopicResult, settings: TermSettings) -> TermCounts:
    """Count the terms of a result by other settings; its function words stay."""
    tokens, labels = result.tokens, result.clustering.labels
    languages = languages_of(result)
    before = term_settings_of(result)
    if settings.stop_words != "auto" or before.stop_words != "auto":
        return count_corpus_terms(tokens, labels, settings, languages)

    common = result.term_counts.function_words
    phrases = phrases_of(result.term_counts)
    has_other_pairs = settings.ngram_range != before.ngram_range
    if has_other_pairs or settings.extra_stop_words != before.extra_stop_words:
        phrases = _phrases(tokens, labels, settings, languages, common)
    return count_by_settings(tokens, settings, languages, common, phrases)


def _phrases(
    tokens: TokenStream,
    labels: Int32Array,
    settings: TermSettings,
    languages: Sequence[str],
    function_words: Sequence[str],
) -> tuple[str, ...]:
    """Return the phrases of function words that count as terms."""
    left_out = (*stop_words_for(languages, rules=tokens.rules), *settings.extra_stop_words)
    return common_phrases(tokens, labels, function_words, left_out)


def count_by_settings(
    tokens: TokenStream,
    settings: TermSettings,
    languages: Sequence[str],
    function_words: Sequence[str] = (),
    phrases: Sequence[str] = (),
) -> TermCounts:
    """Count terms without stop words and function words, and phrases of function words."""
    listed: Sequence[str] = ()
    extra: Sequence[str] = (*settings.stop_words, *settings.extra_stop_words)
    if settings.stop_words == "auto":
        listed = stop_words_for(languages, rules=tokens.rules)
        extra = settings.extra_stop_words

    return count_terms(
        tokens,
        ngram_range=settings.ngram_range,
        min_df=settings.min_df,
        stop_words=listed,
        extra_stop_words=extra,
        function_words=function_words,
        phrases=phrases,
    )


def describe_topics(
    counts: TermCounts,
    embeddings: FloatArray,
    clustering: Clustering,
    documents: DistinctDocuments,
    weighting: TermWeighting,
    settings: TermSettings,
    languages: Sequence[str],
    unchanged: Mapping[int, tuple[int, ...]] = MappingProxyType({}),
) -> tuple[tuple[Topic, ...], csr_matrix]:
    """Return the topics, and the weights of their terms (n_topics, n_terms).

    `unchanged` holds representative rows that need not be chosen again, by topic.
    """
    labels = clustering.labels
    n_topics = int(labels.max(initial=NOISE)) + 1
    if n_topics == 0:
        return (), csr_matrix((0, len(counts.terms)), dtype=np.float64)
    topic_counts = count_by_topic(counts.counts, labels, n_topics, documents.weights)
    topic_terms = csr_matrix(topic_counts.shape, dtype=np.float64)
    if topic_counts.nnz:
        fitted = weighting.fit(topic_counts)
        topic_terms = csr_matrix(fitted.transform(topic_counts), dtype=np.float64)
    lists = keywords(
        topic_terms,
        counts,
        embeddings,
        n=settings.n_keywords,
        languages=languages,
        labels=labels,
    )
    names = unique_labels([[term for term, _ in row] for row in lists])
    typical = representatives(
        embeddings,
        np.where(np.isin(labels, list(unchanged)), NOISE, labels),
        clustering.probabilities,
        n=settings.n_representatives,
        n_topics=n_topics,
    )
    rows_of = [tuple(documents.first_rows[members].tolist()) for members in typical]
    inside = labels != NOISE
    sizes = np.bincount(labels[inside], documents.weights[inside], minlength=n_topics).astype(int)
    n_texts = int(documents.weights.sum())
    topics = tuple(
        Topic(
            topic_id=topic,
            name=names[topic],
            size=int(sizes[topic]),
            share=float(sizes[topic] / n_texts),
            keywords=tuple(term for term, _ in lists[topic]),
            weights=tuple(float(weight) for _, weight in lists[topic]),
            representatives=unchanged.get(topic, rows_of[topic]),
            persistence=float(clustering.persistence[topic]),
        )
        for topic in range(n_topics)
    )
    return topics, topic_terms


def describe_again(
    result: TopicResult,
    clustering: Clustering,
    unchanged: Mapping[int, tuple[int, ...]] = MappingProxyType({}),
) -> tuple[tuple[Topic, ...], csr_matrix]:
    """Describe the topics of other labels with the settings of a result."""
    topics, topic_terms = describe_topics(
        result.term_counts,
        result.embeddings,
        clustering,
        result.distinct,
        weighting_of(result),
        term_settings_of(result),
        languages_of(result),
        unchanged,
    )
    return named_by_texts(topics, result.corpus.texts), topic_terms


def named_by_texts(topics: Sequence[Topic], texts: Sequence[str]) -> tuple[Topic, ...]:
    """Name topics without terms by the start of their most central text."""
    starts = [excerpt(texts[topic.representatives[0]], 40) for topic in topics]
    names = unique_labels(
        topic.keywords or ([f"\u201c{start}\u201d"] if start else [])
        for topic, start in zip(topics, starts, strict=True)
    )
    return tuple(replace(one, name=name) for one, name in zip(topics, names, strict=True))


def weighted_words(result: TopicResult, n_terms: int) -> list[list[tuple[str, float]]]:
    """Return the best single words of every topic, chosen like its keywords, with their weights."""
    return keywords(
        result.topic_terms,
        result.term_counts,
        result.embeddings,
        n=n_terms,
        languages=tuple(result.settings.get("languages", ())),
        ngram_range=(1, 1),
    )


def top_words(result: TopicResult, n_terms: int = 10) -> list[list[str]]:
    """Return the best single words of every topic, best first."""
    return [[term for term, _ in row] for row in weighted_words(result, n_terms)]


TEXTS, LEFT_OUT = "texts", "left out"
"""Setting of a result that is shared without its texts."""
FITTED_ROWS = "n_fitted_rows"
"""Setting of an extended result: the first rows, which are those of the fit."""


def refuse_without_texts(result: TopicResult) -> None:
    """Raise InputError for a result without texts, before its words are needed."""
    if result.settings.get(TEXTS) == LEFT_OUT:
        raise InputError(
            "the result was shared without its texts, so its topics cannot be described again; "
            "use the result with texts"
        )


def describe_weighting(weighting: TermWeighting | None) -> dict[str, Any] | str:
    """Return the parameters of a `ClassTfidf` as JSON holds them, or the repr of another one."""
    if weighting is None or type(weighting) is ClassTfidf:
        return {"name": ClassTfidf.__name__, **(weighting or ClassTfidf()).get_params()}
    return repr(weighting)


def weighting_of(result: TopicResult) -> TermWeighting:
    """Return the weighting of a result, unfitted; a copy of a custom one."""
    refuse_without_texts(result)
    if result.weighting is not None:
        return copy.deepcopy(result.weighting)
    return recorded_weighting(result.settings.get("weighting"))


def fitted_weighting(result: TopicResult, topic_counts: csr_matrix) -> Any:
    """Return the weighting of a result, fitted to the counts of its topics."""
    return weighting_of(result).fit(topic_counts)


def custom_weighting(weighting: TermWeighting) -> TermWeighting | None:
    """Return a weighting that JSON cannot hold, or None."""
    return None if type(weighting) is ClassTfidf else weighting


def recorded_weighting(recorded: dict[str, Any] | str | None) -> TermWeighting:
    """Return the weighting of a description by `describe_weighting`."""
    if recorded is None:
        return ClassTfidf()
    if isinstance(recorded, dict) and recorded.get("name") == ClassTfidf.__name__:
        # Options that went; a folder may hold them.
        if not recorded.get("sqrt_tf") and not recorded.get("seed_terms"):
            return ClassTfidf(bm25=recorded["bm25"])
    raise InputError(
        f"the weighting {recorded} is a custom object, which files do not hold; pass it to "
        "update_terms again"
    )


def term_settings_of(result: TopicResult) -> TermSettings:
    """Return the settings of a result's terms."""
    settings = result.settings
    stop_words = settings.get("stop_words", "auto")
    span = settings.get("ngram_range", (1, 2))
    return TermSettings(
        stop_words=stop_words if stop_words == "auto" else tuple(stop_words),
        ngram_range=(int(span[0]), int(span[1])),
        min_df=settings.get("min_df"),
        n_keywords=int(settings.get("n_keywords", TermSettings.n_keywords)),
        extra_stop_words=tuple(settings.get("extra_stop_words", ())),
    )


def languages_of(result: TopicResult) -> tuple[str, ...]:
    """Return the languages whose stop words and stems apply."""
    return tuple(result.settings.get("languages", ()))


TEXTS_TO_TELL = 1_000
"""Texts with a topic whose language is detected."""


def language_information(topics: Int32Array, codes: Sequence[str]) -> float:
    """Return Theil's U: the share of the entropy of the languages that the topics explain.

    It is the mutual information over the entropy of the languages, less the bias to first order,
    (n_topics - 1) (n_languages - 1) / 2n (Miller 1955).
    """
    from sklearn.metrics import mutual_info_score

    n, n_of_language = len(topics), np.unique(codes, return_counts=True)[1]
    chance = (len(np.unique(topics)) - 1) * (len(n_of_language) - 1) / (2 * n)
    entropy = -(n_of_language / n * np.log(n_of_language / n)).sum()
    information = mutual_info_score(topics, codes) - chance
    return float(np.clip(information / max(entropy, 1e-12), 0.0, 1.0))


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
        f"The topic of a text explains {share:.0%} of the entropy of its language "
        f"({', '.join(languages)}; {len(pairs):,} texts). A multilingual encoder reduces this: "
        'encoder="multilingual-e5-small".'
    )
    return [Decision("clustering", "language_information", round(share, 4), message)]


def tokenize_documents(texts: Sequence[str], rules: WordRules, rows: Sequence[int]) -> TokenStream:
    """Split texts into words. If most have none, emoji, tags, names and addresses are words."""
    tokens = tokenize(texts, rules=rules, rows=rows)
    has_words = np.diff(tokens.offsets) > 0
    if rules.social or rules.function is not None or 2 * has_words.sum() >= len(texts):
        return tokens
    return tokenize(texts, rules=replace(rules, social="kept"), rows=rows)


def without_boilerplate(
    tokens: TokenStream, texts: Sequence[str]
) -> tuple[TokenStream, list[Decision]]:
    """Skip the words of lines that many texts repeat, such as signatures."""
    lines, holders = repeated_lines(texts)
    if not lines:
        return tokens, []
    first, most = max(lines.items(), key=lambda line: line[1])
    counted = spell_count(len(lines), "line", "lines")
    message = f"Left out of the terms: {counted} that several texts repeat word for word, such as "
    message += f"{excerpt(first, 80)!r} ({most:,} texts). A list of stop_words keeps them."
    note = Decision("terms", "boilerplate", lines, message)
    return skip_lines(tokens, texts, lines, holders), [note]


CLOSING_TEXTS, CLOSING = 0.03, 0.95
"""Share of the texts that a closing word ends, at least twenty, and of its occurrences that do: the
name of an agency, the tag of a campaign. Chosen on nineteen corpora: three have such words. Of the
fifteen others, one has ("cont"). None of these words is a subject."""


def without_subject(tokens: TokenStream, texts: Sequence[str]) -> tuple[list[str], list[Decision]]:
    """Return the names of accounts and the words that close many texts."""
    notes, closing = [], closing_words(tokens)
    if accounts := account_names(texts, tokens):
        counted = spell_count(len(accounts), "name of an account", "names of accounts")
        message = f"Left out of the terms: {counted}, such as @{accounts[0]}; "
        message += 'words="social" keeps them.'
        notes.append(Decision("terms", "accounts", list(accounts), message))
    if closing:
        message = "Left out of the terms, because many texts end with them and hardly another has "
        message += f"them: {', '.join(closing)}. A list of stop_words keeps them."
        notes.append(Decision("terms", "closing_words", closing, message))
    return [*accounts, *closing], notes


def closing_words(tokens: TokenStream) -> list[str]:
    """Return the words that end many texts, or stand before such a word, and hardly elsewhere."""
    begins, ends = tokens.offsets[:-1], tokens.offsets[1:].copy()
    n_words, least = len(tokens.words), max(20.0, CLOSING_TEXTS * len(begins))
    occurrences = np.bincount(tokens.ids, minlength=n_words)
    is_closing = np.zeros(n_words, dtype=bool)
    while True:
        has_word = np.flatnonzero(ends > begins)
        last = tokens.ids[ends[has_word] - 1]
        n_last = np.bincount(last, minlength=n_words)
        new = (n_last >= least) & (n_last >= CLOSING * occurrences) & ~is_closing
        if not new.any():
            return [tokens.words[i] for i in np.flatnonzero(is_closing).tolist()]
        is_closing |= new
        ends[has_word[new[last]]] -= 1


def count_social_tokens(texts: Iterable[str]) -> dict[str, int]:
    """Count the #tags, @names, emoji and web addresses in texts."""
    counted, rules = {"#tags": 0, "@names": 0, "emoji": 0, "addresses": 0}, WordRules(social="kept")
    for text in texts:
        for match in social_pattern().finditer(clean(text, rules)):
            kind = "emoji" if is_emoji(match[0]) else "addresses"
            counted[{"#": "#tags", "@": "@names"}.get(match[0][0], kind)] += 1
    return counted
