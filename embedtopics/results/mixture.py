"""Several topics in one text: by its words, and by its passages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.results.parts import NOISE

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

__all__ = ["PassageTopics", "TokenMixture"]


@dataclass(frozen=True, eq=False)
class TokenMixture:
    """The topics of one text, and the words that speak for each.

    Parameters
    ----------
    tokens : tuple of str
        The words as they were read, in their order.
    weights : csr_matrix of float32, shape (n_tokens, n_topics)
        How much each word speaks for each topic: what it adds to the similarities of the windows
        that it is in, or all of these.
    shares : float32 ndarray of shape (n_topics,)
        Topic mixture of the text; sums to 1, or to 0 where no window is like any topic.
    """

    tokens: tuple[str, ...]
    weights: csr_matrix
    shares: FloatArray

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the words.

        Returns
        -------
        DataFrame
            A word a row: token, topic (with the most weight; -1 for none) and weight.
        """
        import pandas as pd

        topics, weights = _best(self.weights)
        return pd.DataFrame({"token": list(self.tokens), "topic": topics, "weight": weights})


@dataclass(frozen=True, eq=False)
class PassageTopics:
    """Topics of long texts, from those of their passages.

    Parameters
    ----------
    ids : tuple of str
        Of the texts that the passages are of, in the order in which they come.
    shares : csr_matrix of float32, shape (n_texts, n_topics)
        Share of each topic in each text; what a row lacks to 1 is the share of none.
    n_passages : int64 ndarray of shape (n_texts,)
        Passages with text.
    """

    ids: tuple[str, ...]
    shares: csr_matrix
    n_passages: Int64Array

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the texts.

        Returns
        -------
        DataFrame
            A text a row: id, passages (their number), topic (with the largest share; -1 for
            none), share (of that topic), n_topics (with a share of a tenth or more).
        """
        import pandas as pd

        topics, shares = _best(self.shares)
        large = (self.shares >= 0.1).sum(axis=1) if self.shares.shape[1] else np.zeros(len(topics))
        return pd.DataFrame(
            {
                "id": list(self.ids),
                "passages": self.n_passages,
                "topic": topics,
                "share": shares,
                "n_topics": np.asarray(large, dtype=np.int64).ravel(),
            }
        )


def _best(matrix: csr_matrix) -> tuple[Int32Array, FloatArray]:
    """Return the column with the largest value of each row, the first of equals, and the value."""
    n_rows, n_columns = matrix.shape
    if not n_columns or not n_rows:
        return np.full(n_rows, NOISE, dtype=np.int32), np.zeros(n_rows, dtype=np.float32)
    values = np.asarray(matrix.max(axis=1).toarray(), dtype=np.float32).ravel()
    best = np.asarray(matrix.argmax(axis=1), dtype=np.int32).ravel()
    return np.where(values > 0, best, NOISE).astype(np.int32), values
