"""What counting the terms of a corpus leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int32Array, Int64Array, Segmenter

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class WordRules:
    """How texts become words; by default by the rules of `tokenize` alone.

    Parameters
    ----------
    segmenters : tuple of (str, str)
        Languages (ISO 639-1) whose words a library finds, and the exact requirements of pip.
    lemmas : tuple of str
        Languages whose words are replaced by their lemmas.
    lemmatizer : str
        The exact requirement of pip.
    social : {"", "kept", "split", "dropped"}
        Whether @names, #tags, emoji and web addresses are words, or names and tags are split into
        words, or all left out; by default names and tags are words without their sign.
    own : Segmenter or str, optional
        Finds the words in place of all rules; of stored rules its name.
    """

    segmenters: tuple[tuple[str, str], ...] = ()
    lemmas: tuple[str, ...] = ()
    lemmatizer: str = ""
    social: str = ""
    own: Segmenter | str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what is not as by default, of a function its name."""
        own = getattr(self.own, "__qualname__", self.own and str(self.own))
        made = {**vars(self), "lemmas": list(self.lemmas), "own": own}
        made["segmenters"] = dict(self.segmenters)
        return {key: value for key, value in made.items() if value}

    @classmethod
    def from_json(cls, values: Mapping[str, Any] | None) -> WordRules:
        """Return stored rules."""
        values = values or {}
        social = values.get("social", "")
        return cls(
            tuple(sorted((str(a), str(by)) for a, by in values.get("segmenters", {}).items())),
            tuple(map(str, values.get("lemmas", ()))),
            str(values.get("lemmatizer", "")),
            {True: "kept", False: ""}.get(social, str(social)),
            str(values["own"]) if "own" in values else None,
        )


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
    rules : WordRules
        How the words were made.
    """

    ids: Int32Array
    offsets: Int64Array
    words: tuple[str, ...]
    rules: WordRules = WordRules()

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
