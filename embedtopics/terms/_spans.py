"""Positions of words in a text as written.

`tokenize` first resolves entities, composes marks, folds case and drops markup, so that a word of
the stream has no position in the text. Here the same rules run over one text, and each character
keeps its original position. This is slow, and meant for the few texts of a display.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from embedtopics.corpus._texts import compose
from embedtopics.protocols import Int64Array
from embedtopics.terms._tokens import (
    _ASCII_CHUNK,
    _LETTER_FORMS,
    _PIECE,
    _TAG,
    ADDRESS,
    LONGEST_ADDRESS,
    PLAIN,
    _forms,
    _split,
    _unicode_chunk,
    address_span,
    capitals_of_tags,
    social_pattern,
    special_words,
    usual_letters,
)
from embedtopics.terms.results import WordRules

_ENTITY = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\f <&#;]{1,32};?)")
"""Character references of `html.unescape`."""

_BLANK = re.compile(r"[\s\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Whitespace and control characters, which separate words."""


@dataclass(frozen=True)
class _TracedText:
    """A changed text, with the original position of each character."""

    text: str
    starts: list[int]
    stops: list[int]

    def slice(self, start: int, stop: int) -> _TracedText:
        return _TracedText(self.text[start:stop], self.starts[start:stop], self.stops[start:stop])

    def replace(self, pattern: re.Pattern[str], make: Callable[[str], str]) -> _TracedText:
        """Replace each match by `make(match)`."""
        text: list[str] = []
        starts: list[int] = []
        stops: list[int] = []
        done = 0
        for match in pattern.finditer(self.text):
            begin, end = match.span()
            replacement = make(match[0])
            if replacement == match[0]:
                continue
            text += [self.text[done:begin], replacement]
            starts += self.starts[done:begin] + [self.starts[begin]] * len(replacement)
            stops += self.stops[done:begin] + [self.stops[end - 1]] * len(replacement)
            done = end
        if not done:
            return self
        return _TracedText(
            "".join(text) + self.text[done:], starts + self.starts[done:], stops + self.stops[done:]
        )

    def insert_blanks(self, places: list[int]) -> _TracedText:
        """Insert a blank before each position."""
        text, starts, stops = "", [], []
        for begin, end in pairwise([0, *places, len(self.text)]):
            text += " " * bool(begin) + self.text[begin:end]
            starts += self.starts[begin:end][: bool(begin)] + self.starts[begin:end]
            stops += self.stops[begin:end][: bool(begin)] + self.stops[begin:end]
        return _TracedText(text, starts, stops)

    def lower(self) -> _TracedText:
        """Convert to lower case, where a few letters become two characters."""
        text = self.text.lower()
        if len(text) == len(self.text):
            return _TracedText(text, self.starts, self.stops)
        source = [i for i, letter in enumerate(self.text) for _ in letter.lower()]
        return _TracedText(text, [self.starts[i] for i in source], [self.stops[i] for i in source])

    def compose(self) -> _TracedText:
        """Convert to Unicode's form NFC."""
        if unicodedata.is_normalized("NFC", self.text):
            return self
        text: list[str] = []
        starts: list[int] = []
        stops: list[int] = []

        for begin, end in _composing(self.text):
            parts = compose(self.text[begin:end])
            text.append(parts)
            if parts == self.text[begin:end]:
                starts += self.starts[begin:end]
                stops += self.stops[begin:end]
            else:
                starts += [self.starts[begin]] * len(parts)
                stops += [self.stops[end - 1]] * len(parts)

        return _TracedText("".join(text), starts, stops)


def _composing(text: str) -> Iterator[tuple[int, int]]:
    """Yield the shortest spans of a text that compose independently."""
    begin = 0
    for place in range(1, len(text) + 1):
        if place < len(text) and _goes_on(text, begin, place):
            continue
        yield begin, place
        begin = place


def _goes_on(text: str, begin: int, place: int) -> bool:
    """Return whether the character at a position composes with the span before it."""
    letter = text[place]
    if letter.isascii():
        return False
    if unicodedata.combining(letter):
        return True
    before = text[begin:place]
    separate = unicodedata.normalize("NFC", before) + unicodedata.normalize("NFC", letter)
    return unicodedata.normalize("NFC", before + letter) != separate


