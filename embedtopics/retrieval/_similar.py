"""Documents similar to others, groups of near-duplicates, and topics of documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import checked_count, is_number
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import build_graph
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results import Decision
from embedtopics.retrieval._reader import (
    Allowed,
    DocumentRemoved,
    IndexReader,
    IndexVersion,
    allow,
    nearest_passages,
)
from embedtopics.retrieval._search import (
    RankedDocuments,
    Where,
    above_chance,
    document_filter,
    make_hits,
    matching_documents,
    query_vectors,
)
from embedtopics.retrieval.results import DuplicateGroups, SearchHits
from embedtopics.retrieval.storage._collection import Collection

if TYPE_CHECKING:
    from embedtopics.topics.results import TopicResult

UNLIKE = 0.5
"""Weight of the documents in `unlike`; the others have 1 (Rocchio 1971)."""

N_NEIGHBORS = 15
"""Neighbors in the graph of documents."""


def find_similar(
    reader: IndexReader,
    ids: Sequence[str],
    k: int,
    where: Where,
    passage: str | None,
    unlike: Sequence[str],
) -> SearchHits:
    """Search with the passages of a document, or with several; see `SearchIndex.similar`."""
    k = checked_count(k, "k")
    _require_vectors(reader.newest())
    if passage is not None and not (isinstance(passage, str) and passage.strip()):
        raise InputError("passage", "a text", passage)
    if not ids and passage is None:
        raise InputError("id", "that of a document, where no passage is given")
    collection = reader.collection
    vectors = query_vectors(reader, [passage], None, "dense") if passage else None
    free = [] if vectors is None else [*vectors]

    def answer(version: IndexVersion) -> SearchHits:
        condition = document_filter(collection, where)
        numbers = collection.numbers([*ids, *unlike])
        passages: dict[str, FloatArray] = {}
        n_passages = 0
        for name, id in [*(("id", id) for id in ids), *(("unlike", id) for id in unlike)]:
            if id not in numbers:
                remedy = "passage= takes a text of your own"
                raise InputError(name, "that of a document of the index", id, remedy)
            passages[id], n = _passage_vectors(version, numbers[id])
            if not n:
                raise DocumentRemoved  # and replaced by another with the same id
            if not len(passages[id]):
                raise InputError(name, "that of a document with text", id)
            n_passages += n

        if len(ids) == 1 and not free and not unlike:
            queries = passages[ids[0]]
        else:
            like = [*(passages[id].mean(axis=0) for id in ids), *free]
            queries = _between(like, [passages[id].mean(axis=0) for id in unlike])

        allowed = allow(version, matching_documents(collection, condition))
        exclude = [*numbers.values()]
        ranking = _nearest_documents(version, queries, allowed, k, exclude, n_passages)
        near = above_chance(ranking.similarities, reader.chance(version, False))
        hits = make_hits(version, collection, "", replace(ranking, relevance=near))
        text = passage or ""
        if ids:
            (document,) = collection.documents([numbers[ids[0]]])
            if document is None:
                raise DocumentRemoved
            text = document.text
        filter_text = "" if condition is None else condition.text
        return SearchHits((text,), (hits,), "dense", k, filter_text, is_single=True)

    return reader.answer(answer)


def _between(like: list[Any], unlike: list[Any]) -> FloatArray:
    """Return a unit vector (1, n_dimensions) near to some vectors and away from others."""
    scaled = [
        [vector / max(float(np.linalg.norm(vector)), 1e-9) for vector in vectors]
        for vectors in (like, unlike)
    ]
    vector = np.mean(scaled[0], axis=0) - (UNLIKE * np.mean(scaled[1], axis=0) if unlike else 0)
    length = float(np.linalg.norm(vector))
    if length < 1e-6:
        raise InputError("unlike", "documents that differ from those in id")
    return np.asarray(vector / length, dtype=np.float32)[None]


def _require_vectors(version: IndexVersion) -> None:
    if version.words_only:
        raise InputError("The index has no vectors to compare; build it with an encoder.")


def _passage_vectors(version: IndexVersion, number: int) -> tuple[FloatArray, int]:
    """Return the non-zero vectors of the passages of a document, and the number of passages."""
    parts, n_passages = [np.empty((0, version.n_dimensions), dtype=np.float32)], 0
    for view, dense in zip(version.segments, version.dense, strict=True):
        begin, end = np.searchsorted(view.documents, [number, number + 1])
        rows = np.arange(begin, end)
        rows = rows[view.alive[rows]]
        n_passages += len(rows)
        rows = rows[view.spans[rows, 1] > view.spans[rows, 0]]
        vectors = dense.vectors[rows]
        parts.append(vectors[vectors.any(axis=1)])
    return np.concatenate(parts), n_passages


def _nearest_documents(
    version: IndexVersion,
    queries: FloatArray,
    allowed: Allowed,
    k: int,
    exclude: list[int],
    n_excluded: int,
) -> RankedDocuments:
    """Return the documents nearest to any query, without `exclude`, of `n_excluded` passages."""
    n = min(4 * k + n_excluded, max(allowed.n, 1))
    while True:
        near, segments, rows = nearest_passages(version, queries, n, allowed)
        exists = rows >= 0
        ranking = RankedDocuments.of_passages(
            version, segments[exists], rows[exists], near[exists], near[exists]
        )
        ranking = ranking.take(np.flatnonzero(~np.isin(ranking.documents, exclude)))
        if n >= allowed.n:
            break
        # An unseen passage is at most as similar to a query as the last one seen.
        unseen = float(near[:, -1].max())
        if len(ranking) >= k and (len(queries) == 1 or ranking.scores[k - 1] > unseen):
            break
        n = min(4 * n, allowed.n)
    return ranking.first(k)


def find_duplicates(reader: IndexReader, threshold: float) -> DuplicateGroups:
    """Find groups of near-duplicates; see `SearchIndex.duplicates`."""
    if not is_number(threshold) or not 0 < threshold <= 1:
        raise InputError("threshold", "a cosine above 0 and up to 1", threshold)
    _require_vectors(reader.newest())
    numbers, vectors = document_vectors(reader.newest())
    # In float32, a cosine of 1 may be a little less.
    least = min(float(threshold), 1.0 - 1e-6)
    pairs, labels, recall = _near_pairs(vectors, least)
    sizes = np.bincount(labels, minlength=1)
    id_of = reader.collection.ids()  # without documents that were removed since
    places = np.flatnonzero(sizes[labels] > 1).tolist()
    names = {place: id_of[n] for place in places if (n := int(numbers[place])) in id_of}
    members: dict[int, list[Any]] = {}
    for place, name in names.items():
        members.setdefault(int(labels[place]), []).append(name)
    groups = sorted((tuple(ids) for ids in members.values() if len(ids) > 1), key=len, reverse=True)
    message = (
        f"The neighbor graph of the documents has {recall:.1%} of the true neighbors (measured on "
        "a sample); a few near-duplicates may be missing."
    )
    note = Decision("retrieval", "approximate duplicates", recall, message)
    return DuplicateGroups(
        groups=tuple(groups),
        pairs=tuple((names[i], names[j], c) for i, j, c in pairs if i in names and j in names),
        threshold=float(threshold),
        n_documents=len(numbers),
        decisions=(note,) if recall < 1 else (),
    )


def document_vectors(version: IndexVersion) -> tuple[Int64Array, FloatArray]:
    """Return the numbers of all documents with text, and the unit mean of their passages."""
    numbers, vectors = [np.empty(0, np.int64)], [np.empty((0, version.n_dimensions), np.float32)]
    for view, dense in zip(version.segments, version.dense, strict=True):
        rows = np.flatnonzero(view.findable)
        if not len(rows):
            continue
        starts = np.flatnonzero(np.diff(view.documents[rows], prepend=-1))
        summed = dense.vectors[rows]
        if len(starts) < len(rows):
            summed = np.add.reduceat(summed, starts, axis=0)
        norms = np.linalg.norm(summed, axis=1, keepdims=True)
        has_direction = norms[:, 0] > 0
        if not has_direction.all():
            starts, summed = starts[has_direction], summed[has_direction]
            norms = norms[has_direction]
        summed /= norms  # not in the stored vectors, but in a copy
        numbers.append(view.documents[rows[starts]])
        vectors.append(summed)
    if len(vectors) == 2:  # one segment, the usual case, needs no copy
        return numbers[1], vectors[1]
    return np.concatenate(numbers), np.concatenate(vectors)


def _near_pairs(
    vectors: FloatArray, least: float
) -> tuple[list[tuple[int, int, float]], Int64Array, float]:
    """Return near pairs, the group of each document, and the recall of the graph."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(vectors)
    if n < 2:
        return [], np.arange(n, dtype=np.int64), 1.0
    graph = build_graph(vectors, N_NEIGHBORS)
    near = graph.similarities >= least
    first = np.repeat(np.arange(n), np.count_nonzero(near, axis=1))
    second, cosines = graph.indices[near].astype(np.int64), graph.similarities[near]
    low, high = np.minimum(first, second), np.maximum(first, second)
    _, once = np.unique(low * n + high, return_index=True)
    low, high, cosines = low[once], high[once], np.minimum(cosines[once].astype(np.float64), 1.0)
    order = np.lexsort((high, low, -cosines))
    pairs = list(
        zip(low[order].tolist(), high[order].tolist(), cosines[order].tolist(), strict=True)
    )
    links = coo_matrix((np.ones(len(low), dtype=np.int8), (low, high)), shape=(n, n))
    labels = connected_components(links, directed=False)[1].astype(np.int64)
    return pairs, labels, graph.recall


