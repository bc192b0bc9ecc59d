"""Results that grow: documents added to a result, and a sample whose topics all rows get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from embedtopics._utils.display import Displayed, spell_count
from embedtopics.clustering.results import NOISE
from embedtopics.protocols import BoolArray, FloatArray, Int32Array, Int64Array
from embedtopics.topics.results._trends import NO_TOPIC

if TYPE_CHECKING:
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.topics.results._result import TopicResult

SIGNIFICANT = 0.01
"""Significance level for more documents outside the topics, and for larger groups than in the
fit."""


@dataclass(frozen=True, eq=False, repr=False)
class Extension(Displayed):
    """A result with added documents, their novelty, and groups that may be new topics.

    Parameters
    ----------
    result : TopicResult
        The result with the added documents, and with the topics that were adopted.
    documents : int64 ndarray of shape (n_new,)
        Positions of the new documents among the distinct texts of the result.
    n_known : int
        Added rows whose text was present before.
    novelty : float32 ndarray of shape (n_new,)
        As in `Assignment`.
    outside : float
        Share of the new documents outside the topics of the fit; NaN without new documents.
    expected : float
        Share of the documents of the fit that would be outside if they were new.
    p_value : float
        Chance of a share as large as `outside`.
    candidates : DataFrame
        Groups of added documents outside the topics; see `to_frame`.
    """

    result: TopicResult
    documents: Int64Array
    n_known: int
    novelty: FloatArray
    outside: float
    expected: float
    p_value: float
    candidates: pd.DataFrame

    _columns_displayed = ("topic", "name", "size", "terms", "similarity", "examples")

    @property
    def is_alarming(self) -> bool:
        """Whether more documents are outside the topics than chance explains (p below 0.01)."""
        return self.p_value < SIGNIFICANT

    def _summary(self) -> str:
        new = spell_count(len(self.documents), "new document", "new documents")
        groups = spell_count(len(self.candidates), "candidate topic", "candidate topics")
        n_adopted = int((self.candidates["topic"] != NOISE).sum())
        return f"{new}, {groups}, {n_adopted} adopted"

    def summary(self) -> str:
        """Return the outcome in one or two sentences."""
        n_new = len(self.documents)
        text = spell_count(n_new, "new document; ", "new documents; ")
        text += f"{spell_count(self.n_known, 'row repeats', 'rows repeat')} a present text."
        if n_new:
            text += f" {self.outside:.1%} of the new documents are in no topic; "
            text += f"{self.expected:.1%} were expected (p = {self.p_value:.2g})."
        if len(self.candidates):
            groups = zip(self.candidates["name"], self.candidates["size"], strict=True)
            listed = "; ".join(f"{name} ({size:,})" for name, size in groups)
            text += f" Candidates for new topics: {listed}."
        return text

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each group of added documents that may be a new topic.

        Returns
        -------
        DataFrame
            The largest group first. Columns topic (its id if it was adopted, or -1), name, size
            (rows), terms (a list), n_before (documents of the fit in the group), similarity (mean
            cosine of its documents), nearest_topic, topic_similarity (cosine with the nearest
            topic), examples (texts), representatives (positions of their rows) and documents
            (positions among the distinct texts, the most central first).
        """
        return self.candidates.copy()


@dataclass(frozen=True, eq=False, repr=False)
class SampleFit(Displayed):
    """Topics of a sample, and the topic of every row.

    Parameters
    ----------
    corpus : Corpus
        All rows.
    result : TopicResult
        Result of the sample, and of the documents of topics from outside the sample.
    labels : int32 ndarray of shape (n_rows,)
        Topic of each row, -1 for none.
    memberships : float32 ndarray of shape (n_rows,)
        Share of that topic in the row; 0 without a topic.
    novelty : float32 ndarray of shape (n_rows,)
        As in `Assignment`; NaN for rows without text.
    in_sample : bool ndarray of shape (n_rows,)
    n_adopted : int
        Number of topics from outside the sample; they are the last ones.
    agreement : float
        Adjusted Rand index with a fit of a second sample, on its documents; NaN if too few rows
        are left for one.
    """

    corpus: Corpus
    result: TopicResult
    labels: Int32Array
    memberships: FloatArray
    novelty: FloatArray
    in_sample: BoolArray
    n_adopted: int
    agreement: float

    def _summary(self) -> str:
        return (
            f"{self.result.n_topics} topics, {self.n_adopted} of them from outside the sample; "
            f"{np.mean(self.labels != NOISE):.0%} of {len(self.labels):,} rows in a topic"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each row of the input, with its index.

        Returns
        -------
        DataFrame
            Columns id, topic (-1 for none), topic_name, membership, novelty and in_sample.
        """
        names = np.array([*(topic.name for topic in self.result.topics), NO_TOPIC], dtype=object)
        columns = {
            "id": list(self.corpus.ids),
            "topic": self.labels,
            "topic_name": names[self.labels],
            "membership": self.memberships,
            "novelty": self.novelty,
            "in_sample": self.in_sample,
        }
        return pd.DataFrame(columns, index=self.corpus.index)
