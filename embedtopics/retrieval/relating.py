"""Documents and each other: the nearest of one, and groups of near-copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._checks import checked_count
from embedtopics.corpus.columns import read_id
from embedtopics.errors import InputError
from embedtopics.neighbors import build_graph
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results import Decision, DuplicateGroups, SearchHits
from embedtopics.retrieval.answering import (
    Vanished,
    condition_of,
    hits_of,
    passing,
)
from embedtopics.retrieval.collection import Collection
from embedtopics.retrieval.opened import Opened, allow, nearest_passages, stored_vectors
from embedtopics.retrieval.searching import Found, first_documents

if TYPE_CHECKING:
    from embedtopics.retrieval.index import SearchIndex

__all__ = ["duplicates", "id_of", "similar"]

COPIES = 15
"""Nearest documents that each is compared with first; where all of them are near-copies, it is
compared with every document."""


def id_of(value: object) -> str:
    """Return an id as an index keeps it: as text, as a `Corpus` reads it.

    Raises
    ------
    InputError
        If it is missing.
    """
    name = read_id(value)
    if not name:
        raise InputError(f"expected the id of a document, got {value!r}")
    return name


def similar(
    index: SearchIndex,
    collection: Collection,
    id: object,
    k: int,
    where: str | Mapping[str, Any] | None,
) -> SearchHits:
    """Search with the passages of a document; see `SearchIndex.similar`."""
    k, name = checked_count(k, "k"), id_of(id)
    condition = condition_of(collection, where)
    while True:
        opened = index.opened()
        number = collection.numbers([name]).get(name)
        if number is None:
            raise InputError(f"there is no document {name!r} in the index; search by text instead")
        queries = _passage_vectors(opened, number)
        if not len(queries):
            raise InputError(f"the document {name!r} has no text that it could be compared by")
        others = passing(collection, condition)
        if others is None:
            others = np.unique(
                np.concatenate([view.documents[view.alive] for view in opened.segments])
            )
        found = _nearest_documents(opened, queries, others[others != number], k)
        texts = [found_one for found_one in collection.documents([number]) if found_one is not None]
        try:
            hits = hits_of(opened, collection, "", found)
        except Vanished:
            continue
        if texts:
            said = "" if condition is None else condition.text
            return SearchHits((texts[0].text,), (hits,), "dense", k, said)


def _passage_vectors(opened: Opened, number: int) -> FloatArray:
    """Return the vectors of a document's passages that have text."""
    width = opened.snapshot.settings["n_dimensions"]
    parts = [np.empty((0, width), dtype=np.float32)]
    for view, dense in zip(opened.segments, opened.dense, strict=True):
        begin, end = np.searchsorted(view.documents, [number, number + 1])
        rows = np.arange(begin, end)
        rows = rows[view.alive[rows] & (view.spans[rows, 1] > view.spans[rows, 0])]
        parts.append(stored_vectors(dense.vectors, rows))
    return np.concatenate(parts)


def _nearest_documents(opened: Opened, queries: FloatArray, others: Int64Array, k: int) -> Found:
    """Return the documents nearest to any of several vectors."""
    allowed = allow(opened, others)
    n = min(4 * k, max(allowed.n, 1))
    while True:
        near, segments, rows = nearest_passages(opened, queries, n, allowed)
        there = rows >= 0
        segment, row = segments[there], rows[there]
        similarities = near[there].astype(np.float64)
        documents = np.empty(len(row), dtype=np.int64)
        for number, view in enumerate(opened.segments):
            here = segment == number
            documents[here] = view.documents[row[here]]
        none = np.full(len(row), np.nan)
        found = first_documents(
            Found(documents, segment, row, similarities, similarities, none, none)
        )
        if len(found.documents) >= k or n >= allowed.n:
            return found.take(range(min(k, len(found.documents))))
        n = min(4 * n, allowed.n)


