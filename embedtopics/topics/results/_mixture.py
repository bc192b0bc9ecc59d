"""The topics of the words of one text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from embedtopics._utils.display import Displayed
from embedtopics.clustering.results import NOISE
from embedtopics.protocols import FloatArray
from embedtopics.topics.results._trends import NO_TOPIC

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from embedtopics.topics.results._result import TopicResult


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(Displayed):
    """The topics of one text, and the contribution of each word.

    Parameters
    ----------
    tokens : tuple of str
        The words, in their order.
    weights : csr_matrix of float32, shape (n_tokens, n_topics)
        Contribution of each word to each topic: what it adds to the similarities of its windows,
        or all of these.
    shares : float32 ndarray of shape (n_topics,)
        Topic mixture of the text; sums to 1, or to 0 if no window is similar to any topic.
    result : TopicResult
        The result whose topics these are.
    written : tuple of str
        The words as in the text, with punctuation.
    """

    tokens: tuple[str, ...]
    weights: csr_matrix
    shares: FloatArray
    result: TopicResult
    written: tuple[str, ...] = ()

    @property
    def topic_names(self) -> tuple[str, ...]:
        """The names of the topics."""
        return tuple(topic.name for topic in self.result.topics)

    def _summary(self) -> str:
        return f"{len(self.tokens)} words, {self.weights.shape[1]} topics"

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each word.

        Returns
        -------
        DataFrame
            Columns token, topic (that of the largest weight; -1 for none), topic_name and weight.
        """
        n_tokens = len(self.tokens)
        topics, weights = np.full(n_tokens, NOISE, dtype=np.int32), np.zeros(n_tokens, np.float32)
        if 0 not in self.weights.shape:
            weights = self.weights.max(axis=1).toarray().ravel()
            best = np.asarray(self.weights.argmax(axis=1)).ravel()
            topics = np.where(weights > 0, best, NOISE).astype(np.int32)
        names = np.array([*self.topic_names, NO_TOPIC], dtype=object)
        return pd.DataFrame(
            {
                "token": list(self.tokens),
                "topic": topics,
                "topic_name": names[topics],
                "weight": weights,
            }
        )
