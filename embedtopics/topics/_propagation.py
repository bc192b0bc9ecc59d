"""Label propagation along the neighbor graph, outliers assigned by it, and topics of new texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, vstack

from embedtopics._utils.checks import is_number
from embedtopics._utils.fitted import FittedTopics, fitted_encoder, result_of
from embedtopics._utils.machine import in_parts
from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.corpus._corpus import Corpus, as_corpus
from embedtopics.encoders._order import MIN_ORDERED, check_order
from embedtopics.errors import EmbedTopicsError, InputError
from embedtopics.neighbors._graph import EXACT_LIMIT, nearest
from embedtopics.neighbors._queries import QuerySearch
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import (
    BoolArray,
    Encoder,
    Float64Array,
    FloatArray,
    Int32Array,
    Int64Array,
)
from embedtopics.topics._clusters import ClusterCut
from embedtopics.topics._vectors import encode_documents, encoder_of_fit, given_vectors
from embedtopics.topics.results import Assignment, Reason, TopicConstraints, TopicResult

NOWHERE = -2
"""Label of documents that absorb propagated mass without a topic."""

STEPS = 30
"""Steps of propagation; after them all but a few percent of the mass has been absorbed."""

SLOTS = 16
"""Topics stored per document; the mass of the others is given to these in proportion. Smaller
shares are dropped at the end or, if documents and topics are many, at each step."""

MOST_CELLS = 2**26
"""Documents times topics up to which all shares are stored at each step, which is faster."""

ENOUGH_FOR_THREADS = 4_000
"""Documents below which a step is too short for several threads."""

OWN_SHARE = 0.6
"""Share of a document's own label; above a half, so that it is the largest."""

MIN_MARGIN = 1.2
"""Smallest ratio of a document's best share to the next for the document to be assigned."""

NONE_WEIGHT = 1 / 3
"""Weight of the share of no topic. At full weight, groups of documents that are each other's
nearest neighbors could never be assigned."""

FAR = 0.99
"""Share of documents: one that is farther from its neighbors than these are from theirs is
assigned to no topic."""

LARGEST_MARGIN = 1e6
"""Margin of a document with a single topic."""


@dataclass(frozen=True, eq=False)
class Propagation:
    """Propagated topics by descending share, (n_documents, 16) each; -1 and 0 fill the rest."""

    topics: Int32Array
    shares: FloatArray

    @property
    def none(self) -> FloatArray:
        """Share of no topic, shape (n_documents,)."""
        rest: FloatArray = np.float32(1.0) - self.shares.sum(axis=1, dtype=np.float32)
        return np.clip(rest, 0.0, 1.0)


def propagate_labels(graph: NeighborGraph, labels: Int32Array, n_topics: int) -> Propagation:
    """Propagate labels along random paths that end at the first labelled document.

    Every document takes the first of at most 30 steps, so the shares of a labelled document come
    from its neighbors. The limit is the harmonic solution of Zhu, Ghahramani and Lafferty (2003).
    """
    n_documents = len(labels)
    topics = np.full((n_documents, SLOTS), -1, dtype=np.int32)
    shares = np.zeros((n_documents, SLOTS), dtype=np.float32)
    if n_topics == 0 or graph.k == 0:
        return Propagation(topics, shares)
    from embedtopics.topics import _kernels

    weights = np.ascontiguousarray(_unit_sums(graph.similarities), dtype=np.float32)
    passing = np.flatnonzero(labels == NOISE).astype(np.int32)
    all_rows = np.arange(n_documents, dtype=np.int32)
    steps = [passing] * (STEPS - 1) + [all_rows]
    if n_documents * n_topics <= MOST_CELLS:
        labels = np.ascontiguousarray(labels, dtype=np.int32)
        all_shares = np.zeros((n_documents, n_topics), dtype=np.float32)
        new_all = np.zeros_like(all_shares)
        for rows in steps:
            arrays = graph.indices, weights, rows, labels, all_shares, new_all
            in_parts(_kernels.mix, len(rows), *arrays, few=ENOUGH_FOR_THREADS)
            all_shares, new_all = new_all, all_shares
        _kernels.keep_largest(all_shares, topics, shares)
        return Propagation(topics, shares)
    is_labeled = labels >= 0
    topics[is_labeled, 0] = labels[is_labeled]
    shares[is_labeled, 0] = 1.0
    new_topics, new_shares = topics.copy(), shares.copy()
    for rows in steps:
        before, after = (topics, shares), (new_topics, new_shares)
        arguments = graph.indices, weights, rows, *before, *after, n_topics
        in_parts(_kernels.step_of_many(), len(rows), *arguments, few=ENOUGH_FOR_THREADS)
        topics, new_topics, shares, new_shares = new_topics, topics, new_shares, shares
    return Propagation(topics, shares)


