"""Topics, groups of topics, and how stable they are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.display import Displayed, spell_count
from embedtopics.protocols import FloatArray

LEAST_AUC = 0.6
"""AUC below which a name hardly separates the texts of its topic."""


class Reason(IntEnum):
    """Why a document is in no topic.

    Examples
    --------
    >>> import embedtopics as et
    >>> et.topics.results.Reason(2).text
    'isolated'
    >>> result = et.TopicModel("tfidf").fit(["", "One text.", "Another text."]).result_
    >>> et.topics.documents(result)["reason"][0]
    'no text'
    """

    IN_TOPIC = 0
    BETWEEN = 1
    """Its neighbors lead to two topics equally."""
    ISOLATED = 2
    """Its neighbors are far, or lead to no topic."""
    UNINFORMATIVE = 3
    """It is in a dense cluster with the words of the whole corpus."""
    NO_TEXT = 4
    """The row has no text."""
    BEYOND_COVERAGE = 5
    """It leads to a topic, but the requested coverage is smaller."""
    REMOVED = 6
    """Its topic was removed."""
    NOT_LABELED = 7
    """The topics are given labels, and it has no label."""

    @property
    def text(self) -> str:
        """The reason in words."""
        return (
            "in a topic", "between topics", "isolated", "uninformative", "no text",
            "beyond the requested coverage", "topic removed", "not labelled",
        )[self]  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Stability(Displayed):
    """Recurrence of the topics in random halves of the documents.

    Parameters
    ----------
    recurrence : float64 ndarray of shape (n_topics,)
        Mean over the replicates of a topic's best Jaccard overlap with a topic of the replicate,
        on the documents in the replicate. NaN for a topic without documents in any.
    low, high : float64 ndarray of shape (n_topics,)
        Interval with nine tenths of these overlaps.
    agreement : float32 ndarray of shape (n_documents,)
        Share of the replicates in which a document is in the best match of its topic; for a
        document in no topic, the share in which it is in none. NaN for a document that no
        replicate held.
    adjusted_rand : float64 ndarray of shape (n_pairs,)
        Adjusted Rand index of each pair of replicates, on documents of both that are in a topic of
        at least one; no topic is a class of its own. 0 for a pair without topics.
    n_replicates : int
    chance : float64 ndarray of shape (n_topics,), optional
        Recurrence of randomly permuted labels: small, except for large topics.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=200))
    >>> stability = et.topics.with_stability(model, n_replicates=3).stability
    >>> list(stability.to_frame().columns)
    ['topic', 'recurrence', 'low', 'high', 'chance']
    """

    recurrence: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    agreement: FloatArray
    adjusted_rand: npt.NDArray[np.float64]
    n_replicates: int
    chance: npt.NDArray[np.float64] | None = None

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the topics: topic, recurrence, low, high and, if known, chance."""
        columns = {
            "topic": np.arange(len(self.recurrence)),
            "recurrence": self.recurrence,
            "low": self.low,
            "high": self.high,
        }
        if self.chance is not None:
            columns["chance"] = self.chance
        return pd.DataFrame(columns)

    def _summary(self) -> str:
        topics = spell_count(len(self.recurrence), "topic", "topics")
        return f"{topics}, {spell_count(self.n_replicates, 'replicate', 'replicates')}"


@dataclass(frozen=True, repr=False)
class Topic(Displayed):
    """One topic.

    Parameters
    ----------
    topic_id : int
    name : str
        Displayed name: that of the user, or a few keywords. `with_name_scores` measures how well it
        finds the topic's texts.
    size : int
        Number of rows in the topic.
    share : float
        `size` over the number of rows with text.
    keywords : tuple of str
        Distinctive terms of the topic, best first.
    weights : tuple of float
        Class-TF-IDF weight of each keyword; its cosine if `with_keywords` chose it by a method.
    representatives : tuple of int
        Row numbers (positions, from 0) of representative documents, best first.
    persistence : float
        Stability of the topic in the density hierarchy; NaN if unknown.
    is_named : bool
        Whether the user gave the name; such a name stays when keywords change.
    is_seeded : bool
        Whether the topic was named before the fit; no automatic step merges or renames it.
    name_auc : tuple of float or None
        Area under the ROC curve: how often a text of the topic is nearer to the name than a text
        of sibling topics, with its 95 % interval. None if not measured.
    keywords_auc : float or None
        The same for the first three keywords.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=200))
    >>> topic = et.topics.rename(model, {2: "Bees"}).topics[2]
    >>> topic.topic_id, topic.name, topic.is_named, len(topic.keywords)
    (2, 'Bees', True, 10)
    """

    topic_id: int
    name: str
    size: int
    share: float
    keywords: tuple[str, ...]
    weights: tuple[float, ...]
    representatives: tuple[int, ...]
    persistence: float = float("nan")
    is_named: bool = False
    is_seeded: bool = False
    name_auc: tuple[float, float, float] | None = None
    keywords_auc: float | None = None

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the keywords: term and weight, best first."""
        return pd.DataFrame({"term": list(self.keywords), "weight": list(self.weights)})

    def _summary(self) -> str:
        return f"{self.topic_id}, {self.name!r}, {spell_count(self.size, 'row', 'rows')}"

    @property
    def is_name_worse(self) -> bool:
        """Whether the name separates the texts worse than the keywords, or hardly at all."""
        if self.name_auc is None or self.keywords_auc is None:
            return False
        return self.name_auc[2] < self.keywords_auc or self.name_auc[0] < LEAST_AUC


@dataclass(frozen=True)
class Theme:
    """A group of topics.

    Parameters
    ----------
    label : str
    size : int
        Number of rows.
    share : float
        `size` over the number of rows with text.
    topics : tuple of int
        Ids, ascending.
    """

    label: str
    size: int
    share: float
    topics: tuple[int, ...]
