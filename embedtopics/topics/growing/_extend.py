"""Documents added to a result, without changing the present ones."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import csr_matrix, vstack

from embedtopics._utils.checks import is_whole
from embedtopics._utils.display import spell_count
from embedtopics._utils.fitted import FittedTopics, fitted_encoder, result_of
from embedtopics.clustering.results import NOISE, Clustering, SpanningTree
from embedtopics.corpus._corpus import Corpus, as_corpus, corpus_of_fields, require_text
from embedtopics.corpus._dates import read_dates
from embedtopics.corpus._texts import distinct_names
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.errors import InputError
from embedtopics.neighbors._approximate import exact_neighbors
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import BoolArray, Encoder, FloatArray, Int32Array, Int64Array
from embedtopics.reduction._components import leading
from embedtopics.results import Decision
from embedtopics.terms._phrases import phrases_of
from embedtopics.terms._tokens import join_tokens, tokenize
from embedtopics.terms.results import TokenStream
from embedtopics.topics._describe import (
    FITTED_ROWS,
    count_by_settings,
    languages_of,
    term_settings_of,
)
from embedtopics.topics._propagation import (
    FAR,
    MIN_MARGIN,
    NONE_WEIGHT,
    Judgement,
    find_documents,
    judge,
    margin,
    standing,
    vectors_of,
)
from embedtopics.topics._storage import recall_hashes
from embedtopics.topics.growing._novelty import (
    Candidate,
    adopt_candidates,
    chance_of,
    expected_outside,
    find_candidates,
    redescribed,
    tabulate,
)
from embedtopics.topics.naming._name_scores import rescored
from embedtopics.topics.results import Edit, Extension, Reason, TopicResult

DOCUMENTS_TO_MEASURE = 200
"""Documents of the sample that measures the recall of a graph."""

SAME = 1 - 1e-6
"""Smallest cosine of vectors that count as the same and share a position."""


def extend(
    result: FittedTopics,
    corpus: Any,
    *,
    adopt: bool | Sequence[int] | pd.DataFrame = False,
    embeddings: npt.ArrayLike | None = None,
    encoder: Encoder | str | None = None,
    update_terms: bool = True,
) -> Extension:
    """Add documents to a result without changing the present ones.

    Present documents keep their topics, shares, positions and neighbors, bit for bit. A new
    document gets the topic of `assign` and a position among its neighbors; a repeated text weighs
    more. With `adopt`, groups of added documents outside the topics become topics: they get the
    next ids, the other topics keep their ids and names, and the terms of all topics are weighted
    again.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    corpus : Corpus or anything that `Corpus` takes
        Rows to add. Columns are aligned by name; those of time and group by their role.
    adopt : bool, sequence of int, or DataFrame
        Groups of added documents that become topics: True for all of them, or rows of `to_frame` of
        the extension without `adopt`, by their numbers or as a part of that table.
    embeddings : array_like of shape (n_rows, n_dimensions), optional
        Vectors of these rows.
    encoder : Encoder or str, optional
        Encodes these rows; by default the encoder of the fit, loaded again for a result.
    update_terms : bool
        Whether to count terms and choose keywords again, and the names of topics that get new
        texts. False takes less than half of the time.

    Returns
    -------
    Extension
        The new result, the share of new documents outside the topics, and the groups that may be
        topics.

    Raises
    ------
    InputError
        If no row has text, vectors are missing or of another encoder, columns cannot be joined, or
        there is no such group to adopt.

    Notes
    -----
    The recall of the graph falls with the share of new documents. Fit again when a quarter of the
    documents is new.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> extension = et.topics.extend(model, ["The dockers are still on strike."])
    >>> extension
    Extension(1 new document, 0 candidate topics, 0 adopted)
    >>> len(extension.result.corpus)
    121
    """
    encoder = fitted_encoder(result) if encoder is None else encoder
    result = result_of(result)
    added = as_corpus(corpus)
    require_text(added)

    merged = merge_documents(result, added)
    expected, n_fitted = expected_outside(result)
    n_new = len(merged.new)
    weights = merged.documents.weights
    if n_new:
        vectors = vectors_of(result, added, merged.added, embeddings, encoder)
        judged = judge(result, vectors)
        grown = _with_terms(_grown(result, merged, vectors, judged), added, merged, update_terms)
        n_outside = int((judged.labels == NOISE).sum())
        novelty = judged.novelty
        outside = n_outside / n_new
    else:  # all texts are repeated, and weigh more
        grown = dataclasses.replace(result, corpus=merged.corpus, distinct=merged.documents)
        n_outside = 0
        novelty = np.empty(0, dtype=np.float32)
        outside = float("nan")

    if update_terms:
        # A topic that got no new text keeps its name.
        gets_text = np.zeros(grown.n_topics + 1, dtype=np.bool_)  # the last for none
        gets_text[grown.clustering.labels[merged.new]] = True
        grown = rescored(redescribed(grown, result.topics, ~gets_text[:-1]), result)
    else:
        labels = grown.clustering.labels
        sizes = np.bincount(labels[labels >= 0], weights[labels >= 0], grown.n_topics).astype(int)
        resized = (
            dataclasses.replace(topic, size=size, share=size / int(weights.sum()))
            for topic, size in zip(grown.topics, sizes.tolist(), strict=True)
        )
        grown = dataclasses.replace(grown, topics=tuple(resized))

    groups = find_candidates(grown) if n_new else ()
    places = _places_to_adopt(adopt, len(groups))

    extension = Extension(
        result=grown,
        documents=merged.new,
        n_known=int((weights.sum() - result.distinct.weights.sum()) - weights[merged.new].sum()),
        novelty=novelty,
        outside=outside,
        expected=expected,
        p_value=chance_of(n_outside, n_new, expected, n_fitted),
        candidates=tabulate(grown, groups, [NOISE] * len(groups)),
    )
    extension = dataclasses.replace(extension, result=_recorded(grown, extension, len(added)))
    return _with_adopted(extension, groups, places)


def _places_to_adopt(adopt: Any, n_groups: int) -> list[int]:
    """Return the numbers of the groups to adopt, ascending."""
    if isinstance(adopt, bool):
        return list(range(n_groups)) if adopt else []
    numbers = list(adopt.index) if isinstance(adopt, pd.DataFrame) else list(adopt)
    for number in numbers:
        if not is_whole(number) or not 0 <= number < n_groups:
            there = f"0 to {n_groups - 1}" if n_groups else "there are none"
            raise InputError("adopt", f"True, False or numbers of groups ({there})", number)
    return sorted({int(number) for number in numbers})


def _with_adopted(
    extension: Extension, groups: Sequence[Candidate], places: Sequence[int]
) -> Extension:
    """Return the extension with topics made of the groups at some places."""
    if not places:
        return extension
    before = extension.result
    topic_ids = [NOISE] * len(groups)
    for topic, place in enumerate(places, start=before.n_topics):
        topic_ids[place] = topic

    adopted = adopt_candidates(before, [groups[place] for place in places])
    return dataclasses.replace(
        extension, result=adopted, candidates=tabulate(before, groups, topic_ids)
    )


def _grown(
    result: TopicResult, merged: Merged, vectors: FloatArray, judged: Judgement
) -> TopicResult:
    """Return the result with the new documents, except their words and terms."""
    embeddings = merged.put(result.embeddings, vectors)
    before = np.zeros(len(merged.old), dtype=np.bool_) if result.added is None else result.added
    added = merged.put(before, True)
    hashes = merged.documents.hashes[merged.new]
    old, stability, constraints = result.clustering, result.stability, result.constraints
    near = (judged.indices, judged.similarities, old.labels, judged.labels)
    coordinates = merged.put(result.coordinates, place(result.coordinates, *near))
    dense = coordinates if result.settings.get("reducer") else leading(coordinates)
    reasons = old.reasons
    if reasons is not None:  # as a fit finds them
        _, best, second, none = standing(judged.shares)
        is_far = judged.novelty > FAR
        new = np.where(is_far | (NONE_WEIGHT * none >= second), Reason.ISOLATED, Reason.BETWEEN)
        new[(margin(best, second, none) >= MIN_MARGIN) & ~is_far] = Reason.BEYOND_COVERAGE
        new[judged.labels != NOISE] = Reason.IN_TOPIC
        reasons = merged.put(reasons, new)
    if stability is not None:
        agreement = merged.put(stability.agreement, np.nan)
        stability = dataclasses.replace(stability, agreement=agreement)
    return dataclasses.replace(
        result,
        corpus=merged.corpus,
        distinct=merged.documents,
        embeddings=embeddings,
        graph=grown_graph(result, merged, embeddings, added, (judged.indices, judged.similarities)),
        coordinates=coordinates,
        map=merged.put(result.map, place(result.map, *near, hashes)),
        clustering=Clustering(
            labels=merged.put(old.labels, judged.labels),
            probabilities=merged.put(old.probabilities, 0.0),
            persistence=old.persistence,
            reasons=reasons,
        ),
        memberships=merged.put_rows(result.memberships, judged.shares),
        tree=grown_tree(result.tree, dense, merged, merged.old[judged.indices]),
        stability=stability,
        added=added,
        constraints=constraints and constraints.among(merged.old, len(merged.documents)),
    )


def _with_terms(grown: TopicResult, added: Corpus, merged: Merged, update: bool) -> TopicResult:
    """Return the result with the new words, and terms counted in all or in new documents."""
    texts = added.document_texts()
    new = [texts[number] for number in merged.added.tolist()]
    tokens = tokenize(new, rules=grown.tokens.rules)
    joined = join_tokens(grown.tokens, tokens, merged.order)

    counted = grown.term_counts
    if update:
        counted = count_by_settings(
            joined,
            term_settings_of(grown),
            languages_of(grown),
            counted.function_words,
            phrases_of(counted),
        )
    else:
        counts = merged.put_rows(counted.counts, count_known_terms(grown, tokens))
        counted = dataclasses.replace(counted, counts=counts)

    return dataclasses.replace(grown, tokens=joined, term_counts=counted)


def count_known_terms(result: TopicResult, tokens: TokenStream) -> csr_matrix:
    """Count the terms of a result in other texts: (n_texts, n_terms)."""
    before = result.term_counts
    terms = before.terms
    settings = dataclasses.replace(term_settings_of(result), min_df=1)
    counted = count_by_settings(
        tokens, settings, languages_of(result), before.function_words, phrases_of(before)
    )

    number = {term: column for column, term in enumerate(terms)}
    column = np.array([number.get(term, -1) for term in counted.terms], dtype=np.int64)
    entries = counted.counts.tocoo()
    is_term = column[entries.col] >= 0
    return csr_matrix(
        (entries.data[is_term], (entries.row[is_term], column[entries.col[is_term]])),
        shape=(len(tokens), len(terms)),
        dtype=np.int32,
    )


def _recorded(grown: TopicResult, extension: Extension, n_rows: int) -> TopicResult:
    """Return the result with the extension in its history and decisions."""
    n_new = len(extension.documents)
    message = f"{spell_count(n_rows, 'row was', 'rows were')} added: {extension.summary()}"
    figures = {"n_rows": n_rows, "n_new": n_new, "n_known": extension.n_known}
    # A remark, because replay would need the documents.
    edit = Edit("note", figures, message, (), tuple(range(grown.n_topics)))
    return dataclasses.replace(
        grown,
        decisions=(*grown.decisions, Decision("corpus", "extended", n_new, message)),
        history=(*grown.history, edit),
        # An encoder that learned from the texts of the fit is fitted again on these alone.
        settings={FITTED_ROWS: len(grown.corpus) - n_rows, **grown.settings},
    )


@dataclass(frozen=True, eq=False)
class Merged:
    """Documents of a result (`old`) and of a corpus (`new`, `added`) in one order."""

    corpus: Corpus
    documents: DistinctDocuments
    old: Int64Array
    new: Int64Array
    added: Int64Array

    @property
    def order(self) -> Int64Array:
        """Number of each document among the old ones followed by the new ones."""
        return np.argsort(np.concatenate([self.old, self.new]))

    def put(self, old: npt.NDArray[Any], new: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return values of old and new documents in the common order, of the old type."""
        values = np.empty((len(self.documents), *old.shape[1:]), dtype=old.dtype)
        values[self.old], values[self.new] = old, new
        return values

    def put_rows(self, old: csr_matrix, new: csr_matrix) -> csr_matrix:
        """Return the rows of two sparse matrices in the common order."""
        if not len(self.new):
            return old
        both = vstack([old, new], format="csr", dtype=old.dtype)
        return csr_matrix(both[self.order])


