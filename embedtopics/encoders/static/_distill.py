"""Distil a static encoder: encode each token alone, reduce the dimensions, weight by frequency."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count
from embedtopics.corpus._corpus import Corpus, require_text
from embedtopics.encoders._registry import resolve_exact
from embedtopics.encoders.static._encoder import StaticEncoder
from embedtopics.encoders.static._vocabulary import (
    add_words,
    count_in_corpus,
    frequent_split_words,
    plain_vocabulary,
)
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array

PRIOR_TOKENS = 1_000_000
"""Weight of Zipf's law, in tokens, relative to the counts of a corpus."""

COEFFICIENTS = {"zipf": 3e-5, "corpus": 3e-4}
"""Coefficient a of the weights, by the source of the probabilities."""


def distill(
    encoder: Any,
    *,
    vocabulary_from: Any = None,
    max_words: int = 10_000,
    min_count: int = 5,
    dimensions: int | None = 256,
    weighting: str = "sif",
    sif_coefficient: float | None = None,
    remove_components: int = 0,
    normalize: bool = True,
    max_length: int | None = None,
    show_progress: bool | None = None,
) -> StaticEncoder:
    """Make a static encoder from a sentence encoder in about a minute.

    Each token of the tokenizer is encoded alone, as in model2vec. The vectors are reduced to their
    principal components and weighted by smooth inverse frequency, a / (a + p(token)) (Arora, Liang
    and Ma 2017, equation 3), so that rare words dominate the mean over a text. The defaults were
    best on the development part of the STS benchmark with all-MiniLM-L6-v2.

    Parameters
    ----------
    encoder : SentenceEncoder, CachedEncoder, or the name or folder of a checkpoint
        Encoder whose checkpoint has a tokenizer.json.
    vocabulary_from : Corpus, sequence of str or anything that `Corpus.of` takes, optional
        Texts that p is counted in. Frequent words that the tokenizer would split get their own
        vectors. By default p is 1 / (rank + 1) in the vocabulary (Zipf's law).
    max_words : int
        Maximum number of added words.
    min_count : int
        Minimum count of an added word.
    dimensions : int, optional
        Maximum number of principal components. None keeps the vectors, without centring.
    weighting : {"sif", "none"}
    sif_coefficient : float, optional
        Coefficient a of the weights; by default 3e-4 with counts of a corpus, 3e-5 without.
    remove_components : int
        Number of leading directions removed from the weighted vectors, with tokens drawn by their
        frequency (section 3 of the paper, with tokens instead of sentences).
    normalize : bool
        Whether vectors of texts are scaled to length 1.
    max_length : int, optional
        Maximum number of tokens read of a text; no limit by default.
    show_progress : bool, optional
        None shows a progress bar in terminals and notebooks.

    Returns
    -------
    StaticEncoder
        `made_from` records the settings. Tokens that cannot occur in texts, such as padding, have
        zero vectors.

    Raises
    ------
    InputError
        If a parameter is out of range or the encoder has no tokenizer.json.

    References
    ----------
    S. Arora, Y. Liang and T. Ma, "A simple but tough-to-beat baseline for sentence embeddings",
    ICLR 2017.

    Examples
    --------
    >>> static = distill("all-MiniLM-L6-v2", vocabulary_from=corpus)  # doctest: +SKIP
    >>> static.save("minilm-static")  # doctest: +SKIP
    """
    _check(max_words, min_count, dimensions, weighting, sif_coefficient, remove_components)
    encoder = resolve_exact(encoder)
    tokenizer = encoder.tokenizer_json
    if tokenizer is None:
        raise InputError("encoder", "a SentenceEncoder, which shows its tokenizer", encoder)
    vocabulary = plain_vocabulary(tokenizer)
    counts = None
    made_from = {
        "method": "distillation",
        "encoder": Path(encoder.name).name,
        "encoder_fingerprint": encoder.fingerprint,
    }
    if vocabulary_from is not None:
        corpus = Corpus.of(vocabulary_from)
        require_text(corpus)
        texts = corpus.document_texts()
        words = frequent_split_words(vocabulary, texts, max_words=max_words, min_count=min_count)
        vocabulary = add_words(vocabulary, words)
        counts = count_in_corpus(vocabulary, texts)
        made_from |= {
            "n_texts": len(texts), "n_tokens": int(counts.sum()), "n_words": len(words),
            "min_count": min_count,
        }  # fmt: skip
    # Tokens that stand for text.
    rows = np.array([place for place, text in enumerate(vocabulary.surfaces) if text])
    alone = [vocabulary.surfaces[place] for place in rows]
    vectors = np.asarray(encoder.encode(alone, show_progress=show_progress), dtype=np.float64)
    probabilities = _probabilities(len(rows), None if counts is None else counts[rows])
    vectors, explained = _principal_components(vectors, dimensions)
    source = "zipf" if counts is None else "corpus"
    coefficient = COEFFICIENTS[source] if sif_coefficient is None else float(sif_coefficient)
    if weighting == "sif":
        vectors = vectors * (coefficient / (coefficient + probabilities))[:, None]
    vectors = _without_components(vectors, probabilities, remove_components)
    table = np.zeros((len(vocabulary.surfaces), vectors.shape[1]), dtype=np.float32)
    table[rows] = vectors
    made_from |= {
        "dimensions": int(vectors.shape[1]),
        "explained_variance": explained,
        "weighting": weighting,
        "sif_coefficient": coefficient if weighting == "sif" else None,
        "probabilities": source,
        "remove_components": remove_components,
    }
    return StaticEncoder.from_arrays(
        table, vocabulary.tokenizer, normalize=normalize, max_length=max_length,
        name=f"static {made_from['encoder']}", languages=encoder.languages,
        made_from=made_from,
    )  # fmt: skip