def _unit_sums(similarities: FloatArray) -> Float64Array:
    """Return similarities scaled to a sum of one in each row; negative ones become 0."""
    weights = np.maximum(similarities.astype(np.float64), 0.0)
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))


@dataclass(frozen=True, eq=False)
class OutlierAssignment:
    """Documents in topics numbered from the largest down, and the smallest margin required."""

    clustering: Clustering
    memberships: csr_matrix
    min_margin: float


def assign_outliers(
    graph: NeighborGraph,
    cut: ClusterCut,
    weights: Int64Array,
    coverage: float | str = "auto",
    constraints: TopicConstraints | None = None,
) -> OutlierAssignment:
    """Assign documents outside the clusters to a topic, or record the reason why not.

    An assigned document goes to its cluster in the partition of the cut if there is one (its mean
    is nearest), otherwise to the topic with the largest propagated share. A document without any
    neighbor of a similarity above 0 is in no topic, unless the constraints fix its topic.
    """
    # Labels of clustered documents spread along the graph. A document of an uninformative cluster
    # is labelled NOWHERE: it absorbs what reaches it.
    topic_of_cluster, seeds = _number_topics(graph, cut, constraints)
    n_topics = int(np.count_nonzero(topic_of_cluster >= 0))
    propagated = propagate_labels(graph, seeds, n_topics)
    margins = margin(propagated.shares[:, 0], propagated.shares[:, 1], propagated.none)
    near = closeness(graph.similarities)
    is_far = rank(near, near) > FAR

    # Assign the outliers with a clear best topic, or as many rows as the coverage asks for.
    is_outlier = seeds == NOISE
    if coverage == "auto":
        min_margin = MIN_MARGIN
        is_assigned = is_outlier & (margins >= min_margin) & ~is_far
    else:
        missing_rows = float(coverage) * weights.sum() - weights[seeds >= 0].sum()
        outlier_margins = np.where(is_outlier, margins, 0.0)
        is_assigned = _clearest(missing_rows, outlier_margins, near, weights)
        min_margin = _margin_for(float(coverage), missing_rows, margins, is_assigned)

    # With complete constraints, a topic has no other documents.
    is_complete = constraints is not None and constraints.is_complete
    if is_complete:
        is_assigned[:] = False

    # Without constraints, the partition of the cut gives the cluster with the nearest mean.
    best_topic = propagated.topics[:, 0]
    if cut.partition is not None and constraints is None:
        topic_in_partition = topic_of_cluster[cut.partition]
        best_topic = np.where(topic_in_partition >= 0, topic_in_partition, best_topic)
    labels = np.where(is_assigned, best_topic, np.maximum(seeds, NOISE)).astype(np.int32)

    reasons = _reasons(labels, seeds, propagated, margins=margins, is_far=is_far)
    if is_complete:
        reasons[labels == NOISE] = Reason.NOT_LABELED

    # Topics are numbered from the largest down, by rows.
    in_topic = labels != NOISE
    sizes = np.bincount(labels[in_topic], weights[in_topic], minlength=n_topics)
    by_size = np.argsort(-sizes, kind="stable")
    new_id = np.full(n_topics + 1, NOISE, dtype=np.int32)  # the last one for NOISE
    new_id[by_size] = np.arange(n_topics, dtype=np.int32)

    # An assigned document has no probability of belonging to its cluster.
    in_cluster = (seeds >= 0) & (labels == seeds)
    probabilities = np.where(in_cluster, cut.clustering.probabilities, 0.0).astype(np.float32)
    cluster_of_topic = np.flatnonzero(topic_of_cluster[:-1] >= 0)
    persistence = cut.clustering.persistence[cluster_of_topic[by_size]]

    labels = new_id[labels]
    clustering = Clustering(labels, probabilities, persistence, reasons)
    memberships = _memberships(labels, propagated, new_id[:-1])
    return OutlierAssignment(clustering, memberships, min_margin)