def merge_documents(result: TopicResult, added: Corpus) -> Merged:
    """Append the rows of a corpus to those of a result, and find the documents of all."""
    # Hashing all texts again would be the slowest step of an extension.
    corpus = join_corpora(recall_hashes(result.corpus, result.distinct), added)
    documents = corpus.distinct()
    hashes = added.distinct().hashes
    is_new = find_documents(result.distinct.hashes, hashes) < 0
    return Merged(
        corpus=corpus,
        documents=documents,
        old=find_documents(documents.hashes, result.distinct.hashes),
        new=find_documents(documents.hashes, hashes[is_new]),
        added=np.flatnonzero(is_new),
    )


def join_corpora(first: Corpus, second: Corpus) -> Corpus:
    """Append the rows of a corpus to those of another."""
    notes: list[Decision] = []
    table = second.metadata
    roles = {}
    for role in ("time", "group"):
        table, roles[role] = _same_role(first, second, table, role, notes)
    ids = tuple(distinct_names(second.ids, first.ids, "-"))
    n_renamed = sum(map(operator.ne, ids, second.ids))
    if n_renamed:
        message = f'{n_renamed:,} ids of added rows existed and got the suffix "-2", "-3" ...'
        notes.append(Decision("corpus", "ids_renamed", n_renamed, message))
    both = (first.metadata, table)
    numbered = all(frame.index.equals(pd.RangeIndex(len(frame))) for frame in both)
    # The type of an empty column does not count.
    joined = pd.concat([f for f in both if len(f)] or [both[0]], ignore_index=numbered)
    metadata = joined.reindex(columns=both[0].columns.union(table.columns, sort=False))
    shared = first.metadata.columns.intersection(table.columns)
    lacking = [str(name) for name in metadata.columns if name not in shared]
    if lacking:
        message = f"Columns of only some rows have missing values in the others: {lacking}."
        notes.append(Decision("corpus", "columns_missing", lacking, message))
    message = spell_count(len(second), "row", "rows")
    message += f" from {second.source} appended to {len(first):,}."
    notes.append(Decision("corpus", "rows_added", len(second), message))
    return corpus_of_fields(
        texts=(*first.texts, *second.texts),
        ids=(*first.ids, *ids),
        status=np.concatenate([first.status, second.status]),
        metadata=metadata,
        text_column=first.text_column,
        time_column=roles["time"],
        group_column=roles["group"],
        source=first.source,
        decisions=(*first.decisions, *second.decisions, *notes),
        # Hashing is the slow part of reading.
        hashes=np.concatenate([first.hashes, second.hashes]),
    )


