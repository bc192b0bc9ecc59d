"""What a search found, and why."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from embedtopics._utils.display import excerpt, html_table
from embedtopics.decisions import Decision

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.retrieval._snippets import Snippet


class Document(NamedTuple):
    """A document of an index.

    Parameters
    ----------
    number : int
        In the index; later documents have higher ones, and none is used twice.
    id : str
    text : str
    metadata : mapping of str to object
        Text, int, float, bool, datetime.datetime, or None where it is missing.
    """

    number: int
    id: Any
    text: str
    metadata: Mapping[str, Any]


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
        Score of a cross-encoder; NaN without one.
    text : str
        The whole document.
    span : (int, int)
        First character of the passage that matched, and the one after its last.
    terms : mapping of str to float
        Words of the query that the passage holds, with their part of `bm25`.
    metadata : mapping of str to object
    topic : int or None
        Of the topic result that was attached; -1 is noise.
    position : (float, float) or None
        On that result's map.
    fields : mapping of str to (int, int)
        Of an index of several text fields: where in the text each lies.
    relevance : float
        From 0 to 1, comparable between queries: the weighted mean (`weight` of the search) of how
        far the cosine lies from the highest that random strings have with the collection (0) to 1,
        and of the share of the query's words, by rarity, that the passage holds. NaN without
        `min_score`.
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
    fields: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    relevance: float = float("nan")
    _asked: tuple[str, Any] | None = field(default=None, repr=False, compare=False)
    """The query and the index's lexical settings."""

    @property
    def passage(self) -> str:
        """The part of the text that matched."""
        return self.text[self.span[0] : self.span[1]]

    @property
    def snippet(self) -> Snippet:
        """The few words of the passage that show why it was found, the query's words marked."""
        from embedtopics.retrieval._snippets import make_snippet

        query, settings = self._asked or ("", None)
        return make_snippet(self.text, query, settings, span=self.span, weights=self.terms)

    @property
    def field(self) -> str | None:
        """The text field that holds the snippet's first mark, or its beginning."""
        snippet = self.snippet
        at = snippet.marks[0][0] if snippet.marks else snippet.span[0]
        return next((name for name, (_, end) in self.fields.items() if at < end), None)

    def __repr__(self) -> str:
        return f"Hit({self.id!r}, {self.score:.3f}, {excerpt(self.passage, 60)!r})"


_COLUMNS = (
    "query", "rank", "id", "score", "similarity", "bm25", "reranked", "excerpt", "passage", "topic",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class SearchHits:
    """What was found for one query, or for each of several.

    Of one query it is a sequence of its hits: ``for hit in hits``, ``hits[0]``. Of a list of
    queries it is a sequence of their hits: ``for found in hits: for hit in found``.

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
    is_single : bool
        Whether one query was given, and not a list.
    suggestions : mapping of str to str
        Of one query: for words that no document holds, the nearest word that one holds.
    """

    queries: tuple[str, ...]
    hits: tuple[tuple[Hit, ...], ...]
    mode: str
    k: int
    where: str = ""
    decisions: tuple[Decision, ...] = field(default=())
    is_single: bool = False
    suggestions: Mapping[str, str] = field(default_factory=dict)

    @property
    def _items(self) -> tuple[Any, ...]:
        return self.hits[0] if self.is_single else self.hits

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __getitem__(self, place: int | slice) -> Any:
        return self._items[place]

    def __repr__(self) -> str:
        asked = f"{excerpt(self.queries[0], 40)!r}" if self.is_single else f"{len(self.queries):,}"
        where = f", where {excerpt(self.where, 40)}" if self.where else ""
        noun = "query" if self.is_single else "queries"
        n_hits = sum(map(len, self.hits))
        return f"SearchHits({n_hits:,} hits, {noun} {asked}, {self.mode}{where})"

    def _repr_html_(self) -> str:
        frame = self.to_frame().drop(columns="passage").dropna(axis=1, how="all")
        return html_table(frame.drop(columns="query") if self.is_single else frame, repr(self))

    def to_frame(self) -> pd.DataFrame:
        """Return all hits as a table.

        Returns
        -------
        pandas.DataFrame
            Columns query (its number), rank (from 1), id, score, similarity, bm25, reranked,
            excerpt (of the passage, on one line), passage, topic and those of the metadata, whose
            names get an underscore after them where they are one of these.
        """
        import pandas as pd

        rows = [
            (number, rank, hit.id, hit.score, hit.similarity, hit.bm25, hit.reranked,
             excerpt(hit.passage), hit.passage, hit.topic)
            for number, found in enumerate(self.hits)
            for rank, hit in enumerate(found, 1)
        ]  # fmt: skip
        frame = pd.DataFrame(rows, columns=list(_COLUMNS))
        more = pd.DataFrame([dict(hit.metadata) for found in self.hits for hit in found])
        more.columns = [f"{name}_" if name in _COLUMNS else name for name in more.columns]
        return pd.concat([frame, more], axis=1) if len(more.columns) else frame


@dataclass(frozen=True, eq=False, repr=False)
class DuplicateGroups:
    """Documents that are near-copies of each other.

    Parameters
    ----------
    groups : tuple of tuple of hashable
        Ids of each group of two or more, in the order in which documents were added; the largest
        groups first. Two of a group need not be similar themselves: a chain of others joins them.
    pairs : tuple of (hashable, hashable, float)
        Documents whose cosine reaches the threshold, the most similar first; of a document with
        very many copies only those with its nearest.
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

    def __repr__(self) -> str:
        n = sum(map(len, self.groups))
        return (
            f"DuplicateGroups({len(self.groups):,} groups of {n:,} among {self.n_documents:,} "
            f"documents, cosine from {self.threshold:g})"
        )

    def _repr_html_(self) -> str:
        return html_table(self.to_frame(), repr(self))

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each document: the number of its group, from 1, and its id."""
        import pandas as pd

        rows = [(number, id) for number, group in enumerate(self.groups, 1) for id in group]
        return pd.DataFrame(rows, columns=["group", "id"])
