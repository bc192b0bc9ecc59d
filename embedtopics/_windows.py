"""Long texts in parts: overlapping windows that begin and end with a sentence."""

from __future__ import annotations

import re
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Span", "sentence_starts", "windows"]

Span: TypeAlias = tuple[int, int]
"""First character of a part of a text, and the one behind its last."""

# A mark that ends a sentence, what closes a quotation, and a space before what is no small letter;
# an empty line; and the marks of scripts that put no space behind them. Marks in a row are tried
# once, from the first: a line of a million dots would be read a million times.
_END = re.compile(
    r"""
      (?<!\b[^\W\d_]) (?<![.!?\u2026]) [.!?\u2026]++ ["'\u201d\u2019\u00bb)\]]*+
      (?:\s\u00bb)? \s++
      (?![a-z\u00df-\u00ff\d])
    | \n\s*\n\s*
    | [\u3002\uff01\uff1f\u0964\u06d4]+ ["\u201d\u300d\u300f]* \s*
    """,
    re.VERBOSE,
)


def sentence_starts(text: str) -> list[int]:
    """Return where the sentences of a text begin.

    A rule of thumb over marks and capitals, good enough to cut between sentences nearly always;
    it never loses a character.

    Examples
    --------
    >>> sentence_starts("It rained. J. Doe left! And then?")
    [0, 11, 24]
    """
    starts = [0, *(match.end() for match in _END.finditer(text))]
    return [start for start in starts if start < len(text)] or [0]


def windows(text: str, token_starts: npt.ArrayLike, most: int, overlap: int) -> list[Span]:
    """Cut a text into overlapping windows of whole sentences.

    Parameters
    ----------
    text : str
    token_starts : int array of shape (n_tokens,)
        First character of each token, ascending.
    most : int
        Tokens of a window. A sentence that is longer is cut between words.
    overlap : int
        The sentences at the end of a window that together have at most so many tokens are those
        at the beginning of the next.

    Returns
    -------
    list of (int, int)
        Spans in characters, without space around; every visible character is in one.

    Examples
    --------
    >>> text = "One two. Three four. Five six."
    >>> [text[a:b] for a, b in windows(text, [0, 4, 9, 15, 21, 26], 4, 2)]
    ['One two. Three four.', 'Three four. Five six.']
    """
    starts = np.asarray(token_starts, dtype=np.int64)
    bounds = _bounds(text, starts, most, max(1, overlap) if overlap else most)
    costs = np.diff(np.searchsorted(starts, bounds)).tolist()
    spans: list[Span] = []
    first = 0
    while True:
        last, total = first, 0
        while last < len(costs) and (last == first or total + costs[last] <= most):
            total += costs[last]
            last += 1
        spans.append((bounds[first], bounds[last]))
        if last == len(costs):
            return [_trimmed(text, span) for span in spans]
        begin, first, shared = first, last, 0
        # What is shared leaves room for what is new.
        room = min(overlap, most - costs[last])
        while first - 1 > begin and shared + costs[first - 1] <= room:
            first -= 1
            shared += costs[first]


def _bounds(text: str, starts: npt.NDArray[np.int64], most: int, piece: int) -> list[int]:
    """Return where units that a window is made of begin, and the end of the text.

    Units are sentences; one longer than a window is cut into pieces of at most `piece` tokens,
    between words where there are any.
    """
    sentences = [*sentence_starts(text), len(text)]
    tokens = np.searchsorted(starts, sentences).tolist()
    bounds = []
    for begin, token, next_token in zip(sentences[:-1], tokens[:-1], tokens[1:], strict=True):
        bounds.append(begin)
        is_long, step = next_token - token > most, min(piece, most)
        while is_long and next_token - token > step:
            cut = next(
                (k for k in range(token + step, token, -1) if text[starts[k] - 1].isspace()),
                token + step,
            )
            token = cut
            if starts[cut] > bounds[-1]:
                bounds.append(int(starts[cut]))
    return [*bounds, len(text)]


def _trimmed(text: str, span: Span) -> Span:
    part = text[span[0] : span[1]]
    start = span[0] + len(part) - len(part.lstrip())
    return start, max(start, span[0] + len(part.rstrip()))
