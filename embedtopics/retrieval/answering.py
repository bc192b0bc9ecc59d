"""From what a caller asks to hits: the filter, the queries' vectors, the search, the documents."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results import Decision, Hit, SearchHits
from embedtopics.retrieval.collection import Collection
from embedtopics.retrieval.encoding import encode_texts, given_vectors
from embedtopics.retrieval.explaining import explain, query_decisions
from embedtopics.retrieval.filters import Filter, filter_sql, parse_filter
from embedtopics.retrieval.fusing import FusionSettings
from embedtopics.retrieval.opened import Opened, allow, vectors_at
from embedtopics.retrieval.reranking import load_cross_encoder, reranked
from embedtopics.retrieval.searching import MODES, Found, Wish, find
from embedtopics.retrieval.varying import as_relevance, varied

if TYPE_CHECKING:
    from embedtopics.retrieval.index import SearchIndex

__all__ = ["AnswerWish", "Vanished", "answer", "condition_of", "hits_of", "passing", "read_queries"]

ATTEMPTS = 5
"""Searches that are begun anew because another process removed, meanwhile, what was found."""

Where = str | Mapping[str, Any] | Filter | None


class Vanished(Exception):
    """A document that was found has been removed since."""


@dataclass(frozen=True)
class AnswerWish:
    """What is wanted; see `SearchIndex.search`."""

    k: int
    mode: str
    fusion: FusionSettings | None
    diversity: float
    reranker: Any
    candidates: int


def read_queries(queries: str | Sequence[str]) -> tuple[str, ...]:
    """Return queries as a tuple of strings.

    Raises
    ------
    InputError
        If one is no string.
    """
    asked = (queries,) if isinstance(queries, str) else tuple(queries)
    for number, query in enumerate(asked, 1):
        if not isinstance(query, str):
            raise InputError(
                f"expected queries as strings, got a {type(query).__name__} as query {number}"
            )
    return asked


def answer(
    index: SearchIndex,
    collection: Collection,
    queries: tuple[str, ...],
    where: Where,
    vectors: npt.ArrayLike | None,
    wish: AnswerWish,
) -> SearchHits:
    """Search for queries, and fetch what was found."""
    if wish.mode not in MODES:
        raise InputError(f"expected a mode among {', '.join(MODES)}; got {wish.mode!r}")
    k, candidates = checked_count(wish.k, "k"), checked_count(wish.candidates, "candidates")
    if not isinstance(wish.diversity, int | float) or not 0 <= wish.diversity <= 1:
        raise InputError(f"diversity must be from 0 to 1, got {wish.diversity!r}")
    reranker = wish.reranker
    if isinstance(reranker, str | os.PathLike):
        reranker = load_cross_encoder(reranker)
    asked = _vectors(index, collection, queries, vectors, wish.mode)
    more = wish.diversity > 0 or reranker is not None
    inner = Wish(max(k, candidates) if more else k, wish.mode, wish.fusion or FusionSettings())
    condition = condition_of(collection, where)
    for _ in range(ATTEMPTS):
        opened = index.opened()
        allowed = allow(opened, passing(collection, condition))
        found = find(opened, queries, asked, inner, allowed)
        try:
            said: tuple[Decision, ...] = ()
            if reranker is not None:
                found = [
                    _reranked(opened, collection, reranker, query, some)
                    for query, some in zip(queries, found, strict=True)
                ]
            if wish.diversity > 0:
                found = [_varied(opened, some, k, wish.diversity) for some in found]
            hits = tuple(
                hits_of(opened, collection, query, some.take(range(min(k, len(some.documents)))))
                for query, some in zip(queries, found, strict=True)
            )
        except Vanished:
            continue
        if wish.mode != "dense":
            said = tuple(
                one
                for query in dict.fromkeys(queries)
                for one in query_decisions(opened.lexical, query)
            )
        expression = "" if condition is None else condition.text
        return SearchHits(queries, hits, wish.mode, k, expression, said)
    raise InputError("another process keeps removing what is found; search again")


def _vectors(
    index: SearchIndex,
    collection: Collection,
    queries: tuple[str, ...],
    vectors: npt.ArrayLike | None,
    mode: str,
) -> FloatArray | None:
    """Return the queries' unit vectors, None where none are needed."""
    if mode == "lexical":
        return None
    if vectors is None:
        # A query without text has no direction, and is near to nothing.
        written = [place for place, query in enumerate(queries) if query.strip()]
        width = int(collection.settings()["n_dimensions"])
        made = np.zeros((len(queries), width), dtype=np.float32)
        if written:
            texts = [queries[place] for place in written]
            made[written] = encode_texts(index.encoder, texts, show_progress=False)[0]
        return made
    return given_vectors(vectors, len(queries))


def condition_of(collection: Collection, where: Where) -> Filter | None:
    """Read a filter against the columns that there are; None without one."""
    if where is None or (isinstance(where, str) and not where.strip()):
        return None
    kinds = {
        # A column without any value can be asked whether it has one.
        name: "text" if kind == "missing" else kind
        for name, kind in collection.columns().items()
    }
    return parse_filter(where, kinds)


def passing(collection: Collection, condition: Filter | None) -> Int64Array | None:
    """Return the numbers of the documents that pass a filter, ascending; None without one."""
    if condition is None:
        return None
    sql, parameters = filter_sql(condition, collection.column_sql)
    return collection.candidates(sql, parameters)


def _varied(opened: Opened, found: Found, k: int, diversity: float) -> Found:
    """Choose among candidates by maximal marginal relevance."""
    if not len(found.documents):
        return found
    vectors = vectors_at(opened, found.segments, found.rows)
    chosen = varied(as_relevance(found.scores), vectors, k, diversity)
    return found.take(chosen)


def _reranked(
    opened: Opened, collection: Collection, reranker: Any, query: str, found: Found
) -> Found:
    """Put candidates in the order of a cross-encoder."""
    order, scores = reranked(reranker, query, _passages(opened, collection, found))
    again = found.take(order)
    return replace(again, scores=scores, reranked=scores)


def _passages(opened: Opened, collection: Collection, found: Found) -> list[str]:
    """Return the texts of the passages that were found."""
    documents = collection.documents(found.documents.tolist())
    texts = []
    for document, segment, row in zip(
        documents, found.segments.tolist(), found.rows.tolist(), strict=True
    ):
        if document is None:
            raise Vanished
        start, stop = opened.segments[segment].spans[row].tolist()
        texts.append(document.text[start:stop])
    return texts


def hits_of(opened: Opened, collection: Collection, query: str, found: Found) -> tuple[Hit, ...]:
    """Fetch documents, and say why they were found.

    Raises
    ------
    Vanished
        If one was removed meanwhile.
    """
    from embedtopics.retrieval.attaching import topic_of

    hits = []
    attached = collection.settings().get("topics", {})
    for place, document in enumerate(collection.documents(found.documents.tolist())):
        if document is None:
            raise Vanished
        segment, row = int(found.segments[place]), int(found.rows[place])
        start, stop = opened.segments[segment].spans[row].tolist()
        bm25 = float(found.bm25[place])
        metadata, topic, position = topic_of(document.metadata, attached)
        hits.append(Hit(
            id=document.id,
            score=float(found.scores[place]),
            similarity=float(found.similarities[place]),
            bm25=bm25,
            reranked=float(found.reranked[place]),
            text=document.text,
            span=(start, stop),
            terms=explain(opened.lexical, query, segment, row).parts if bm25 > 0 else {},
            metadata=metadata,
            topic=topic,
            position=position,
        ))  # fmt: skip
    return tuple(hits)