def _number_topics(
    graph: NeighborGraph, cut: ClusterCut, constraints: TopicConstraints | None
) -> tuple[Int32Array, Int32Array]:
    """Return the topic of each cluster (n_clusters + 1,), and of each document (n_documents,).

    Topics are the informative clusters, numbered in order; other clusters are NOWHERE. The last
    entry is NOISE, the topic of a document in no cluster, whose label -1 points there.
    """
    # A document whose neighbors have nothing in common with it leaves its cluster, unless the
    # cluster is this text.
    is_lonely = np.zeros(len(graph), dtype=np.bool_)
    if graph.k > 0 and not cut.is_repetitive:
        is_lonely = graph.similarities[:, 0] <= 0
    if constraints is not None and constraints.is_fixed:
        is_lonely = is_lonely & (constraints.groups < 0)
    cluster_labels = np.where(is_lonely, NOISE, cut.clustering.labels)

    # A cluster that loses all its documents is no topic.
    n_clusters = len(cut.is_informative)
    emptied = np.setdiff1d(cut.clustering.labels, cluster_labels)
    is_topic = cut.is_informative & ~np.isin(np.arange(n_clusters), emptied)

    topic_of_cluster = np.full(n_clusters + 1, NOWHERE, dtype=np.int32)
    topic_of_cluster[:-1][is_topic] = np.arange(is_topic.sum(), dtype=np.int32)
    topic_of_cluster[-1] = NOISE
    return topic_of_cluster, topic_of_cluster[cluster_labels]


def _reasons(
    labels: Int32Array,
    seeds: Int32Array,
    propagated: Propagation,
    margins: Float64Array,
    is_far: BoolArray,
) -> npt.NDArray[np.int8]:
    """Return why each document is in no topic, (n_documents,)."""
    # A later reason replaces an earlier one.
    reasons = np.full(len(labels), Reason.BETWEEN, dtype=np.int8)
    leads_nowhere = NONE_WEIGHT * propagated.none >= propagated.shares[:, 1]
    reasons[is_far | leads_nowhere] = Reason.ISOLATED
    reasons[(margins >= MIN_MARGIN) & ~is_far] = Reason.BEYOND_COVERAGE
    reasons[seeds == NOWHERE] = Reason.UNINFORMATIVE
    reasons[labels != NOISE] = Reason.IN_TOPIC
    return reasons


def margin(
    best: npt.NDArray[Any], second: npt.NDArray[Any], none: npt.NDArray[Any]
) -> Float64Array:
    """Return the ratio of each document's best share to its closest rival."""
    best = best.astype(np.float64)
    rival = np.maximum(np.maximum(second, NONE_WEIGHT * none), best / LARGEST_MARGIN)
    margins = np.zeros(len(best))
    np.divide(best, rival, out=margins, where=best > 0)
    return margins


def _clearest(
    missing: float, margins: Float64Array, near: Float64Array, weights: Int64Array
) -> BoolArray:
    """Return which documents make up the missing rows, by margin, then by closeness."""
    is_assigned = np.zeros(len(margins), dtype=bool)
    candidates = np.flatnonzero(margins > 0)
    candidates = candidates[np.lexsort((-near[candidates], -margins[candidates]))]
    before = np.cumsum(weights[candidates]) - weights[candidates]
    is_assigned[candidates[before < missing - 1e-9]] = True
    return is_assigned


