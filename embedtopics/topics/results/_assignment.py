"""The topics of texts that were assigned to the topics of a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from embedtopics._utils.display import Displayed, spell_count
from embedtopics.clustering.results import NOISE
from embedtopics.protocols import FloatArray, Int32Array
from embedtopics.topics.results._trends import NO_TOPIC

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from embedtopics.corpus._corpus import Corpus


@dataclass(frozen=True, eq=False, repr=False)
class Assignment(Displayed):
    """Topics of some texts.

    Parameters
    ----------
    corpus : Corpus
        The texts.
    topic_names : tuple of str
        Names of the topics of the result.
    labels : int32 ndarray of shape (n_texts,)
        Topic of each text, -1 for none.
    memberships : csr_matrix of float32, shape (n_texts, n_topics)
        Share of each topic in each text.
    novelty : float32 ndarray of shape (n_texts,)
        Share of the fitted documents that are nearer to their neighbors than the text is to its
        own: near 1 for new subjects, NaN for empty texts.
    """

    corpus: Corpus
    topic_names: tuple[str, ...]
    labels: Int32Array
    memberships: csr_matrix
    novelty: FloatArray

    def _summary(self) -> str:
        n_assigned = int((self.labels != NOISE).sum())
        return f"{spell_count(len(self.labels), 'text', 'texts')}, {n_assigned:,} in a topic"

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each text, with the index of the texts.

        Returns
        -------
        DataFrame
            Columns id, topic (-1 for none), topic_name, membership (share of the topic in the
            text; 0 without a topic) and novelty.
        """
        from embedtopics.topics._relabel import own_shares

        names = np.array([*self.topic_names, NO_TOPIC], dtype=object)
        columns = {
            "id": list(self.corpus.ids),
            "topic": self.labels,
            "topic_name": names[self.labels],
            "membership": own_shares(self.memberships, self.labels),
            "novelty": self.novelty,
        }
        return pd.DataFrame(columns, index=self.corpus.index)
