"""When two terms repeat each other to a reader: they share a stem."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

__all__ = ["Stems", "repeats", "stems_of"]

Stems = tuple[tuple[str, ...], ...]
"""The stems of a term's words, in order, once for each language."""

_ALGORITHMS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german",
    "el": "greek", "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian",
    "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip


def stems_of(term: str, languages: Iterable[str]) -> Stems:
    """Return the stems of a term's words, by each language's Snowball stemmer.

    Parameters
    ----------
    term : str
    languages : iterable of str
        ISO 639-1 codes. A language without a stemmer leaves words as they are.

    Returns
    -------
    tuple of tuple of str
        The stems in each language; without any language, the words themselves.

    Examples
    --------
    >>> stems_of("interest rates", ["en"])
    (('interest', 'rate'),)
    """
    words = term.lower().split(" ")
    stemmers = [_stemmer(code) for code in languages] or [str]
    return tuple(tuple(map(stem, words)) for stem in stemmers)


def repeats(first: Stems, second: Stems) -> bool:
    """Tell whether one term's first or last stem occurs in the other, in any language.

    Inner words do not count, so that *bank of england* and *house of lords* go together.

    Parameters
    ----------
    first, second : tuple of tuple of str
        From `stems_of` with the same languages.

    Returns
    -------
    bool

    Examples
    --------
    >>> repeats(stems_of("rate cuts", ["en"]), stems_of("interest rates", ["en"]))
    True
    """
    return any(
        a[0] in b or a[-1] in b or b[0] in a or b[-1] in a
        for a, b in zip(first, second, strict=True)
    )


@lru_cache(maxsize=64)
def _stemmer(code: str) -> Callable[[str], str]:
    """Return a memoised stemmer; Snowball's own takes some 20 microseconds a word."""
    import snowballstemmer

    # Which algorithms there are depends on the installed version.
    algorithm = _ALGORITHMS.get(code)
    if algorithm not in snowballstemmer.algorithms():
        return str
    return lru_cache(maxsize=65_536)(snowballstemmer.stemmer(algorithm).stemWord)
