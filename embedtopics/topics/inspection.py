"""A look at a corpus before the work: what is in it, and what a fit will cost here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedtopics.corpus import EMPTY, MISSING, Corpus, detect_languages
from embedtopics.encoders import language_warning
from embedtopics.neighbors import EXACT_LIMIT
from embedtopics.protocols import Encoder
from embedtopics.results import LanguageShares

__all__ = ["Inspection", "inspect_corpus"]

TOKENS_TO_TIME = 6_000
"""Tokens that are encoded to learn the encoder's speed on this machine: about a second."""

TEXTS_TO_COUNT = 2_000
"""Texts that are tokenised to estimate lengths."""

SECONDS_PER_PAIR = 0.9e-8
"""Exact neighbour search, for each pair of documents; measured on two cores at 384 dimensions."""

SECONDS_PER_SEARCH = 5e-5
"""Approximate neighbour search, for each document; measured likewise."""

SECONDS_PER_DOCUMENT = 1.3e-4
"""All other stages after encoding, for each document; measured on two cores."""

BASE_MEMORY = 0.9e9
"""Bytes of the interpreter, the libraries and a small encoder."""


@dataclass(frozen=True)
class Inspection:
    """What a corpus holds, and what finding its topics will cost on this machine.

    Parameters
    ----------
    n_rows, n_documents : int
        Rows of the input; distinct texts.
    n_missing, n_empty, n_repeated : int
        Rows without text (no value; nothing visible), and rows that repeat another's text.
    languages : LanguageShares
    mean_characters : float
        Of a distinct text.
    mean_tokens : float
        Sub-word tokens of a distinct text, on a sample; NaN without an encoder that counts.
    truncated_share, unseen_share : float
        Estimated share of texts that the encoder cuts, and of tokens that it does not read.
    tokens_per_second : float
        Speed of the encoder, measured here; NaN without an encoder that counts.
    seconds_to_encode, seconds_after : float
        Estimated; encoding is not needed where embeddings are given.
    memory : float
        Estimated peak, in bytes.
    warnings : tuple of str
    """

    n_rows: int
    n_documents: int
    n_missing: int
    n_empty: int
    n_repeated: int
    languages: LanguageShares
    mean_characters: float
    mean_tokens: float
    truncated_share: float
    unseen_share: float
    tokens_per_second: float
    seconds_to_encode: float
    seconds_after: float
    memory: float
    warnings: tuple[str, ...]


def inspect_corpus(corpus: Corpus, encoder: Encoder | None = None) -> Inspection:
    """Look at a corpus and estimate the cost of a fit.

    Parameters
    ----------
    corpus : Corpus
    encoder : Encoder, optional
        Its speed is measured on a few texts; without one only what follows is estimated.

    Returns
    -------
    Inspection
    """
    distinct = corpus.distinct()
    texts = corpus.document_texts()
    n_documents = len(texts)
    languages = detect_languages(texts)
    n_characters = sum(map(len, texts))
    # Documents are ordered by a hash of their content, so every n-th is a fair sample.
    sample = texts[:: max(1, n_documents // TEXTS_TO_COUNT)][:TEXTS_TO_COUNT]
    mean_tokens, mean_seen, truncated, speed = _measure(encoder, sample)
    width = getattr(encoder, "dimensions", 384)
    warning = language_warning(encoder, languages) if encoder is not None else None
    return Inspection(
        n_rows=len(corpus),
        n_documents=n_documents,
        n_missing=int((corpus.status == MISSING).sum()),
        n_empty=int((corpus.status == EMPTY).sum()),
        n_repeated=int(distinct.weights.sum()) - n_documents,
        languages=languages,
        mean_characters=n_characters / n_documents if n_documents else 0.0,
        mean_tokens=mean_tokens,
        truncated_share=truncated,
        unseen_share=1 - mean_seen / mean_tokens if mean_tokens else 0.0,
        tokens_per_second=speed,
        seconds_to_encode=mean_seen * n_documents / speed if speed else 0.0,
        seconds_after=_seconds_after(n_documents),
        # Embeddings are held about three times for a moment; a text's words and counts take
        # about six bytes for each of its characters.
        memory=BASE_MEMORY + 12.0 * n_documents * width + 6.0 * n_characters,
        warnings=(warning.message,) if warning is not None else (),
    )


def _measure(encoder: Encoder | None, sample: Sequence[str]) -> tuple[float, float, float, float]:
    """Return mean tokens, mean tokens read, share of texts cut, and tokens a second."""
    count = getattr(encoder, "count_tokens", None)
    if encoder is None or count is None or not sample:
        return float("nan"), float("nan"), 0.0, float("nan")
    counted = count(sample)
    reach = int(np.searchsorted(np.cumsum(counted.n_seen), TOKENS_TO_TIME)) + 1
    encoder = getattr(encoder, "uncached", encoder)
    encoder.encode(sample[:1])  # the first call also sets things up
    begin = time.perf_counter()
    encoder.encode(sample[:reach])
    seconds = time.perf_counter() - begin
    speed = float(counted.n_seen[:reach].sum() / seconds)
    return (
        float(counted.n_tokens.mean()),
        float(counted.n_seen.mean()),
        float(counted.truncated_share),
        speed,
    )


def _seconds_after(n_documents: int) -> float:
    is_exact = n_documents <= EXACT_LIMIT
    search = SECONDS_PER_PAIR * n_documents if is_exact else SECONDS_PER_SEARCH
    return 2.0 + (search + SECONDS_PER_DOCUMENT) * n_documents
