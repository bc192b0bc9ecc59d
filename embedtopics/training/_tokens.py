"""Static encoders from tokens: encode each alone, reduce the dimensions, weight by frequency.

The constants were best on the development part of the STS benchmark with all-MiniLM-L6-v2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack

from embedtopics._utils.checks import optional_count
from embedtopics._utils.machine import one_blas_thread
from embedtopics.corpus._corpus import as_corpus, require_text
from embedtopics.encoders._base import readable, slabs
from embedtopics.encoders._registry import resolve_exact
from embedtopics.encoders.static._encoder import StaticEncoder, TokenReader
from embedtopics.encoders.static._vocabulary import Vocabulary, add_words, plain_vocabulary
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, Int64Array

COEFFICIENTS = {"zipf": 3e-5, "corpus": 3e-4}
"""Coefficient a of the weights, by the source of the probabilities."""

MOST_WORDS, MIN_COUNT = 10_000, 5
"""Maximum number of added words, and minimum count of each."""

PRIOR_TOKENS = 1_000_000
"""Weight of Zipf's law, in tokens, relative to the counts of a corpus."""

_WORD = re.compile(r"(?=.*[^\W\d_])\w{2,}")
"""Words that can be added: letters, digits and marks, with at least one letter."""

_EVERY_WORD = 10_000_000
_OTHER = "\0"
"""Token of words that are not frequent; it cannot occur in texts."""


def frequent_split_words(
    vocabulary: Vocabulary, texts: Sequence[str], *, max_words: int, min_count: int
) -> list[str]:
    """Return the frequent words of a corpus that the tokenizer splits, most frequent first."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.trainers import WordLevelTrainer

    parsed = vocabulary.parsed
    normal = (lambda word: word) if parsed.normalizer is None else parsed.normalizer.normalize_str
    reader = Tokenizer(WordLevel(unk_token=_OTHER))
    reader.normalizer, reader.pre_tokenizer = parsed.normalizer, parsed.pre_tokenizer
    trainer = WordLevelTrainer(
        vocab_size=_EVERY_WORD, min_frequency=min_count, show_progress=False,
        special_tokens=[_OTHER],
    )  # fmt: skip
    reader.train_from_iterator((readable(text) for text in texts), trainer=trainer)
    numbered = reader.get_vocab()
    decoder = None if vocabulary.is_word_piece else parsed.decoder
    raw = sorted(numbered, key=numbered.__getitem__)
    decoded = raw if decoder is None else [decoder.decode([word]).strip() for word in raw]
    words = [w for w in dict.fromkeys(decoded) if _WORD.fullmatch(w) and normal(w) == w]
    encodings = parsed.encode_batch_fast(words, add_special_tokens=False)
    is_split = [len(each) > 1 or each.ids == [vocabulary.unknown] for each in encodings]
    return [word for word, split in zip(words, is_split, strict=True) if split][:max_words]


def bags_of(
    vocabulary: Vocabulary, texts: Sequence[str], max_length: int | None = None
) -> csr_matrix:
    """Return how often each text holds each token, float32 of shape (n_texts, n_tokens)."""
    reader = TokenReader(vocabulary.parsed, max_length, by_characters=False)
    counts: csr_matrix = vstack([reader.read(slab).tokens for slab in slabs(texts)], "csr")
    counts.sum_duplicates()
    return counts


def token_probabilities(
    n_tokens: int, counts: Int64Array | None = None, n_counted: int = 0
) -> Float64Array:
    """Return probabilities of tokens by Zipf's law, joined to `counts` of `n_counted` tokens."""
    zipf: Float64Array = 1.0 / np.arange(2, n_tokens + 2)
    zipf /= zipf.sum()
    if counts is None:
        return zipf
    joined: Float64Array = (counts + PRIOR_TOKENS * zipf) / (n_counted + PRIOR_TOKENS)
    return joined


def principal_axes(products: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return eigenvalues of ``rows.T @ rows``, descending, and eigenvectors of fixed sign."""
    # On one thread: the order in which BLAS sums depends on how many it has.
    with one_blas_thread():
        values, axes = np.linalg.eigh(products)
    axes = axes[:, ::-1]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    return np.clip(values[::-1], 0, None), axes


def project(rows: Any, axes: Any) -> Any:
    """Return ``rows @ axes``, by BLAS on one thread."""
    with one_blas_thread():
        return np.asarray(rows @ axes)


def distill_tokens(
    encoder: Any,
    texts: Any = None,
    *,
    dimensions: int | None = 256,
    show_progress: bool | None = None,
) -> StaticEncoder:
    """Make a static encoder of an encoder's vectors of single tokens; see `distill`."""
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
    if texts is not None:
        corpus = as_corpus(texts)
        require_text(corpus)
        documents = corpus.document_texts()
        words = frequent_split_words(
            vocabulary, documents, max_words=MOST_WORDS, min_count=MIN_COUNT
        )
        vocabulary = add_words(vocabulary, words)
        bags = bags_of(vocabulary, documents)
        summed = np.bincount(bags.indices, bags.data, minlength=bags.shape[1])
        source, counts = "corpus", summed.astype(np.int64)
        made_from |= {
            "n_texts": len(documents), "n_tokens": int(counts.sum()), "n_words": len(words),
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