TOPIC_COLUMNS = ("topic", "topic_name", "map_x", "map_y")
"""Columns of the metadata that hold attached topics."""


def attach_topics(collection: Collection, result: TopicResult) -> None:
    """Write topic, label and map position of each document; see `SearchIndex.attach_topics`."""
    import pandas as pd

    of_row = result.distinct.of_row
    rows = np.flatnonzero(of_row >= 0)
    ids = [result.corpus.ids[row] for row in rows.tolist()]
    with collection.writing() as writer:
        attached = collection.settings().get("topics")
        clashes = [name for name in TOPIC_COLUMNS if name in collection.columns()]
        if clashes and not attached:
            raise InputError(
                f"Topics would overwrite the column {clashes[0]!r} of the metadata; rename it, and "
                "build the index again."
            )
        numbers = collection.numbers(ids)
        positions = [position for position, id in enumerate(ids) if id in numbers]
        if not positions:
            raise InputError(
                "result", "a result of documents in the index",
                found=f"{len(ids):,} documents with other ids",
                remedy="build the index from the corpus of the result",
            )  # fmt: skip
        documents = of_row[rows[positions]]
        topics = np.asarray(result.clustering.labels)[documents].astype(np.int64)
        names = {topic.topic_id: topic.name for topic in result.topics}
        places = np.asarray(result.map, dtype=np.float64)[documents]
        frame = pd.DataFrame({
            "topic": topics,
            "topic_name": [names.get(topic) for topic in topics.tolist()],
            "map_x": places[:, 0],
            "map_y": places[:, 1],
        })  # fmt: skip
        written = [numbers[ids[position]] for position in positions]
        writer.annotate(written, frame, {"topics": {"columns": list(TOPIC_COLUMNS)}})
