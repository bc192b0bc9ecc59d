"""Snippets, the part of a passage that matches a query best; and words for misspelled ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics.retrieval._bm25 import (
    LexicalSettings,
    QueryWords,
    fold_letters,
    query_words,
    stop_form,
)
from embedtopics.retrieval.results import Snippet
from embedtopics.terms._spans import edit_distance, word_spans, words_like
from embedtopics.terms._tokens import usual_letters

if TYPE_CHECKING:
    from embedtopics.retrieval._reader import IndexVersion
    from embedtopics.retrieval.storage._collection import Collection


_MOST_READ = 20_000
"""Characters of a passage that are searched for words, which is slow."""

# Misspelled words of a query, passages that are read for the words of a stem, and letters of the
# longest word that is compared with others, which takes quadratic time; longer ones are no words.
WORDS_SUGGESTED = 5
PASSAGES_READ = 3
LONGEST_COMPARED = 64

_PER_WORD = 20
"""Maximum average length of a word in a snippet; longer words are not prose."""

_BLANKS = re.compile(r"\s+")
_WORD = re.compile(r"\w+")


class _Word(NamedTuple):
    """A word of the passage: its characters, and its form if the query has that form."""

    begin: int
    end: int
    form: str | None


def make_snippet(
    text: str,
    query: str,
    settings: LexicalSettings | None,
    *,
    span: tuple[int, int] | None = None,
    weights: Mapping[str, float] | None = None,
    n_words: int = 30,
) -> Snippet:
    """Choose the window with the most distinct words of the query, by weight, then by count.

    Ties go to the first window; without words of the query it is the beginning of the passage.
    Words match as in the index. `weights` are by word, such as `Hit.terms`, and 1 for others.
    """
    settings, weights = settings or LexicalSettings(), weights or {}
    first, last = span if span is not None else (0, len(text))
    asked = query_words(query, settings)
    asked = asked.with_stop_words(weights if asked.written else asked.stop_words)
    stop = min(last, first + _MOST_READ)
    words = _find_words(text, first, stop, asked, settings)
    if stop < last:  # the last word may be incomplete
        words = [word for word in words if word.end < stop]
    if not words:
        begin, end = first, last
    else:
        by_form = {}
        for form, written in asked.written.items():
            parts = [weights[word] for word in sorted(written) if word in weights]
            if parts:
                by_form[form] = sum(parts)
        low, high = _best_window(words, by_form, n_words)
        # Punctuation at both ends of the passage is part of it.
        begin = first if low == 0 else words[low].begin
        end = last if high == len(words) else words[high - 1].end
    marks = _merge_overlaps([(w.begin, w.end) for w in words if w.form is not None])
    begin, end = _shorten(text, begin, end, marks, _PER_WORD * n_words)
    shown = [(max(b, begin), min(e, end)) for b, e in marks if b < end and e > begin]
    before = bool(text[first:begin].strip())
    return Snippet(text, (begin, end), tuple(shown), (before, bool(text[end:last].strip())))


def _find_words(
    text: str, first: int, last: int, query: QueryWords, settings: LexicalSettings
) -> list[_Word]:
    asked = query.written
    words = []
    for word, begin, end in word_spans(text[first:last], settings.words):
        form = (settings.form(word) or stop_form(word)) if asked else None
        words.append(_Word(first + begin, first + end, form if form in asked else None))
    return words


def _best_window(words: list[_Word], weights: Mapping[str, float], n_words: int) -> tuple[int, int]:
    """Return the first word of the best window, and the one after its last."""
    n = min(n_words, len(words))
    forms = np.array([word.form or "" for word in words])

    def count(is_counted: npt.NDArray[np.bool_]) -> Any:
        """Return how many of the counted words each window holds."""
        until = np.concatenate([[0], np.cumsum(is_counted)])
        return until[n:] - until[:-n]

    worth = np.zeros(len(words) - n + 1)
    for form in sorted({*forms.tolist()} - {""}):
        worth += weights.get(form, 1.0) * (count(forms == form) > 0)
    best = int(np.lexsort((-count(forms != ""), -worth))[0])  # of ties, the first
    matches = [position for position in range(best, best + n) if words[position].form is not None]
    if not matches:
        return 0, n
    middle = (matches[0] + matches[-1] + 1 - n) // 2
    start = min(max(middle, 0), len(words) - n)
    return start, start + n


def _merge_overlaps(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge overlapping spans, such as those of pairs of characters."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if merged and begin < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def _shorten(
    text: str, begin: int, end: int, marks: list[tuple[int, int]], most: int
) -> tuple[int, int]:
    """Shorten a window to `most` characters around its first mark, between words if possible."""
    if end - begin <= most:
        return begin, end
    first = next((b for b, e in marks if e > begin), begin)
    start = max(begin, min(first - most // 4, end - most))
    stop = min(end, start + most)
    blanks = [match.start() for match in _BLANKS.finditer(text, start, stop)]
    if start > begin:
        start = next((blank + 1 for blank in blanks if blank < first), start)
    if stop < end:
        stop = next((blank for blank in reversed(blanks) if blank > first), stop)
    return start, stop


def suggest(version: IndexVersion, collection: Collection, query: str) -> dict[str, str]:
    """Return for each word that no document holds the most similar word of the collection."""
    lexical = version.lexical
    suggestions: dict[str, str] = {}
    words = [word for word in lexical.missing(query) if 2 < len(word) <= LONGEST_COMPARED]
    for word in words[:WORDS_SUGGESTED]:
        # The index holds stems: compare with words of the passages that hold a similar stem.
        stem = lexical.settings.form(word) or word
        most_edits = 1 if len(word) <= 5 else 2
        forms = {
            form
            for text in (word, stem)
            for part in lexical.segments
            for form in words_like(text, part.letters, part.ends)
            if _are_near(text[: len(form)], form, most_edits)
        }

        near = [
            (edit_distance(word, other), -lexical.n_holding(form), other)
            for form in sorted(forms)
            for other in _words_of_form(version, collection, form)
            if _are_near(word, other, most_edits)
        ]

        if near:
            suggestions[word] = min(near)[2]
    return suggestions


def _are_near(word: str, other: str, most_edits: int) -> bool:
    # An edit changes the length by one at most.
    is_similar_length = abs(len(word) - len(other)) <= most_edits
    return is_similar_length and edit_distance(word, other) <= most_edits


def _words_of_form(version: IndexVersion, collection: Collection, form: str) -> set[str]:
    """Return the words that share a form, as some passages write them."""
    settings = version.lexical.settings
    words = set()
    beginning = fold_letters(form[:2])

    for view, segment in zip(version.segments, version.lexical.segments, strict=True):
        rows = segment.postings(segment.find(form))[0]
        rows = rows[view.alive[rows]][:PASSAGES_READ]
        documents = collection.documents(view.documents[rows].tolist())
        for document, span in zip(documents, view.spans[rows].tolist(), strict=True):
            text = "" if document is None else document.text[slice(*span)]
            for word in map(usual_letters, set(_WORD.findall(text.lower()))):
                is_near = fold_letters(word).startswith(beginning)
                if is_near and settings.form(word) == form:
                    words.add(word)
    return words
