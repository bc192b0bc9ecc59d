"""Other terms for the same topics: stop words, n-grams, weighting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embedtopics._checks import optional_count
from embedtopics.errors import InputError
from embedtopics.protocols import TermWeighting
from embedtopics.results import Decision, TermCounts, TopicResult
from embedtopics.terms import TermRules, function_words, recount_terms, stop_words_for
from embedtopics.topics._log import Log, note_terms
from embedtopics.topics.describe import TermSettings
from embedtopics.topics.recorded import describe_weighting, languages_of, term_settings_of
from embedtopics.topics.relabeling import relabeled

__all__ = ["update_terms"]

WORD_NOTES = ("stop_words", "function_words", "no_stop_words")


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
    """Choose the terms of the topics anew, without fitting or tokenising again.

    What is not given stays as it is, and what is given is recorded in the settings, so that every
    later edit goes by it: a stop word does not come back. Topics, their documents and the names
    that were given by hand stay; names made of keywords follow the keywords.

    Parameters
    ----------
    result : TopicResult
    stop_words : "auto" or sequence of str, optional
        In place of the list that is used, extra words included. "auto" takes the lists of the
        result's languages and adds the words that the corpus uses in all topics alike; a
        sequence, even an empty one, replaces both.
    extra_stop_words : str or sequence of str, optional
        Single words to leave out beside all that are left out already.
    ngram_range : (int, int), optional
        Shortest and longest term in words.
    min_df : int or float, optional
        Documents that must hold a term; a float is a share of the documents.
    max_df : int or float, optional
        Documents that may hold a term at most.
    weighting : object with ``fit_transform(topic_counts)``, optional
        Such as `embedtopics.ClassTfidf` with ``bm25=True``.
    n_keywords : int, optional
        Keywords of each topic.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        Where a parameter is bad, or no term would be left.
    """
    settings = dict(result.settings)
    parameters = _given(
        stop_words=_checked_list(stop_words), extra_stop_words=_checked_extra(extra_stop_words),
        ngram_range=_checked_range(ngram_range), min_df=_checked_df("min_df", min_df),
        max_df=_checked_df("max_df", max_df), n_keywords=optional_count(n_keywords, "n_keywords"),
    )  # fmt: skip
    settings.update(parameters)
    if stop_words is None:
        before = _as_list(result.settings.get("extra_stop_words"))
        added = [w for w in settings.get("extra_stop_words") or () if w not in before]
        settings["extra_stop_words"] = [*before, *added]
    elif extra_stop_words is None:
        settings["extra_stop_words"] = []
    if weighting is not None:
        parameters["weighting"] = describe_weighting(weighting)
    counts = _recounted(result, settings)
    if not counts.terms and result.term_counts.terms:
        raise InputError("no term is left by these rules; leave out fewer words, or lower min_df")
    message = "; ".join([*_spell(parameters), *_unknown(result, parameters)])
    return relabeled(
        result,
        result.clustering.labels,
        result.memberships,
        list(result.topics),
        name="update_terms",
        parameters=parameters,
        message=f"chose terms anew: {message or 'by the same rules'}",
        follows=range(result.n_topics),
        weighting=weighting,
        settings=settings,
        term_counts=counts,
        decisions=_decisions(result, counts),
    )


def _as_list(value: Any) -> list[str]:
    """Return a list of the settings, empty where there is none."""
    return list(value or ())


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
    if new.stop_words != "auto":
        common: tuple[str, ...] = ()
    elif old.stop_words == "auto":
        common = counts.function_words
    else:
        common = function_words(result.tokens, result.clustering.labels)
    return recount_terms(
        result.tokens,
        counts,
        _rules(old, counts.function_words, result),
        _rules(new, common, result),
    )


def _rules(settings: TermSettings, common: tuple[str, ...], result: TopicResult) -> TermRules:
    listed = settings.stop_words
    words = stop_words_for(languages_of(result)) if listed == "auto" else tuple(listed)
    return TermRules(
        settings.ngram_range,
        settings.min_df,
        settings.max_df,
        (*words, *settings.extra_stop_words),
        common,
    )


def _decisions(result: TopicResult, counts: TermCounts) -> tuple[Decision, ...]:
    """Return what was decided, the words that are left out now in place of those before."""
    log = Log()
    note_terms(log, counts.stop_words, counts.function_words, languages_of(result))
    kept = [note for note in result.decisions if note.name not in WORD_NOTES]
    return (*kept, *log.decisions)


def _given(**parameters: Any) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}


def _spell(parameters: dict[str, Any]) -> list[str]:
    """Return in words what was asked for."""
    said = []
    if (words := parameters.get("stop_words")) is not None:
        said.append("stop words auto" if words == "auto" else f"{len(words):,} stop words given")
    if words := parameters.get("extra_stop_words"):
        shown = ", ".join(words[:12]) + (", ..." if len(words) > 12 else "")
        said.append(f"left out {shown}")
    if span := parameters.get("ngram_range"):
        said.append(f"terms of {span[0]} to {span[1]} words")
    said += [
        f"{name} {parameters[name]}"
        for name in ("min_df", "max_df", "n_keywords")
        if name in parameters
    ]
    if "weighting" in parameters:
        weighting = parameters["weighting"]
        said.append(f"weighed by {weighting if isinstance(weighting, str) else weighting['name']}")
    return said


def _unknown(result: TopicResult, parameters: dict[str, Any]) -> list[str]:
    """Say which words to leave out are in no text, so that a slip is seen."""
    known = {word.lower() for word in result.tokens.words}
    unknown = [w for w in parameters.get("extra_stop_words", ()) if w not in known]
    return [f"no text holds {', '.join(unknown)}"] if unknown else []


def _checked_list(words: Any) -> str | list[str] | None:
    if words is None or words == "auto":
        return words  # type: ignore[no-any-return]
    is_list = hasattr(words, "__iter__") and not isinstance(words, (str, bytes))
    listed = list(words) if is_list else []
    if not is_list or not all(isinstance(word, str) for word in listed):
        raise InputError(f'stop_words must be "auto" or a list of words; got {words!r}')
    return listed


def _checked_extra(words: Any) -> list[str] | None:
    if words is None:
        return None
    listed = [words] if isinstance(words, str) else words
    if not hasattr(listed, "__iter__") or isinstance(listed, bytes):
        raise InputError(f"extra_stop_words must be a list of words; got {words!r}")
    found: list[str] = []
    for word in listed:
        if not isinstance(word, str) or len(word.split()) != 1:
            raise InputError(
                f"extra_stop_words must be single words; got {word!r}; give each word of a phrase "
                "by itself"
            )
        found.append(word.strip().lower())
    return list(dict.fromkeys(found))


def _checked_range(span: Any) -> list[int] | None:
    if span is None:
        return None
    ends = list(span) if hasattr(span, "__iter__") and not isinstance(span, str) else []
    whole = all(hasattr(end, "__index__") and not isinstance(end, bool) for end in ends)
    if len(ends) != 2 or not whole or not 1 <= ends[0] <= ends[1] <= 9:
        raise InputError(
            f"ngram_range must be (shortest, longest), whole numbers from 1 to 9; got {span!r}"
        )
    return [int(end) for end in ends]


def _checked_df(name: str, limit: Any) -> int | float | None:
    if limit is None:
        return None
    if hasattr(limit, "__index__") and not isinstance(limit, bool) and int(limit) >= 1:
        return int(limit)
    if hasattr(limit, "__float__") and not hasattr(limit, "__index__") and 0 <= float(limit) <= 1:
        return float(limit)
    raise InputError(
        f"{name} must be a number of documents from 1 up, or a share from 0.0 to 1.0; got {limit!r}"
    )
