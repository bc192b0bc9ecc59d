"""Search: queries -> passages of each mode -> one ranking of documents -> hits that explain it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_between, checked_choice, checked_count
from embedtopics.corpus._columns import FIELD_SEPARATOR
from embedtopics.corpus.filters._expressions import Filter, InvalidCondition, find_column
from embedtopics.corpus.filters._rows import read_filter
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, FloatArray, Int64Array
from embedtopics.retrieval._bm25 import (
    LexicalHits,
    LexicalSearcher,
    stop_form,
)
from embedtopics.retrieval._fusion import DEPTH, fuse_scores
from embedtopics.retrieval._query import (
    ParsedQuery,
    checked_queries,
    parse_for_dense,
    parse_query,
)
from embedtopics.retrieval._query_notes import describe_queries
from embedtopics.retrieval._reader import (
    Allowed,
    DocumentRemoved,
    IndexReader,
    IndexVersion,
    allow,
    checked_vectors,
    encode_texts,
    nearest_passages,
)
from embedtopics.retrieval._rerank import rerank, resolve_reranker
from embedtopics.retrieval._snippets import suggest
from embedtopics.retrieval.dense._exact import Nearest
from embedtopics.retrieval.results import Document, Hit, SearchHits
from embedtopics.retrieval.storage._collection import Collection
from embedtopics.terms._representative import diversify, scaled_relevance
from embedtopics.terms._tokens import texts_with

if TYPE_CHECKING:
    import pandas as pd

Where: TypeAlias = str | Mapping[str, Any] | None
"""A filter: an expression, or a mapping of columns to values."""

MODES = ("dense", "hybrid", "lexical")
TEXTS_AT_ONCE = 1_000
MIN_RELEVANCE = 0.1
"""Relevance from which facets count the documents of a query."""

CANDIDATES = 100
"""Documents for diversity and a reranker to choose from."""


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search; see `SearchIndex.search`."""

    k: int
    mode: str
    weight: float
    diversity: float
    reranker: Any
    min_score: float | None = None

    def __post_init__(self) -> None:
        if self.mode == "bm25":
            object.__setattr__(self, "mode", "lexical")
        checked_choice(self.mode, "mode", MODES)
        checked_count(self.k, "k")
        checked_between(self.diversity, "diversity", 0, 1, closed=True)
        checked_between(self.weight, "weight", 0, 1, closed=True)
        checked_between(self.min_score or 0.0, "min_score", 0, 1, closed=True)

    @property
    def n_documents(self) -> int:
        """Documents to find before diversification and reranking."""
        chooses = self.diversity > 0 or self.reranker is not None
        return max(self.k, CANDIDATES) if chooses else self.k


@dataclass(frozen=True, eq=False)
class RankedDocuments:
    """The best passage of each document, best first, (n,); NaN if a score was not computed."""

    documents: Int64Array
    segments: Int64Array
    rows: Int64Array
    scores: Float64Array
    similarities: Float64Array
    bm25: Float64Array
    reranked: Float64Array
    relevance: Float64Array

    @classmethod
    def of_passages(
        cls,
        version: IndexVersion,
        segments: Int64Array,
        rows: Int64Array,
        scores: npt.NDArray[Any],
        similarities: npt.NDArray[Any] | None = None,
        bm25: npt.NDArray[Any] | None = None,
    ) -> RankedDocuments:
        """Rank documents by their best passage; break ties by document, then passage."""
        unknown = np.full(len(rows), np.nan)
        passages = cls(
            version.documents_at(segments, rows), segments, rows, scores.astype(np.float64),
            unknown if similarities is None else similarities.astype(np.float64),
            unknown if bm25 is None else bm25.astype(np.float64), unknown, unknown,
        )  # fmt: skip
        order = np.lexsort((rows, passages.documents, -passages.scores))
        _, first = np.unique(passages.documents[order], return_index=True)
        return passages.take(order[np.sort(first)])

    def __len__(self) -> int:
        return len(self.documents)

    def take(self, positions: npt.ArrayLike) -> RankedDocuments:
        """Return some of the documents, in the order of `positions`."""
        order = np.asarray(positions, dtype=np.int64)
        return RankedDocuments(*(getattr(self, field.name)[order] for field in fields(self)))

    def first(self, k: int) -> RankedDocuments:
        """Return the best k."""
        return self.take(range(min(k, len(self))))


