"""Lists of terms with scores, one for each topic: those to choose from, and those given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from embedtopics._checks import checked_count
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import TopicResult
from embedtopics.terms.best_terms import best_terms
from embedtopics.terms.stems import repeats, stems_of
from embedtopics.topics.recorded import languages_of

__all__ = [
    "Keywords", "candidates_of", "checked_keywords",
    "columns_of", "first_distinct",
]  # fmt: skip

Keywords: TypeAlias = list[list[tuple[str, float]]]
"""For each topic its terms, best first, with their scores."""


def candidates_of(result: TopicResult, given: Any, n: int) -> Keywords:
    """Return the terms that keywords are chosen from.

    Parameters
    ----------
    result : TopicResult
    given : sequence of sequence of (str, float), or None
        Lists of another road; None takes the terms of highest weight in `topic_terms`.
    n : int
        Candidates of each topic at most; lists that are given are taken whole.

    Raises
    ------
    InputError
        Where `n` is below 1 or what is given is no such lists.
    """
    n = checked_count(n, "n_candidates")
    if given is not None:
        return checked_keywords(result, given, "candidates", range(result.n_topics))
    terms = result.term_counts.terms
    return [
        [(terms[i], float(weight)) for i, weight in zip(ids, weights, strict=True)]
        for ids, weights in best_terms(result.topic_terms, result.term_counts, n)
    ]


def checked_keywords(result: TopicResult, given: Any, what: str, topics: Sequence[int]) -> Keywords:
    """Return lists of terms after making sure that they belong to a result.

    Parameters
    ----------
    result : TopicResult
    given : sequence of sequence of (str, float)
    what : str
        Name of the parameter, for errors.
    topics : sequence of int
        The topic of each list.

    Raises
    ------
    InputError
        Where there is not one list for each topic, a list holds something else than terms with
        finite scores or a term twice, or a term is not among those that were counted.
    """
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise InputError(
            f"{what} must be a list of (term, score) for each topic; got {_short(given)}"
        )
    if len(given) != len(topics):
        raise InputError(
            f"{what} must have one list for each of the {len(topics)} topics; got {len(given)}"
        )
    known = set(result.term_counts.terms)
    return [
        _checked_list(items, what, topic, known) for topic, items in zip(topics, given, strict=True)
    ]


def _checked_list(items: Any, what: str, topic: int, known: set[str]) -> list[tuple[str, float]]:
    """Return one topic's terms with their scores."""
    where = f"{what} of topic {topic}"
    if isinstance(items, (str, bytes)) or not isinstance(items, Sequence):
        raise InputError(f"{where} must be a list of (term, score); got {_short(items)}")
    found: dict[str, float] = {}
    for item in items:
        is_pair = isinstance(item, Sequence) and not isinstance(item, (str, bytes))
        if not is_pair or len(item) != 2 or not isinstance(item[0], str):
            raise InputError(f"{where} must hold pairs (term, score); got {_short(item)}")
        term, score = item
        if isinstance(score, bool) or not isinstance(score, (int, float, np.number)):
            raise InputError(f"{where}: the score of {term!r} must be a number; got {score!r}")
        if not math.isfinite(score):
            raise InputError(f"{where}: the score of {term!r} must be finite; got {score!r}")
        if term not in known:
            raise InputError(
                f"{where}: {_short(term)} is no term of the result; take terms of "
                "result.term_counts.terms, written as there"
            )
        if term in found:
            raise InputError(f"{where} hold {term!r} twice; name each term once")
        found[term] = float(score)
    return list(found.items())


def columns_of(result: TopicResult, lists: Keywords) -> tuple[Int64Array, list[Int64Array]]:
    """Return the terms that occur in lists, each once, and where each list's terms are there.

    Returns
    -------
    columns : int64 ndarray of shape (n_pooled,)
        Columns of the term counts, ascending.
    places : list of int64 ndarray
        For each topic, positions in `columns`.
    """
    wanted = {term for row in lists for term, _ in row}
    column = {term: i for i, term in enumerate(result.term_counts.terms) if term in wanted}
    pool = np.array(sorted(column.values()), dtype=np.int64)
    ids = [np.array([column[term] for term, _ in row], dtype=np.int64) for row in lists]
    return pool, [np.searchsorted(pool, row) for row in ids]


def first_distinct(
    result: TopicResult, ranked: Sequence[tuple[str, float]], n: int, keep_repeats: bool
) -> list[tuple[str, float]]:
    """Return the first `n` of a ranking, each without a stem at its ends that a better one has."""
    if keep_repeats:
        return list(ranked[:n])
    languages = languages_of(result)
    chosen: list[tuple[str, float]] = []
    seen: list[Any] = []
    for term, score in ranked:
        stems = stems_of(term, languages)
        if len(chosen) == n:
            break
        if not any(repeats(stems, other) for other in seen):
            chosen.append((term, score))
            seen.append(stems)
    return chosen


def _short(value: Any) -> str:
    """Show a value, cut."""
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
