"""Results of a search."""

from __future__ import annotations

import html
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from embedtopics._utils.display import Displayed, excerpt, html_table, spell_count
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd
    from rich.text import Text

__all__ = ["Document", "DuplicateGroups", "Hit", "SearchHits", "Snippet"]

# Control characters steer terminals, directional overrides reverse the surrounding words, and lone
# surrogates cannot be written to a file.
_UNSAFE = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), " "),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A))),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, repr=False)
class Document:
    """A document of an index.

    Parameters
    ----------
    number : int
        Position in the order of adding; no number is used twice.
    id : str
    text : str
    metadata : mapping of str to object
        Values are str, int, float, bool, datetime.datetime, list of str, or None if missing.
    """

    number: int
    id: Any
    text: str
    metadata: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"Document({self.id!r}, {excerpt(self.text, 60)!r})"


@dataclass(frozen=True, repr=False)
class Snippet:
    """Part of a text with marks; ``str(snippet)`` is one line of plain text.

    Parameters
    ----------
    text : str
        The whole text.
    span : (int, int)
        Characters of the part: the first, and the one after the last.
    marks : tuple of (int, int)
        Characters of the words of the query.
    cut : (bool, bool)
        Whether text precedes and follows the part.
    """

    text: str
    span: tuple[int, int]
    marks: tuple[tuple[int, int], ...]
    cut: tuple[bool, bool]

    def __str__(self) -> str:
        return "".join(piece for piece, _ in self.pieces())

    def __repr__(self) -> str:
        return f"Snippet({str(self)!r})"

    def _repr_html_(self) -> str:
        return self.html()

    def html(self) -> str:
        """Return escaped HTML with ``<mark>`` around the words of the query."""
        return "".join(
            f"<mark>{html.escape(piece)}</mark>" if marked else html.escape(piece)
            for piece, marked in self.pieces()
        )

    def rich(self, style: str = "bold") -> Text:
        """Return text for a terminal, without markup of rich."""
        from rich.text import Text

        shown = Text()
        for piece, marked in self.pieces():
            shown.append(piece, style if marked else None)
        return shown

    def pieces(self) -> Iterator[tuple[str, bool]]:
        """Yield safe pieces of one line, and whether each is marked."""
        start, end = self.span
        if self.cut[0]:
            yield "… ", False
        for begin, stop in (*self.marks, (end, end)):
            for piece, marked in ((self.text[start:begin], False), (self.text[begin:stop], True)):
                if piece:
                    yield _BLANKS.sub(" ", piece.translate(_UNSAFE)), marked
            start = stop
        if self.cut[1]:
            yield " …", False