def search(
    reader: IndexReader,
    queries: str | Sequence[str],
    where: Where,
    vectors: npt.ArrayLike | None,
    options: SearchOptions,
) -> SearchHits:
    """Search for one query or several; see `SearchIndex.search`."""
    is_single = isinstance(queries, str)
    texts = checked_queries(queries)
    collection = reader.collection
    reranker = None if options.reranker is None else resolve_reranker(options.reranker)
    if reader.newest().words_only:
        options = _lexical_options(options, vectors)

    if options.mode == "dense":  # the encoder reads a query as it is
        parsed = [parse_for_dense(text) for text in texts]
    else:
        rules = reader.newest().lexical.settings.words
        parsed = [parse_query(text, rules) for text in texts]
    unit_vectors = query_vectors(reader, [query.text for query in parsed], vectors, options.mode)

    def answer(version: IndexVersion) -> SearchHits:
        condition = document_filter(collection, where)
        documents = matching_documents(collection, condition)
        rankings = find_parsed(version, collection, parsed, unit_vectors, options, documents)
        hits = []
        for query, ranking in zip(parsed, rankings, strict=True):
            if reranker is not None:
                ranking = _rerank(version, collection, query.text, ranking, reranker)
            if options.diversity > 0 and len(ranking):
                ranking = _diversify(version, ranking, options)
            ranking = ranking.first(options.k)
            ranking = _relevant(reader, version, query.text, ranking, options, vectors is None)
            hits.append(make_hits(version, collection, query.text, ranking))

        suggestions = {}
        if is_single and options.mode != "dense":  # for many queries it would take long
            suggestions = suggest(version, collection, parsed[0].text)

        filter_text = condition.text if condition else ""
        return SearchHits(
            texts, tuple(hits), options.mode, options.k, filter_text,
            describe_queries(version, parsed, unit_vectors, options.mode, suggestions),
            is_single, suggestions,
        )  # fmt: skip

    return reader.answer(answer)


def _lexical_options(options: SearchOptions, vectors: object) -> SearchOptions:
    """Return options for an index without vectors, or refuse those that need them."""
    for name, needs_vectors in (
        ("diversity", options.diversity > 0), ("vectors", vectors is not None),
        ("mode", options.mode == "dense"),
    ):  # fmt: skip
        if needs_vectors:
            raise InputError(name, "left out, or lexical, for an index without vectors")
    return replace(options, mode="lexical")


def query_vectors(
    reader: IndexReader, queries: Sequence[str], vectors: npt.ArrayLike | None, mode: str
) -> FloatArray | None:
    """Return the unit vectors of the queries, or None if a search needs none."""
    if mode == "lexical":
        return None
    width = reader.newest().n_dimensions
    if vectors is not None:
        return checked_vectors(vectors, len(queries), "vectors", width)
    # A query without text keeps the zero vector, which is similar to nothing.
    unit_vectors = np.zeros((len(queries), width), dtype=np.float32)
    positions = [position for position, query in enumerate(queries) if query.strip()]
    if positions:
        texts = [queries[position] for position in positions]
        # Queries are not cached on disk.
        encoded = encode_texts(reader.encoder.uncached, texts, "query", show_progress=False)[0]
        what = "the encoder's vectors"
        unit_vectors[positions] = checked_vectors(encoded, len(texts), what, width)
    return unit_vectors


def document_filter(collection: Collection, where: Where) -> Filter | None:
    """Read a filter and check it against the columns of the metadata."""
    if where is None:
        return None
    if not isinstance(where, str | Mapping):
        raise InputError("where", "a filter, or a mapping of columns to values", where)

    id = collection.settings().get("columns", {}).get("id") or "id"
    kinds = {"id": "text", id: "text", **collection.columns()}
    return read_filter(where, kinds, collection.column_sql)


