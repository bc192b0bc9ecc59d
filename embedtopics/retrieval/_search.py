"""Queries -> candidates of each mode -> one order -> the best passage of each document -> hits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, checked_share
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.retrieval._bm25 import (
    LexicalHits,
    LexicalSearcher,
    ParsedQuery,
    parse_query,
    stop_form,
)
from embedtopics.retrieval._build import JOINT
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
from embedtopics.terms._representative import diversify, scaled_relevance
from embedtopics.terms._tokens import texts_with, words_of

if TYPE_CHECKING:
    import pandas as pd

MODES = ("dense", "hybrid", "lexical")
ATTEMPTS = 5
"""Searches that are begun anew because another process removed what was found."""
TEXTS_AT_ONCE = 1_000
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
    min_score: float | None = None

    def __post_init__(self) -> None:
        for name, known in (("mode", MODES), ("fusion", METHODS)):
            if getattr(self, name) not in known:
                raise InputError(name, f"one of {', '.join(known)}", getattr(self, name))
        checked_count(self.k, "k")
        checked_count(self.candidates, "candidates")
        checked_share(self.diversity, "diversity")
        checked_share(self.weight, "weight")
        checked_share(self.min_score or 0.0, "min_score")

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
    if reader.newest().words_only:
        if options.mode == "dense" or options.diversity > 0 or vectors is not None:
            name = "vectors" if vectors is not None else "mode"
            name = "diversity" if options.diversity > 0 else name
            raise InputError(name, "left out, or lexical, for an index of words alone")
        options = replace(options, mode="lexical")
    rules = reader.newest().lexical.settings.words
    is_dense = options.mode == "dense"  # by meaning alone: a query is read as it is
    parsed = [ParsedQuery(one, (), ()) if is_dense else parse_query(one, rules) for one in asked]
    texts = tuple(one.text for one in parsed)
    given = query_vectors(reader, texts, vectors, options.mode)
    condition = read_filter(reader.collection, where)
    for _ in range(ATTEMPTS):
        version = reader.newest()
        documents = matching_documents(reader.collection, condition)
        try:
            hits = []
            every = find_parsed(version, reader.collection, parsed, given, options, documents)
            for query, found in zip(texts, every, strict=True):
                if reranker is not None:
                    fetched = _fetch(version, reader.collection, found)
                    passages = [document.text[slice(*span)] for document, span in fetched]
                    order, scores = rerank(reranker, query, passages)
                    found = replace(found.take(order), scores=scores, reranked=scores)
                if options.diversity > 0:
                    found = _diversified(version, found, options)
                found = found.first(options.k)
                relevance = None
                if options.min_score is not None:
                    weight = {"dense": 1.0, "lexical": 0.0}.get(options.mode, options.weight)
                    # Words need no background.
                    chance = reader.chance(version, vectors is None) if weight > 0 else 0.0
                    relevance = _relevance(version, query, found, weight, chance)
                    kept = np.flatnonzero(relevance >= options.min_score)
                    found, relevance = found.take(kept), relevance[kept]
                hits.append(make_hits(version, reader.collection, query, found, relevance))
            is_single = isinstance(queries, str)
            suggestions = {}
            if is_single and not is_dense:  # of many queries it would take long
                suggestions = _suggestions(version, reader.collection, texts[0])
        except Vanished:
            continue
        return SearchHits(
            asked, tuple(hits), options.mode, options.k, condition.text if condition else "",
            _decisions(version, parsed, given, options.mode, suggestions), is_single, suggestions,
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


def query_vectors(
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
        encoded = encode_texts(reader.encoder.uncached, texts, "query", show_progress=False)[0]
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


def find_parsed(
    version: IndexVersion,
    collection: Collection,
    queries: Sequence[ParsedQuery],
    vectors: FloatArray | None,
    options: SearchOptions,
    documents: Int64Array | None,
) -> list[Found]:
    """Search for each query among the documents that hold its phrases and no exclusion."""
    results: dict[int, Found] = {}
    free = [i for i, one in enumerate(queries) if not (one.phrases or one.excluded)]
    bound = [[i] for i in range(len(queries)) if i not in {*free}]
    for places in [free, *bound] if free else bound:
        own, query = documents, queries[places[0]]
        for words in query.phrases:
            held = _documents_with(version, collection, words)
            own = held if own is None else np.intersect1d(own, held)
        for words in query.excluded:
            if own is None:
                living = [view.documents[view.alive] for view in version.segments]
                own = np.unique(np.concatenate([np.empty(0, np.int64), *living]))
            own = np.setdiff1d(own, _documents_with(version, collection, words))
        of_places = None if vectors is None else vectors[places]
        texts = [queries[i].text for i in places]
        found = find(version, texts, of_places, options, allow(version, own))
        results.update(zip(places, found, strict=True))
    return [results[i] for i in range(len(queries))]


def _documents_with(
    version: IndexVersion, collection: Collection, words: Sequence[str]
) -> Int64Array:
    """Return the documents whose text holds words one after the other, as they are written."""
    settings, kept = version.lexical.settings, [np.empty(0, np.int64)]
    sets = []
    for form in {settings.form(word) or stop_form(word) for word in words}:
        own = kept.copy()
        for view, segment in zip(version.segments, version.lexical.segments, strict=True):
            own.append(view.documents[segment.postings(segment.find(form))[0]])
        sets.append(np.unique(np.concatenate(own)))
    held = reduce(np.intersect1d, sets)
    for start in range(0, len(held), TEXTS_AT_ONCE):
        part = held[start : start + TEXTS_AT_ONCE]
        # Of one that was removed by now, no text is read.
        texts = ["" if one is None else one.text for one in collection.documents(part.tolist())]
        kept.append(part[texts_with(texts, words, settings.words)])
    return np.concatenate(kept)


def facets(
    reader: IndexReader, query: str | None, by: Sequence[str], where: Where, options: SearchOptions
) -> pd.DataFrame:
    """Count the values of columns; see `SearchIndex.facets`."""
    import pandas as pd

    collection = reader.collection
    for row, name in enumerate(by):
        if name not in collection.columns():
            raise InputError("by", "columns of the metadata", name, row=row)
    if query is None:
        numbers = matching_documents(collection, read_filter(collection, where))
    else:
        hits = search(reader, _read_queries([query])[0], where, None, options)
        known = collection.numbers([str(hit.id) for hit in hits])
        numbers = np.array(sorted(known.values()), dtype=np.int64)
    rows = [
        (name, value, n)
        for name in by
        for value, n in sorted(
            collection.counts(name, numbers).items(), key=lambda one: (-one[1], str(one[0]))
        )
    ]
    return pd.DataFrame(rows, columns=["column", "value", "count"])


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
    version: IndexVersion,
    collection: Collection,
    query: str,
    found: Found,
    relevance: npt.NDArray[np.float64] | None = None,
) -> tuple[Hit, ...]:
    """Fetch documents, and explain why they were found."""
    hits = []
    fields = version.snapshot.settings.get("columns", {}).get("text")
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
                relevance=float("nan" if relevance is None else relevance[place]),
                text=document.text,
                span=span,
                terms=terms[place],
                metadata=metadata,
                topic=topic,
                position=position,
                fields=_field_spans(document, fields if isinstance(fields, list) else []),
                _asked=(query, version.lexical.settings),
            )
        )
    return tuple(hits)


def _relevance(
    version: IndexVersion, query: str, found: Found, weight: float, chance: float
) -> npt.NDArray[np.float64]:
    """Return how relevant hits are, from 0 to 1; see `Hit`."""
    near = np.clip((found.similarities - chance) / max(1 - chance, 1e-9), 0, 1)
    if weight == 1 or not version.lexical.read(query).written:
        return np.nan_to_num(near)
    held = version.lexical.coverage_at(query, found.segments, found.rows)
    return np.where(np.isnan(near), held, weight * near + (1 - weight) * held)


def _field_spans(document: Document, fields: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return where in its text each text field of a document lies."""
    spans, start = {}, 0
    for name in fields[:-1]:
        value = document.metadata.get(name)
        if isinstance(value, str) and value.strip() and document.text.startswith(value, start):
            spans[name] = start, start + len(value)
            start += len(value) + len(JOINT)
    if fields and start < len(document.text):
        spans[fields[-1]] = start, len(document.text)
    return spans


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
    version: IndexVersion,
    queries: Sequence[ParsedQuery],
    vectors: FloatArray | None,
    mode: str,
    suggestions: Mapping[str, str],
) -> tuple[Decision, ...]:
    """Return what each query cannot find; of several, which one it is."""
    made: list[Decision] = []
    first_place = {query: place for place, query in reversed(list(enumerate(queries)))}
    for place, parsed in enumerate(queries):
        if first_place[parsed] < place:
            continue
        query = parsed.text
        name = "the query" if len(queries) == 1 else f"query {place + 1}"
        for kind, said, phrases in (("phrases", "with", parsed.phrases),
                                    ("excluded", "without", parsed.excluded)):  # fmt: skip
            if phrases:
                named = [" ".join(words) for words in phrases]
                message = f"For {name} only documents {said} {_shown(named)} are searched."
                made.append(Decision("retrieval", kind, named, message))
        if vectors is not None and not vectors[place].any():
            message = f"The encoder gives {name} a zero vector: dense search finds nothing."
            made.append(Decision("retrieval", "no direction", query, message))
        if mode != "dense":
            made += _lexical_decisions(version.lexical, query, name, suggestions)
    return tuple(made)


