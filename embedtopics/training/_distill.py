"""Distil a static encoder: encode each token alone, reduce the dimensions, weight by frequency."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from embedtopics._utils.checks import optional_count
from embedtopics.corpus._corpus import Corpus, require_text
from embedtopics.encoders._registry import resolve_exact
from embedtopics.encoders.static._encoder import StaticEncoder
from embedtopics.encoders.static._vocabulary import (
    add_words,
    bags_of,
    frequent_split_words,
    plain_vocabulary,
    token_probabilities,
)
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array

COEFFICIENTS = {"zipf": 3e-5, "corpus": 3e-4}
"""Coefficient a of the weights, by the source of the probabilities."""

MOST_WORDS, MIN_COUNT = 10_000, 5
"""Maximum number of added words, and minimum count of each."""


def principal_axes(products: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return eigenvalues of ``rows.T @ rows``, descending, and eigenvectors of fixed sign."""
    from threadpoolctl import threadpool_limits

    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        values, axes = np.linalg.eigh(products)
    axes = axes[:, ::-1]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    return np.clip(values[::-1], 0, None), axes


def project(rows: Any, axes: Any) -> Any:
    """Return ``rows @ axes``, by BLAS on one thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        return np.asarray(rows @ axes)


def distill(
    encoder: Any,
    *,
    vocabulary_from: Any = None,
    dimensions: int | None = 256,
    show_progress: bool | None = None,
) -> StaticEncoder:
    """Make a static encoder from a sentence encoder in about a minute.

    Each token of the tokenizer is encoded alone, as in model2vec. The vectors are reduced to their
    principal components and weighted by smooth inverse frequency, a / (a + p(token)) (Arora, Liang
    and Ma 2017, equation 3), so that rare words dominate the mean over a text. The constants were
    best on the development part of the STS benchmark with all-MiniLM-L6-v2.

    Parameters
    ----------
    encoder : SentenceEncoder, CachedEncoder, or the name or folder of a checkpoint
        Encoder whose checkpoint has a tokenizer.json.
    vocabulary_from : Corpus, sequence of str or anything that `Corpus` takes, optional
        Texts that p is counted in. Up to 10,000 frequent words that the tokenizer would split get
        their own vectors. By default p is 1 / (rank + 1) in the vocabulary (Zipf's law).
    dimensions : int, optional
        Maximum number of principal components. None keeps the vectors, without centring.
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
        If `dimensions` is out of range or the encoder has no tokenizer.json.

    References
    ----------
    S. Arora, Y. Liang and T. Ma, "A simple but tough-to-beat baseline for sentence embeddings",
    ICLR 2017.

    Examples
    --------
    >>> static = distill("all-MiniLM-L6-v2", vocabulary_from=corpus)  # doctest: +SKIP
    >>> static.save("minilm-static")  # doctest: +SKIP
    """
    optional_count(dimensions, "dimensions")
    encoder = resolve_exact(encoder)
    tokenizer = encoder.tokenizer_json
    if tokenizer is None:
        raise InputError("encoder", "a SentenceEncoder, which shows its tokenizer", encoder)
    vocabulary = plain_vocabulary(tokenizer)
    source, counts = "zipf", None
    made_from = {
        "method": "distillation",
        "encoder": Path(encoder.name).name,
        "encoder_fingerprint": encoder.fingerprint,
    }
    if vocabulary_from is not None:
        corpus = Corpus.of(vocabulary_from)
        require_text(corpus)
        texts = corpus.document_texts()
        words = frequent_split_words(vocabulary, texts, max_words=MOST_WORDS, min_count=MIN_COUNT)
        vocabulary = add_words(vocabulary, words)
        bags = bags_of(vocabulary, texts)
        summed = np.bincount(bags.indices, bags.data, minlength=bags.shape[1])
        source, counts = "corpus", summed.astype(np.int64)
        made_from |= {
            "n_texts": len(texts), "n_tokens": int(counts.sum()), "n_words": len(words),
            "min_count": MIN_COUNT,
        }  # fmt: skip
    rows = vocabulary.rows_with_text()
    alone = [vocabulary.surfaces[row] for row in rows]
    vectors = np.asarray(encoder.encode(alone, show_progress=show_progress), dtype=np.float64)
    explained = None
    if dimensions is not None:
        vectors = vectors - vectors.mean(axis=0)
        variances, axes = principal_axes(project(vectors.T, vectors))
        n_axes = min(dimensions, vectors.shape[1], max(1, len(vectors) - 1))
        total = variances.sum()
        explained = round(float(variances[:n_axes].sum() / total) if total > 0 else 1.0, 4)
        vectors = project(vectors, axes[:, :n_axes])
    coefficient = COEFFICIENTS[source]
    if counts is None:
        p = token_probabilities(len(rows))
    else:
        p = token_probabilities(len(rows), counts[rows], counts[rows].sum())
    table = np.zeros((len(vocabulary.surfaces), vectors.shape[1]), dtype=np.float32)
    table[rows] = vectors * (coefficient / (coefficient + p))[:, None]
    made_from |= {
        "dimensions": int(vectors.shape[1]),
        "explained_variance": explained,
        "sif_coefficient": coefficient,
        "probabilities": source,
    }
    return StaticEncoder.from_arrays(
        table, vocabulary.tokenizer, name=f"static {made_from['encoder']}",
        languages=encoder.languages, made_from=made_from,
    )  # fmt: skip
