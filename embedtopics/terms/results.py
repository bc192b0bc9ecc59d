"""What counting the terms of a corpus leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int32Array, Int64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True, eq=False)
class TokenStream:
    """The words of all documents, tokenised once.

    Parameters
    ----------
    ids : int32 ndarray of shape (n_tokens,)
        Word ids of all documents, one document after the other.
    offsets : int64 ndarray of shape (n_documents + 1,)
        Document `i` holds ``ids[offsets[i]:offsets[i + 1]]``.
    words : tuple of str
        The word of each id, sorted.
    """

    ids: Int32Array
    offsets: Int64Array
    words: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.offsets) - 1


@dataclass(frozen=True, eq=False)
class TermCounts:
    """How often each document holds each term.

    Parameters
    ----------
    counts : csr_matrix of int32, shape (n_documents, n_terms)
    terms : tuple of str
        The terms (words, and n-grams with single spaces), in the order of the columns.
    lengths : int8 ndarray of shape (n_terms,)
        Words in each term.
    stop_words : tuple of str
        Words that were left out, by list, sorted.
    function_words : tuple of str
        Words that were left out because this corpus uses them everywhere equally, sorted.
    """

    counts: csr_matrix
    terms: tuple[str, ...]
    lengths: npt.NDArray[np.int8]
    stop_words: tuple[str, ...] = ()
    function_words: tuple[str, ...] = ()