def _same_role(
    first: Corpus, second: Corpus, table: pd.DataFrame, role: str, notes: list[Decision]
) -> tuple[pd.DataFrame, str | None]:
    """Return the second table with the first's name for a role, and the name."""
    ours, theirs = (getattr(corpus, f"{role}_column") for corpus in (first, second))
    if ours is None:
        # A column of this name in the first corpus does not hold dates or groups.
        return table, None if theirs in first.metadata.columns else theirs
    if theirs not in (None, ours):
        if ours in table.columns:
            raise InputError(
                f"the {role} column {theirs!r} of the added rows would be renamed to {ours!r}, "
                "which exists; rename one of them"
            )
        message = f"The column {theirs!r} of added rows became {ours!r}."
        notes.append(Decision("corpus", f"{role}_renamed", str(theirs), message))
        table = table.rename(columns={theirs: ours})
    elif theirs is None and role == "time" and ours in table.columns:
        dates, decisions = read_dates(table[ours], f"added rows, column {ours!r}")
        notes.extend(decisions)
        table = table.copy()
        table[ours] = dates
    return table, ours


def grown_graph(
    result: TopicResult,
    merged: Merged,
    embeddings: FloatArray,
    is_added: BoolArray,
    neighbors: tuple[Int32Array, FloatArray],
) -> NeighborGraph:
    """Return the graph of all documents; old documents keep their neighbors."""
    graph, k = result.graph, result.graph.k
    others = np.flatnonzero(is_added)
    indices, similarities = merged.old[neighbors[0][:, :k]], neighbors[1][:, :k]
    if k and len(others) > 1:
        exclude = np.searchsorted(others, merged.new)
        near, close = exact_neighbors(
            embeddings[merged.new], embeddings, k, exclude=exclude, rows=others
        )
        indices = np.concatenate([indices, others[near]], axis=1)
        similarities = np.concatenate([similarities, np.minimum(close, 1.0)], axis=1)
        order = np.lexsort((indices, -similarities), axis=1)[:, :k]
        indices = np.take_along_axis(indices, order, axis=1)
        similarities = np.take_along_axis(similarities, order, axis=1)
    all_indices = merged.put(merged.old[graph.indices].astype(np.int32), indices)
    all_similarities = merged.put(graph.similarities, similarities)
    recall = _recall(embeddings, all_indices) if k else graph.recall
    return NeighborGraph(all_indices, all_similarities, "extended", recall)


