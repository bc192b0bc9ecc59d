"""Results of reading, encoding and language detection."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int32Array, Int64Array


@dataclass(frozen=True, eq=False)
class DistinctDocuments:
    """The distinct usable texts of a corpus, ordered by content hash.

    Parameters
    ----------
    hashes : uint64 ndarray of shape (n_documents, 2)
        128-bit content hashes, ascending.
    first_rows : int64 ndarray of shape (n_documents,)
        The first row that holds each document.
    of_row : int64 ndarray of shape (n_rows,)
        Document of each row; -1 if the row has no text.
    weights : int64 ndarray of shape (n_documents,)
        Number of rows of each document.
    """

    hashes: npt.NDArray[np.uint64]
    first_rows: Int64Array
    of_row: Int64Array
    weights: Int64Array

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.first_rows)


@dataclass(frozen=True)
class LanguageShares:
    """Languages of a sample of texts.

    Parameters
    ----------
    shares : mapping of str to float
        Share of the sampled texts by ISO 639-1 code, largest first.
    n_sampled : int
        Texts in the sample.
    """

    shares: Mapping[str, float]
    n_sampled: int

    @property
    def main(self) -> str | None:
        """The most frequent language, or None if no language was recognized."""
        return next(iter(self.shares), None)


@dataclass(frozen=True, eq=False)
class Encoding:
    """Embeddings, with the tokens that the encoder read.

    Parameters
    ----------
    embeddings : float32 ndarray of shape (n_texts, n_dimensions)
        Or a csr_matrix of float32, from an encoder of sparse vectors.
    n_tokens : int32 ndarray of shape (n_texts,)
        Tokens of each text before truncation, without special tokens; words for an encoder of
        words.
    n_seen : int32 ndarray of shape (n_texts,)
        Tokens of each text that the encoder read.
    n_unknown : int32 ndarray of shape (n_texts,)
        Tokens read that are not in the vocabulary.
    n_cached : int
        Texts whose vectors came from the cache on disk.
    """

    embeddings: FloatArray
    n_tokens: Int32Array
    n_seen: Int32Array
    n_unknown: Int32Array
    n_cached: int = 0

    @property
    def truncated_share(self) -> float:
        """Share of truncated texts."""
        return float(np.mean(self.n_seen < self.n_tokens)) if len(self.n_tokens) else 0.0

    @property
    def unseen_token_share(self) -> float:
        """Share of all tokens that truncation removed."""
        total = int(self.n_tokens.sum())
        return 1.0 - int(self.n_seen.sum()) / total if total else 0.0

    @property
    def unknown_token_share(self) -> float:
        """Share of the tokens read that are not in the vocabulary."""
        total = int(self.n_seen.sum())
        return int(self.n_unknown.sum()) / total if total else 0.0
