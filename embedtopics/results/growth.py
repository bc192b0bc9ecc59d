"""What happens to a result when documents are added, and how two results hang together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results.topic_result import TopicResult

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Candidate", "Extension", "Lineage", "Link"]

ALARMING = 0.01


@dataclass(frozen=True)
class Candidate:
    """A group of added documents that belong to no topic, and might be one.

    Parameters
    ----------
    label : str
        A few of the keywords.
    size : int
        Rows in the group.
    keywords : tuple of str
        What sets the group apart from all topics, best first.
    documents : tuple of int
        Numbers of the documents in the extended result, the most central first. Those of earlier
        extensions are among them.
    representatives : tuple of int
        Rows of the extended result with typical texts, best first.
    before : int
        Documents of the fit, in no topic, that are like these.
    similarity : float
        Mean cosine similarity of two documents of the group.
    nearest_topic : int
        The topic whose mean vector is nearest; -1 where there is no topic.
    topic_similarity : float
        Cosine similarity of the mean vectors of the group and of that topic; NaN without one.
    """

    label: str
    size: int
    keywords: tuple[str, ...]
    documents: tuple[int, ...]
    representatives: tuple[int, ...]
    before: int
    similarity: float
    nearest_topic: int
    topic_similarity: float


@dataclass(frozen=True, eq=False)
class Extension:
    """A result with documents added to it, and what is new about these.

    Parameters
    ----------
    result : TopicResult
        All documents; the topics are those of before.
    documents : int64 ndarray of shape (n_new,)
        Numbers in `result` of the documents that were not there before, ascending.
    n_known : int
        Added rows whose text was there already; they got its topic.
    novelty : float32 ndarray of shape (n_new,)
        Of each new document, as in `Assignment`.
    outside : float
        Share of the new documents that belong to no topic; NaN where there are none.
    expected : float
        Share of the documents of the fit that would belong to no topic if each came anew.
    p_value : float
        Chance of so large a share, or a larger one, if the new documents were like those of the
        fit, one by one; 1 where there are none. Texts that hang together (one event, one source)
        are fewer than they seem, and the chance is larger.
    candidates : tuple of Candidate
        Groups among the documents added since the fit, outside the topics, that take a larger share
        of these than of the fit; largest first.
    """

    result: TopicResult
    documents: Int64Array
    n_known: int
    novelty: FloatArray
    outside: float
    expected: float
    p_value: float
    candidates: tuple[Candidate, ...] = ()

    @property
    def is_alarming(self) -> bool:
        """Whether more documents are outside than chance explains (p below 0.01)."""
        return self.p_value < ALARMING

    def __str__(self) -> str:
        """Return what happened, in one or two sentences."""
        n_new = len(self.documents)
        said = f"{n_new:,} new documents; {self.n_known:,} rows repeat texts that were there."
        if n_new:
            said += (
                f" {self.outside:.1%} of the new ones belong to no topic, where "
                f"{self.expected:.1%} were to be expected (p = {self.p_value:.2g})."
            )
        if self.candidates:
            named = "; ".join(f"{one.label} ({one.size:,})" for one in self.candidates)
            said += f" They may hold new topics: {named}."
        return said

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the candidates: their number, size, label, terms, nearest topic, an example."""
        import pandas as pd

        texts = self.result.corpus.texts
        names = [
            "candidate", "size", "label", "terms", "before", "similarity", "nearest_topic",
            "topic_similarity", "examples",
        ]  # fmt: skip
        rows = [
            (number, one.size, one.label, list(one.keywords), one.before, one.similarity,
             one.nearest_topic, one.topic_similarity, [texts[row] for row in one.representatives])
            for number, one in enumerate(self.candidates)
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=names)


@dataclass(frozen=True)
class Link:
    """What became of one topic in another result, or where a topic there came from.

    Parameters
    ----------
    kind : {"continued", "split", "merged", "regrouped", "gone", "new"}
        "continued": one topic became one; "split": one became several; "merged": several became
        one; "regrouped": several became several.
    old, new : int
        Topic ids; -1 for the old one of a topic that is new, and the new one of one that is gone.
    shared : int
        Documents that both topics hold, where topics were compared by their documents; else 0.
    share_of_old, share_of_new : float
        `shared` over the documents of each topic that both results hold; NaN where there are none.
    similarity : float
        What the two have in common, from 0 to 1: the Jaccard overlap of their documents, the
        cosine of their mean vectors, or that of their term weights; NaN where there is no pair.
    """

    kind: str
    old: int
    new: int
    shared: int
    share_of_old: float
    share_of_new: float
    similarity: float


@dataclass(frozen=True)
class Lineage:
    """Which topics of one result became which of another.

    Parameters
    ----------
    links : tuple of Link
        By the ids of the old topics, then of the new ones; new topics last.
    by : {"documents", "centroids", "terms"}
        By what topics were compared.
    n_shared : int
        Documents that both results hold.
    old_labels, new_labels : tuple of str
        Names of the topics.
    """

    links: tuple[Link, ...]
    by: str
    n_shared: int
    old_labels: tuple[str, ...]
    new_labels: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the links: kind, old, new, their labels, and how much they have in common."""
        import pandas as pd

        names = [
            "kind", "old", "new", "old_label", "new_label", "shared", "share_of_old",
            "share_of_new", "similarity",
        ]  # fmt: skip
        rows = [
            (link.kind, link.old, link.new, self.old_labels[link.old] if link.old >= 0 else "",
             self.new_labels[link.new] if link.new >= 0 else "", link.shared, link.share_of_old,
             link.share_of_new, link.similarity)
            for link in self.links
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=names)
