"""Queries -> candidates of each mode -> one order -> the best passage of each document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.retrieval.fusing import FusionSettings, fuse
from embedtopics.retrieval.opened import Allowed, Opened, nearest_passages, vectors_at

__all__ = ["MODES", "Found", "Wish", "find", "first_documents"]

MODES = ("dense", "hybrid", "lexical")

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Wish:
    """What is wanted of a search.

    Parameters
    ----------
    k : int
        Documents.
    mode : {"dense", "hybrid", "lexical"}
    fusion : FusionSettings
        How the two orders of a hybrid search become one.
    """

    k: int
    mode: str
    fusion: FusionSettings


@dataclass(frozen=True, eq=False)
class Found:
    """The best passage of each document that was found, best first.

    Parameters
    ----------
    documents, segments, rows : int64 ndarray of shape (n_found,)
    scores : float64 ndarray of shape (n_found,)
        What they are ordered by.
    similarities : float64 ndarray of shape (n_found,)
        NaN where none was computed.
    bm25 : float64 ndarray of shape (n_found,)
    reranked : float64 ndarray of shape (n_found,)
        What a cross-encoder said; NaN without one.
    """

    documents: Int64Array
    segments: Int64Array
    rows: Int64Array
    scores: npt.NDArray[np.float64]
    similarities: npt.NDArray[np.float64]
    bm25: npt.NDArray[np.float64]
    reranked: npt.NDArray[np.float64]

    def take(self, places: npt.ArrayLike) -> Found:
        """Return some of the documents, in the order that is asked for."""
        at = np.asarray(places, dtype=np.int64)
        return Found(
            self.documents[at], self.segments[at], self.rows[at],
            self.scores[at], self.similarities[at], self.bm25[at], self.reranked[at],
        )  # fmt: skip


def find(
    opened: Opened,
    queries: Sequence[str],
    vectors: FloatArray | None,
    wish: Wish,
    allowed: Allowed,
) -> list[Found]:
    """Search for each query.

    A document counts once, with its best passage. Where many passages of few documents are among
    the nearest, more are looked at, until there are k documents or nothing is left.

    Parameters
    ----------
    opened : Opened
    queries : sequence of str
    vectors : float32 ndarray of shape (n_queries, n_dimensions) or None
        None for a lexical search.
    wish : Wish
    allowed : Allowed

    Returns
    -------
    list of Found
        At most k documents each.
    """
    results: list[Found | None] = [None] * len(queries)
    open_queries = list(range(len(queries)))
    n = min(max(wish.k, wish.fusion.depth if wish.mode == "hybrid" else 0), max(allowed.n, 1))
    masks = allowed.masks(opened.segments) if wish.mode != "dense" else None
    while open_queries:
        near = None
        if vectors is not None and wish.mode != "lexical":
            near = nearest_passages(opened, vectors[open_queries], n, allowed)
        unfinished = []
        for place, number in enumerate(open_queries):
            vector = None if vectors is None else vectors[number]
            dense = None
            # What has no direction is near to nothing.
            if near is not None and vector is not None and vector.any():
                dense = near[0][place], near[1][place], near[2][place]
            found, is_all = _one(opened, queries[number], vector, dense, masks, wish, n)
            results[number] = found
            if len(found.documents) < wish.k and not is_all and n < allowed.n:
                unfinished.append(number)
        open_queries, n = unfinished, min(4 * n, max(allowed.n, 1))
    return [found.take(range(min(wish.k, len(found.documents)))) for found in results if found]


def _one(
    opened: Opened,
    query: str,
    vector: FloatArray | None,
    dense: tuple[FloatArray, Int64Array, Int64Array] | None,
    masks: Sequence[Mask | None] | None,
    wish: Wish,
    n: int,
) -> tuple[Found, bool]:
    """Return the documents of a query's candidates, and whether all modes gave all they have."""
    is_all = True
    if dense is not None:
        there = dense[2] >= 0
        dense = dense[0][there], dense[1][there], dense[2][there]
        is_all = len(dense[2]) < n
    hits = None
    if masks is not None:
        hits = opened.lexical.search(query, n, masks)
        is_all = is_all and len(hits.rows) < n
    if hits is None and dense is None:
        none, no_score = np.empty(0, np.int64), np.empty(0)
        found = _with_documents(opened, none, none, no_score, no_score, no_score)
    elif hits is None:
        assert dense is not None
        similarities, segments, rows = dense
        bm25 = opened.lexical.scores_at(query, segments, rows)
        found = _with_documents(opened, segments, rows, similarities, similarities, bm25)
    elif dense is None:
        assert hits is not None
        unknown = np.full(len(hits.rows), np.nan)
        found = _with_documents(opened, hits.segments, hits.rows, hits.scores, unknown, hits.scores)
    else:
        assert vector is not None
        found = _fused(opened, query, vector, dense[1:], (hits.segments, hits.rows), wish.fusion)
    return first_documents(found), is_all


def _fused(
    opened: Opened,
    query: str,
    vector: FloatArray,
    dense: tuple[Int64Array, Int64Array],
    lexical: tuple[Int64Array, Int64Array],
    settings: FusionSettings,
) -> Found:
    """Put the candidates of both modes in one order."""
    starts = np.cumsum([0, *(len(view.documents) for view in opened.segments)])

    def place(numbers: Int64Array) -> tuple[Int64Array, Int64Array]:
        segments = np.searchsorted(starts, numbers, side="right") - 1
        return segments.astype(np.int64), numbers - starts[segments]

    fused = fuse(
        vector,
        starts[dense[0]] + dense[1],
        starts[lexical[0]] + lexical[1],
        vectors_of=lambda numbers: vectors_at(opened, *place(numbers)),
        bm25_of=lambda numbers: opened.lexical.scores_at(query, *place(numbers)),
        mean_vector=opened.mean_vector,
        settings=settings,
    )
    segments, rows = place(fused.numbers)
    return _with_documents(opened, segments, rows, fused.scores, fused.similarities, fused.bm25)


def _with_documents(
    opened: Opened,
    segments: Int64Array,
    rows: Int64Array,
    scores: npt.NDArray[Any],
    similarities: npt.NDArray[Any],
    bm25: npt.NDArray[Any],
) -> Found:
    documents = np.empty(len(rows), dtype=np.int64)
    for number, view in enumerate(opened.segments):
        here = segments == number
        documents[here] = view.documents[rows[here]]
    return Found(
        documents, segments, rows, scores.astype(np.float64), similarities.astype(np.float64),
        bm25.astype(np.float64), np.full(len(rows), np.nan),
    )  # fmt: skip


def first_documents(found: Found) -> Found:
    """Order passages by score, ties by document and place in it, and keep one of each document."""
    order = np.lexsort((found.rows, found.documents, -found.scores))
    _, first = np.unique(found.documents[order], return_index=True)
    return found.take(order[np.sort(first)])