def matching_documents(collection: Collection, condition: Filter | None) -> Int64Array | None:
    """Return the numbers of the documents that pass a filter, ascending; None without a filter."""
    return None if condition is None else collection.candidates(*condition.sql)


def find_parsed(
    version: IndexVersion,
    collection: Collection,
    queries: Sequence[ParsedQuery],
    vectors: FloatArray | None,
    options: SearchOptions,
    documents: Int64Array | None,
) -> list[RankedDocuments]:
    """Rank for each query the documents that hold its phrases and none of its exclusions."""
    # Queries with the same constraints, usually none, are searched together.
    groups: dict[tuple[Any, Any], list[int]] = {}
    for position, query in enumerate(queries):
        groups.setdefault((query.phrases, query.excluded), []).append(position)

    rankings: dict[int, RankedDocuments] = {}
    for (phrases, excluded), positions in groups.items():
        candidates = documents
        for words in phrases:
            candidates = _documents_with(version, collection, words, candidates)
        for words in excluded:
            if candidates is None:
                living = [view.documents[view.alive] for view in version.segments]
                candidates = np.unique(np.concatenate([np.empty(0, np.int64), *living]))
            holders = _documents_with(version, collection, words, candidates)
            candidates = np.setdiff1d(candidates, holders)

        group_vectors = None if vectors is None else vectors[positions]
        texts = [queries[position].text for position in positions]
        ranked = find(version, texts, group_vectors, options, allow(version, candidates))
        rankings.update(zip(positions, ranked, strict=True))

    return [rankings[position] for position in range(len(queries))]


def _documents_with(
    version: IndexVersion,
    collection: Collection,
    words: Sequence[str],
    among: Int64Array | None,
) -> Int64Array:
    """Return those of some documents whose text holds a sequence of words, exactly as written."""
    settings = version.lexical.settings

    # The documents that hold a form of every word.
    holders = [] if among is None else [among]
    for form in {settings.form(word) or stop_form(word) for word in words}:
        parts = [np.empty(0, np.int64)]
        for view, segment in zip(version.segments, version.lexical.segments, strict=True):
            parts.append(view.documents[segment.postings(segment.find(form))[0]])
        holders.append(np.unique(np.concatenate(parts)))
    candidates = reduce(np.intersect1d, holders)

    # Of these, the texts that hold the words as they are written.
    matches = [np.empty(0, np.int64)]
    for start in range(0, len(candidates), TEXTS_AT_ONCE):
        part = candidates[start : start + TEXTS_AT_ONCE]
        documents = collection.documents(part.tolist())
        texts = ["" if document is None else document.text for document in documents]
        matches.append(part[texts_with(texts, words, settings.words)])
    return np.concatenate(matches)


def facets(
    reader: IndexReader,
    query: str | None,
    by: Sequence[str],
    where: Where,
    options: SearchOptions,
) -> pd.DataFrame:
    """Count the values of columns; see `SearchIndex.facets`."""
    import pandas as pd

    collection = reader.collection
    by = [_metadata_column(collection, name, row) for row, name in enumerate(by)]
    if query is not None and not isinstance(query, str):
        raise InputError("query", "a text", query)

    if query is None:
        numbers = matching_documents(collection, document_filter(collection, where))
    else:
        hits = search(reader, query, where, None, options)
        number_of = collection.numbers([str(hit.id) for hit in hits])
        numbers = np.array(sorted(number_of.values()), dtype=np.int64)

    rows = [
        (name, value, count)
        for name in by
        for value, count in sorted(
            collection.counts(name, numbers).items(), key=lambda item: (-item[1], str(item[0]))
        )
    ]
    return pd.DataFrame(rows, columns=["column", "value", "count"])


def _metadata_column(collection: Collection, name: object, row: int) -> str:
    try:
        return find_column(name, collection.columns())
    except InvalidCondition as error:
        raise InputError("by", "columns of the metadata", name, str(error), row=row) from None