def _recall(embeddings: FloatArray, indices: Int32Array) -> float:
    """Return the share of true neighbors in the lists of a sample of documents."""
    sample = np.arange(min(DOCUMENTS_TO_MEASURE, len(embeddings)))
    true, _ = exact_neighbors(embeddings[sample], embeddings, indices.shape[1], exclude=sample)
    n_true = sum(map(len, map(np.intersect1d, indices[sample], true)))
    return float(n_true / true.size)


# The positions of added documents depend only on the fit: not on documents added before or at the
# same time.


def place(
    positions: FloatArray,
    indices: Int32Array,
    similarities: FloatArray,
    labels: Int32Array,
    topics: Int32Array,
    hashes: npt.NDArray[np.uint64] | None = None,
) -> FloatArray:
    """Place documents at the mean of their neighbors, in their topic if they have one."""
    of_neighbors = positions[indices].astype(np.float64)
    behind = similarities[:, :1].astype(np.float64) - similarities
    scale = behind.mean(axis=1, keepdims=True)
    # Weights fall with the similarity behind the nearest neighbor, in units of its mean.
    weights = np.exp(-np.divide(behind, scale, out=np.zeros_like(behind), where=scale > 0))
    in_topic = (labels[indices] == topics[:, None]) | (topics == NOISE)[:, None]
    weights = np.where(in_topic, weights, 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    middle = np.einsum("ik,ikd->id", weights, of_neighbors)
    if hashes is not None:
        # Means alone would pile up in the middle of a topic. On the map, a document moves from
        # there by its content hash within the circle of half of its neighbors by weight.
        distances = np.sqrt(((of_neighbors - middle[:, None]) ** 2).sum(axis=2))
        share, turn = (hashes / 2.0**64).T
        order = np.argsort(distances, axis=1, kind="stable")
        reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1) >= 0.5 - 1e-12
        column = np.take_along_axis(order, reached.argmax(axis=1)[:, None], axis=1)
        medians = np.take_along_axis(distances, column, axis=1)[:, 0]
        radius = medians * np.sqrt(share)
        angle = 2 * np.pi * turn
        middle += radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    is_same = similarities[:, 0] >= SAME
    middle[is_same] = of_neighbors[is_same, 0]
    return np.asarray(middle, dtype=np.float32)


def grown_tree(
    tree: SpanningTree | None, coordinates: FloatArray, merged: Merged, neighbors: npt.NDArray[Any]
) -> SpanningTree | None:
    """Add new documents to a hierarchy, each at the neighbor with the smallest reachability."""
    if tree is None:
        return None
    steps = coordinates[neighbors].astype(np.float64) - coordinates[merged.new][:, None]
    distances = np.sqrt((steps**2).sum(axis=2))
    cores = merged.put(tree.core_distances.astype(np.float64), np.median(distances, axis=1))
    reach = np.maximum(np.maximum(distances, cores[neighbors]), cores[merged.new][:, None])
    # Among equals, the neighbor with the lowest number.
    first = np.lexsort((neighbors, reach), axis=1)[:, :1]
    leaves = np.stack([np.take_along_axis(neighbors, first, axis=1)[:, 0], merged.new], axis=1)
    edges = np.concatenate([merged.old[tree.edges], leaves.astype(np.int64)])
    edges.sort(axis=1)
    lengths = np.concatenate([tree.distances, np.take_along_axis(reach, first, axis=1)[:, 0]])
    order = np.lexsort((edges[:, 1], edges[:, 0], lengths))
    return SpanningTree(edges[order], lengths[order], cores)
