"""Texts and the words in them: cut by a rule, or given already split."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from embedtopics._windows import Span, sentence_starts
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array
from embedtopics.results import ProbeTask

__all__ = ["Reading", "number_sentences", "read_texts", "word_spans"]

_SKIN_TONES = "\U0001f3fb-\U0001f3ff"
_TAGS = "\U000e0020-\U000e007f"
"""Characters that spell out which region a flag stands for."""


@dataclass(frozen=True, eq=False)
class Reading:
    """Texts, and where the words in them are.

    Parameters
    ----------
    texts : tuple of str
        Those that were given split are joined by single spaces.
    spans : tuple of int32 ndarray of shape (n_words, 2)
        First character of each word of a text, and the one behind its last.
    one_sentence : bool
        Whether each text is one sentence.
    """

    texts: tuple[str, ...]
    spans: tuple[Int32Array, ...]
    one_sentence: bool

    def digest(self) -> str:
        """Return the SHA-256 over all of it."""
        digest = hashlib.sha256(json.dumps([self.texts, self.one_sentence]).encode())
        for spans in self.spans:
            digest.update(spans.astype("<i4").tobytes() + b"/")
        return digest.hexdigest()


def read_texts(texts: Any) -> Reading:
    """Tell texts from texts that are split into words, and find the words.

    Parameters
    ----------
    texts : sequence of str, sequence of sequences of str, or ProbeTask

    Raises
    ------
    InputError
        If it is something else, or empty; the message names the row.
    """
    of_task = isinstance(texts, ProbeTask)
    if of_task:
        texts = texts.texts
    if isinstance(texts, (str, bytes)):
        raise InputError(
            f"expected a sequence of texts, got one {type(texts).__name__}; put it in a list"
        )
    # The keys of a dict and the columns of a table can be gone through, but are no texts.
    unordered = isinstance(texts, (Mapping, Set)) or hasattr(texts, "columns")
    if unordered or not hasattr(texts, "__iter__"):
        raise InputError(
            f"expected a sequence of texts, got a {type(texts).__name__}; give a list of its texts"
        )
    rows = list(texts)
    if not rows:
        raise InputError("expected at least one text, got none")
    if isinstance(rows[0], str):
        for row, text in enumerate(rows):
            if not isinstance(text, str):
                raise InputError(_wrong(row, "a string, as in the rows before", text))
        spans = tuple(_as_array(word_spans(text)) for text in rows)
        return Reading(tuple(rows), spans, of_task)
    split = [_checked_words(row, words) for row, words in enumerate(rows)]
    return Reading(
        tuple(" ".join(words) for words in split), tuple(_spans_of_split(w) for w in split), True
    )


def _checked_words(row: int, words: Any) -> list[str]:
    if isinstance(words, (str, bytes, dict, set)) or not hasattr(words, "__iter__"):
        expected = "a sequence of words, as in the rows before" if row else "a string or words"
        raise InputError(_wrong(row, expected, words))
    found = list(words)
    for place, word in enumerate(found):
        if not isinstance(word, str):
            raise InputError(
                f"expected every word to be a string, got {type(word).__name__} as word {place} of "
                f"row {row}; leave it out, or make it an empty string"
            )
    return found


def _wrong(row: int, expected: str, found: Any) -> str:
    return (
        f"expected {expected}; got {type(found).__name__} in row {row}; give all texts as strings, "
        "or all as sequences of words, and leave rows without text out or make them empty"
    )


def _spans_of_split(words: Sequence[str]) -> Int32Array:
    lengths = np.array([len(word) for word in words], dtype=np.int64)
    ends = np.cumsum(lengths + 1) - 1
    return np.stack([ends - lengths, ends], axis=1).astype(np.int32).reshape(-1, 2)


def _as_array(spans: Sequence[Span]) -> Int32Array:
    return np.array(spans, dtype=np.int32).reshape(-1, 2)


def word_spans(text: str) -> list[Span]:
    """Find the words of a text; every character but white space is in exactly one.

    - A word is a run of letters, digits, underscores and marks, with the apostrophes between its
      letters (``don't``) and the points and commas between its digits (``3.14``). A short French
      word that lost its vowel is one of its own, with its apostrophe (``l'`` ``eau``).
    - Any other character is a word, with the marks behind it. The same mark several times in a
      row (``...``), the two letters of a flag, and emoji that are joined into one are one word.
    - A run of a script that puts no spaces between words is one word: give such texts split.

    Examples
    --------
    >>> text = "L'eau: don't pay 3.50..."
    >>> [text[a:b] for a, b in word_spans(text)]
    ["L'", 'eau', ':', "don't", 'pay', '3.50', '...']
    """
    return [match.span() for match in _pattern().finditer(text)]


@cache
def _pattern() -> re.Pattern[str]:
    marks = _marks()
    # What joins letters of Persian and Indian scripts, and emoji, is no letter itself.
    letters = rf"[\w{marks}\u200c\u200d]"
    other = r"[^\w\s]"
    return re.compile(
        rf"""
          (?:\b(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)['\u2019](?=\w\w))
        | {letters}+ (?: (?:['\u2019](?=[^\W\d]) | (?<=\d)[.,](?=\d)) {letters}+ )*
        | [\U0001f1e6-\U0001f1ff]{{2}}
        | ([-.!?*=~\u2026])\1+
        | {other} (?: [{marks}{_SKIN_TONES}{_TAGS}] | \u200d{other} )*
        """,
        re.VERBOSE | re.IGNORECASE,
    )


def _marks() -> str:
    """Return all combining marks as the inside of a character class; a word character is none."""
    codes = [c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c))[0] == "M"]
    breaks = [i for i, (a, b) in enumerate(pairwise(codes), start=1) if b != a + 1]
    runs = zip([0, *breaks], [*breaks, len(codes)], strict=True)
    return "".join(rf"\U{codes[a]:08x}-\U{codes[b - 1]:08x}" for a, b in runs)


def number_sentences(reading: Reading, of_text: Int32Array, begins: Int32Array) -> Int32Array:
    """Return the sentence of each unit, numbered through all texts.

    Parameters
    ----------
    reading : Reading
    of_text, begins : int32 ndarray of shape (n_units,)
        Text and first character of each unit.
    """
    if reading.one_sentence:
        return of_text.copy()
    numbers = np.empty(len(of_text), dtype=np.int32)
    bounds = np.searchsorted(of_text, np.arange(len(reading.texts) + 1))
    before = 0
    for text, (begin, end) in zip(reading.texts, pairwise(bounds.tolist()), strict=True):
        starts = sentence_starts(text)
        numbers[begin:end] = before + np.searchsorted(starts, begins[begin:end], side="right") - 1
        before += len(starts)
    return numbers
