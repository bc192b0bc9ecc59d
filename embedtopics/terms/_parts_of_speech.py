"""Which terms are nouns, or other parts of speech, in texts that a spaCy pipeline has read.

spaCy parts words otherwise than `tokenize` (``x-ray`` is three tokens there and one word here).
So what stands between two spaces is read by both, and letters tell which token a word ends in.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from embedtopics.errors import InputError
from embedtopics.terms._tokens import PLAIN, tokenize
from embedtopics.terms.results import WordRules

TAGS = frozenset(
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split()
)
"""Universal parts of speech (Petrov et al. 2012; Universal Dependencies 2)."""

PATTERNS = (
    "NOUN|PROPN",
    "ADJ|NOUN|PROPN NOUN|PROPN",
    "NOUN|PROPN ADJ",
    "ADJ|NOUN|PROPN ADJ|NOUN|PROPN NOUN|PROPN",
    "NOUN|PROPN ADP NOUN|PROPN",
    "NOUN|PROPN ADP DET NOUN|PROPN",
)
"""Noun phrases: *rate*, *interest rate*, *banque centrale*, *bank of england*."""

Tagged = list[tuple[str, str]]
"""Words of a stretch of text, as `tokenize` writes them, each with its part of speech."""


def parse_patterns(patterns: Iterable[str]) -> tuple[tuple[frozenset[str], ...], ...]:
    """Read patterns of parts of speech."""
    if isinstance(patterns, str):
        patterns = [patterns]
    parsed = []
    for pattern in patterns:
        if not isinstance(pattern, str) or not pattern.split():
            raise InputError(f'a pattern must be tags such as "ADJ NOUN"; got {pattern!r}')
        words = tuple(frozenset(word.split("|")) for word in pattern.split())
        unknown = sorted(frozenset().union(*words) - TAGS)
        if unknown:
            raise InputError(
                f"pattern {pattern!r} names {unknown[0]!r}, which is no part of speech; take "
                f"some of {', '.join(sorted(TAGS))}"
            )
        parsed.append(words)
    if not parsed:
        raise InputError('expected patterns of parts of speech such as "ADJ NOUN"; got none')
    return tuple(parsed)


def tag_words(docs: Iterable[Any], rules: WordRules = PLAIN) -> list[Tagged]:
    """Give the words of documents the parts of speech that a pipeline found."""
    pieces = [list(_pieces(doc)) for doc in docs]
    texts = sorted({_text_of(piece) for found in pieces for piece in found})
    stream = tokenize(texts, rules=rules)
    words_of = {
        text: [stream.words[i] for i in stream.ids[stream.offsets[k] : stream.offsets[k + 1]]]
        for k, text in enumerate(texts)
    }
    stretches: list[Tagged] = []
    for found in pieces:
        stretch: Tagged = []
        for piece in found:
            tagged = _aligned(words_of[_text_of(piece)], piece)
            if tagged is None:
                stretches.append(stretch)
                stretch = []
            else:
                stretch.extend(tagged)
        stretches.append(stretch)
    return [stretch for stretch in stretches if stretch]


def pattern_counts(
    terms: Sequence[str], stretches: Iterable[Tagged], patterns: Sequence[Sequence[frozenset[str]]]
) -> dict[str, tuple[int, int]]:
    """Count where terms occur, and where their words match a pattern there."""
    wanted = {tuple(term.split(" ")): term for term in terms}
    lengths = sorted({len(words) for words in wanted})
    matches, occurs = dict.fromkeys(terms, 0), dict.fromkeys(terms, 0)
    for stretch in stretches:
        words = tuple(word for word, _ in stretch)
        tags = [tag for _, tag in stretch]
        for n in lengths:
            for start in range(len(words) - n + 1):
                term = wanted.get(words[start : start + n])
                if term is None:
                    continue
                occurs[term] += 1
                found = tags[start : start + n]
                matches[term] += any(
                    len(pattern) == n and all(map(frozenset.__contains__, pattern, found))
                    for pattern in patterns
                )
    return {term: (matches[term], occurs[term]) for term in terms}


def _pieces(doc: Iterable[Any]) -> Iterable[list[Any]]:
    """Yield the tokens between two spaces."""
    piece: list[Any] = []
    for token in doc:
        piece.append(token)
        if token.whitespace_ or token.is_space:
            yield piece
            piece = []
    if piece:
        yield piece


def _text_of(piece: Sequence[Any]) -> str:
    return "".join(token.text for token in piece)


def _aligned(words: Sequence[str], piece: Sequence[Any]) -> Tagged | None:
    """Return each word with the tag of the token that its last letter is in; None if unclear."""
    tag_at: list[str] = []
    letters = ""
    for token in piece:
        plain = _letters(token.text)
        letters += plain
        tag_at += [token.pos_] * len(plain)
    tagged, begin = [], 0
    for word in words:
        plain = _letters(word)
        # What stands before a word is markup, or a possessive that belongs to none.
        begin = letters.find(plain, begin)
        if begin < 0 or not plain:
            return None
        begin += len(plain)
        tagged.append((word, tag_at[begin - 1]))
    return tagged


def _letters(text: str) -> str:
    """Return the letters and digits of a text, in lower case and composed."""
    composed = unicodedata.normalize("NFC", text.lower())
    return "".join(c for c in composed if c.isalnum() or unicodedata.combining(c))