def duplicates(opened: Opened, collection: Collection, threshold: float) -> DuplicateGroups:
    """Find groups of near-copies; see `SearchIndex.duplicates`."""
    if not isinstance(threshold, int | float) or not 0 < threshold <= 1:
        raise InputError(f"threshold must be a cosine above 0 and up to 1, got {threshold!r}")
    numbers, vectors = document_vectors(opened)
    # A cosine of 1 comes out of float32 a little below.
    least = min(float(threshold), 1.0 - 1e-6)
    pairs, recall = _near_pairs(vectors, least)
    labels = _components(len(numbers), pairs)
    sizes = np.bincount(labels, minlength=len(numbers)) if len(numbers) else np.empty(0, np.int64)
    wanted = np.flatnonzero(sizes[labels] > 1) if len(numbers) else np.empty(0, np.int64)
    names = _ids(collection, numbers, wanted)
    members: dict[int, list[Any]] = {}
    for place in wanted.tolist():
        members.setdefault(int(labels[place]), []).append(names[place])
    groups = sorted(map(tuple, members.values()), key=len, reverse=True)
    notes: tuple[Decision, ...] = ()
    if recall < 1:
        notes = (Decision(
            "retrieval", "approximate duplicates", recall,
            f"Near-copies were looked for along a neighbour graph that has {recall:.1%} of the "
            "true neighbours (measured on a sample); a few may be missing.",
        ),)  # fmt: skip
    return DuplicateGroups(
        groups=tuple(groups),
        pairs=tuple((names[i], names[j], similarity) for i, j, similarity in pairs),
        threshold=float(threshold),
        n_documents=len(numbers),
        decisions=notes,
    )


def document_vectors(opened: Opened) -> tuple[Int64Array, FloatArray]:
    """Return the numbers of all documents with text, and of each the mean of its passages.

    Returns
    -------
    numbers : int64 ndarray of shape (n_documents,)
        Ascending.
    vectors : float32 ndarray of shape (n_documents, n_dimensions)
        Of unit length.
    """
    width = opened.snapshot.settings["n_dimensions"]
    numbers, vectors = [np.empty(0, np.int64)], [np.empty((0, width), np.float32)]
    for view, dense in zip(opened.segments, opened.dense, strict=True):
        rows = np.flatnonzero(view.alive & (view.spans[:, 1] > view.spans[:, 0]))
        if not len(rows):
            continue
        starts = np.flatnonzero(np.diff(view.documents[rows], prepend=-1))
        summed = stored_vectors(dense.vectors, rows)
        if len(starts) < len(rows):
            summed = np.add.reduceat(summed, starts, axis=0)
        norms = np.linalg.norm(summed, axis=1, keepdims=True)
        has_direction = norms[:, 0] > 0
        numbers.append(view.documents[rows[starts]][has_direction])
        vectors.append(summed[has_direction] / norms[has_direction])
    return np.concatenate(numbers), np.concatenate(vectors)


def _near_pairs(vectors: FloatArray, least: float) -> tuple[list[tuple[int, int, float]], float]:
    """Return pairs of at least this cosine, and the share of true neighbours that was seen."""
    if len(vectors) < 2:
        return [], 1.0
    graph = build_graph(vectors, COPIES)
    found: dict[tuple[int, int], float] = {}
    is_full = graph.k < len(vectors) - 1
    full = np.flatnonzero(graph.similarities[:, -1] >= least) if is_full else np.empty(0, int)
    for place, (near, cosines) in enumerate(zip(graph.indices, graph.similarities, strict=True)):
        for other, cosine in zip(near[cosines >= least].tolist(), cosines.tolist(), strict=False):
            found[min(place, other), max(place, other)] = cosine
    for place in full.tolist():
        cosines = vectors @ vectors[place]
        for other in np.flatnonzero(cosines >= least).tolist():
            if other != place:
                found[min(place, other), max(place, other)] = min(1.0, float(cosines[other]))
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [(i, j, cosine) for (i, j), cosine in ordered], graph.recall


def _components(n: int, pairs: list[tuple[int, int, float]]) -> Int64Array:
    """Return a number for the group of each document."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    first = np.array([i for i, _, _ in pairs], dtype=np.int64)
    second = np.array([j for _, j, _ in pairs], dtype=np.int64)
    links = coo_matrix((np.ones(len(pairs)), (first, second)), shape=(n, n))
    labels: Int64Array = connected_components(links, directed=False)[1].astype(np.int64)
    return labels


def _ids(collection: Collection, numbers: Int64Array, places: Int64Array) -> dict[int, Any]:
    """Return the ids of documents by their place; a removed one has the number that it had."""
    names: dict[int, Any] = {}
    for begin in range(0, len(places), 10_000):
        part = places[begin : begin + 10_000]
        for place, document in zip(
            part.tolist(), collection.documents(numbers[part].tolist()), strict=True
        ):
            names[place] = None if document is None else document.id
    return names
