"""Results of reading, encoding and language detection."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int32Array, Int64Array


@dataclass(frozen=True, eq=False)
class DistinctDocuments:
    """The distinct texts of a corpus, in the order of their 128-bit hashes, (n_documents, 2).

    `first_rows` and `weights`, (n_documents,), hold the first row and the number of rows of each
    document; `of_row`, (n_rows,), the document of each row, or -1 for a row without text.
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
    """Shares of languages (ISO 639-1) in a sample of texts, the largest first."""

    shares: Mapping[str, float]
    n_sampled: int

    @property
    def main(self) -> str | None:
        """The most frequent language, or None if no language was recognized."""
        return next(iter(self.shares), None)


@dataclass(frozen=True, eq=False)
class Encoding:
    """Embeddings, (n_texts, n_dimensions), dense or sparse, with the tokens that the encoder read.

    For each text: its tokens before truncation, without special tokens (words for an encoder of
    words), those read, and those of them not in the vocabulary. `n_cached` vectors came from disk.
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
