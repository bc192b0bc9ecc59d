"""What the encoders that read words have in common: slabs of texts, an account, unit vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError

from embedtopics._progress import progress_bar
from embedtopics.encoders.tokenizing import check_texts
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray
from embedtopics.results import Encoding, TokenStream
from embedtopics.terms import tokenize

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "content_order", "count_known", "encode_words", "not_fitted", "to_unit",
    "to_unit_sparse",
]  # fmt: skip

TEXTS_A_SLAB = 4096
"""Texts whose words are held at a time."""

BoolArray = npt.NDArray[np.bool_]


def encode_words(
    texts: Sequence[str],
    embed: Callable[[TokenStream], tuple[Any, BoolArray]],
    *,
    lowercase: bool = True,
    show_progress: bool | None = None,
) -> Encoding:
    """Split texts into words, and let them be embedded, some thousand at a time.

    Parameters
    ----------
    texts : sequence of str
    embed : callable
        Gets the words of some texts; returns one row for each of these texts, an array or a
        csr_matrix of float32, and which of the words are known, a bool array of shape (n_words,).
    lowercase : bool
        Whether case is ignored.
    show_progress : bool, optional

    Returns
    -------
    Encoding
        Tokens are words, all of them read. Its embeddings are a csr_matrix where `embed` makes
        these.

    Raises
    ------
    InputError
        If a row is no string.
    """
    from scipy.sparse import issparse, vstack

    texts = check_texts(texts)
    blocks, n_tokens, n_unknown = [], [], []
    with progress_bar(
        total=len(texts), unit="text", description="Encoding", show=show_progress
    ) as bar:
        # Without any text there is one empty slab, which tells the number of columns.
        for begin in range(0, max(1, len(texts)), TEXTS_A_SLAB):
            slab = texts[begin : begin + TEXTS_A_SLAB]
            tokens = tokenize(slab, lowercase=lowercase)
            vectors, is_known = embed(tokens)
            blocks.append(vectors)
            report = count_known(tokens, is_known)
            n_tokens.append(report.n_tokens)
            n_unknown.append(report.n_unknown)
            bar.update(len(slab))
    if len(blocks) == 1:
        embeddings = blocks[0]
    else:
        embeddings = vstack(blocks, "csr") if issparse(blocks[0]) else np.concatenate(blocks)
    n_words = np.concatenate(n_tokens)
    return Encoding(embeddings, n_words, n_words, np.concatenate(n_unknown))


def count_known(tokens: TokenStream, is_known: BoolArray) -> Encoding:
    """Count the words of each text, and those that are not known.

    Parameters
    ----------
    tokens : TokenStream
    is_known : bool ndarray of shape (n_words,)

    Returns
    -------
    Encoding
        Its embeddings have no columns.
    """
    unknown_before = np.concatenate([[0], np.cumsum(~is_known[tokens.ids], dtype=np.int64)])
    n_tokens = np.diff(tokens.offsets).astype(np.int32)
    n_unknown = np.diff(unknown_before[tokens.offsets]).astype(np.int32)
    return Encoding(np.empty((len(tokens), 0), np.float32), n_tokens, n_tokens, n_unknown)


def to_unit(
    vectors: npt.NDArray[np.float64], least: npt.NDArray[np.float64] | float = 0.0
) -> FloatArray:
    """Scale rows to length 1.

    Parameters
    ----------
    vectors : float64 ndarray of shape (n_texts, n_dimensions)
    least : float64 ndarray of shape (n_texts,) or float
        Rows no longer than this are rounding errors and become zero.

    Returns
    -------
    float32 ndarray of shape (n_texts, n_dimensions)
    """
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    holds = norms > least
    unit = vectors / np.where(holds, norms, 1.0)[:, None]
    unit[~holds] = 0.0
    return unit.astype(np.float32)


def to_unit_sparse(matrix: csr_matrix) -> csr_matrix:
    """Scale the rows of a sparse matrix of float64 to length 1, in place; empty ones stay."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    squares = np.bincount(rows, matrix.data**2, minlength=matrix.shape[0])
    matrix.data /= np.sqrt(squares)[rows]
    return matrix


def content_order(texts: Sequence[str]) -> list[str]:
    """Return the texts sorted, so that what is learnt from them does not depend on their order.

    Raises
    ------
    InputError
        If there is no text, or a row is no string.
    """
    texts = check_texts(texts)
    if not texts:
        raise InputError("expected texts to learn from, got none; give at least one")
    return sorted(texts)


def not_fitted(encoder: Any) -> NotFittedError:
    """Return the error of an encoder that has not learnt from any texts."""
    return NotFittedError(
        f"this {type(encoder).__name__} has not learnt from any texts yet; call fit(texts) first"
    )
