"""Lines and sentences that recur word for word in many texts, such as signatures."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from embedtopics.terms._tokens import words_of
from embedtopics.terms.results import TokenStream

MIN_WORDS = 5
MIN_TEXTS, MIN_SHARE = 5, 0.001
"""Minimum number of texts with a line, and minimum share of all texts. These find the headers and
signatures of 20 Newsgroups and *Tel est l'objet du présent amendement* of French amendments; no
line of bank questions and arXiv abstracts, and one of 1,028 German news articles."""

_LINE = re.compile(r"[^\n.!?\u2026\u3002\u0964\u061f]{30,}")


def repeated_lines(texts: Sequence[str]) -> dict[str, int]:
    """Return the lines that many distinct texts share, with the number of these texts.

    A line ends with a sentence. A text that consists mostly of shared lines is a copy, and does not
    count.
    """
    fewest = max(MIN_TEXTS, MIN_SHARE * len(texts))
    hashes = Counter(hash(line) for text in texts for line in _lines_of(text))
    shared = {number for number, n in hashes.items() if n >= fewest}
    counted: Counter[str] = Counter()
    for text in texts if shared else ():
        lines = {line for line in _lines_of(text) if hash(line) in shared}
        if 2 * sum(map(len, lines)) < len(text):
            counted.update(lines)
    ordered = sorted(line for line in counted if len(line.split()) >= MIN_WORDS)
    return {line: counted[line] for line in ordered if counted[line] >= fewest}


def skip_lines(tokens: TokenStream, texts: Sequence[str], lines: Mapping[str, int]) -> TokenStream:
    """Mark the words of some lines as skipped: terms do not count them."""
    numbers = {
        line: [bisect_left(tokens.words, word) for word in words_of(line, tokens.rules)]
        for line in lines
    }
    skipped = np.zeros(len(tokens.ids), dtype=np.bool_)
    for row, text in enumerate(texts):
        first, end = tokens.offsets[row : row + 2].tolist()
        for line in _lines_of(text) & lines.keys():
            part = numbers[line]
            places = np.arange(first, end - len(part) + 1)
            for step, number in enumerate(part):
                places = places[tokens.ids[places + step] == number]
            for place in places.tolist():
                skipped[place : place + len(part)] = True
    return replace(tokens, skipped=skipped)


def _lines_of(text: str) -> set[str]:
    return {line.strip() for line in _LINE.findall(text)}
