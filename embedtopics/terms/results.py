"""Results of tokenizing a corpus and counting its terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import BoolArray, Int32Array, Int64Array, Segmenter

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class WordRules:
    """Rules by which texts become words; by default those of `tokenize`.

    Parameters
    ----------
    segmenters : tuple of (str, str)
        Languages (ISO 639-1) whose words a library segments, with its exact pip requirement.
    lemmas : tuple of str
        Languages whose words become their lemmas.
    lemmatizer : str
        Exact pip requirement of the lemmatizer.
    social : {"", "kept", "split", "dropped"}
        Whether @names, #tags, emoji and web addresses are words ("kept"), names and tags are split
        into words, or all are dropped. By default names and tags are words without their sign.
    function : Segmenter or str, optional
        Function that finds the words instead of all rules; its name in stored rules.
    addresses : bool
        Whether a web or mail address is a word, and its parts are, as in an index for search.
    version : int
        Version of the rules that all words follow. Version 1, of folders that were saved earlier,
        keeps ligatures, wide letters and the stray dot of a lowercased Turkish İ.
    """

    segmenters: tuple[tuple[str, str], ...] = ()
    lemmas: tuple[str, ...] = ()
    lemmatizer: str = ""
    social: str = ""
    function: Segmenter | str | None = None
    addresses: bool = False
    version: int = 2

    def to_json(self) -> dict[str, Any]:
        """Return the version, the fields that differ from their defaults, and a function's name."""
        fields = {**vars(self), "lemmas": list(self.lemmas), "segmenters": dict(self.segmenters)}
        function = fields.pop("function")
        fields["own"] = getattr(function, "__qualname__", function and str(function))
        return {key: value for key, value in fields.items() if value}

    @classmethod
    def from_json(cls, values: Mapping[str, Any] | None) -> WordRules:
        """Return rules from the form of `to_json`."""
        values = values or {}
        return cls(
            tuple(sorted((str(a), str(by)) for a, by in values.get("segmenters", {}).items())),
            tuple(map(str, values.get("lemmas", ()))),
            str(values.get("lemmatizer", "")),
            str(values.get("social", "")),
            str(values["own"]) if "own" in values else None,
            bool(values.get("addresses", False)),
            int(values.get("version", 1)),
        )


@dataclass(frozen=True, eq=False)
class TokenStream:
    """The words of all documents.

    Parameters
    ----------
    ids : int32 ndarray of shape (n_tokens,)
        Word ids of all documents, in the order of the documents.
    offsets : int64 ndarray of shape (n_documents + 1,)
        Document `i` holds ``ids[offsets[i]:offsets[i + 1]]``.
    words : tuple of str
        Word of each id, sorted.
    rules : WordRules
        Rules of the words.
    segments : int64 ndarray of shape (n_segments + 1,), optional
        Offsets of the documents, and of the words behind punctuation, which no phrase crosses; by
        default those of the documents alone.
    skipped : bool ndarray of shape (n_tokens,), optional
        Words of repeated lines, which terms do not count.
    """

    ids: Int32Array
    offsets: Int64Array
    words: tuple[str, ...]
    rules: WordRules = WordRules()
    segments: Int64Array | None = None
    skipped: BoolArray | None = None

    @property
    def parts(self) -> Int64Array:
        """Offsets of the segments."""
        return self.offsets if self.segments is None else self.segments

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.offsets) - 1


@dataclass(frozen=True, eq=False)
class TermCounts:
    """Counts of each term in each document.

    Parameters
    ----------
    counts : csr_matrix of int32, shape (n_documents, n_terms)
    terms : tuple of str
        Terms (words, and n-grams with single spaces) of the columns.
    lengths : int8 ndarray of shape (n_terms,)
        Number of words in each term.
    stop_words : tuple of str
        Words left out because they are in a list, sorted.
    function_words : tuple of str
        Words left out because this corpus uses them equally in all topics, sorted.
    """

    counts: csr_matrix
    terms: tuple[str, ...]
    lengths: npt.NDArray[np.int8]
    stop_words: tuple[str, ...] = ()
    function_words: tuple[str, ...] = ()
