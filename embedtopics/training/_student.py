"""Static students: tables of token vectors, fitted to a teacher's vectors of whole texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags

from embedtopics._utils.checks import checked_count
from embedtopics.corpus._corpus import as_corpus, require_text
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._registry import resolve_exact
from embedtopics.encoders.static._encoder import StaticEncoder
from embedtopics.encoders.static._vocabulary import Vocabulary, add_words, plain_vocabulary
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.training._tokens import (
    bags_of,
    frequent_split_words,
    principal_axes,
    project,
    token_probabilities,
)

FEWEST_TEXTS = 50
HELD_OUT, MOST_HELD_OUT = 20, 5_000
"""One text in 20 measures the agreement with the teacher, at most 5,000 of them."""

MOST_WORDS, MIN_COUNT = 20_000, 5
"""Maximum number of words with a separate vector, and minimum count of each."""

COEFFICIENT = 3e-4
"""a of the weights a / (a + p(token)) that the fit starts from (Arora, Liang and Ma 2017)."""

RIDGE, ITERATIONS = 0.2, 15
"""Weight of the squared distance to the table that the fit starts from, relative to the mean over
tokens of their weights in the texts; and iterations of the solver. Of 0.1, 0.2, 0.4 and 1, the
weight with the highest cosine with the teacher on held-out titles; on 20,000 and on 1,500 of them
the others had up to 0.01 less."""

SMALLEST = 1e-6
"""Length below which a text's sum of vectors is not scaled up any further."""


