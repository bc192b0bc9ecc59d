"""Queries -> candidates of each mode -> one order -> the best passage of each document -> hits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, checked_share
from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.retrieval._bm25 import LexicalHits, LexicalSearcher
from embedtopics.retrieval._fusion import DEPTH, METHODS, fuse_ranks, fuse_scores
from embedtopics.retrieval._reader import (
    Allowed,
    IndexReader,
    IndexVersion,
    allow,
    encode_texts,
    given_vectors,
    nearest_passages,
)
from embedtopics.retrieval._rerank import rerank, resolve_reranker
from embedtopics.retrieval.dense._exact import Nearest
from embedtopics.retrieval.filters._conditions import Filter, filter_sql
from embedtopics.retrieval.filters._parse import parse_filter
from embedtopics.retrieval.results import Document, Hit, SearchHits
from embedtopics.retrieval.storage._collection import Collection
from embedtopics.terms._representative import choose_diverse

MODES = ("dense", "hybrid", "lexical")
ATTEMPTS = 5
"""Searches that are begun anew because another process removed what was found."""
_MOST_SHOWN = 5
"""Words that a message names."""

Where = str | Mapping[str, Any] | None


class Vanished(Exception):
    """A document that was found has been removed since."""


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search; see `SearchIndex.search`."""

    k: int
    mode: str
    fusion: str
    weight: float
    diversity: float
    reranker: Any
    candidates: int

    def __post_init__(self) -> None:
        for name, known in (("mode", MODES), ("fusion", METHODS)):
            if getattr(self, name) not in known:
                raise InputError(name, f"one of {', '.join(known)}", getattr(self, name))
        checked_count(self.k, "k")
        checked_count(self.candidates, "candidates")
        checked_share(self.diversity, "diversity")
        checked_share(self.weight, "weight")

    @property
    def n_wanted(self) -> int:
        """Documents to find before they are diversified or reranked."""
        chooses = self.diversity > 0 or self.reranker is not None
        return max(self.k, self.candidates) if chooses else self.k


@dataclass(frozen=True, eq=False)
class Found:
    """The best passage of each document, best first, (n_found,); NaN where not computed."""

    documents: Int64Array
    segments: Int64Array
    rows: Int64Array
    scores: npt.NDArray[np.float64]
    similarities: npt.NDArray[np.float64]
    bm25: npt.NDArray[np.float64]
    reranked: npt.NDArray[np.float64]

    @classmethod
    def of(
        cls,
        version: IndexVersion,
        segments: Int64Array,
        rows: Int64Array,
        scores: npt.NDArray[Any],
        similarities: npt.NDArray[Any] | None = None,
        bm25: npt.NDArray[Any] | None = None,
    ) -> Found:
        """Return the best passage of each document by score, ties by document and place in it."""
        unknown = np.full(len(rows), np.nan)
        passages = cls(
            version.documents_at(segments, rows), segments, rows, scores.astype(np.float64),
            unknown if similarities is None else similarities.astype(np.float64),
            unknown if bm25 is None else bm25.astype(np.float64), unknown,
        )  # fmt: skip
        order = np.lexsort((rows, passages.documents, -passages.scores))
        _, first = np.unique(passages.documents[order], return_index=True)
        return passages.take(order[np.sort(first)])

    def take(self, places: npt.ArrayLike) -> Found:
        """Return some of the documents, in the order of `places`."""
        at = np.asarray(places, dtype=np.int64)
        return Found(
            self.documents[at], self.segments[at], self.rows[at],
            self.scores[at], self.similarities[at], self.bm25[at], self.reranked[at],
        )  # fmt: skip

    def first(self, k: int) -> Found:
        """Return the best k."""
        return self.take(range(min(k, len(self.documents))))