def _margin_for(
    coverage: float, missing: float, margins: Float64Array, is_assigned: BoolArray
) -> float:
    """Return the smallest margin of new texts that gives the coverage of the fit."""
    if coverage == 1.0:
        return 0.0
    if missing <= 0:  # the clusters alone: only texts that lead to a single topic
        return LARGEST_MARGIN / 2
    return float(margins[is_assigned].min(initial=LARGEST_MARGIN / 2))


def _memberships(labels: Int32Array, propagated: Propagation, new_id: Int32Array) -> csr_matrix:
    """Mix each document's own label with its propagated shares, (n_documents, n_topics)."""
    rows, slots = np.nonzero(propagated.topics >= 0)
    inside = np.flatnonzero(labels != NOISE)
    # Without a similar neighbor, the label's own share is 1.
    label_share = np.where(propagated.shares[:, 0] > 0, OWN_SHARE, 1.0)
    of_neighbors = (1 - label_share[rows]) * propagated.shares[rows, slots]
    values = np.concatenate([label_share[inside], of_neighbors])
    columns = np.concatenate([labels[inside], new_id[propagated.topics[rows, slots]]])
    places = (np.concatenate([inside, rows]), columns)
    shares = csr_matrix((values, places), shape=(len(labels), len(new_id)))
    shares.sum_duplicates()
    return csr_matrix(shares, dtype=np.float32)


def closeness(similarities: FloatArray) -> Float64Array:
    """Return the mean similarity to the neighbors; 1 without neighbors."""
    if similarities.shape[1] == 0:
        return np.ones(len(similarities))
    return np.asarray(similarities.mean(axis=1, dtype=np.float64))


def rank(fitted: Float64Array, near: Float64Array) -> FloatArray:
    """Return the share of the fitted documents that are closer to their neighbors, (n_texts,)."""
    ordered = np.sort(fitted)
    above = len(ordered) - np.searchsorted(ordered, near, side="right")
    return (above / len(ordered)).astype(np.float32)


def vote(
    indices: Int32Array, similarities: FloatArray, labels: Int32Array, n_topics: int
) -> csr_matrix:
    """Return the topics of the neighbors weighted by similarity, shape (n_queries, n_topics)."""
    n_queries, k = indices.shape
    weights = _unit_sums(similarities)
    topics = labels[indices]
    rows = np.repeat(np.arange(n_queries), k).reshape(n_queries, k)
    counts = (topics != NOISE) & (weights > 0)
    votes = weights[counts], (rows[counts], topics[counts])
    shares = csr_matrix(votes, shape=(n_queries, n_topics))
    shares.sum_duplicates()
    return csr_matrix(shares, dtype=np.float32)


def checked_coverage(coverage: float | str) -> float | str:
    """Return "auto" or a share from 0 to 1, or raise InputError."""
    if coverage == "auto":
        return coverage
    if not is_number(coverage) or not 0.0 <= float(coverage) <= 1.0:
        raise InputError("coverage", '"auto" or a share from 0 to 1', coverage)
    return float(coverage)


QUERIES_AT_ONCE = 4096


