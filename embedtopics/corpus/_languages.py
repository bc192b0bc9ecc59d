"""Which languages a corpus is written in, from a sample of its texts."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from embedtopics.corpus._texts import normalize_text
from embedtopics.corpus.results import LanguageShares
from embedtopics.errors import InputError

_FEWEST_LETTERS = 20
_MOST_CHARACTERS = 2000
_LEAST_CONFIDENCE = 0.5
_NO_LANGUAGE = "zxx"

_CODES = frozenset((
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy "
    "da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu "
    "hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb "
    "lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om "
    "or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv "
    "sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
).split())  # fmt: skip
"""ISO 639-1."""

_FEWEST_OF_SCRIPT = 4
_SCRIPTS = {
    "ja": "\u3040-\u30ff", "ko": "\u1100-\u11ff\uac00-\ud7a3", "zh": "\u3400-\u9fff",
    "th": "\u0e00-\u0e7f", "lo": "\u0e80-\u0eff", "my": "\u1000-\u109f", "ka": "\u10a0-\u10ff",
    "km": "\u1780-\u17ff", "el": "\u0370-\u03ff", "hy": "\u0530-\u058f", "he": "\u0590-\u05ff",
    "pa": "\u0a00-\u0a7f", "gu": "\u0a80-\u0aff", "or": "\u0b00-\u0b7f", "ta": "\u0b80-\u0bff",
    "te": "\u0c00-\u0c7f", "kn": "\u0c80-\u0cff", "ml": "\u0d00-\u0d7f", "si": "\u0d80-\u0dff",
}  # fmt: skip
"""Characters of scripts that one language, or nearly one, is written in."""
_OF_SCRIPTS = re.compile("|".join(f"(?P<{code}>[{span}]+)" for code, span in _SCRIPTS.items()))

MAIN_LANGUAGE = 0.1
"""Share of the texts from which on a language counts as one of the corpus's."""


def detect_languages(texts: Iterable[str], sample: int = 500) -> LanguageShares:
    """Estimate the shares of languages among the distinct texts of a corpus.

    The sample is drawn by content (the texts with the smallest hashes), so that it is the same
    in every run and does not depend on the order of the texts or on how often one is repeated.

    Parameters
    ----------
    texts : iterable of str
        Texts with fewer than 20 letters are passed over, or 4 where most are of a script that
        one language has, which tells it.
    sample : int, default=500
        How many texts to look at; the standard error of a share is then at most 0.022.

    Returns
    -------
    LanguageShares
        Shares of the texts looked at, largest first, ties by code. They add up to less than 1
        where the language of some texts is not recognized.

    Raises
    ------
    InputError
        One string was given instead of a collection, or `sample` is not positive.

    Examples
    --------
    >>> detect_languages(["Le chat dort sur la table.", "Il pleut depuis ce matin."]).main
    'fr'
    """
    if isinstance(texts, str):
        raise InputError("texts must be a list of strings, got one str; give a list: [text]")
    if sample < 1:
        raise InputError(f"sample must be at least 1, got {sample}")
    by_hash = {}
    for normal in map(normalize_text, texts):
        by_hash[blake2b(normal.encode(), digest_size=16).digest()] = normal
    return languages_in_order((by_hash[key] for key in sorted(by_hash)), sample)


def languages_in_order(documents: Iterable[str], sample: int = 500) -> LanguageShares:
    """Estimate the shares of languages from the first of distinct texts in order of their hash."""
    found: Counter[str] = Counter()
    for text in documents:
        if (code := language_of(text)) is not None:
            found[code] += 1
        if found.total() == sample:
            break
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    n_sampled = found.total()
    return LanguageShares({code: n / n_sampled for code, n in ranked if code}, n_sampled)


def language_of(text: str) -> str | None:
    """Return the language of a text, "" of one that is not recognized, None of too few letters."""
    # The beginning is enough, and the identifier reads every byte in Python.
    text = text[:_MOST_CHARACTERS]
    n_letters = sum(map(str.isalpha, text))
    by_script = _by_script(text, n_letters)
    if by_script or n_letters < _FEWEST_LETTERS:
        return by_script
    code, confidence = _identifier().classify(text)
    return str(code) if confidence >= _LEAST_CONFIDENCE and code != _NO_LANGUAGE else ""


def _by_script(text: str, n_letters: int) -> str | None:
    """Return the language of a text of whose letters most are of a script that tells it."""
    if n_letters < _FEWEST_OF_SCRIPT or text.isascii():
        return None
    found: Counter[str] = Counter()
    for run in _OF_SCRIPTS.finditer(text):
        found[str(run.lastgroup)] += sum(map(str.isalpha, run[0]))
    if found["ja"] > 0.1 * found["zh"]:  # kana stand between Chinese characters
        found["ja"] += found.pop("zh", 0)
    code, count = max(found.items(), key=lambda item: item[1], default=("", 0))
    return code if count > n_letters / 2 else None


def checked_languages(codes: Any, parameter: str = "languages") -> tuple[str, ...]:
    """Return ISO 639-1 codes of languages; one that does not exist is refused."""
    given = (codes,) if isinstance(codes, str) else codes
    if not isinstance(given, (list, tuple)) or not all(isinstance(code, str) for code in given):
        raise InputError(parameter, "a list of ISO 639-1 codes, as in en or fr", codes)
    for row, code in enumerate(given):
        if code not in _CODES:
            expected = "ISO 639-1 codes of languages, two small letters as in en or fr"
            raise InputError(parameter, expected, code, row=row)
    return tuple(given)


def main_languages(found: LanguageShares) -> tuple[str, ...]:
    """Return the languages whose stop words and stems apply to a corpus."""
    # Of many languages none may have a tenth.
    least = min(MAIN_LANGUAGE, max(found.shares.values(), default=0.0) / 2)
    return tuple(code for code, share in found.shares.items() if share >= least)


@functools.cache
def _identifier() -> Any:
    """Load the identifier once (a second); our own, so that its settings are nobody else's."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
