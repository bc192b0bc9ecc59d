"""Codes of languages, and their detection on a sample of the texts of a corpus."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from importlib.resources import files
from typing import Any

from embedtopics.corpus._texts import normalize_text
from embedtopics.corpus.results import LanguageShares
from embedtopics.errors import InputError

_FEWEST_LETTERS, _MOST_CHARACTERS = 20, 1000  # the identifier reads every byte in Python
_LEAST_CONFIDENCE, _LEAST_PROBABILITY = 0.5, 0.1
_NO_LANGUAGE, _FEWEST_OF_SCRIPT = "zxx", 4
_TABLES = json.loads(files("embedtopics.terms").joinpath("languages.json").read_text("utf-8"))
_OF_SCRIPTS = re.compile("|".join(f"(?P<{a}>[{span}]+)" for a, span in _TABLES["scripts"].items()))
_SIMILAR = {code: group for group in _TABLES["similar"] for code in group.split()}

CODES = frozenset((
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy "
    "da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu "
    "hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb "
    "lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om "
    "or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv "
    "sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu "
    "ace bcl ber crh ext gcf gcr gom guw kab lij ltg nqo nso pcm sat vec"
).split())  # fmt: skip
"""ISO 639-1, and ISO 639-3 of languages without such a code that are detected."""

MAIN_LANGUAGE = 0.1
"""Minimum share of the texts of a main language of a corpus."""


def checked_languages(codes: Any, parameter: str = "languages") -> tuple[str, ...]:
    """Return the codes of languages; refuse unknown ones."""
    listed = (codes,) if isinstance(codes, str) else tuple(codes)
    for row, code in enumerate(listed):
        if code not in CODES:
            expected = "ISO 639-1 codes of languages, such as en and fr"
            raise InputError(parameter, expected, code, row=row)
    return listed


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
    """Estimate the shares of languages from distinct texts, ordered by hash.

    Texts without a clear language, or with a rare one, are judged again: the probabilities of their
    languages are multiplied by the frequencies, plus one, among the texts with a clear language.
    """
    beginnings = (text[:_MOST_CHARACTERS] for text in documents)
    judged = (scores for scores in map(_probabilities, beginnings) if scores is not None)
    texts = list(itertools.islice(judged, sample))
    clear = [_most_probable(scores) for scores in texts]
    counts = Counter(filter(None, clear))
    rare = {code for code, n in counts.items() if n < MAIN_LANGUAGE * counts.total()} | {""}
    final: Counter[str] = Counter()
    for code, scores in zip(clear, texts, strict=True):
        if code in rare:
            code = _most_probable({c: p * (counts[c] + 1) for c, p in scores.items()})
        final[code if scores.get(code, 0.0) >= _LEAST_PROBABILITY else ""] += 1
    ranked = sorted(final.items(), key=lambda item: (-item[1], item[0]))
    return LanguageShares({code: n / len(texts) for code, n in ranked if code}, len(texts))


def language_of(text: str) -> str | None:
    """Return the language of a text, "" if it is not recognized, None for too few letters."""
    scores = _probabilities(text[:_MOST_CHARACTERS])
    return None if scores is None else _most_probable(scores)


@functools.lru_cache(1000)  # a corpus is inspected and then fitted
def _probabilities(text: str) -> Mapping[str, float] | None:
    """Return the probabilities of the languages of a text, None for too few letters."""
    n_letters = sum(map(str.isalpha, text))
    by_script = _by_script(text, n_letters)
    if by_script or n_letters < _FEWEST_LETTERS:
        return {by_script: 1.0} if by_script else None
    scores: dict[str, float] = {}
    for code, score in _identifier().rank(text):
        code = _TABLES["macrolanguages"].get(code, code)
        scores[code] = scores.get(code, 0.0) + score
    if not {*_TABLES["latin"].split()} & {*text.lower().split()}:
        scores.pop("la", None)
    return scores


def _most_probable(scores: Mapping[str, float]) -> str:
    """Return the most probable language, or "" if it and those similar to it are improbable."""
    best = max(scores, key=scores.__getitem__)
    group = _SIMILAR.get(best, best)
    among = sum(score for code, score in scores.items() if _SIMILAR.get(code, code) == group)
    is_clear = best != _NO_LANGUAGE and among >= _LEAST_CONFIDENCE * sum(scores.values())
    return best if is_clear else ""


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