def word_spans(text: str, rules: WordRules = PLAIN) -> list[tuple[str, int, int]]:
    """Return the words of a text with their positions."""
    places = list(range(len(text) + 1))
    traced = _TracedText(text, places[:-1], places[1:]).compose()
    traced = traced.replace(_BLANK, lambda _: " ").replace(_ENTITY, html.unescape)
    if rules.social == "split":
        traced = traced.insert_blanks(capitals_of_tags(traced.text))
    traced = traced.lower().replace(_TAG, lambda _: " ")

    addresses = ADDRESS.finditer(traced.text) if rules.addresses else ()
    spans = [span for match in addresses for span in _address_spans(traced, match, rules)]

    if rules.social != "kept":
        left_out = social_pattern() if rules.social == "dropped" else ADDRESS
        traced = traced.replace(left_out, lambda _: " ")

    for token, first, last in special_words(traced.text, rules):
        if token is not None:
            spans.append((token, traced.starts[first], traced.stops[last - 1]))
        else:
            spans += _plain_spans(traced, first, last, rules)
    return sorted(spans, key=itemgetter(1)) if rules.addresses else spans


def _address_spans(
    traced: _TracedText, match: re.Match[str], rules: WordRules
) -> Iterator[tuple[str, int, int]]:
    """Yield an address as a word, and the words in it, with their positions."""
    begin, end = address_span(match[0])
    if begin == end:
        return
    first = match.start() + begin
    last = match.start() + end
    whole = usual_letters(match[0][begin:end])
    parts = list(_plain_spans(traced, first, last, rules))
    if len(whole) <= LONGEST_ADDRESS and [word for word, _, _ in parts] != [whole]:
        yield whole, traced.starts[first], traced.stops[last - 1]
    yield from parts


def _plain_spans(
    traced: _TracedText, first: int, last: int, rules: WordRules
) -> Iterator[tuple[str, int, int]]:
    """Yield the words of a stretch of the text, by the general rules."""
    for match in _PIECE.finditer(traced.text, first, last):
        for piece, (begin, end) in _traced_chunks(traced.slice(*match.span()), rules):
            for word, start, stop in _split(piece.text[begin:end], rules):
                yield word, piece.starts[begin + start], piece.stops[begin + stop - 1]


@lru_cache(maxsize=1)
def _other_forms() -> re.Pattern[str]:
    return re.compile(f"[{''.join(map(chr, _forms()))}]")


def _traced_chunks(
    piece: _TracedText, rules: WordRules
) -> Iterator[tuple[_TracedText, tuple[int, int]]]:
    """Yield the chunks of a piece: the normalized piece and a span in it."""
    if piece.text.isascii():
        pattern = _ASCII_CHUNK
    else:
        for form, plain in _LETTER_FORMS.items():
            piece = piece.replace(re.compile(form), lambda _, plain=plain: plain)  # type: ignore[misc]
        if rules.version > 1:
            piece = piece.replace(_other_forms(), lambda letter: _forms()[ord(letter)])
            piece = piece.replace(re.compile("i\u0307"), lambda _: "i")
        piece = piece.compose()
        pattern = _unicode_chunk()

    for match in pattern.finditer(piece.text):
        yield piece, match.span()


def edit_distance(one: str, other: str) -> int:
    """Return the edit distance with swaps of neighbours (Damerau 1964)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                best = min(best, last[j - 2] + 1)
            row.append(best)
    return row[-1]


def words_like(
    word: str, letters: npt.NDArray[np.uint8], ends: Int64Array, n: int = 50
) -> list[str]:
    """Return the n words of a vocabulary that are most similar by Dice's coefficient of byte pairs.

    Word `i` of the vocabulary is ``letters[ends[i]:ends[i + 1]]`` in UTF-8; start and end count as
    letters.
    """
    query, sizes = f" {word} ".encode("utf-8", "surrogatepass"), np.diff(ends)
    shared, full = np.zeros(len(sizes)), np.flatnonzero(sizes > 0)
    for first, second in set(pairwise(query)):
        if first == ord(" "):
            shared[full[letters[ends[full]] == second]] += 1
        elif second == ord(" "):
            shared[full[letters[ends[full + 1] - 1] == first]] += 1
        else:
            both = np.flatnonzero((letters[:-1] == first) & (letters[1:] == second))
            words = np.searchsorted(ends, both, side="right") - 1
            shared[np.unique(words[both + 1 < ends[words + 1]])] += 1
    best = np.argsort(-2 * shared / (len(query) + sizes), kind="stable")[:n]
    parts = (letters[ends[i] : ends[i + 1]] for i in best[shared[best] > 0].tolist())
    return [part.tobytes().decode("utf-8", "replace") for part in parts]
