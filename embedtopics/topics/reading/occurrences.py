"""Where the words of a term stand in the stream of words."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np

from embedtopics.corpus import normalize_text
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import TokenStream, TopicResult
from embedtopics.terms import tokenize
from embedtopics.topics.reading.selecting import BoolArray

__all__ = ["Occurrences", "close_to", "find_occurrences", "words_of"]

SUGGESTED = 5


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Places of a term.

    Parameters
    ----------
    places : int64 ndarray of shape (n_occurrences,)
        Where its first word stands in the stream, ascending.
    documents : int64 ndarray of shape (n_occurrences,)
    n_words : int
        Words of the term.
    """

    places: Int64Array
    documents: Int64Array
    n_words: int


def words_of(text: str) -> list[str]:
    """Return the words of a term or a query, as those of the documents are made."""
    stream = tokenize([normalize_text(text)])
    return [stream.words[i] for i in stream.ids.tolist()]


def find_occurrences(
    result: TopicResult, term: str, *, regex: bool, within: BoolArray
) -> Occurrences:
    """Find a term in the stream of words; no text is read.

    Parameters
    ----------
    result : TopicResult
    term : str
        One word or several that follow each other; upper case, hyphens and markup are read as they
        are in the documents.
    regex : bool
        Whether it is a pattern: what stands between spaces must match a whole word each.
    within : bool ndarray of shape (n_documents,)
        Documents to look at.

    Raises
    ------
    InputError
        If no document of the result holds the term, or it is none.
    """
    if not isinstance(term, str):
        raise InputError(f"expected a term, such as 'tax cut'; got {term!r}")
    tokens = result.tokens
    wanted = _matching_words(tokens, term) if regex else _known_words(result, term)
    places = np.flatnonzero(_stands(tokens.ids, wanted[0]))
    for step, words in enumerate(wanted[1:], start=1):
        places = places[places + step < len(tokens.ids)]
        places = places[_stands(tokens.ids[places + step], words)]
    documents = np.searchsorted(tokens.offsets, places, side="right") - 1
    inside = places + len(wanted) <= tokens.offsets[documents + 1]
    if not inside.any():
        raise InputError(_not_found(result, term, regex))
    inside &= within[documents]
    return Occurrences(places[inside], documents[inside], len(wanted))


def _stands(ids: Any, words: Int64Array) -> BoolArray:
    """Tell where one of some words stands."""
    if len(words) == 1:
        return np.asarray(ids == words[0])
    return np.isin(ids, words)


def _known_words(result: TopicResult, term: str) -> list[Int64Array]:
    """Return the id of each word of a term."""
    words = words_of(term)
    if not words:
        raise InputError(f"expected a term of at least one word; got {term!r}")
    known = result.tokens.words  # sorted
    places = [bisect_left(known, word) for word in words]
    if any(p == len(known) or known[p] != w for p, w in zip(places, words, strict=True)):
        raise InputError(_not_found(result, term, False))
    return [np.array([place]) for place in places]


def _matching_words(tokens: TokenStream, term: str) -> list[Int64Array]:
    """Return the ids of the words that match each part of a pattern."""
    parts = term.split()
    if not parts:
        raise InputError(f"expected a pattern of at least one word; got {term!r}")
    found = []
    for part in parts:
        try:
            pattern = re.compile(part, re.IGNORECASE)
        except re.error as error:
            raise InputError(
                f"expected a regular expression for each word; {part!r} is none: {error}"
            ) from None
        found.append(np.flatnonzero([pattern.fullmatch(w) is not None for w in tokens.words]))
    return found


def _not_found(result: TopicResult, term: str, regex: bool) -> str:
    """Return the message for a term that is nowhere."""
    if regex:
        return f"no document holds words that match {term!r}; a pattern must match whole words"
    close = close_to(result, " ".join(words_of(term)))
    if close:
        return f"no document holds {term!r}; close to it are {', '.join(map(repr, close))}"
    return f"no document holds {term!r}; topics.terms lists the terms of the topics"


def close_to(result: TopicResult, term: str) -> list[str]:
    """Return a few terms of a result that are spelled almost like another one."""
    counts = result.term_counts
    known = counts.terms if " " in term else result.tokens.words
    # Comparing with all would take seconds; few misspell the first letter, or by many letters.
    alike = [
        name for name in known
        if name[:1] == term[:1] and abs(len(name) - len(term)) <= 2 and name != term
    ]  # fmt: skip
    return difflib.get_close_matches(term, alike, n=SUGGESTED, cutoff=0.7)
