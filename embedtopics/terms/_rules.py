"""What libraries know of words: where they begin in scripts without spaces, and their lemmas.

The libraries are optional, and imported where the rules name them. Sources, all with dictionaries
of their own and a licence that allows any use: rjieba (Chinese, MIT), sudachipy with
sudachidict-small (Japanese, Apache), pythainlp (Thai, Apache), kiwipiepy (Korean, LGPL), icu4py
(International Components for Unicode: Chinese, Japanese, Thai, Lao, Khmer and Burmese; MIT and
Unicode), simplemma (lemmas of some fifty languages, MIT).
"""

from __future__ import annotations

import os
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from threading import Lock
from typing import Any

from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.terms.results import WordRules

_LIBRARIES = {
    "zh": ("rjieba", "icu4py"), "ja": ("sudachipy", "icu4py"), "ko": ("kiwipiepy",),
    "th": ("pythainlp", "icu4py"), "lo": ("icu4py",), "km": ("icu4py",), "my": ("icu4py",),
}  # fmt: skip
"""What reads a language, the better one first."""
_BESIDE = {"sudachipy": ("sudachidict-small",), "kiwipiepy": ("kiwipiepy-model",)}
"""Distributions of which the words depend as well."""
_EXTRAS = {"ja": "japanese", "ko": "korean", "th": "thai"}
"""The extra that brings the better library, `multilingual` for other languages."""

_KANA = re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_OF_SCRIPTS = (
    "(?P<zh>[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff]+)|(?P<th>[\u0e00-\u0e7f]+)|(?P<lo>[\u0e80-\u0eff]+)"
    "|(?P<my>[\u1000-\u109f\uaa60-\uaa7f]+)|(?P<km>[\u1780-\u17ff]+)"
)
_HANGUL = "|(?P<ko>[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]+)"

_REQUIREMENT = re.compile(r"[a-z0-9-]+==[\w.]+(?: [a-z0-9-]+==[\w.]+)*", re.ASCII)

_AT_ONCE = 4000
"""Characters that a segmenter reads at a time; sudachipy takes no more than 49,149 bytes."""

_ONE_AT_A_TIME = Lock()
"""A tokenizer of sudachipy refuses several threads."""

SOCIAL = {"social": "kept", "social-split": "split", "social-drop": "dropped"}
CHOICES = ("auto", "characters", "lemmas", *SOCIAL)


def checked_words(words: Any) -> Any:
    """Return the option `words`, several names as a list, or refuse it; a record is as stored."""
    if callable(words) or isinstance(words, Mapping):
        return words
    names = [words] if isinstance(words, str) else words
    is_list = isinstance(names, Sequence) and bool(names)
    if not is_list or not all(isinstance(n, str) and n in CHOICES for n in names):
        expected = f"one of {', '.join(CHOICES)}, several of them, or a function str -> list of str"
        raise InputError("words", expected, words)
    if len({*names} & SOCIAL.keys()) > 1:
        raise InputError("words", f"one of {', '.join(SOCIAL)}", words)
    return words if isinstance(words, str) else list(names)


def choose_rules(words: Any, languages: Sequence[str]) -> tuple[WordRules, list[Decision]]:
    """Return the rules for texts in some languages, and what was decided."""
    words = checked_words(words)
    if callable(words) or isinstance(words, Mapping):
        return WordRules(own=words) if callable(words) else WordRules.from_json(words), []
    names = [words] if isinstance(words, str) else words
    notes, found, lemmatizer = [], {}, ""
    lemmas: tuple[str, ...] = ()
    for code in () if "characters" in names else languages:
        by = next(filter(None, map(_installed, _LIBRARIES.get(code, ()))), "")
        if by:
            found[code] = by
            message = f"Words of texts in {code} are found by {by}."
            notes.append(Decision("terms", "segmenter", by, message))
        elif code in _LIBRARIES and code != "ko":  # which has spaces
            line = f'pip install "embedtopics[{_EXTRAS.get(code, "multilingual")}]"'
            message = f"Words of texts in {code} are pairs of characters; for words: {line}"
            notes.append(Decision("terms", "segmenter", "characters", message))
    if "lemmas" in names:
        lemmatizer = _installed("simplemma")
        if not lemmatizer:
            remedy = 'pip install "embedtopics[multilingual]"'
            raise InputError("words", "without lemmas where simplemma is missing", words, remedy)
        lemmas = tuple(filter(_has_lemmas, languages))
        message = f"Words are their lemmas in {', '.join(lemmas) or 'no language'} ({lemmatizer})."
        notes.append(Decision("terms", "lemmas", list(lemmas), message))
    social = next((SOCIAL[name] for name in names if name in SOCIAL), "")
    lemmatizer = lemmatizer if lemmas else ""
    return WordRules(tuple(sorted(found.items())), lemmas, lemmatizer, social), notes


def _installed(library: str) -> str:
    """Return the exact requirement of what is installed of a library, "" where a part lacks."""
    from importlib import metadata

    names = (library, *_BESIDE.get(library, ()))
    try:
        return " ".join(f"{name}=={metadata.version(name)}" for name in names)
    except metadata.PackageNotFoundError:
        return ""


