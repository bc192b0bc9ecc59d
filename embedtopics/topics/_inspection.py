"""Statistics of a corpus before a fit, and the estimated cost of the fit on this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics.corpus._columns import ID_NAMES, TIME_NAMES, first_named, read_id, sampled
from embedtopics.corpus._corpus import as_corpus
from embedtopics.corpus._dates import read_dates
from embedtopics.corpus._texts import EMPTY, MISSING
from embedtopics.encoders._base import language_warning
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders.results import Encoding
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import EXACT_LIMIT
from embedtopics.protocols import Encoder
from embedtopics.terms._languages import detect_languages
from embedtopics.topics.results import Inspection

_GROUP_NAMES = (
    "group", "source", "category", "section", "label", "class", "party", "newspaper", "outlet",
    "author", "speaker", "country", "lang", "language", "folder", "groupe", "catégorie", "auteur",
    "parti", "primary_cat",
)  # fmt: skip

TOKENS_TO_TIME, SECONDS_TO_TIME, CHARACTERS_TO_LEARN_FROM = 6_000, 2.0, 60_000
"""Tokens of the first part that is timed, and the seconds after which no further part is, twice as
large each. Fewer tokens do not use all cores."""

SOON = 10.0
"""Estimated seconds below which the first part is enough."""

CHARACTERS_A_WORD = 6
"""Characters of an English word with its space."""

MANY_WINDOWS = 2
"""Windows of the encoder above which a typical text should be fitted as passages."""

TEXTS_TO_COUNT = 2_000
"""Texts of the sample for lengths."""

SECONDS_PER_PAIR, SECONDS_PER_SEARCH, SECONDS_PER_DOCUMENT = 0.9e-8, 5e-5, 1.3e-4
"""Seconds of an exact comparison of two documents, of an approximate search per document, and of
all other stages after encoding per document; measured on two cores at 384 dimensions."""

BASE_MEMORY = 0.9e9
"""Bytes of the interpreter, the libraries and a small encoder."""


def inspect(corpus: Any, encoder: Encoder | str | None = None) -> Inspection:
    """Summarize a corpus, and estimate the cost of a fit.

    Parameters
    ----------
    corpus : Corpus or anything that `Corpus` takes
        A list of texts, a DataFrame, or the path of a file, for example.
    encoder : Encoder or str, optional
        Its speed is measured on a few texts; without an encoder only later stages are estimated.

    Returns
    -------
    Inspection

    Examples
    --------
    >>> import embedtopics as et
    >>> et.topics.inspect(et.Corpus("embedtopics:demo", limit=120))
    Inspection(120 rows, 118 distinct texts, main language: en)
    """
    corpus = as_corpus(corpus)
    distinct = corpus.distinct()
    texts = corpus.document_texts()
    n_documents = len(texts)
    languages = detect_languages(texts)
    n_characters = sum(map(len, texts))

    # Documents are in the order of their content hash: every n-th one is a random sample.
    sample = texts[:: max(1, n_documents // TEXTS_TO_COUNT)][:TEXTS_TO_COUNT]

    resolved = None if encoder is None else resolve_encoder(encoder).reading_to_ends(texts)
    resolved, learning = _fitted(resolved, sample, n_characters)
    counted = resolved.count_tokens(sample) if resolved is not None and sample else None
    mean_tokens, mean_seen, truncated, speed = _measure(
        resolved, counted, sample, n_documents, learning
    )

    limit = (resolved and resolved.max_seq_length) or np.inf
    is_exact = n_documents <= EXACT_LIMIT
    search = SECONDS_PER_PAIR * n_documents if is_exact else SECONDS_PER_SEARCH
    width = (resolved.dimensions if resolved else None) or 384
    warning = None if resolved is None else language_warning(resolved, languages)

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
        seconds_after=2.0 + (search + SECONDS_PER_DOCUMENT) * n_documents,
        # Embeddings are in memory up to three times; words and counts take about six bytes per
        # character.
        memory=BASE_MEMORY + 12.0 * n_documents * width + 6.0 * n_characters,
        warnings=(warning.message,) if warning is not None else (),
        is_long=counted is not None and bool(np.median(counted.n_tokens) > MANY_WINDOWS * limit),
    )


def _fitted(
    encoder: BaseEncoder | None, sample: Sequence[str], n_characters: int
) -> tuple[BaseEncoder | None, float]:
    """Fit an encoder on some texts; return it and the estimated seconds per character."""
    if encoder is None or not sample or encoder.is_fitted:
        return encoder, 0.0
    some = sample[: _reach([len(text) for text in sample], CHARACTERS_TO_LEARN_FROM)]
    with suppress(InputError):
        encoder.fitted_to(some[: max(2, len(some) // 8)])  # the first call also sets things up
    begin = time.perf_counter()
    fitted = encoder.fitted_to(some)
    seconds = time.perf_counter() - begin
    n_learnt = sum(map(len, some))
    # Encoders with several epochs take fewer of them for many texts.
    now, later = (
        encoder.epochs_for(max(1, n // CHARACTERS_A_WORD)) for n in (n_learnt, n_characters)
    )
    return fitted, seconds / n_learnt * later / now


def _reach(lengths: npt.ArrayLike, most: int) -> int:
    """Return the number of first texts that are just longer than `most`."""
    return int(np.searchsorted(np.cumsum(lengths), most)) + 1


def _measure(
    encoder: BaseEncoder | None,
    counted: Encoding | None,
    sample: Sequence[str],
    n_documents: int,
    learning: float,
) -> tuple[float, float, float, float]:
    """Return mean tokens, mean tokens read, share of texts cut, and tokens per second."""
    if encoder is None or counted is None:
        return float("nan"), float("nan"), 0.0, float("nan")
    # The first call also starts threads and takes memory. A cache keeps the vectors for the fit; if
    # it holds some, the texts are encoded again to take the time.
    first = _reach(counted.n_seen, TOKENS_TO_TIME // 4)
    some = sample[:first]
    if encoder.encode_with_report(some, show_progress=False).n_cached or len(some) == len(sample):
        encoder, first = encoder.uncached, 0
        encoder.encode_with_report(some, show_progress=False)
    n_timed, n_tokens, seconds = first, 0, 0.0
    while n_timed < len(sample) and seconds < SECONDS_TO_TIME:
        part = slice(n_timed, n_timed + _reach(counted.n_seen[n_timed:], TOKENS_TO_TIME + n_tokens))
        begin = time.perf_counter()
        n_cached = encoder.encode_with_report(sample[part], show_progress=False).n_cached
        if n_cached:
            encoder = encoder.uncached
            continue
        seconds += time.perf_counter() - begin
        n_timed, n_tokens = part.stop, n_tokens + int(counted.n_seen[part].sum())
        if seconds * n_documents / (min(n_timed, len(sample)) - first) < SOON:
            break
    seconds += learning * sum(map(len, sample[first:n_timed]))
    speed = n_tokens / seconds
    shares = counted.n_tokens.mean(), counted.n_seen.mean(), counted.truncated_share
    return float(shares[0]), float(shares[1]), float(shares[2]), speed


def guess_columns(frame: pd.DataFrame) -> dict[str, str | None]:
    """Guess the columns of ids, dates and groups."""
    guesses: dict[str, str | None] = {}
    for role, names, accepts in (
        ("id", ID_NAMES, lambda c: len({*map(read_id, c.tolist())} - {""}) == len(c)),
        ("time", TIME_NAMES, _holds_dates),
        ("group", _GROUP_NAMES, _holds_groups),
    ):
        left = [name for name in frame.columns if name not in guesses.values()]
        guesses[role] = first_named(left, names, lambda name: accepts(frame[name]))  # noqa: B023
    return guesses


def _holds_dates(column: pd.Series) -> bool:
    try:
        return bool(read_dates(column, "dates")[0].notna().any())
    except InputError:
        return False


def _holds_groups(column: pd.Series) -> bool:
    values = sampled(column)
    try:
        return 2 <= len(set(values)) <= max(2, len(values) // 2)
    except TypeError:  # lists and dicts cannot name groups
        return False
