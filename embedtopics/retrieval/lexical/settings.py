"""What counts as the same word, and how words are weighed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

from embedtopics.errors import InputError
from embedtopics.terms.one_text import words_of
from embedtopics.terms.stopwords import stop_words_for

__all__ = ["LexicalSettings", "lexical_settings"]


@dataclass(frozen=True)
class LexicalSettings:
    """How texts become words of the index, and the constants of BM25.

    All that decides which words a text has is spelled out here and stored beside the postings:
    a list of stop words that grows in a later version changes no index that exists.

    Parameters
    ----------
    stop_words : tuple of str
        Left out, as the tokeniser writes them.
    stems : tuple of str
        Languages (ISO 639-1) whose Snowball stemmers are applied, one after the other; empty
        leaves words as they are. Inflections of the first language always meet; those of
        another do unless the stemmers before tell them apart.
    k1 : float
        How slowly a word's further occurrences stop counting; not negative.
    b : float
        How much long passages are held against: from 0 (not) to 1.
    """

    stop_words: tuple[str, ...] = ()
    stems: tuple[str, ...] = ()
    k1: float = 1.5
    b: float = 0.75

    def __post_init__(self) -> None:
        for name in ("stop_words", "stems"):
            value = getattr(self, name)
            if not isinstance(value, tuple) or not all(isinstance(word, str) for word in value):
                raise InputError(f"{name} must be a tuple of strings, got {value!r}")
        for name, highest in (("k1", math.inf), ("b", 1.0)):
            value = getattr(self, name)
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if not is_number or not math.isfinite(value) or not 0 <= value <= highest:
                limit = "a number from 0 to 1" if name == "b" else "a number of 0 or more"
                raise InputError(f"{name} of BM25 must be {limit}, got {value!r}")

    def to_json(self) -> dict[str, Any]:
        """Return plain values, from which `of_json` makes the same settings."""
        return {
            **asdict(self), "stop_words": list(self.stop_words), "stems": list(self.stems),
        }  # fmt: skip

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> LexicalSettings:
        """Return the settings that `to_json` gave.

        Raises
        ------
        InputError
            If a value is missing or bad.
        """
        try:
            return cls(
                tuple(values["stop_words"]), tuple(values["stems"]), values["k1"], values["b"]
            )
        except (KeyError, TypeError) as error:
            raise InputError(
                f"expected settings of a lexical index, got {values!r}: {error}"
            ) from None


def lexical_settings(
    languages: Iterable[str],
    *,
    stop_words: Iterable[str] | None = None,
    stems: bool = True,
    k1: float = 1.5,
    b: float = 0.75,
) -> LexicalSettings:
    """Return the settings for a collection in some languages.

    Parameters
    ----------
    languages : iterable of str
        ISO 639-1 codes, the most frequent first, see `embedtopics.corpus.languages`.
    stop_words : iterable of str, optional
        In place of the languages' lists; in any case, and read as texts are: "d'un" leaves out
        "d" and "un".
    stems : bool
        Whether inflections of a word count as that word.
    k1, b : float
        Of BM25.

    Returns
    -------
    LexicalSettings

    Raises
    ------
    InputError
        If `languages` is one string, or a constant is out of its range.

    Examples
    --------
    >>> settings = lexical_settings(["en"])
    >>> settings.stems, "the" in settings.stop_words
    (('en',), True)
    """
    if isinstance(languages, str) or isinstance(stop_words, str):
        raise InputError("languages and stop_words must be lists, got one string; put it in a list")
    codes = tuple(languages)
    listed = stop_words_for(codes) if stop_words is None else _as_words(stop_words)
    return LexicalSettings(listed, codes if stems else (), k1, b)


def _as_words(listed: Iterable[str]) -> tuple[str, ...]:
    """Return words as the tokeniser writes them, which alone are ever met."""
    words: set[str] = set()
    for word in listed:
        if not isinstance(word, str):
            raise InputError(f"stop_words must be strings, got {word!r}")
        words.update(words_of(word))
    return tuple(sorted(words))
