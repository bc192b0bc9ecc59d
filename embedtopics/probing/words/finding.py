"""Where a word is used, and in which sentence."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import is_whole
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import HiddenStates, WordUse

__all__ = ["find_use", "numbered", "refuse_texts", "rows_of_word", "types_of", "use_at", "word_key"]

SUGGESTED = 3
LISTED = 5
"""Uses that a message shows."""

CONTEXT = 30
"""Characters on either side of a word that a message shows."""


def word_key(word: str, match_case: bool = False) -> str:
    """Return what a word has in common with its other spellings."""
    plain = unicodedata.normalize("NFC", word)
    return plain if match_case else plain.casefold()


def numbered(texts: Sequence[str]) -> Int64Array:
    """Return the place of each text among the different ones, in alphabetical order.

    numpy would make them all as long as the longest.
    """
    number = {text: place for place, text in enumerate(sorted(set(texts)))}
    return np.array([number[text] for text in texts], dtype=np.int64)


def types_of(
    states: HiddenStates, match_case: bool = False
) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Return the different words, in alphabetical order, and which of them each unit is."""
    keys: dict[str, str] = {}
    for word in states.words:
        if word not in keys:
            keys[word] = word_key(word, match_case)
    names = sorted(set(keys.values()))
    number = dict(zip(names, range(len(names)), strict=True))
    of_word = {word: number[key] for word, key in keys.items()}
    found = np.fromiter((of_word[word] for word in states.words), np.int32, len(states))
    return tuple(names), found


def rows_of_word(states: HiddenStates, word: Any, match_case: bool = False) -> Int64Array:
    """Return the units that are a word, those without a vector left out.

    Raises
    ------
    InputError
        If the word does not occur, or never with a vector; near spellings are named.
    """
    refuse_texts(states)
    if not isinstance(word, str) or not word.strip():
        raise InputError(f"expected a word; got {word!r}")
    wanted = word_key(word.strip(), match_case)
    spellings = {one for one in set(states.words) if word_key(one, match_case) == wanted}
    if not spellings:
        raise InputError(_not_found(states, word, match_case))
    rows = np.flatnonzero(np.fromiter((w in spellings for w in states.words), bool, len(states)))
    present = rows[~states.missing[rows]]
    if not len(present):
        raise InputError(
            f"expected a vector for {word!r}; the tokenizer of {states.encoder} leaves nothing of "
            "it in any text: choose another word or encoder"
        )
    return present


def find_use(
    states: HiddenStates, word: str, in_text: Any, occurrence: Any, match_case: bool = False
) -> int:
    """Return the unit that is the one use meant.

    Raises
    ------
    InputError
        If there is none, or several are meant; they are listed with position and context.
    """
    rows = rows_of_word(states, word, match_case)
    where = "the texts hold"
    if in_text is not None:
        if not is_whole(in_text):
            raise InputError(f"in_text must be the number of a text or None; got {in_text!r}")
        own = states.rows_of(int(in_text))
        inside = rows[(rows >= own.start) & (rows < own.stop)]
        if not len(inside):
            texts = np.unique(states.of_text[rows]).tolist()
            more = f" and {len(texts) - LISTED} more" if len(texts) > LISTED else ""
            raise InputError(
                f"expected {word!r} in text {in_text}; it stands in "
                f"{'text' if len(texts) == 1 else 'texts'} "
                f"{', '.join(map(str, texts[:LISTED]))}{more}"
            )
        rows, where = inside, f"text {in_text} holds"
    if occurrence is None and len(rows) == 1:
        return int(rows[0])
    if occurrence is not None and is_whole(occurrence) and 0 <= occurrence < len(rows):
        return int(rows[occurrence])
    raise InputError(
        f"{where} {word!r} {len(rows)} times: {_listed(states, rows)}; expected occurrence "
        f"from 0 to {len(rows) - 1} (and in_text, the number of a text), got {occurrence!r}"
    )


def use_at(states: HiddenStates, row: int) -> WordUse:
    """Return a use of a word with its sentence.

    A sentence reaches from its first unit to that of the next one in the same text.
    """
    text = int(states.of_text[row])
    whole = states.texts[text]
    begin, end = (int(bound) for bound in states.spans[row])
    number = states.sentences[row]
    own = states.rows_of(text)
    first, last = (
        own.start + int(place)
        for place in np.searchsorted(states.sentences[own], [number, number + 1])
    )
    start = 0 if first == own.start else int(states.spans[first, 0])
    stop = len(whole) if last == own.stop else int(states.spans[last, 0])
    start, stop = min(start, begin), max(stop, end)
    sentence = whole[start:stop]
    start += len(sentence) - len(sentence.lstrip())
    return WordUse(
        int(row), text, int(states.position[row]), states.words[row], (begin, end),
        sentence.strip(), begin - start,
    )  # fmt: skip


def refuse_texts(states: HiddenStates) -> None:
    """Refuse states that have one vector a text."""
    if states.unit == "text":
        raise InputError(
            "expected states of words or tokens; got one vector a text: extract with words=True"
        )


def _listed(states: HiddenStates, rows: Int64Array) -> str:
    """Return uses with text, position and context, for a message."""
    shown = []
    for number, row in enumerate(rows[:LISTED].tolist()):
        text = states.texts[states.of_text[row]]
        begin, end = states.spans[row]
        context = " ".join(text[max(0, begin - CONTEXT) : end + CONTEXT].split())
        place = f"text {states.of_text[row]}, position {states.position[row]}"
        shown.append(f"{number} ({place}: {context!r})")
    more = [f"and {len(rows) - LISTED} more"] if len(rows) > LISTED else []
    return ", ".join(shown + more)


def _not_found(states: HiddenStates, word: str, match_case: bool) -> str:
    wanted = word_key(word.strip(), match_case)
    # Comparing with all would take seconds; few misspell by many letters.
    known = {word_key(one, match_case) for one in set(states.words)}
    alike = sorted(name for name in known if abs(len(name) - len(wanted)) <= 2)
    close = difflib.get_close_matches(wanted, alike, n=SUGGESTED, cutoff=0.7)
    if " " in wanted:
        return f"expected a single word; got {word!r}, and units are words here"
    if close:
        return f"no text holds {word!r}; close to it are {', '.join(map(repr, close))}"
    return f"no text holds {word!r}, nor a word spelled almost like it; states.words lists them all"