def assign(
    result: FittedTopics,
    corpus: Any,
    *,
    embeddings: npt.ArrayLike | None = None,
    encoder: Encoder | str | None = None,
) -> Assignment:
    """Assign texts to topics.

    A text of the fit keeps its topic. The nearest documents decide for a new text; it gets -1 if
    two topics tie, if most of these documents are in no topic, or if all of them are far. The
    answer does not depend on the other texts in the batch. For a fit of more than 20,000 documents
    the search is approximate and finds about 95 % of the nearest; the first call prepares it in a
    few seconds.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    corpus : Corpus or anything that `Corpus` takes
        The texts.
    embeddings : array_like of shape (n_texts, n_dimensions), optional
        Vectors of the texts.
    encoder : Encoder or str, optional
        Encodes new texts; by default the encoder of the fit, which is loaded again for a result. An
        encoder with another fingerprint is refused.

    Returns
    -------
    Assignment

    Raises
    ------
    InputError
        If there are new texts and no vectors of the right width for them.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> assignment = et.topics.assign(model, ["The dockers are on strike.", None])
    >>> list(assignment.to_frame().columns)
    ['id', 'topic', 'topic_name', 'membership', 'novelty']
    """
    encoder = fitted_encoder(result) if encoder is None else encoder
    result = result_of(result)
    corpus = as_corpus(corpus)
    queries = corpus.distinct()
    of_fit = known_documents(result, corpus)
    seen, new = np.flatnonzero(of_fit >= 0), np.flatnonzero(of_fit < 0)
    documents = of_fit[seen]
    labels = np.full(len(queries), NOISE, dtype=np.int32)
    labels[seen] = result.clustering.labels[documents]
    novelty = np.empty(len(queries), dtype=np.float32)
    near = closeness(result.graph.similarities)
    novelty[seen] = rank(near if result.added is None else near[~result.added], near[documents])
    shares = result.memberships[:0]
    if len(new):
        judged = judge(result, vectors_of(result, corpus, new, embeddings, encoder))
        novelty[new], labels[new], shares = judged.novelty, judged.labels, judged.shares
    order = np.empty(len(queries), dtype=np.int64)
    order[np.concatenate([seen, new])] = np.arange(len(queries))
    memberships = csr_matrix(vstack([result.memberships[documents], shares], format="csr")[order])
    # From distinct texts to rows; rows without text have index -1.
    of_row = queries.of_row
    rows = np.flatnonzero(of_row >= 0)
    row_labels = np.append(labels, np.int32(NOISE))[of_row]
    row_novelty = np.append(novelty, np.float32(np.nan))[of_row]
    ones = np.ones(len(rows), dtype=np.float32)
    spread = csr_matrix((ones, (rows, of_row[rows])), shape=(len(of_row), len(queries)))
    return Assignment(
        corpus=corpus,
        topic_names=tuple(topic.name for topic in result.topics),
        labels=row_labels,
        memberships=csr_matrix(spread @ memberships),
        novelty=row_novelty,
    )


@dataclass(frozen=True, eq=False)
class Judgement:
    """Topics of new documents, and their nearest documents of the fit, (n_new, k) each."""

    labels: Int32Array
    shares: csr_matrix
    novelty: FloatArray
    indices: Int32Array
    similarities: FloatArray


def judge(result: TopicResult, vectors: FloatArray) -> Judgement:
    """Assign new documents by the documents of the fit, without documents added later."""
    indices, similarities = _nearest_of_fit(result, vectors)
    similar = result.graph.similarities
    similar = similar if result.added is None else similar[~result.added]
    shares = vote(indices, similarities, result.clustering.labels, result.n_topics)
    novelty = rank(closeness(similar), closeness(similarities))
    labels = decide(shares, novelty, min_margin_of(result))
    return Judgement(labels, shares, novelty, indices, similarities)


_searches: WeakKeyDictionary[NeighborGraph, QuerySearch] = WeakKeyDictionary()
"""One search per neighbor graph; edits do not change the graph."""


def _nearest_of_fit(result: TopicResult, vectors: FloatArray) -> tuple[Int32Array, FloatArray]:
    """Return the nearest documents of the fit; approximately for a large fit."""
    embeddings, graph, k = result.embeddings, result.graph, max(1, result.graph.k)
    fitted = None if result.added is None else np.flatnonzero(~result.added)
    if len(embeddings if fitted is None else fitted) > EXACT_LIMIT:
        if graph not in _searches:
            _searches[graph] = QuerySearch(embeddings, graph, fitted)
        return _searches[graph].search(vectors, k)
    embeddings = embeddings if fitted is None else embeddings[fitted]
    blocks = [
        nearest(vectors[begin : begin + QUERIES_AT_ONCE], embeddings, k)
        for begin in range(0, max(1, len(vectors)), QUERIES_AT_ONCE)
    ]
    indices, similarities = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return indices if fitted is None else fitted[indices].astype(np.int32), similarities


