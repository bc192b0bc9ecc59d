"""Why a passage was found, and what a query could not find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embedtopics.protocols import Int64Array
from embedtopics.results import Decision
from embedtopics.retrieval.lexical.searcher import LexicalSearcher

__all__ = ["Explanation", "explain", "query_decisions", "word_parts"]

_MOST_SHOWN = 5


@dataclass(frozen=True)
class Explanation:
    """How a query and a passage go together.

    Parameters
    ----------
    parts : mapping of str to float
        Words as the query has them, of those that the passage holds in some inflection, with their
        part of `bm25`; the largest first, ties in alphabetical order. Words of one stem share its
        part by how often the query has each.
    bm25 : float
        Sum of the parts.
    absent : tuple of str
        Words of the query that other passages hold and this one does not, sorted.
    unknown : tuple of str
        Words of the query that no passage holds, sorted.
    stop_words : tuple of str
        Words of the query that are not looked for, sorted.
    similarity : float
        Cosine of passage and query; NaN where none was given.
    """

    parts: Mapping[str, float]
    bm25: float
    absent: tuple[str, ...]
    unknown: tuple[str, ...]
    stop_words: tuple[str, ...]
    similarity: float = float("nan")


def explain(
    searcher: LexicalSearcher,
    query: str,
    segment: int,
    row: int,
    similarity: float = float("nan"),
) -> Explanation:
    """Tell how a query and a passage go together.

    Parameters
    ----------
    searcher : LexicalSearcher
    query : str
    segment, row : int
        Number of the passage's segment, and its row there.
    similarity : float
        Cosine of passage and query, where it is known.

    Returns
    -------
    Explanation
    """
    words = searcher.read(query)
    by_form = searcher.parts_at(query, np.array([segment]), np.array([row]))
    (parts,) = word_parts(searcher, query, np.array([segment]), np.array([row]))
    absent = [w for form, part in by_form.items() if part[0] == 0 for w in words.written[form]]
    unknown = [w for form, of in words.written.items() if form not in by_form for w in of]
    return Explanation(
        parts,
        float(sum(part[0] for part in by_form.values())),
        tuple(sorted(absent)), tuple(sorted(unknown)), tuple(words.stop_words), similarity,
    )  # fmt: skip


def word_parts(
    searcher: LexicalSearcher, query: str, segments: Int64Array, rows: Int64Array
) -> list[dict[str, float]]:
    """Return the `parts` of `explain` for many passages; the query is read once.

    Parameters
    ----------
    searcher : LexicalSearcher
    query : str
    segments, rows : int64 ndarray of shape (n,)

    Returns
    -------
    list of dict of str to float
    """
    words = searcher.read(query)
    made: list[dict[str, float]] = [{} for _ in range(len(rows))]
    for form, parts in searcher.parts_at(query, segments, rows).items():
        weight = words.weight(form)
        for place in np.flatnonzero(parts > 0).tolist():
            for written, times in words.written[form].items():
                made[place][written] = float(parts[place]) * times / weight
    return [dict(sorted(own.items(), key=lambda item: (-item[1], item[0]))) for own in made]


def query_decisions(
    searcher: LexicalSearcher, query: str, number: int | None = None
) -> tuple[Decision, ...]:
    """Return what is to be said of a query whatever it finds.

    Parameters
    ----------
    searcher : LexicalSearcher
    query : str
    number : int, optional
        Which query it is, from 1, where several are asked.

    Returns
    -------
    tuple of Decision
        One where the query has no words ("empty query"), stop words only ("only stop words"), or
        words that no document holds ("words not held", with these as its value); else none.
    """
    words = searcher.read(query)
    name = "the query" if number is None else f"query {number}"
    start = name[0].upper() + name[1:]
    if not words.written:
        listed = list(words.stop_words)
        if not listed:
            message = f"{start} has no words: lexical search finds nothing."
            return (Decision("retrieval", "empty query", listed, message),)
        message = (
            f"{start} has only stop words ({_shown(listed)}), which no document holds: lexical "
            "search finds nothing."
        )
        return (Decision("retrieval", "only stop words", listed, message),)
    known = searcher.parts_at(query, np.zeros(0, np.int64), np.zeros(0, np.int64))
    missing = sorted(w for form, of in words.written.items() if form not in known for w in of)
    if not missing:
        return ()
    of_query = "" if number is None else f" of {name}"
    message = (
        f"No document holds {_shown(missing)}{of_query}; lexical search goes by the other words."
    )
    if not known:
        message = (
            f"No document holds any word of {name} ({_shown(missing)}): lexical search finds "
            "nothing."
        )
    return (Decision("retrieval", "words not held", missing, message),)


def _shown(words: Sequence[str]) -> str:
    """Return some words for people, the first few where they are many."""
    few = ", ".join(repr(word[:40]) for word in words[:_MOST_SHOWN])
    left = len(words) - _MOST_SHOWN
    return f"{few} and {left:,} more" if left > 0 else few