def find(
    version: IndexVersion,
    queries: Sequence[str],
    vectors: FloatArray | None,
    options: SearchOptions,
    allowed: Allowed,
) -> list[RankedDocuments]:
    """Rank documents for each query by their best passage."""
    k = options.n_documents
    rankings: dict[int, RankedDocuments] = {}
    unfinished = list(range(len(queries)))
    n = min(max(k, DEPTH if options.mode == "hybrid" else 0), max(allowed.n, 1))
    # A few documents may own most of the nearest passages: look at four times as many passages
    # until there are k documents or no passage is left.
    while unfinished:
        if vectors is not None:
            nearest = nearest_passages(version, vectors[unfinished], n, allowed)
        again = []
        for line, position in enumerate(unfinished):
            vector = dense = lexical = None
            if vectors is not None and vectors[position].any():
                vector, exists = vectors[position], nearest.rows[line] >= 0
                dense = Nearest(*(array[line][exists] for array in nearest))
            if options.mode != "dense":
                lexical = version.lexical.search(queries[position], n, allowed.masks)
            ranking = _combine(version, queries[position], vector, dense, lexical, options)
            rankings[position] = ranking
            is_exhausted = all(part is None or len(part.rows) < n for part in (dense, lexical))
            if len(ranking) < k and not is_exhausted and n < allowed.n:
                again.append(position)
        unfinished, n = again, min(4 * n, max(allowed.n, 1))
    return [rankings[position].first(k) for position in range(len(queries))]


def _combine(
    version: IndexVersion,
    query: str,
    vector: FloatArray | None,
    dense: Nearest | None,
    lexical: LexicalHits | None,
    options: SearchOptions,
) -> RankedDocuments:
    """Rank the documents of the candidates of one query, from one mode or from both."""
    of_passages, scores_at = RankedDocuments.of_passages, version.lexical.scores_at
    if vector is None or dense is None:
        if lexical is None:
            none = np.empty(0, np.int64)
            return of_passages(version, none, none, np.empty(0))
        scores, segments, rows = lexical
        return of_passages(version, segments, rows, scores, None, scores)
    if lexical is None:
        near, segments, rows = dense
        return of_passages(version, segments, rows, near, near, scores_at(query, segments, rows))
    starts = np.cumsum([0, *(len(view.documents) for view in version.segments)])
    found_by = [starts[segments] + rows for _, segments, rows in (dense, lexical)]
    numbers = np.union1d(*found_by).astype(np.int64)
    segments = (np.searchsorted(starts, numbers, side="right") - 1).astype(np.int64)
    rows = numbers - starts[segments]
    if not len(numbers):
        return of_passages(version, segments, rows, np.empty(0))
    vectors = version.vectors_at(segments, rows)
    bm25 = scores_at(query, segments, rows)
    order, scores, similarities = fuse_scores(
        vector, vectors, bm25, version.mean_vector, options.weight
    )
    return of_passages(
        version, segments[order], rows[order], scores[order], similarities[order], bm25[order]
    )


def _rerank(
    version: IndexVersion, collection: Collection, query: str, ranking: RankedDocuments, scorer: Any
) -> RankedDocuments:
    passages = [
        document.text[slice(*span)] for document, span in _fetch(version, collection, ranking)
    ]
    order, scores = rerank(scorer, query, passages)
    return replace(ranking.take(order), scores=scores, reranked=scores)


def _diversify(
    version: IndexVersion, ranking: RankedDocuments, options: SearchOptions
) -> RankedDocuments:
    scores = ranking.scores
    # Cosines and fused scores have the scale of a cosine; BM25 and scores of a reranker do not.
    if options.reranker is not None or np.isnan(ranking.similarities).all():
        scores = scaled_relevance(scores)
    vectors = version.vectors_at(ranking.segments, ranking.rows)
    return ranking.take(diversify(scores, vectors, options.k, options.diversity))


def above_chance(similarities: Float64Array, chance: float) -> Float64Array:
    """Rescale cosines so that chance is 0."""
    return np.clip((similarities - chance) / max(1 - chance, 1e-9), 0, 1)


