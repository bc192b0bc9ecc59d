"""Decisions on queries: phrases, exclusions, signs without effect, and unknown words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from embedtopics.protocols import FloatArray
from embedtopics.results import Decision
from embedtopics.retrieval._bm25 import LexicalSearcher
from embedtopics.retrieval._query import ParsedQuery
from embedtopics.retrieval._reader import IndexVersion
from embedtopics.terms._tokens import ADDRESS

MOST_SHOWN = 5
"""Words or signs that a message names."""


def describe_queries(
    version: IndexVersion,
    queries: Sequence[ParsedQuery],
    vectors: FloatArray | None,
    mode: str,
    suggestions: Mapping[str, str],
) -> tuple[Decision, ...]:
    """Report the constraints of each distinct query, and its unknown words."""
    decisions: list[Decision] = []
    for position, query in enumerate(queries):
        if query in queries[:position]:
            continue
        name = "the query" if len(queries) == 1 else f"query {position + 1}"

        for kind, preposition in (("phrases", "with"), ("excluded", "without")):
            phrases = [" ".join(words) for words in getattr(query, kind)]
            if phrases:
                message = f"For {name}, search covers only documents {preposition} "
                decisions.append(
                    Decision("retrieval", kind, phrases, f"{message}{_shown(phrases)}.")
                )

        if query.ignored:
            decisions.append(_ignored_signs(query, name, mode))
        if vectors is not None and not vectors[position].any():
            message = f"The encoder returns a zero vector for {name}: dense search finds nothing."
            decisions.append(Decision("retrieval", "no direction", query.text, message))
        if mode != "dense":
            decisions += _lexical_decisions(version.lexical, query.text, name, suggestions)
    return tuple(decisions)


def _ignored_signs(query: ParsedQuery, name: str, mode: str) -> Decision:
    """Report signs that have no effect, and those that have one."""
    signs = list(query.ignored)
    written = ", ".join(sign[:40] for sign in signs[:MOST_SHOWN])
    remedy = "dense search reads all signs as text"
    if mode != "dense":
        remedy = (
            "double quotes around words ask for a phrase, a single hyphen or short dash right "
            "before a word excludes it, and where= filters by columns"
        )
    message = f"These signs of {name} have no effect: {written}; {remedy}."
    return Decision("retrieval", "ignored", signs, message)


def _lexical_decisions(
    searcher: LexicalSearcher, query: str, name: str, suggestions: Mapping[str, str]
) -> list[Decision]:
    """Report that a query has no words, or words that no document holds."""
    words = searcher.read(query)
    if not words.written:
        stop_words = list(words.stop_words)
        kind = "only stop words" if stop_words else "empty query"
        reason = f"has only stop words ({_shown(stop_words)})" if stop_words else "has no words"
        message = f"{name.capitalize()} {reason}: lexical search finds nothing."
        if not searcher.settings.words.addresses and ADDRESS.search(query):
            message = f"{message[:-1]}; the index was built without addresses as words."
        return [Decision("retrieval", kind, stop_words, message)]

    missing = searcher.missing(query)
    if not missing:
        return []

    effect = "uses the other words" if searcher.terms(query) else "finds nothing"
    message = f"No document holds {_shown(missing)} of {name}; lexical search {effect}."
    similar = [suggestions[word] for word in missing if word in suggestions]
    message += f" Did you mean {_shown(similar)}?" if similar else ""
    return [Decision("retrieval", "words not held", missing, message)]


def _shown(words: Iterable[str]) -> str:
    names = [repr(word[:40]) for word in words]
    shown = ", ".join(names[:MOST_SHOWN])
    n_left = len(names) - MOST_SHOWN
    return f"{shown} and {n_left:,} more" if n_left > 0 else shown