def search(
    reader: IndexReader,
    queries: str | Sequence[str],
    where: Where,
    vectors: npt.ArrayLike | None,
    options: SearchOptions,
) -> SearchHits:
    """Search for queries, and fetch what was found."""
    asked = _read_queries(queries)
    reranker = resolve_reranker(options.reranker)
    given = _query_vectors(reader, asked, vectors, options.mode)
    condition = read_filter(reader.collection, where)
    for _ in range(ATTEMPTS):
        version = reader.newest()
        allowed = allow(version, matching_documents(reader.collection, condition))
        try:
            hits = []
            for query, found in zip(
                asked, find(version, asked, given, options, allowed), strict=True
            ):
                if reranker is not None:
                    fetched = _fetch(version, reader.collection, found)
                    passages = [document.text[slice(*span)] for document, span in fetched]
                    order, scores = rerank(reranker, query, passages)
                    found = replace(found.take(order), scores=scores, reranked=scores)
                if options.diversity > 0:
                    found = _diversified(version, found, options)
                hits.append(make_hits(version, reader.collection, query, found.first(options.k)))
        except Vanished:
            continue
        return SearchHits(
            asked, tuple(hits), options.mode, options.k, condition.text if condition else "",
            _decisions(version, asked, given, options.mode), isinstance(queries, str),
        )  # fmt: skip
    raise InputError("Another process keeps removing what is found; search again.")