@dataclass(frozen=True, repr=False)
class Hit:
    """A document of a search result.

    Parameters
    ----------
    id : hashable
        Id of the document; the ids of an index are texts, as in a `Corpus`.
    score : float
        Score by which hits are ranked, higher is better; comparable within one search only.
    similarity : float
        Cosine of the best passage with the query; NaN if it was not computed.
    bm25 : float
        BM25 score of the best passage; NaN if it was not computed.
    reranked : float
        Score of a cross-encoder; NaN without one.
    text : str
        The whole document.
    span : (int, int)
        Characters of the best passage: the first, and the one after the last.
    terms : mapping of str to float
        Words of the query in the passage, with their part of `bm25`.
    metadata : mapping of str to object
    topic : int or None
        Topic id in the attached topic result; -1 for an outlier.
    position : (float, float) or None
        Position on the map of that result.
    fields : mapping of str to (int, int)
        Characters of each text column, for an index of several text columns.
    relevance : float
        Relevance from 0 to 1, comparable between queries. It is the mean, weighted by `weight`, of
        two parts: the cosine, rescaled so that 0 is the highest cosine of random strings with the
        collection, and the share of the query's words, by rarity, that the passage holds.
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
    _query: tuple[str, Any] | None = field(default=None, repr=False, compare=False)
    """The query and the lexical settings of the index."""

    @property
    def passage(self) -> str:
        """The best passage."""
        return self.text[self.span[0] : self.span[1]]

    @property
    def snippet(self) -> Snippet:
        """The words of the passage that match the query best, with marks."""
        from embedtopics.retrieval._snippets import make_snippet

        query, settings = self._query or ("", None)
        return make_snippet(self.text, query, settings, span=self.span, weights=self.terms)

    @property
    def field(self) -> str | None:
        """The text column of the first mark of the snippet, or of its beginning."""
        snippet = self.snippet
        start = snippet.marks[0][0] if snippet.marks else snippet.span[0]
        return next((name for name, (_, stop) in self.fields.items() if start < stop), None)

    def __repr__(self) -> str:
        return f"Hit({self.id!r}, {self.score:.3f}, {excerpt(self.passage, 60)!r})"


_COLUMNS = (
    "query", "rank", "id", "score", "similarity", "bm25", "reranked", "excerpt", "passage", "topic",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class SearchHits:
    """Hits of one query, or of each of several.

    For one query the object is a sequence of hits: ``for hit in hits``, ``hits[0]``. For a list of
    queries it is a sequence of such sequences, one for each query.

    Parameters
    ----------
    queries : tuple of str
        The queries; the text of the document for a search by document.
    hits : tuple of tuple of Hit
        Hits of each query, best first; ties in the order of adding. There are fewer than `k` only
        where fewer documents exist or pass the filter.
    mode : {"dense", "lexical", "hybrid"}
    k : int
        Maximum number of hits.
    where : str
        The filter; empty without one.
    decisions : tuple of Decision
        Remarks on the queries, such as words that no document holds.
    is_single : bool
        Whether the query was one string.
    suggestions : mapping of str to str
        For one query: for each word that no document holds, the most similar word of the index.
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
        shown = f"{excerpt(self.queries[0], 40)!r}" if self.is_single else f"{len(self.queries):,}"
        where = f", where {excerpt(self.where, 40)}" if self.where else ""
        noun = "query" if self.is_single else "queries"
        n_hits = spell_count(sum(map(len, self.hits)), "hit", "hits")
        return f"SearchHits({n_hits}, {noun} {shown}, {self.mode}{where})"

    def _repr_html_(self) -> str:
        frame = self.to_frame().drop(columns="passage").dropna(axis=1, how="all")
        return html_table(frame.drop(columns="query") if self.is_single else frame, repr(self))

    def to_frame(self) -> pd.DataFrame:
        """Return all hits as a data frame.

        Returns
        -------
        pandas.DataFrame
            Columns query (its position), rank (from 1), id, score, similarity, bm25, reranked,
            excerpt (of the passage, on one line), passage, topic and the metadata. A column of the
            metadata with one of these names gets a trailing underscore.
        """
        import pandas as pd

        rows = [
            (number, rank, hit.id, hit.score, hit.similarity, hit.bm25, hit.reranked,
             excerpt(hit.passage), hit.passage, hit.topic)
            for number, hits in enumerate(self.hits)
            for rank, hit in enumerate(hits, 1)
        ]  # fmt: skip
        frame = pd.DataFrame(rows, columns=list(_COLUMNS))
        more = pd.DataFrame([dict(hit.metadata) for hits in self.hits for hit in hits])
        more.columns = [f"{name}_" if name in _COLUMNS else name for name in more.columns]
        return pd.concat([frame, more], axis=1) if len(more.columns) else frame


@dataclass(frozen=True, eq=False, repr=False)
class DuplicateGroups(Displayed):
    """Groups of near-duplicates.

    Parameters
    ----------
    groups : tuple of tuple of hashable
        Ids of each group of two or more, in the order of adding; the largest groups first. A chain
        of similar documents forms a group, so that two members need not be similar themselves.
    pairs : tuple of (hashable, hashable, float)
        Pairs of ids whose cosine reaches the threshold, most similar first. For a document with
        many near-duplicates, only its nearest ones are listed.
    threshold : float
    n_documents : int
        Documents with text, which were compared.
    decisions : tuple of Decision
    """

    groups: tuple[tuple[Hashable, ...], ...]
    pairs: tuple[tuple[Hashable, Hashable, float], ...]
    threshold: float
    n_documents: int
    decisions: tuple[Decision, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.groups)

    def _summary(self) -> str:
        n = sum(map(len, self.groups))
        return (
            f"{len(self.groups):,} groups of {n:,} among {self.n_documents:,} documents, "
            f"cosine from {self.threshold:g}"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the group number, from 1, and the id of each document."""
        import pandas as pd

        rows = [(number, id) for number, group in enumerate(self.groups, 1) for id in group]
        return pd.DataFrame(rows, columns=["group", "id"])
