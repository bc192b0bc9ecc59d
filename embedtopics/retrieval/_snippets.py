"""The few words of a passage that show why it was found, with the query's words marked."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from embedtopics.retrieval._bm25 import LexicalSettings, QueryWords, query_words, stop_form
from embedtopics.terms._spans import word_spans

if TYPE_CHECKING:
    from rich.text import Text


_MOST_READ = 20_000
"""Characters of a passage that are looked through; placing words is slow."""

_PER_WORD = 20
"""Characters that a word of the snippet may have on average; what is longer is no prose."""

# Controls have no glyph and steer terminals; directional overrides would turn round the words
# beside the snippet; a lone surrogate cannot be written to a file.
_UNSAFE = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), " "),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A))),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, repr=False)
class Snippet:
    """A stretch of a text, and what to mark in it; ``str`` gives one line of plain text."""

    text: str
    span: tuple[int, int]
    marks: tuple[tuple[int, int], ...]
    cut: tuple[bool, bool]

    def __str__(self) -> str:
        return "".join(piece for piece, _ in self.pieces())

    def __repr__(self) -> str:
        return f"Snippet({str(self)!r})"

    def _repr_html_(self) -> str:
        return self.html()

    def html(self) -> str:
        """Return HTML in which all but ``<mark>`` around the words of the query is escaped."""
        return "".join(
            f"<mark>{html.escape(piece)}</mark>" if marked else html.escape(piece)
            for piece, marked in self.pieces()
        )

    def rich(self, style: str = "bold") -> Text:
        """Return text for a terminal, which rich does not search for markup."""
        from rich.text import Text

        shown = Text()
        for piece, marked in self.pieces():
            shown.append(piece, style if marked else None)
        return shown

    def pieces(self) -> Iterator[tuple[str, bool]]:
        """Yield what is shown on one line, made safe, and whether it is marked."""
        place, end = self.span
        if self.cut[0]:
            yield "… ", False
        for begin, stop in (*self.marks, (end, end)):
            for piece, marked in ((self.text[place:begin], False), (self.text[begin:stop], True)):
                if piece:
                    yield _BLANKS.sub(" ", piece.translate(_UNSAFE)), marked
            place = stop
        if self.cut[1]:
            yield " …", False


class _Placed(NamedTuple):
    """A word of the passage: its place, and its form where the query asks for it."""

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
    """Choose the stretch with the most different words of the query, by weight, then occurrences.

    Of equals it is the first; without any word of the query it is the passage's beginning. Words
    are compared as the index does. `weights` are by word, such as `Hit.terms`; 1 for others.
    """
    settings, weights = settings or LexicalSettings(), weights or {}
    first, last = span if span is not None else (0, len(text))
    asked = query_words(query, settings)
    asked = asked.asking(weights if asked.written else asked.stop_words)
    read = min(last, first + _MOST_READ)
    words = _placed(text, first, read, asked, settings)
    if read < last:  # a word at the place where reading stopped may go on
        words = [word for word in words if word.end < read]
    if not words:
        begin, end = first, last
    else:
        by_form = {}
        for form, of in asked.written.items():
            known = [weights[word] for word in sorted(of) if word in weights]
            if known:
                by_form[form] = sum(known)
        low, high = _best_stretch(words, by_form, n_words)
        # Punctuation at the passage's ends belongs to it.
        begin = first if low == 0 else words[low].begin
        end = last if high == len(words) else words[high - 1].end
    marks = _joined([(w.begin, w.end) for w in words if w.form is not None])
    begin, end = _shortened(text, begin, end, marks, _PER_WORD * n_words)
    shown = [(max(b, begin), min(e, end)) for b, e in marks if b < end and e > begin]
    before = bool(text[first:begin].strip())
    return Snippet(text, (begin, end), tuple(shown), (before, bool(text[end:last].strip())))


def _placed(
    text: str, first: int, last: int, query: QueryWords, settings: LexicalSettings
) -> list[_Placed]:
    asked = query.written
    words = []
    for word, begin, end in word_spans(text[first:last], settings.words):
        form = (settings.form(word) or stop_form(word)) if asked else None
        words.append(_Placed(first + begin, first + end, form if form in asked else None))
    return words


def _best_stretch(
    words: list[_Placed], weights: Mapping[str, float], n_words: int
) -> tuple[int, int]:
    """Return the first word of the best stretch, and the one behind its last."""
    n = min(n_words, len(words))
    until = [0, *accumulate(word.form is not None for word in words)]
    inside: dict[str, int] = {}
    best, best_key = 0, (-1.0, -1)
    for stop, word in enumerate(words, 1):
        if word.form is not None:
            inside[word.form] = inside.get(word.form, 0) + 1
        start = stop - n
        if start < 0:
            continue
        gone = words[start - 1].form if start else None
        if gone is not None:
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
        # Added up anew each time, so that rounding cannot make a later stretch of equal worth win.
        worth = sum(weights.get(form, 1.0) for form in sorted(inside))
        if (key := (worth, until[stop] - until[start])) > best_key:
            best, best_key = start, key
    needed = [place for place in range(best, best + n) if words[place].form is not None]
    if not needed:
        return 0, n
    middle = (needed[0] + needed[-1] + 1 - n) // 2
    start = min(max(middle, 0), len(words) - n)
    return start, start + n


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans of which those that overlap, as pairs of characters do, have become one."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined


def _shortened(
    text: str, begin: int, end: int, marks: list[tuple[int, int]], most: int
) -> tuple[int, int]:
    """Return a stretch of at most so many characters, with the first mark of it."""
    if end - begin <= most:
        return begin, end
    first = next((b for b, e in marks if e > begin), begin)
    begin = max(begin, min(first - most // 4, end - most))
    end = min(end, begin + most)
    while begin < end and _hangs_on(text[begin]):
        begin += 1
    while begin < end < len(text) and _hangs_on(text[end]):
        end -= 1
    return begin, end


def _hangs_on(letter: str) -> bool:
    """Return whether a character cannot be parted from the one before it."""
    return unicodedata.category(letter) in ("Mn", "Mc", "Me") or letter == "\u200d"