def _read_queries(queries: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(queries, bytes) or not isinstance(queries, Iterable):
        raise InputError("queries", "a string or a list of strings", queries)
    asked = (queries,) if isinstance(queries, str) else tuple(queries)
    for row, query in enumerate(asked):
        if not isinstance(query, str):
            raise InputError("queries", "strings", query, row=row)
    return asked


def _query_vectors(
    reader: IndexReader, queries: tuple[str, ...], vectors: npt.ArrayLike | None, mode: str
) -> FloatArray | None:
    """Return the queries' unit vectors, None where none are needed."""
    if mode == "lexical":
        return None
    width = reader.newest().n_dimensions
    if vectors is not None:
        return given_vectors(vectors, len(queries), "vectors", width)
    # A query without text has no direction, and is near to nothing.
    written = [place for place, query in enumerate(queries) if query.strip()]
    made = np.zeros((len(queries), width), dtype=np.float32)
    if written:
        texts = [queries[place] for place in written]
        # Queries are not kept on disk.
        encoder = getattr(reader.encoder, "uncached", reader.encoder)
        encoded = encode_texts(encoder, texts, show_progress=False)[0]
        made[written] = given_vectors(encoded, len(texts), "the encoder's vectors", width)
    return made


def read_filter(collection: Collection, where: Where) -> Filter | None:
    """Read a filter against the columns that there are; None without one."""
    if where is None or (isinstance(where, str) and not where.strip()):
        return None
    return parse_filter(where, collection.columns())


def matching_documents(collection: Collection, condition: Filter | None) -> Int64Array | None:
    """Return the numbers of the documents that pass a filter, ascending; None without one."""
    if condition is None:
        return None
    return collection.candidates(*filter_sql(condition, collection.column_sql))


def find(
    version: IndexVersion,
    queries: Sequence[str],
    vectors: FloatArray | None,
    options: SearchOptions,
    allowed: Allowed,
) -> list[Found]:
    """Search for each query; a document counts once, with its best passage."""
    k = options.n_wanted
    results: dict[int, Found] = {}
    unfinished = list(range(len(queries)))
    n = min(max(k, DEPTH if options.mode == "hybrid" else 0), max(allowed.n, 1))
    # Where many passages of few documents are among the nearest, more are looked at, until there
    # are enough documents or nothing is left.
    while unfinished:
        if vectors is not None:
            near = nearest_passages(version, vectors[unfinished], n, allowed)
        again = []
        for place, number in enumerate(unfinished):
            vector = dense = lexical = None
            # What has no direction is near to nothing.
            if vectors is not None and vectors[number].any():
                vector, there = vectors[number], near.rows[place] >= 0
                dense = Nearest(*(part[place][there] for part in near))
            if options.mode != "dense":
                lexical = version.lexical.search(queries[number], n, allowed.masks)
            results[number] = _combined(version, queries[number], vector, dense, lexical, options)
            gave_all = all(part is None or len(part.rows) < n for part in (dense, lexical))
            if len(results[number].documents) < k and not gave_all and n < allowed.n:
                again.append(number)
        unfinished, n = again, min(4 * n, max(allowed.n, 1))
    return [results[number].first(k) for number in range(len(queries))]


def _combined(
    version: IndexVersion,
    query: str,
    vector: FloatArray | None,
    dense: Nearest | None,
    lexical: LexicalHits | None,
    options: SearchOptions,
) -> Found:
    """Return the documents of one query's candidates from one mode, or from both."""
    bm25_at = version.lexical.scores_at
    if dense is None and lexical is None:
        none = np.empty(0, np.int64)
        return Found.of(version, none, none, np.empty(0))
    if lexical is None:
        assert dense is not None
        near, segments, rows = dense
        return Found.of(version, segments, rows, near, near, bm25_at(query, segments, rows))
    if dense is None:
        scores, segments, rows = lexical
        return Found.of(version, segments, rows, scores, None, scores)
    assert vector is not None
    starts = np.cumsum([0, *(len(view.documents) for view in version.segments)])
    lists = [starts[segments] + rows for _, segments, rows in (dense, lexical)]
    numbers = np.union1d(*lists).astype(np.int64)
    segments = (np.searchsorted(starts, numbers, side="right") - 1).astype(np.int64)
    rows = numbers - starts[segments]
    if not len(numbers):
        return Found.of(version, segments, rows, np.empty(0))
    vectors = version.vectors_at(segments, rows)
    bm25 = bm25_at(query, segments, rows)
    if options.fusion == "ranks":
        fused = fuse_ranks(vector, vectors, [np.searchsorted(numbers, found) for found in lists])
    else:
        fused = fuse_scores(vector, vectors, bm25, version.mean_vector, options.weight)
    order, scores, similarities = fused
    return Found.of(
        version, segments[order], rows[order], scores[order], similarities[order], bm25[order]
    )


def _diversified(version: IndexVersion, found: Found, options: SearchOptions) -> Found:
    if not len(found.documents):
        return found
    scores = found.scores
    # Similarities and fused scores are on the scale of a cosine; BM25 and cross-encoders' are not.
    if options.reranker is not None or np.isnan(found.similarities).all():
        scores = scaled_relevance(scores)
    vectors = version.vectors_at(found.segments, found.rows)
    return found.take(diversify(scores, vectors, options.k, options.diversity))


class _Cosines:
    """Rows of a matrix of cosines, each computed when it is asked for."""

    def __init__(self, vectors: npt.NDArray[Any]) -> None:
        self._vectors = np.asarray(vectors, dtype=np.float64)

    def __getitem__(self, place: int) -> npt.NDArray[np.float64]:
        # Not by BLAS, whose last bits depend on the number of threads.
        return np.asarray(np.einsum("id,d->i", self._vectors, self._vectors[place]))


def scaled_relevance(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Divide scores of any kind by the best; counted from the lowest where some are below 0."""
    above = scores - min(0.0, float(scores.min(initial=0.0)))
    best = float(above.max(initial=0.0))
    return np.asarray(above / best if best > 0 else above)


def diversify(
    relevance: npt.NDArray[Any], vectors: npt.NDArray[Any], k: int, diversity: float
) -> Int64Array:
    """Return k of n places by maximal marginal relevance (Carbonell and Goldstein 1998)."""
    cosines = cast(npt.NDArray[Any], _Cosines(vectors))
    chosen = choose_diverse(relevance, cosines, k, diversity, lambda *_: False, least=-1.0)
    return np.array(chosen, dtype=np.int64)


def _fetch(
    version: IndexVersion, collection: Collection, found: Found
) -> Iterator[tuple[Document, tuple[int, int]]]:
    """Yield the documents that were found, and the spans of their best passages."""
    for place, document in enumerate(collection.documents(found.documents.tolist())):
        if document is None:
            raise Vanished
        start, stop = version.segments[found.segments[place]].spans[found.rows[place]].tolist()
        yield document, (start, stop)


def make_hits(
    version: IndexVersion, collection: Collection, query: str, found: Found
) -> tuple[Hit, ...]:
    """Fetch documents, and explain why they were found."""
    hits = []
    has_topics = bool(version.snapshot.settings.get("topics"))
    terms: list[dict[str, float]] = [{} for _ in range(len(found.documents))]
    has_words = np.flatnonzero(found.bm25 > 0)
    if len(has_words):
        parts = term_scores(
            version.lexical, query, found.segments[has_words], found.rows[has_words]
        )
        for place, own in zip(has_words.tolist(), parts, strict=True):
            terms[place] = own
    for place, (document, span) in enumerate(_fetch(version, collection, found)):
        metadata, topic, position = dict(document.metadata), None, None
        if has_topics:
            topic, x, y = (metadata.pop(name, None) for name in ("topic", "map_x", "map_y"))
            position = None if x is None or y is None else (float(x), float(y))
        hits.append(
            Hit(
                id=document.id,
                score=float(found.scores[place]),
                similarity=float(found.similarities[place]),
                bm25=float(found.bm25[place]),
                reranked=float(found.reranked[place]),
                text=document.text,
                span=span,
                terms=terms[place],
                metadata=metadata,
                topic=topic,
                position=position,
                _asked=(query, version.lexical.settings),
            )
        )
    return tuple(hits)


def term_scores(
    searcher: LexicalSearcher, query: str, segments: Int64Array, rows: Int64Array
) -> list[dict[str, float]]:
    """Return the words of the query that each passage holds, with their part of its BM25 score."""
    # Words of one stem share its part by how often the query has each.
    words = searcher.read(query)
    made: list[dict[str, float]] = [{} for _ in range(len(rows))]
    for form, parts in searcher.parts_at(query, segments, rows).items():
        weight = words.weight(form)
        for place in np.flatnonzero(parts > 0).tolist():
            for written, times in words.written[form].items():
                made[place][written] = float(parts[place]) * times / weight
    return [dict(sorted(own.items(), key=lambda item: (-item[1], item[0]))) for own in made]


def _decisions(
    version: IndexVersion, queries: tuple[str, ...], vectors: FloatArray | None, mode: str
) -> tuple[Decision, ...]:
    """Return what each query cannot find; of several, which one it is."""
    made: list[Decision] = []
    first_place = {query: place for place, query in reversed(list(enumerate(queries)))}
    for place, query in enumerate(queries):
        if first_place[query] < place:
            continue
        name = "the query" if len(queries) == 1 else f"query {place + 1}"
        if vectors is not None and not vectors[place].any():
            message = f"The encoder gives {name} a zero vector: dense search finds nothing."
            made.append(Decision("retrieval", "no direction", query, message))
        if mode != "dense":
            made += _lexical_decisions(version.lexical, query, name)
    return tuple(made)


def _lexical_decisions(searcher: LexicalSearcher, query: str, name: str) -> list[Decision]:
    """Return that a query has no words, or words that no document holds."""
    words = searcher.read(query)
    if not words.written:
        left_out = list(words.stop_words)
        kind = "only stop words" if left_out else "empty query"
        why = f"has only stop words ({_shown(left_out)})" if left_out else "has no words"
        message = f"{name.capitalize()} {why}: lexical search finds nothing."
        return [Decision("retrieval", kind, left_out, message)]
    none = np.zeros(0, np.int64)
    known = searcher.parts_at(query, none, none)
    missing = sorted(w for form, of in words.written.items() if form not in known for w in of)
    if not missing:
        return []
    rest = "lexical search goes by its other words" if known else "lexical search finds nothing"
    message = f"No document holds {_shown(missing)} of {name}; {rest}."
    return [Decision("retrieval", "words not held", missing, message)]


def _shown(words: Sequence[str]) -> str:
    few = ", ".join(repr(word[:40]) for word in words[:_MOST_SHOWN])
    left = len(words) - _MOST_SHOWN
    return f"{few} and {left:,} more" if left > 0 else few
