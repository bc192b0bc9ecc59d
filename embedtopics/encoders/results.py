"""Results of encoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embedtopics._utils.display import Displayed
from embedtopics.protocols import FloatArray, Int32Array

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Encoding"]


@dataclass(frozen=True, eq=False, repr=False)
class Encoding(Displayed):
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

    Examples
    --------
    >>> import embedtopics as et
    >>> report = et.SentenceEncoder().encode_with_report(["Cats purr.", "word " * 400])
    >>> report
    Encoding(2 texts, 384 dimensions, 50% truncated, 0 from the cache)
    >>> report.to_frame()
       n_tokens  n_seen  n_unknown
    0         4       4          0
    1       400     254          0
    """

    embeddings: FloatArray
    n_tokens: Int32Array
    n_seen: Int32Array
    n_unknown: Int32Array
    n_cached: int = 0

    def _summary(self) -> str:
        n_texts, n_dimensions = self.embeddings.shape
        return (
            f"{n_texts:,} texts, {n_dimensions:,} dimensions, "
            f"{self.truncated_share:.0%} truncated, {self.n_cached:,} from the cache"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the tokens of each text.

        Returns
        -------
        pandas.DataFrame
            A row for each text, with columns n_tokens, n_seen, n_unknown.
        """
        import pandas as pd

        return pd.DataFrame(
            {"n_tokens": self.n_tokens, "n_seen": self.n_seen, "n_unknown": self.n_unknown}
        )

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