def _suggestions(version: IndexVersion, collection: Collection, query: str) -> dict[str, str]:
    """Return for words that no document holds a word like it that one holds, as it is written."""
    lexical, made = version.lexical, {}
    known = lexical.parts_at(query, np.zeros(0, np.int64), np.zeros(0, np.int64))
    missing = [one for one in lexical.read(query).written.items() if one[0] not in known]
    for form, written in missing[:_MOST_SHOWN]:
        near = lexical.suggest(form)
        if near is None:
            continue
        _, segments, rows = lexical.search(near, 1)  # a stem is its own stem, with few exceptions
        found = collection.documents(version.documents_at(segments, rows).tolist())
        texts = " ".join(document.text for document in found if document is not None)
        settings = lexical.settings
        read = words_of(texts, settings.words)
        words = Counter(word for word in read if settings.form(word) == near)
        made.update(dict.fromkeys(written, words.most_common(1)[0][0] if words else near))
    return made


def _lexical_decisions(
    searcher: LexicalSearcher, query: str, name: str, suggestions: Mapping[str, str] | None = None
) -> list[Decision]:
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
    near = suggestions or {}
    nearest = [near[word] for word in missing if word in near]
    message += f" Did you mean {_shown(nearest)}?" if nearest else ""
    return [Decision("retrieval", "words not held", missing, message)]


def _shown(words: Sequence[str]) -> str:
    few = ", ".join(repr(word[:40]) for word in words[:_MOST_SHOWN])
    left = len(words) - _MOST_SHOWN
    return f"{few} and {left:,} more" if left > 0 else few
