"""Segmentation of scripts without spaces and lemmas, by optional libraries.

The libraries are imported if the rules name them. All have their own dictionaries and permissive
licences: rjieba (Chinese, MIT), sudachipy with
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

from embedtopics.errors import InputError
from embedtopics.results import Decision
from embedtopics.terms.results import WordRules

_LIBRARIES = {
    "zh": ("rjieba", "icu4py"), "ja": ("sudachipy", "icu4py"), "ko": ("kiwipiepy",),
    "th": ("pythainlp", "icu4py"), "lo": ("icu4py",), "km": ("icu4py",), "my": ("icu4py",),
}  # fmt: skip
"""Libraries that segment a language, the best first."""
_COMPANIONS = {"sudachipy": ("sudachidict-small",), "kiwipiepy": ("kiwipiepy-model",)}
"""Further distributions on which the words depend."""
_EXTRAS = {"ja": "japanese", "ko": "korean", "th": "thai"}
"""Extra with the best library; `multilingual` for other languages."""

_KANA = re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_OF_SCRIPTS = (
    "(?P<zh>[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff]+)|(?P<th>[\u0e00-\u0e7f]+)|(?P<lo>[\u0e80-\u0eff]+)"
    "|(?P<my>[\u1000-\u109f\uaa60-\uaa7f]+)|(?P<km>[\u1780-\u17ff]+)"
)
_HANGUL = "|(?P<ko>[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]+)"

_REQUIREMENT = re.compile(r"[a-z0-9-]+==[\w.]+(?: [a-z0-9-]+==[\w.]+)*", re.ASCII)

_MAX_CHARACTERS = 4000
"""Maximum number of characters in a call; sudachipy takes at most 49,149 bytes."""

_SEGMENTER_LOCK = Lock()
"""A tokenizer of sudachipy allows one thread only."""

SOCIAL = {"social": "kept", "social-split": "split", "social-drop": "dropped"}
CHOICES = ("auto", "characters", "lemmas", *SOCIAL)


def checked_words(words: Any) -> Any:
    """Check the option `words`: a name, several names, a function, or stored rules."""
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
    """Return the rules for texts in some languages, and the decisions."""
    words = checked_words(words)
    if callable(words) or isinstance(words, Mapping):
        return WordRules(function=words) if callable(words) else WordRules.from_json(words), []
    names = [words] if isinstance(words, str) else words
    notes, segmenters, lemmatizer = [], {}, ""
    lemmas: tuple[str, ...] = ()
    for code in () if "characters" in names else languages:
        by = next(filter(None, map(_installed, _LIBRARIES.get(code, ()))), "")
        if by:
            segmenters[code] = by
            message = f"{by} segments the texts in {code} into words."
            notes.append(Decision("terms", "segmenter", by, message))
        elif code in _LIBRARIES and code != "ko":  # Korean has spaces
            line = f'pip install "embedtopics[{_EXTRAS.get(code, "multilingual")}]"'
            message = f"Texts in {code} are cut into pairs of characters; for words: {line}"
            notes.append(Decision("terms", "segmenter", "characters", message))
    if "lemmas" in names:
        lemmatizer = _installed("simplemma")
        if not lemmatizer:
            remedy = 'pip install "embedtopics[multilingual]"'
            raise InputError(
                "words", "left without lemmas, because simplemma is missing", words, remedy
            )
        lemmas = tuple(filter(_has_lemmas, languages))
        message = f"Words become lemmas in {', '.join(lemmas) or 'no language'} ({lemmatizer})."
        notes.append(Decision("terms", "lemmas", list(lemmas), message))
    social = next((SOCIAL[name] for name in names if name in SOCIAL), "")
    lemmatizer = lemmatizer if lemmas else ""
    return WordRules(tuple(sorted(segmenters.items())), lemmas, lemmatizer, social), notes


def _installed(library: str) -> str:
    """Return the exact requirement of an installed library, or "" if a part is missing."""
    from importlib import metadata

    names = (library, *_COMPANIONS.get(library, ()))
    try:
        return " ".join(f"{name}=={metadata.version(name)}" for name in names)
    except metadata.PackageNotFoundError:
        return ""


@lru_cache(maxsize=64)
def _library(requirement: str) -> str:
    """Return the library of a requirement, which must be installed; warn of another version."""
    library = requirement.partition("==")[0]
    libraries = {"simplemma", *(name for names in _LIBRARIES.values() for name in names)}
    # The remedy quotes a saved folder, so it must hold names and versions only.
    is_plain = library in libraries and _REQUIREMENT.fullmatch(requirement)
    here = _installed(library) if is_plain else ""
    if not here:
        expected = f"made by {requirement[:80]!r}, as in the fit"
        remedy = f"pip install {requirement}" if is_plain else ""
        raise InputError("words", expected, found=f"no {library}", remedy=remedy)
    if here != requirement:
        warnings.warn(
            f"The words were made by {requirement}. The installed version, {here}, may find other "
            f"words; for the same words: pip install {requirement}",
            stacklevel=2,
        )
    return library


def needs_languages(words: Any, texts: Sequence[str]) -> bool:
    """Return whether the rules depend on the languages of some texts."""
    if callable(words) or "characters" in words:
        return False
    return "lemmas" in words or any(not t.isascii() and _runs(True).search(t) for t in texts)


def script_runs(rules: WordRules) -> re.Pattern[str]:
    """Return the pattern of runs of one script for segmenters."""
    return _runs("ko" in dict(rules.segmenters))


@lru_cache(maxsize=2)
def _runs(with_hangul: bool) -> re.Pattern[str]:
    return re.compile(_OF_SCRIPTS + _HANGUL * with_hangul)


def segment_run(run: re.Match[str], rules: WordRules) -> list[str] | None:
    """Segment a run into words that join to the run; None without a segmenter."""
    segmenters, code, text = dict(rules.segmenters), str(run.lastgroup), run[0]
    if code == "zh" and "ja" in segmenters and ("zh" not in segmenters or _KANA.search(text)):
        code = "ja"
    if code not in segmenters:
        return None
    segment = _segmenter(segmenters[code], code)
    parts = (
        text[begin : begin + _MAX_CHARACTERS] for begin in range(0, len(text), _MAX_CHARACTERS)
    )
    with _SEGMENTER_LOCK:
        return [word for part in parts for word in segment(part)]


@lru_cache(maxsize=16)
def _segmenter(requirement: str, code: str) -> Callable[[str], list[str]]:
    # Prevents that pythainlp creates a folder in the user's home.
    os.environ.setdefault("PYTHAINLP_READ_ONLY", "1")
    library: Any = (name := _library(requirement)) and import_module(name)
    if name == "rjieba":
        return lambda text: list(library.cut(text))
    if name == "sudachipy":
        tokenizer = library.Dictionary(dict="small").tokenizer()
        return lambda text: [part.surface() for part in tokenizer.tokenize(text)]
    if name == "pythainlp":
        # newmm-safe alone limits ambiguous stretches, which would take very long.
        return lambda text: list(library.word_tokenize(text, engine="newmm-safe"))
    if name == "kiwipiepy":
        kiwi = library.Kiwi()
        return lambda text: _cut(text, [token.start for token in kiwi.tokenize(text)])
    breaker = import_module("icu4py.breakers").WordBreaker
    return lambda text: list(breaker(text, code))


def _cut(text: str, starts: Sequence[int]) -> list[str]:
    """Cut a text at positions, which may repeat."""
    edges = sorted({0, *starts, len(text)})
    return [text[a:b] for a, b in pairwise(edges)]


def _has_lemmas(code: str) -> bool:
    try:
        import_module("simplemma").lemmatize("a", lang=code)
    except ValueError:
        return False
    return True


def lemma_of(word: str, rules: WordRules) -> str:
    """Return the lemma of a word. A lemma is its own lemma, so that keywords can be searched."""
    return _lemma(word, rules.lemmas, rules.lemmatizer) if rules.lemmas else word


@lru_cache(maxsize=1 << 17)
def _lemma(word: str, languages: tuple[str, ...], requirement: str) -> str:
    lemmatize = import_module(_library(requirement)).lemmatize
    seen = [word]
    while True:
        # German nouns need their capital.
        written = seen[-1].capitalize() if "de" in languages else seen[-1]
        lemma = unicodedata.normalize("NFC", lemmatize(written, lang=languages))
        lemma = lemma.lower() if word.islower() else lemma
        if lemma in seen or not lemma.isalpha():
            return min(seen[seen.index(lemma) :]) if lemma in seen else seen[-1]
        seen.append(lemma)


def words_by_function(
    text: str, rules: WordRules, row: int | None
) -> Iterator[tuple[str, int, int]]:
    """Yield the words of a user's function, with their positions in the text."""
    assert rules.function is not None
    if isinstance(rules.function, str):
        expected = f"the function {rules.function}, which files cannot hold"
        remedy = "pass it to load as words="
        raise InputError("words", expected, found="none", remedy=remedy)
    place, parts = 0, rules.function(text)
    expected = "a function that returns a list of words in the order of the text"
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
    """Return whether a word is an emoji: other words never begin with a symbol."""
    return unicodedata.category(word[0]) == "So"