def distill_texts(
    encoder: Any,
    texts: Any,
    *,
    general: Any = None,
    dimensions: int | None = 256,
    show_progress: bool | None = None,
) -> StaticEncoder:
    """Fit a static encoder to an encoder's vectors of whole texts; see `distill`."""
    checked_count(dimensions, "dimensions")
    teacher = resolve_exact(encoder, cached=True)
    if teacher.tokenizer_json is None:
        raise InputError("encoder", "a SentenceEncoder with a tokenizer.json", encoder)
    documents, n_corpus = _distinct(texts, general)
    is_held = np.arange(len(documents)) % max(HELD_OUT, len(documents) // MOST_HELD_OUT) == 0
    learned = [text for text, is_out in zip(documents, is_held, strict=True) if not is_out]
    plain = plain_vocabulary(teacher.tokenizer_json)
    words = frequent_split_words(plain, learned, max_words=MOST_WORDS, min_count=MIN_COUNT)
    vocabulary = add_words(plain, words)
    # Tokens beyond the teacher's limit did not influence its vector of the text.
    bags = bags_of(vocabulary, documents, teacher.max_seq_length)
    vectors = _encode(teacher, documents, show_progress)
    is_read = (np.diff(bags.indptr) > 0) & vectors.any(axis=1)
    training, held = np.flatnonzero(is_read & ~is_held), np.flatnonzero(is_read & is_held)
    if len(training) < FEWEST_TEXTS // 2 or not len(held):
        actual = f"{int(is_read.sum())} such texts of {len(is_read)}"
        raise InputError("texts", "in words that the teacher knows", found=actual)
    units = _unit(vectors[training]).astype(np.float64)
    variances, components = principal_axes(project(units.T, units))
    axes: FloatArray = components[:, :dimensions].astype(np.float32)
    targets = _unit(project(vectors, axes))
    start = _start_table(teacher, vocabulary, bags[training], axes, show_progress)
    table = fit_table(start, bags[training], targets[training])
    before, after = (_agreement(bags[held], one, targets[held]) for one in (start, table))
    # Others need only the last part of a folder's path; on the hub, the owner belongs to the name.
    is_folder = teacher.transformer is None or teacher.transformer.source == "path"
    name = Path(teacher.name).name if is_folder else teacher.name
    made_from = {
        "method": "static student",
        "encoder": name,
        "encoder_fingerprint": teacher.fingerprint,
        "n_texts": int((~is_held[:n_corpus]).sum()),
        "n_general": int((~is_held[n_corpus:]).sum()),
        "n_unread": int((~is_read).sum()),
        "n_words": len(words),
        "dimensions": table.shape[1],
        "explained_variance": round(float(variances[:dimensions].sum() / variances.sum()), 4),
        "agreement": round(after, 4),
        "agreement_distilled": round(before, 4),
    }
    return StaticEncoder.from_arrays(
        table, vocabulary.tokenizer, name=f"student {name}", languages=teacher.languages,
        made_from=made_from,
    )  # fmt: skip


def _distinct(texts: Any, general: Any) -> tuple[list[str], int]:
    """Return the distinct texts, those of the corpus first, by content hash, and their number."""
    corpus = as_corpus(texts)
    require_text(corpus)
    documents = dict.fromkeys(corpus.document_texts())
    n_corpus = len(documents)
    if general is not None:
        mix = as_corpus(general)
        require_text(mix)
        documents |= dict.fromkeys(mix.document_texts())
    if len(documents) < FEWEST_TEXTS:
        remedy = 'give more texts, or pass method="tokens", which needs none'
        raise InputError("texts", f"{FEWEST_TEXTS} or more", len(documents), remedy)
    return list(documents), n_corpus


def _encode(teacher: BaseEncoder, texts: list[str], show_progress: bool | None) -> FloatArray:
    """Return a teacher's vectors, (n_texts, n_dimensions)."""
    vectors = np.asarray(teacher.encode(texts, show_progress=show_progress), dtype=np.float32)
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        actual = f"another number for {texts[int(np.argmin(finite))][:60]!r}"
        raise InputError("encoder", "one of finite vectors", found=actual)
    return vectors


def _unit(vectors: Any) -> FloatArray:
    unit: FloatArray = vectors / _lengths(vectors)[:, None]
    return unit


def _lengths(vectors: FloatArray) -> FloatArray:
    lengths: FloatArray = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.maximum(lengths, np.float32(SMALLEST))


def _agreement(bags: csr_matrix, table: FloatArray, targets: FloatArray) -> float:
    """Return the mean cosine of the vectors by a table with their targets."""
    cosines = np.einsum("ij,ij->i", _unit(bags @ table), targets)
    return float(cosines.mean(dtype=np.float64))


def fit_table(start: FloatArray, bags: csr_matrix, targets: FloatArray) -> FloatArray:
    """Return the table whose means over texts have the least squared distance to unit targets.

    `start` (n_tokens, n_dimensions) is the table that the ridge penalty draws to, `bags`
    (n_texts, n_tokens) the counts of the tokens, `targets` (n_texts, n_dimensions). The sum over
    the tokens of a text is divided by its length by the start, so that the problem is linear.
    """
    scaled = diags(1 / _lengths(bags @ start)).astype(np.float32) @ bags
    transposed = scaled.T.tocsr()
    diagonal = np.asarray(scaled.multiply(scaled).sum(axis=0)).ravel()
    ridge = np.float32(RIDGE * diagonal.mean())
    change = _solve(
        lambda rows: np.asarray(transposed @ (scaled @ rows) + ridge * rows),
        transposed @ (targets - scaled @ start),
        (diagonal + ridge)[:, None],
    )
    return start + change


def _solve(
    apply: Callable[[FloatArray], FloatArray], right: FloatArray, diagonal: FloatArray
) -> FloatArray:
    """Solve ``apply(x) = right`` column by column, by conjugate gradients.

    Hestenes and Stiefel (1952), with the diagonal of the matrix as preconditioner.
    """
    solution = np.zeros_like(right)
    direction = scaled = right / diagonal
    product = np.einsum("ij,ij->j", right, scaled)
    for _ in range(ITERATIONS):
        image = apply(direction)
        step = product / np.maximum(np.einsum("ij,ij->j", direction, image), 1e-20)
        solution = solution + step * direction
        right = right - step * image
        scaled = right / diagonal
        before, product = product, np.einsum("ij,ij->j", right, scaled)
        direction = scaled + product / np.maximum(before, 1e-20) * direction
    return solution.astype(np.float32)


def _start_table(
    teacher: BaseEncoder,
    vocabulary: Vocabulary,
    bags: csr_matrix,
    axes: FloatArray,
    show_progress: bool | None,
) -> FloatArray:
    """Return the table of a distilled encoder, (n_tokens, n_dimensions)."""
    rows: Int64Array = vocabulary.rows_with_text()
    alone = _encode(teacher, [vocabulary.surfaces[row] for row in rows], show_progress)
    vectors = project(alone, axes)
    centred = vectors - vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    length = float(np.sqrt((centred.astype(np.float64) ** 2).sum(axis=1)).mean())
    counts = np.asarray(bags.sum(axis=0)).ravel().astype(np.int64)
    p = token_probabilities(len(rows), counts[rows], counts.sum())
    weights = (COEFFICIENT / (COEFFICIENT + p)).astype(np.float32)
    table = np.zeros((len(counts), vectors.shape[1]), dtype=np.float32)
    table[rows] = centred / np.float32(max(length, 1e-12)) * weights[:, None]
    return table