def _check(
    max_words: Any, min_count: Any, dimensions: Any, weighting: Any, coefficient: Any, removed: Any
) -> None:
    checked_count(max_words, "max_words", 0)
    checked_count(min_count, "min_count")
    checked_count(1 if dimensions is None else dimensions, "dimensions")
    checked_count(removed, "remove_components", 0)
    if weighting not in ("sif", "none"):
        raise InputError(f'expected weighting to be "sif" or "none", got {weighting!r}')
    is_factor = isinstance(coefficient, (int, float)) and 0 < coefficient < float("inf")
    if coefficient is not None and not is_factor:
        raise InputError(f"expected sif_coefficient to be above 0, got {coefficient!r}")


def _probabilities(n_tokens: int, counts: npt.NDArray[np.int64] | None) -> Float64Array:
    """Return the probabilities of tokens, by counts smoothed with Zipf's law."""
    zipf = 1.0 / np.arange(2, n_tokens + 2)
    zipf /= zipf.sum()
    if counts is None:
        return zipf
    joined: Float64Array = (counts + PRIOR_TOKENS * zipf) / (counts.sum() + PRIOR_TOKENS)
    return joined


def _principal_components(
    vectors: Float64Array, dimensions: int | None
) -> tuple[Float64Array, float | None]:
    """Return the first principal components, and their share of the variance."""
    if dimensions is None:
        return vectors, None
    n_kept = min(dimensions, vectors.shape[1], max(1, len(vectors) - 1))
    centred = vectors - vectors.mean(axis=0)
    variances, axes = _eigen(centred)
    share = float(variances[:n_kept].sum() / variances.sum()) if variances.sum() > 0 else 1.0
    return _product(centred, axes[:, :n_kept]), round(share, 4)


def _without_components(
    vectors: Float64Array, probabilities: Float64Array, n_removed: int
) -> Float64Array:
    if n_removed == 0:
        return vectors
    axes = _eigen(vectors * np.sqrt(probabilities)[:, None])[1][:, :n_removed]
    return vectors - _product(_product(vectors, axes), axes.T)


def _eigen(rows: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return eigenvalues of ``rows.T @ rows``, descending, and eigenvectors of fixed sign."""
    from threadpoolctl import threadpool_limits

    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        values, axes = np.linalg.eigh(rows.T @ rows)
    axes = axes[:, ::-1]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    return np.clip(values[::-1], 0, None), axes


def _product(left: Float64Array, right: Float64Array) -> Float64Array:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        product: Float64Array = left @ right
    return product
