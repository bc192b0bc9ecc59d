"""What a search found, and why."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from embedtopics.results.inputs import Decision

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DuplicateGroups", "Hit", "SearchHits"]


@dataclass(frozen=True)
class Hit:
    """One document that was found.

    Parameters
    ----------
    id : hashable
        Of the document; in an index all ids are text, as a `Corpus` reads them.
    score : float
        What the hits are ordered by; higher is better. Comparable within one search only.
    similarity : float
        Cosine of the best passage with the query; NaN where it was not computed.
    bm25 : float
        Of the best passage; NaN where it was not computed.
    reranked : float
        What a cross-encoder said; NaN without one.
    text : str
        The whole document.
    span : (int, int)
        First character of the passage that matched, and the one behind its last.
    terms : mapping of str to float
        Words of the query that the passage holds, with their part of `bm25`.
    metadata : mapping of str to object
    topic : int or None
        Of the topic result that was attached; -1 is noise.
    position : (float, float) or None
        On that result's map.
    """

    id: Hashable
    score: float
    similarity: float
    bm25: float
    reranked: float
    text: str
    span: tuple[int, int]
    terms: Mapping[str, float] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    topic: int | None = None
    position: tuple[float, float] | None = None

    @property
    def passage(self) -> str:
        """The part of the text that matched."""
        return self.text[self.span[0] : self.span[1]]


@dataclass(frozen=True, eq=False)
class SearchHits:
    """What was found for each of several queries.

    Parameters
    ----------
    queries : tuple of str
        For a search by document, its text.
    hits : tuple of tuple of Hit
        For each query the best first; ties in the order in which documents were added. Fewer than
        were asked for only where fewer documents are there, or pass the filter.
    mode : {"dense", "lexical", "hybrid"}
    k : int
        How many were asked for.
    where : str
        The filter; empty without.
    decisions : tuple of Decision
        Such as an empty query, or words of it that no document holds.
    """

    queries: tuple[str, ...]
    hits: tuple[tuple[Hit, ...], ...]
    mode: str
    k: int
    where: str = ""
    decisions: tuple[Decision, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.queries)

    def to_frame(self) -> pd.DataFrame:
        """Return all hits as a table.

        Returns
        -------
        pandas.DataFrame
            Columns query (its number), rank (from 1), id, score, similarity, bm25, reranked,
            passage, topic and those of the metadata, whose names get an underscore behind them
            where they are one of these.
        """
        import pandas as pd

        own = ("query", "rank", "id", "score", "similarity", "bm25", "reranked", "passage", "topic")
        rows = [
            {
                "query": number, "rank": rank, "id": hit.id, "score": hit.score,
                "similarity": hit.similarity, "bm25": hit.bm25, "reranked": hit.reranked,
                "passage": hit.passage, "topic": hit.topic,
                **{f"{n}_" if n in own else n: value for n, value in hit.metadata.items()},
            }
            for number, found in enumerate(self.hits)
            for rank, hit in enumerate(found, 1)
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=None if rows else list(own))


@dataclass(frozen=True)
class DuplicateGroups:
    """Documents that are near-copies of each other.

    Parameters
    ----------
    groups : tuple of tuple of hashable
        Ids of each group of two or more, in the order in which documents were added; the largest
        groups first. Two of a group need not be alike themselves: a chain of others joins them.
    pairs : tuple of (hashable, hashable, float)
        Documents whose cosine reaches the threshold, the most alike first; of a document with very
        many copies only those with its nearest.
    threshold : float
    n_documents : int
        Documents that were compared: those with text.
    decisions : tuple of Decision
    """

    groups: tuple[tuple[Hashable, ...], ...]
    pairs: tuple[tuple[Hashable, Hashable, float], ...]
    threshold: float
    n_documents: int
    decisions: tuple[Decision, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.groups)

    def to_frame(self) -> pd.DataFrame:
        """Return a row a document: the number of its group, from 1, and its id."""
        import pandas as pd

        rows = [(number, id) for number, group in enumerate(self.groups, 1) for id in group]
        return pd.DataFrame(rows, columns=["group", "id"])