@lru_cache(maxsize=64)
def _library(requirement: str) -> str:
    """Return the library of a requirement, which must be here; another version is warned of."""
    library = requirement.partition("==")[0]
    known = {"simplemma", *(name for names in _LIBRARIES.values() for name in names)}
    # A line to copy from a saved folder of somebody else holds names and versions alone.
    is_plain = library in known and _REQUIREMENT.fullmatch(requirement)
    here = _installed(library) if is_plain else ""
    if not here:
        expected = f"made by {requirement[:80]!r}, as they were in the fit"
        remedy = f"pip install {requirement}" if is_plain else ""
        raise InputError("words", expected, found=f"no {library}", remedy=remedy)
    if here != requirement:
        warnings.warn(
            f"The words were made by {requirement}, and here is {here}, which may find others; for "
            f"the same: pip install {requirement}",
            stacklevel=2,
        )
    return library


def needs_languages(words: Any, texts: Sequence[str]) -> bool:
    """Return whether the rules depend on the languages of some texts."""
    if callable(words) or "characters" in words:
        return False
    return "lemmas" in words or any(not t.isascii() and _runs(True).search(t) for t in texts)


def script_runs(rules: WordRules) -> re.Pattern[str]:
    """Return the pattern of runs of one script that segmenters read."""
    return _runs("ko" in dict(rules.segmenters))


@lru_cache(maxsize=2)
def _runs(with_hangul: bool) -> re.Pattern[str]:
    return re.compile(_OF_SCRIPTS + _HANGUL * with_hangul)


def segmented(run: re.Match[str], rules: WordRules) -> list[str] | None:
    """Return the words of a run, which in a row are the run; None where no segmenter reads it."""
    segmenters, code, text = dict(rules.segmenters), str(run.lastgroup), run[0]
    if code == "zh" and "ja" in segmenters and ("zh" not in segmenters or _KANA.search(text)):
        code = "ja"
    if code not in segmenters:
        return None
    segment = _segmenter(segmenters[code], code)
    parts = (text[begin : begin + _AT_ONCE] for begin in range(0, len(text), _AT_ONCE))
    with _ONE_AT_A_TIME:
        return [word for part in parts for word in segment(part)]


@lru_cache(maxsize=16)
def _segmenter(requirement: str, code: str) -> Callable[[str], list[str]]:
    # Otherwise pythainlp makes a folder in the user's home.
    os.environ.setdefault("PYTHAINLP_READ_ONLY", "1")
    library: Any = (name := _library(requirement)) and import_module(name)
    if name == "rjieba":
        return lambda text: list(library.cut(text))
    if name == "sudachipy":
        tokenizer = library.Dictionary(dict="small").tokenizer()
        return lambda text: [part.surface() for part in tokenizer.tokenize(text)]
    if name == "pythainlp":
        # A limit on ambiguous stretches, which would take very long, is in newmm-safe alone.
        return lambda text: list(library.word_tokenize(text, engine="newmm-safe"))
    if name == "kiwipiepy":
        kiwi = library.Kiwi()
        return lambda text: _cut(text, [token.start for token in kiwi.tokenize(text)])
    breaker = import_module("icu4py.breakers").WordBreaker
    return lambda text: list(breaker(text, code))


def _cut(text: str, starts: Sequence[int]) -> list[str]:
    """Return the parts of a text between some places, of which several may be the same."""
    edges = sorted({0, *starts, len(text)})
    return [text[a:b] for a, b in pairwise(edges)]


def _has_lemmas(code: str) -> bool:
    try:
        import_module("simplemma").lemmatize("a", lang=code)
    except ValueError:
        return False
    return True


def lemma_of(word: str, rules: WordRules) -> str:
    """Return the lemma of a word; that of a lemma is itself, so that keywords can be searched."""
    return _lemma(word, rules.lemmas, rules.lemmatizer) if rules.lemmas else word


@lru_cache(maxsize=1 << 17)
def _lemma(word: str, languages: tuple[str, ...], requirement: str) -> str:
    lemmatize = import_module(_library(requirement)).lemmatize
    seen = [word]
    while True:
        # German nouns are known by their capital.
        written = seen[-1].capitalize() if "de" in languages else seen[-1]
        made = unicodedata.normalize("NFC", lemmatize(written, lang=languages))
        made = made.lower() if word.islower() else made
        if made in seen or not made.isalpha():
            return min(seen[seen.index(made) :]) if made in seen else seen[-1]
        seen.append(made)


def own_words(text: str, rules: WordRules, row: int | None) -> Iterator[tuple[str, int, int]]:
    """Yield the words that a user's function finds in a text, with their places."""
    assert rules.own is not None
    if isinstance(rules.own, str):
        expected = f"found by the function {rules.own}, which no file keeps"
        remedy = "load with words=, and give it again"
        raise InputError("words", expected, found="none", remedy=remedy)
    place, parts = 0, rules.own(text)
    expected = "a function that returns a list of words, in the order in which the text has them"
    of = f" for the text {text[:40]!r}"
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise InputError("words", expected, found=f"{parts!r:.80}{of}", row=row)
    for part in parts:
        word = part.strip()
        begin = text.find(word, place)
        if begin < 0 or len(word.split()) > 1:
            raise InputError("words", expected, found=f"{part!r:.80}{of}", row=row)
        place = begin + len(word)
        if any(map(str.isalnum, word)):
            yield word, begin, place


def is_emoji(word: str) -> bool:
    """Return whether a word is a picture: symbols begin no other word."""
    return unicodedata.category(word[0]) == "So"
