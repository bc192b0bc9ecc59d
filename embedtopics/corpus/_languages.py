"""Language detection on a sample of the texts of a corpus."""

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
"""Characters of scripts that only one language, or nearly only one, uses."""
_OF_SCRIPTS = re.compile("|".join(f"(?P<{code}>[{span}]+)" for code, span in _SCRIPTS.items()))

MAIN_LANGUAGE = 0.1
"""Minimum share of the texts of a main language of a corpus."""


def detect_languages(texts: Iterable[str], sample: int = 500) -> LanguageShares:
    """Estimate the shares of languages among the distinct texts of a corpus.

    The sample consists of the texts with the smallest hashes: it does not depend on the order of
    the texts or on repetitions. The standard error of a share in 500 texts is at most 0.022.
    """
    by_hash = {}
    for normal in map(normalize_text, texts):
        by_hash[blake2b(normal.encode(), digest_size=16).digest()] = normal
    return languages_in_order((by_hash[key] for key in sorted(by_hash)), sample)


def languages_in_order(documents: Iterable[str], sample: int = 500) -> LanguageShares:
    """Estimate the shares of languages from distinct texts, ordered by hash."""
    counts: Counter[str] = Counter()
    for text in documents:
        if (code := language_of(text)) is not None:
            counts[code] += 1
        if counts.total() == sample:
            break
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    n_sampled = counts.total()
    return LanguageShares({code: n / n_sampled for code, n in ranked if code}, n_sampled)


def language_of(text: str) -> str | None:
    """Return the language of a text, "" if it is not recognized, None for too few letters."""
    # The identifier reads every byte in Python, and the beginning is enough.
    text = text[:_MOST_CHARACTERS]
    n_letters = sum(map(str.isalpha, text))
    by_script = _by_script(text, n_letters)
    if by_script or n_letters < _FEWEST_LETTERS:
        return by_script
    code, confidence = _identifier().classify(text)
    return str(code) if confidence >= _LEAST_CONFIDENCE and code != _NO_LANGUAGE else ""


def _by_script(text: str, n_letters: int) -> str | None:
    """Return the language of a text if most letters belong to the script of one language."""
    if n_letters < _FEWEST_OF_SCRIPT or text.isascii():
        return None
    counts: Counter[str] = Counter()
    for run in _OF_SCRIPTS.finditer(text):
        counts[str(run.lastgroup)] += sum(map(str.isalpha, run[0]))
    if counts["ja"] > 0.1 * counts["zh"]:  # Japanese mixes kana and Chinese characters
        counts["ja"] += counts.pop("zh", 0)
    code, count = max(counts.items(), key=lambda item: item[1], default=("", 0))
    return code if count > n_letters / 2 else None


def checked_languages(codes: Any, parameter: str = "languages") -> tuple[str, ...]:
    """Return ISO 639-1 codes of languages; refuse unknown codes."""
    listed = (codes,) if isinstance(codes, str) else tuple(codes)
    for row, code in enumerate(listed):
        if code not in _CODES:
            expected = "ISO 639-1 codes of languages, such as en and fr"
            raise InputError(parameter, expected, code, row=row)
    return listed


def main_languages(languages: LanguageShares) -> tuple[str, ...]:
    """Return the languages whose stop words and stems apply to a corpus."""
    # Among many languages, none may have a share of a tenth.
    least = min(MAIN_LANGUAGE, max(languages.shares.values(), default=0.0) / 2)
    return tuple(code for code, share in languages.shares.items() if share >= least)


@functools.cache
def _identifier() -> Any:
    """Load an identifier, which takes a second; the settings of the module are global."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