def _relevant(
    reader: IndexReader,
    version: IndexVersion,
    query: str,
    ranking: RankedDocuments,
    options: SearchOptions,
    is_encoded: bool,
) -> RankedDocuments:
    """Compute the relevance of documents, see `Hit`, and leave out those below `min_score`."""
    weight = {"dense": 1.0, "lexical": 0.0}.get(options.mode, options.weight)
    chance = reader.chance(version, is_encoded) if weight > 0 and len(ranking) else 0.0
    near = above_chance(ranking.similarities, chance)
    if weight == 1 or not version.lexical.read(query).written:
        relevance = np.nan_to_num(near)
    else:
        coverage = version.lexical.coverage_at(query, ranking.segments, ranking.rows)
        mixed = weight * near + (1 - weight) * coverage
        relevance = np.where(np.isnan(near), coverage, mixed)
    return replace(ranking, relevance=relevance).take(
        np.flatnonzero(relevance >= (options.min_score or 0.0))
    )


def _fetch(
    version: IndexVersion, collection: Collection, ranking: RankedDocuments
) -> Iterator[tuple[Document, tuple[int, int]]]:
    """Yield the ranked documents and the spans of their best passages."""
    documents = collection.documents(ranking.documents.tolist())
    for document, segment, row in zip(documents, ranking.segments, ranking.rows, strict=True):
        if document is None:
            raise DocumentRemoved
        start, stop = version.segments[segment].spans[row].tolist()
        yield document, (start, stop)


def make_hits(
    version: IndexVersion, collection: Collection, query: str, ranking: RankedDocuments
) -> tuple[Hit, ...]:
    """Fetch documents, and explain their scores."""
    settings = version.snapshot.settings
    text_columns = settings.get("columns", {}).get("text")
    terms = term_scores(version.lexical, query, ranking.segments, ranking.rows)
    hits = []
    for rank, (document, span) in enumerate(_fetch(version, collection, ranking)):
        metadata, topic, position = dict(document.metadata), None, None
        if settings.get("topics"):
            topic, x, y = (metadata.pop(name, None) for name in ("topic", "map_x", "map_y"))
            position = None if x is None or y is None else (float(x), float(y))
        hits.append(
            Hit(
                id=document.id,
                score=float(ranking.scores[rank]),
                similarity=float(ranking.similarities[rank]),
                bm25=float(ranking.bm25[rank]),
                reranked=float(ranking.reranked[rank]),
                relevance=float(ranking.relevance[rank]),
                text=document.text,
                span=span,
                terms=terms[rank],
                metadata=metadata,
                topic=topic,
                position=position,
                fields=_field_spans(document, text_columns),
                _query=(query, version.lexical.settings),
            )
        )
    return tuple(hits)


def _field_spans(document: Document, columns: object) -> dict[str, tuple[int, int]]:
    """Return the span of each text column in the text of a document."""
    if not isinstance(columns, list):
        return {}
    spans, start = {}, 0
    for name in columns[:-1]:
        value = document.metadata.get(name)
        if isinstance(value, str) and value.strip() and document.text.startswith(value, start):
            spans[name] = start, start + len(value)
            start += len(value) + len(FIELD_SEPARATOR)
    if start < len(document.text):
        spans[columns[-1]] = start, len(document.text)
    return spans


def term_scores(
    searcher: LexicalSearcher, query: str, segments: Int64Array, rows: Int64Array
) -> list[dict[str, float]]:
    """Return for each passage the words of the query that it holds, with their part of BM25."""
    words = searcher.read(query)
    scores: list[dict[str, float]] = [{} for _ in range(len(rows))]
    for form, parts in searcher.parts_at(query, segments, rows).items():
        weight = words.weight(form)
        for position in np.flatnonzero(parts > 0).tolist():
            # Words of one stem share its part in proportion to their counts in the query.
            for word, count in words.written[form].items():
                scores[position][word] = float(parts[position]) * count / weight
    return [dict(sorted(one.items(), key=lambda item: (-item[1], item[0]))) for one in scores]
