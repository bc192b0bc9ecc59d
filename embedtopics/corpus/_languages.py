"""Which languages a corpus is written in, from a sample of its texts."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from embedtopics.corpus._hashing import normalize_text
from embedtopics.corpus.results import LanguageShares
from embedtopics.errors import InputError

_FEWEST_LETTERS = 20
_MOST_CHARACTERS = 2000
_LEAST_CONFIDENCE = 0.5
_NO_LANGUAGE = "zxx"

MAIN_LANGUAGE = 0.1
"""Share of the texts from which on a language counts as one of the corpus's."""


def detect_languages(texts: Iterable[str], sample: int = 500) -> LanguageShares:
    """Estimate the shares of languages among the distinct texts of a corpus.

    The sample is drawn by content (the texts with the smallest hashes), so that it is the same
    in every run and does not depend on the order of the texts or on how often one is repeated.

    Parameters
    ----------
    texts : iterable of str
        Texts with fewer than 20 letters are passed over.
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
    found: Counter[str] = Counter()
    n_sampled = 0
    by_hash = {}
    for normal in map(normalize_text, texts):
        by_hash[blake2b(normal.encode(), digest_size=16).digest()] = normal
    for _, text in sorted(by_hash.items()):
        if sum(map(str.isalpha, text[:_MOST_CHARACTERS])) < _FEWEST_LETTERS:
            continue
        n_sampled += 1
        # The beginning is enough, and the identifier reads every byte in Python.
        code, confidence = _identifier().classify(text[:_MOST_CHARACTERS])
        if confidence >= _LEAST_CONFIDENCE and code != _NO_LANGUAGE:
            found[str(code)] += 1
        if n_sampled == sample:
            break
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return LanguageShares({code: count / n_sampled for code, count in ranked}, n_sampled)


def main_languages(found: LanguageShares) -> tuple[str, ...]:
    """Return the languages whose stop words and stems apply to a corpus."""
    chosen = tuple(code for code, share in found.shares.items() if share >= MAIN_LANGUAGE)
    return chosen or tuple(found.shares)[:1]


@functools.cache
def _identifier() -> Any:
    """Load the identifier once (a second); our own, so that its settings are nobody else's."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
