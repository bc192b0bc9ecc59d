"""Other terms for the same topics: stop words, n-grams, weighting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embedtopics._utils.checks import is_number, is_whole, optional_count
from embedtopics.errors import InputError
from embedtopics.protocols import TermWeighting
from embedtopics.terms._counts import TermRules, recount_terms
from embedtopics.terms._stop_words import function_words, stop_words_for
from embedtopics.terms.results import TermCounts
from embedtopics.topics._describe import (
    TermSettings,
    describe_weighting,
    languages_of,
    term_settings_of,
)
from embedtopics.topics._pipeline import Log, note_terms
from embedtopics.topics._relabel import relabeled
from embedtopics.topics.results import TopicResult

WORD_NOTES = ("stop_words", "function_words", "no_stop_words")
"""Names of the decisions that other terms replace."""


def update_terms(
    result: TopicResult,
    *,
    stop_words: str | Sequence[str] | None = None,
    extra_stop_words: str | Sequence[str] | None = None,
    ngram_range: tuple[int, int] | None = None,
    min_df: int | float | None = None,
    max_df: int | float | None = None,
    weighting: TermWeighting | None = None,
    n_keywords: int | None = None,
) -> TopicResult:
    """Choose the terms of the topics anew, without fitting or tokenizing again.

    What is not given stays as it is. Topics, their documents and given labels stay; labels made of
    keywords follow the keywords.

    Parameters
    ----------
    result : TopicResult
    stop_words : "auto" or sequence of str, optional
        Replaces the list in use, extra words included. "auto" takes the lists of the result's
        languages and the words that the corpus uses in all topics to a similar extent.
    extra_stop_words : str or sequence of str, optional
        Single words to leave out in addition.
    ngram_range : (int, int), optional
        Shortest and longest term in words.
    min_df, max_df : int or float, optional
        Documents that must, and may at most, hold a term; a float is a share of the documents.
    weighting : TermWeighting, optional
        Such as `embedtopics.ClassTfidf` with ``bm25=True``.
    n_keywords : int, optional
        Keywords of each topic.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        If a parameter is bad, or no term would be left.
    """
    given = {
        "stop_words": _checked_list(stop_words),
        "extra_stop_words": _checked_extra(extra_stop_words),
        "ngram_range": _checked_range(ngram_range),
        "min_df": _checked_df("min_df", min_df),
        "max_df": _checked_df("max_df", max_df),
        "n_keywords": optional_count(n_keywords, "n_keywords"),
    }
    parameters = {name: value for name, value in given.items() if value is not None}
    settings = {**result.settings, **parameters}
    if stop_words is None:
        before = list(result.settings.get("extra_stop_words") or ())
        added = [w for w in settings.get("extra_stop_words") or () if w not in before]
        settings["extra_stop_words"] = [*before, *added]
    elif extra_stop_words is None:
        settings["extra_stop_words"] = []
    counts = _recounted(result, settings)
    if not counts.terms and result.term_counts.terms:
        raise InputError("no term is left by these rules; leave out fewer words, or lower min_df")
    log = Log()
    note_terms(log, counts.stop_words, counts.function_words, languages_of(result))
    kept = [note for note in result.decisions if note.name not in WORD_NOTES]
    return relabeled(
        result,
        result.clustering.labels,
        result.memberships,
        list(result.topics),
        name="update_terms",
        parameters=parameters,
        message=_spell(result, parameters, weighting),
        follows=range(result.n_topics),
        weighting=weighting,
        settings=settings,
        term_counts=counts,
        decisions=(*kept, *log.decisions),
    )


def _recounted(result: TopicResult, settings: dict[str, Any]) -> TermCounts:
    """Count the terms by the new settings."""
    old, counts = term_settings_of(result), result.term_counts
    new = TermSettings(
        settings.get("stop_words", "auto"),
        tuple(settings.get("ngram_range", old.ngram_range)),
        settings.get("min_df"),
        max_df=settings.get("max_df", old.max_df),
        extra_stop_words=tuple(settings["extra_stop_words"]),
    )
    common: tuple[str, ...] = ()
    if new.stop_words == "auto":
        was_auto = old.stop_words == "auto"
        common = (
            counts.function_words
            if was_auto
            else function_words(result.tokens, result.clustering.labels)
        )
    rules = []
    for rule, words in ((old, counts.function_words), (new, common)):
        listed = rule.stop_words
        listed = stop_words_for(languages_of(result)) if listed == "auto" else tuple(listed)
        left_out = (*listed, *rule.extra_stop_words)
        rules.append(TermRules(rule.ngram_range, rule.min_df, rule.max_df, left_out, words))
    return recount_terms(result.tokens, counts, *rules)


def _spell(result: TopicResult, parameters: dict[str, Any], weighting: TermWeighting | None) -> str:
    """Return what was asked for, and which words to leave out are in no text, to show slips."""
    said = []
    if (words := parameters.get("stop_words")) is not None:
        said.append("stop words auto" if words == "auto" else f"{len(words):,} stop words given")
    extra = parameters.get("extra_stop_words", [])
    if extra:
        said.append(f"left out {', '.join(extra[:12])}" + (", ..." if len(extra) > 12 else ""))
    if span := parameters.get("ngram_range"):
        said.append(f"terms of {span[0]} to {span[1]} words")
    names = ("min_df", "max_df", "n_keywords")
    said += [f"{name} {parameters[name]}" for name in names if name in parameters]
    if weighting is not None:
        described = describe_weighting(weighting)
        name = described if isinstance(described, str) else described["name"]
        said.append(f"weighted by {name}")
    known = {word.lower() for word in result.tokens.words}
    if unknown := [word for word in extra if word not in known]:
        said.append(f"no text holds {', '.join(unknown)}")
    return f"chose terms anew: {'; '.join(said) or 'by the same rules'}"


def _checked_list(words: Any) -> str | list[str] | None:
    if words is None or (isinstance(words, str) and words == "auto"):
        return words
    is_list = hasattr(words, "__iter__") and not isinstance(words, (str, bytes))
    listed = list(words) if is_list else []
    if not is_list or not all(isinstance(word, str) for word in listed):
        raise InputError("stop_words", '"auto" or a list of words', words)
    return listed


def _checked_extra(words: Any) -> list[str] | None:
    if words is None:
        return None
    listed = [words] if isinstance(words, str) else words
    if not hasattr(listed, "__iter__") or isinstance(listed, bytes):
        raise InputError("extra_stop_words", "a list of words", words)
    found: dict[str, None] = {}
    for word in listed:
        if not isinstance(word, str) or len(word.split()) != 1:
            raise InputError("extra_stop_words", "single words", word)
        found[word.strip().lower()] = None
    return list(found)


def _checked_range(span: Any) -> list[int] | None:
    if span is None:
        return None
    ends = list(span) if hasattr(span, "__iter__") and not isinstance(span, str) else []
    if len(ends) != 2 or not all(map(is_whole, ends)) or not 1 <= ends[0] <= ends[1] <= 9:
        raise InputError("ngram_range", "(shortest, longest), whole numbers from 1 to 9", span)
    return [int(end) for end in ends]


def _checked_df(name: str, limit: Any) -> int | float | None:
    if limit is None:
        return None
    if is_whole(limit) and limit >= 1:
        return int(limit)
    if is_number(limit) and not is_whole(limit) and 0 <= limit <= 1:
        return float(limit)
    expected = "a number of documents from 1 up, or a share from 0.0 to 1.0"
    raise InputError(name, expected, limit)
