"""From what a caller asks to hits: the filter, the queries' vectors, the search, the documents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, checked_share
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results import Decision, Hit, SearchHits
from embedtopics.retrieval.collection import Collection
from embedtopics.retrieval.encoding import encode_texts, given_vectors
from embedtopics.retrieval.explaining import query_decisions, word_parts
from embedtopics.retrieval.filters import Filter, filter_sql, parse_filter
from embedtopics.retrieval.fusing import FusionSettings
from embedtopics.retrieval.opened import Opened, allow, vectors_at
from embedtopics.retrieval.reranking import load_cross_encoder, reranked
from embedtopics.retrieval.searching import MODES, Found, Wish, find
from embedtopics.retrieval.varying import as_relevance, varied

if TYPE_CHECKING:
    from embedtopics.retrieval.index import SearchIndex

__all__ = [
    "ATTEMPTS",
    "AnswerWish",
    "Vanished",
    "answer",
    "condition_of",
    "hits_of",
    "passing",
    "read_queries",
]

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
    if isinstance(queries, bytes) or not isinstance(queries, Iterable):
        raise InputError(f"expected a query as a string, or a list of them; got {queries!r:.80}")
    asked = (queries,) if isinstance(queries, str) else tuple(queries)
    for number, query in enumerate(asked, 1):
        if not isinstance(query, str):
            raise InputError(f"expected queries as strings, got {query!r:.80} as query {number}")
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
    diversity = checked_share(wish.diversity, "diversity")
    fusion = FusionSettings() if wish.fusion is None else wish.fusion
    if not isinstance(fusion, FusionSettings):
        raise InputError(f"expected fusion as FusionSettings, got {fusion!r}")
    reranker = wish.reranker
    if isinstance(reranker, str | os.PathLike):
        reranker = load_cross_encoder(reranker)
    asked = _vectors(index, queries, vectors, wish.mode)
    more = diversity > 0 or reranker is not None
    inner = Wish(max(k, candidates) if more else k, wish.mode, fusion)
    condition = condition_of(collection, where)
    for _ in range(ATTEMPTS):
        opened = index.opened()
        allowed = allow(opened, passing(collection, condition))
        found = find(opened, queries, asked, inner, allowed)
        try:
            if reranker is not None:
                found = [
                    _reranked(opened, collection, reranker, query, some)
                    for query, some in zip(queries, found, strict=True)
                ]
            if diversity > 0:
                found = [
                    _varied(opened, some, k, diversity, reranker is not None) for some in found
                ]
            hits = tuple(
                hits_of(opened, collection, query, some.take(range(min(k, len(some.documents)))))
                for query, some in zip(queries, found, strict=True)
            )
        except Vanished:
            continue
        said = _decisions(opened, queries, asked, wish.mode)
        expression = "" if condition is None else condition.text
        return SearchHits(queries, hits, wish.mode, k, expression, said)
    raise InputError("another process keeps removing what is found; search again")


def _vectors(
    index: SearchIndex,
    queries: tuple[str, ...],
    vectors: npt.ArrayLike | None,
    mode: str,
) -> FloatArray | None:
    """Return the queries' unit vectors, None where none are needed."""
    if mode == "lexical":
        return None
    width = int(index.opened().snapshot.settings["n_dimensions"])
    if vectors is not None:
        return _of_width(given_vectors(vectors, len(queries), "vectors"), width)
    # A query without text has no direction, and is near to nothing.
    written = [place for place, query in enumerate(queries) if query.strip()]
    made = np.zeros((len(queries), width), dtype=np.float32)
    if written:
        texts = [queries[place] for place in written]
        # What people ask is not kept on disk.
        encoder = getattr(index.encoder, "uncached", index.encoder)
        made[written] = _of_width(encode_texts(encoder, texts, show_progress=False)[0], width)
    return made


def _of_width(vectors: FloatArray, width: int) -> FloatArray:
    if vectors.shape[1] != width:
        raise InputError(
            f"expected vectors of {width} dimensions for the queries, as the index has them, got "
            f"{vectors.shape[1]}; encode them by the encoder that it was made with"
        )
    return vectors


def _decisions(
    opened: Opened, queries: tuple[str, ...], vectors: FloatArray | None, mode: str
) -> tuple[Decision, ...]:
    """Say of each query what cannot be found by it; of several, which one it is."""
    said: list[Decision] = []
    seen: set[str] = set()
    for place, query in enumerate(queries):
        if query in seen:
            continue
        seen.add(query)
        number = place + 1 if len(queries) > 1 else None
        if vectors is not None and not vectors[place].any():
            name = "the query" if number is None else f"query {number}"
            message = f"The encoder makes nothing of {name}: dense search finds nothing."
            said.append(Decision("retrieval", "no direction", query, message))
        if mode != "dense":
            said += query_decisions(opened.lexical, query, number)
    return tuple(said)


def condition_of(collection: Collection, where: Where) -> Filter | None:
    """Read a filter against the columns that there are; None without one."""
    if where is None or (isinstance(where, str) and not where.strip()):
        return None
    return parse_filter(where, collection.columns())


def passing(collection: Collection, condition: Filter | None) -> Int64Array | None:
    """Return the numbers of the documents that pass a filter, ascending; None without one."""
    if condition is None:
        return None
    sql, parameters = filter_sql(condition, collection.column_sql)
    return collection.candidates(sql, parameters)


def _varied(opened: Opened, found: Found, k: int, diversity: float, is_reranked: bool) -> Found:
    """Choose among candidates by maximal marginal relevance."""
    if not len(found.documents):
        return found
    scores = found.scores
    # Similarities and fused scores are on the scale of a cosine; BM25 and cross-encoders' are not.
    if is_reranked or np.isnan(found.similarities).all():
        scores = as_relevance(scores)
    chosen = varied(scores, vectors_at(opened, found.segments, found.rows), k, diversity)
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
    attached = opened.snapshot.settings.get("topics", {})
    has_words = np.flatnonzero(found.bm25 > 0)
    terms: list[dict[str, float]] = [{} for _ in range(len(found.documents))]
    if len(has_words):
        parts = word_parts(opened.lexical, query, found.segments[has_words], found.rows[has_words])
        for place, own in zip(has_words.tolist(), parts, strict=True):
            terms[place] = own
    for place, document in enumerate(collection.documents(found.documents.tolist())):
        if document is None:
            raise Vanished
        segment, row = int(found.segments[place]), int(found.rows[place])
        start, stop = opened.segments[segment].spans[row].tolist()
        metadata, topic, position = topic_of(document.metadata, attached)
        hits.append(Hit(
            id=document.id,
            score=float(found.scores[place]),
            similarity=float(found.similarities[place]),
            bm25=float(found.bm25[place]),
            reranked=float(found.reranked[place]),
            text=document.text,
            span=(start, stop),
            terms=terms[place],
            metadata=metadata,
            topic=topic,
            position=position,
        ))  # fmt: skip
    return tuple(hits)
