"""Several topics in one text, by its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embedtopics._utils.display import Displayed
from embedtopics.clustering.results import NOISE
from embedtopics.protocols import FloatArray, Int32Array

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix


@dataclass(frozen=True, eq=False, repr=False)
class TokenMixture(Displayed):
    """The topics of one text, and what each word contributes to them.

    Parameters
    ----------
    tokens : tuple of str
        The words, in their order.
    weights : csr_matrix of float32, shape (n_tokens, n_topics)
        What each word contributes to each topic: what it adds to the similarities of the windows
        that it is in, or all of these.
    shares : float32 ndarray of shape (n_topics,)
        Topic mixture of the text; sums to 1, or to 0 where no window is similar to any topic.
    """

    tokens: tuple[str, ...]
    weights: csr_matrix
    shares: FloatArray

    def _summary(self) -> str:
        return f"{len(self.tokens)} words, {self.weights.shape[1]} topics"

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


def _best(matrix: csr_matrix) -> tuple[Int32Array, FloatArray]:
    """Return the column with the largest value of each row, the first of equals, and the value."""
    n_rows, n_columns = matrix.shape
    if not n_columns or not n_rows:
        return np.full(n_rows, NOISE, dtype=np.int32), np.zeros(n_rows, dtype=np.float32)
    values = np.asarray(matrix.max(axis=1).toarray(), dtype=np.float32).ravel()
    best = np.asarray(matrix.argmax(axis=1), dtype=np.int32).ravel()
    return np.where(values > 0, best, NOISE).astype(np.int32), values
