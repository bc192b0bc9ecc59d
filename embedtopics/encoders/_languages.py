"""Which languages an encoder reads, as far as its name tells, and a word when they do not fit."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from embedtopics.corpus.results import Decision, LanguageShares

EXPECTED_SHARE = 0.8
"""Below this share of texts in a language that the encoder reads, a warning is given."""

_MULTILINGUAL = re.compile(
    r"multilingual|\bxlm\b|labse|bge-m3|\bmbert\b|arctic-embed-[ml]-v2|gte-multilingual",
    re.IGNORECASE,
)
_ENGLISH = re.compile(
    r"""
      all-(minilm-l(6|12)-v[12] | mpnet-base-v[12] | distilroberta-v1 | roberta-large-v1)
    | (multi-qa|msmarco)-.+
    | paraphrase-(minilm|mpnet|albert|distilroberta|tinybert).*
    | (stsb|nli)-.+
    | bge-(small|base|large)-en.*
    | e5-(small|base|large)(-v2)?(-unsupervised)?
    | gte-(tiny|small|base|large)(-en-v1\.5)?
    | (distil)?bert-(base|large)-(un)?cased
    | (distil)?roberta-(base|large)
    | mpnet-base | modernbert-(base|large)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_REMEDY = (
    "a multilingual checkpoint (paraphrase-multilingual-MiniLM-L12-v2, "
    "intfloat/multilingual-e5-small or Alibaba-NLP/gte-multilingual-base) or the baselines that "
    "learn from the corpus itself (TF-IDF, fastText)"
)


def known_languages(name: str) -> tuple[str, ...] | None:
    """Return the languages that a published checkpoint was made for."""
    last = PurePath(name).name
    if _MULTILINGUAL.search(last):
        return ("multilingual",)
    return ("en",) if _ENGLISH.fullmatch(last) else None


def language_warning(encoder: Any, shares: LanguageShares) -> Decision | None:
    """Say so when a corpus is largely in languages that the encoder was not made for.

    Vectors of such texts exist and mean little: they follow shared names and loan words.
    """
    languages = getattr(encoder, "languages", None)
    judged = sum(shares.shares.values())
    if not languages or "multilingual" in languages or judged <= 0:
        return None
    fitting = sum(share for code, share in shares.shares.items() if code in languages) / judged
    if fitting >= EXPECTED_SHARE:
        return None
    others = ", ".join(
        f"{code} {share / judged:.0%}"
        for code, share in list(shares.shares.items())[:3]
        if code not in languages
    )
    name = getattr(encoder, "name", type(encoder).__name__)
    message = (
        f"The encoder {name} was made for {' and '.join(languages)}, but only {fitting:.0%} of "
        f"the texts are in it (found: {others}); what it makes of the others cannot be trusted. "
        f"Use {_REMEDY}."
    )
    return Decision("encoder", "language", round(fitting, 4), message)