def known_documents(result: TopicResult, corpus: Corpus) -> Int64Array:
    """Return the document of the fit of each distinct text of a corpus, or -1."""
    return find_documents(result.distinct.hashes, corpus.distinct().hashes)


def find_documents(stored: npt.NDArray[np.uint64], hashes: npt.NDArray[np.uint64]) -> Int64Array:
    """Return the position of each hash among the stored, ascending ones; -1 if absent."""
    pair = np.dtype([("high", np.uint64), ("low", np.uint64)])
    ordered = np.ascontiguousarray(stored).view(pair).ravel()
    queries = np.ascontiguousarray(hashes).view(pair).ravel()
    if not len(ordered):
        return np.full(len(queries), -1, dtype=np.int64)
    position = np.minimum(np.searchsorted(ordered, queries), len(ordered) - 1)
    return np.where(ordered[position] == queries, position, -1).astype(np.int64)


def vectors_of(
    result: TopicResult,
    corpus: Corpus,
    documents: Int64Array,
    embeddings: npt.ArrayLike | None,
    encoder: Encoder | str | None,
) -> FloatArray:
    """Return the unit vectors of some documents of a corpus, given or encoded."""
    if embeddings is not None:
        vectors, _ = given_vectors(embeddings, corpus, documents)
        _check_given(result, corpus, documents, vectors, encoder)
    else:
        model = encoder_of_fit(result, encoder)
        texts = corpus.document_texts()
        rows = corpus.distinct().first_rows[documents]
        # Writing every question to the cache would cost more than it saves.
        vectors, _ = encode_documents(model.uncached, [texts[d] for d in documents], rows, None)

    width = result.embeddings.shape[1]
    if vectors.shape[1] != width:
        expected = f"of {width} dimensions, like those of the fit"
        remedy = "compute them with the encoder of the fit"
        raise InputError("embeddings", expected, vectors.shape[1], remedy)
    return vectors


def _check_given(
    result: TopicResult,
    corpus: Corpus,
    documents: Int64Array,
    vectors: FloatArray,
    encoder: Encoder | str | None,
) -> None:
    """Refuse given vectors that the encoder of the fit would not make of these texts."""
    if len(documents) < MIN_ORDERED or vectors.shape[1] != result.embeddings.shape[1]:
        return
    try:
        model = encoder_of_fit(result, encoder)
    except EmbedTopicsError:
        # The fit was on given embeddings too, or its encoder is not there: nothing is known.
        if encoder is not None:
            raise
        return
    texts = corpus.document_texts()
    check_order(model, [texts[document] for document in documents], vectors)


def min_margin_of(result: TopicResult) -> float:
    """Return the smallest margin of an assigned text, as in the fit."""
    return float(result.settings.get("min_margin", MIN_MARGIN))


def decide(shares: csr_matrix, novelty: FloatArray, min_margin: float) -> Int32Array:
    """Return the topic with the largest share; -1 for an unclear topic or a far text."""
    best, top, second, none = standing(shares)
    is_clear = (margin(top, second, none) >= min_margin) & (novelty <= FAR) & (top > 0)
    return np.where(is_clear, best, NOISE).astype(np.int32)


def standing(shares: csr_matrix) -> tuple[Int64Array, FloatArray, FloatArray, FloatArray]:
    """Return the best topic of each text, its share, the next share, and the share of none."""
    if 0 in shares.shape:
        nothing = np.zeros(shares.shape[0], dtype=np.float32)
        return nothing.astype(np.int64), nothing, nothing, nothing + 1
    counts = np.diff(shares.indptr)
    rows = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((shares.indices, -shares.data, rows))
    best = np.zeros(len(counts), dtype=np.int64)
    top, second = np.zeros((2, len(counts)), dtype=np.float32)
    first, next_one = (shares.indptr[:-1][counts > n] + n for n in (0, 1))
    best[counts > 0] = shares.indices[order[first]]
    top[counts > 0] = shares.data[order[first]]
    second[counts > 1] = shares.data[order[next_one]]
    total = np.asarray(shares.sum(axis=1)).ravel()
    return best, top, second, np.clip(1.0 - total, 0.0, 1.0)
