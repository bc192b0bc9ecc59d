"""Novelty of added documents: more outside the topics than expected, and groups of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from scipy.special import betaln, gammaln

from embedtopics._utils.display import excerpt
from embedtopics.clustering._resolution import FEWEST, FINER, automatic_min_cluster_size
from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.protocols import BoolArray, FloatArray, Int32Array, Int64Array
from embedtopics.terms._weighting import ClassTfidf
from embedtopics.topics._describe import describe_again
from embedtopics.topics._propagation import closeness, decide, min_margin_of, rank, vote
from embedtopics.topics._relabel import carry_names, keep_labels, with_own_share
from embedtopics.topics._support import uninformative_topics
from embedtopics.topics._vectors import centroids, cosines, tightness
from embedtopics.topics.naming._name_scores import rescored
from embedtopics.topics.results import SIGNIFICANT, Edit, Reason, Topic, TopicResult

LOOSEST = 0.25
"""Largest share of topics that may be looser than a candidate."""

MOST = 4000
"""Documents that are clustered pairwise; further documents are assigned to their groups."""

DIGITS = 6
"""Digits of a similarity; further digits depend on the machine."""


@dataclass(frozen=True)
class Candidate:
    """A group of added documents outside the topics that may be a new topic.

    `documents` are positions among the distinct texts, the most central first, and
    `representatives` of rows. `n_before` counts documents of the fit in the group, `similarity` is
    the mean cosine of its documents, `topic_similarity` the cosine with the nearest topic.
    """

    name: str
    size: int
    keywords: tuple[str, ...]
    documents: tuple[int, ...]
    representatives: tuple[int, ...]
    n_before: int
    similarity: float
    nearest_topic: int
    topic_similarity: float


def expected_outside(result: TopicResult) -> tuple[float, int]:
    """Return the share of fitted documents that would be in no topic if they were new."""
    fit = np.arange(len(result.distinct))
    if result.added is not None:
        fit = np.flatnonzero(~result.added)
    labels = result.clustering.labels[fit]
    if result.graph.k:
        near = result.graph.similarities[fit]
        shares = vote(result.graph.indices[fit], near, result.clustering.labels, result.n_topics)
        close = closeness(near)
        labels = decide(shares, rank(close, close), min_margin_of(result))
    return float(np.mean(labels == NOISE)), len(fit)


def chance_of(n_outside: int, n_new: int, expected: float, n_fitted: int) -> float:
    """Return the probability of at least `n_outside` documents, by Jeffreys' prior."""
    if n_new == 0:
        return 1.0
    n_before = round(expected * n_fitted)
    outside, inside = n_before + 0.5, n_fitted - n_before + 0.5
    counts = np.arange(n_outside, n_new + 1)
    ways = gammaln(n_new + 1) - gammaln(counts + 1) - gammaln(n_new - counts + 1)
    logs = ways + betaln(counts + outside, n_new - counts + inside) - betaln(outside, inside)
    return float(min(1.0, np.exp(logs).sum()))


def find_candidates(result: TopicResult, least_size: int | None = None) -> tuple[Candidate, ...]:
    """Find informative, tight and new groups of added documents outside the topics."""
    assert result.added is not None
    weights, added = result.distinct.weights, result.added
    if least_size is None:
        size = automatic_min_cluster_size(int(weights[added].sum()))
        least_size = max(FEWEST, round(size / FINER))
    outside = (result.clustering.labels == NOISE) & result.embeddings.any(axis=1)
    new, old = np.flatnonzero(outside & added), np.flatnonzero(outside & ~added)
    if len(new) < 2:
        return ()
    labels = result.clustering.labels
    tight = tightness(
        centroids(result.embeddings, labels, result.n_topics),
        np.bincount(labels[labels != NOISE], minlength=result.n_topics),
    )
    nearest = result.graph.similarities[~added, :1]
    least = float(np.median(nearest)) if nearest.size else 1.0
    if np.isfinite(tight).any():
        least = float(np.quantile(tight[np.isfinite(tight)], LOOSEST))
    groups = _groups(result.embeddings[np.concatenate([new, old])], least)
    n_groups = int(groups.max()) + 1
    n_new = np.bincount(groups[: len(new)], minlength=n_groups)
    n_old = np.bincount(groups[len(new) :], minlength=n_groups)
    sizes = np.bincount(groups[: len(new)], weights[new], minlength=n_groups)
    is_candidate = (sizes >= least_size) & (n_new >= 2)
    n_added, n_fitted = int(added.sum()), int((~added).sum())
    for group in np.flatnonzero(is_candidate).tolist():
        share = n_old[group] / n_fitted
        is_candidate[group] = chance_of(int(n_new[group]), n_added, share, n_fitted) < SIGNIFICANT
    labels = np.full(len(added), NOISE, dtype=np.int32)
    labels[new] = keep_labels(groups[: len(new)], is_candidate)
    n_before = n_old[is_candidate]
    if len(n_before):
        is_informative = ~uninformative_topics(result.term_counts, labels, len(n_before))
        labels[new] = keep_labels(labels[new], is_informative)
        n_before = n_before[is_informative]
    return _described(result, labels, n_before) if len(n_before) else ()


def _groups(vectors: FloatArray, least: float) -> Int64Array:
    """Group documents by average linkage, down to a smallest mean similarity."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    # Documents are in the order of their content hash: the first are a random sample.
    sample = vectors[:MOST].astype(np.float64)
    similarities = np.round(sample @ sample.T, DIGITS)
    np.fill_diagonal(similarities, 1.0)
    distances = squareform(np.maximum(1.0 - similarities, 0.0), checks=False)
    groups = fcluster(linkage(distances, "average"), 1.0 - least + 1e-9, "distance") - 1
    if len(vectors) == len(sample):
        return groups.astype(np.int64)
    sizes = np.bincount(groups)
    sums = centroids(vectors[: len(sample)], groups.astype(np.int32), len(sizes))
    # The mean similarity of a further document to those of each group.
    means = np.round(vectors[len(sample) :].astype(np.float64) @ (sums / sizes[:, None]).T, DIGITS)
    means[:, sizes < 2] = -np.inf
    best = means.argmax(axis=1)
    alone = len(sizes) + np.arange(len(best))
    further = np.where(means[np.arange(len(best)), best] >= least, best, alone)
    return np.concatenate([groups, further]).astype(np.int64)


def _described(
    result: TopicResult, groups: Int32Array, n_before: Int64Array
) -> tuple[Candidate, ...]:
    """Describe groups by terms that distinguish them from the topics and each other."""
    n_groups = len(n_before)
    n_topics, labels = result.n_topics, result.clustering.labels
    drafts = np.where(groups == NOISE, labels, n_topics + groups).astype(np.int32)
    persistence = np.full(n_topics + n_groups, np.nan)
    clustering = Clustering(drafts, np.ones(len(drafts), dtype=np.float32), persistence)
    drafted = dataclasses.replace(result, clustering=clustering, weighting=ClassTfidf())

    n_drafted = len(persistence)
    no_names = np.zeros(n_drafted, dtype=np.bool_)
    described = redescribed(drafted, [None] * n_drafted, no_names).topics

    sums = centroids(result.embeddings, groups, n_groups)
    tight = tightness(sums, np.bincount(groups[groups != NOISE], minlength=n_groups))
    of_topics = centroids(result.embeddings, labels, n_topics, result.distinct.weights)
    similar = cosines(sums, of_topics)

    candidates = []
    for group, topic in enumerate(described[n_topics:]):
        members = np.flatnonzero(groups == group)
        central = np.einsum("id,d->i", result.embeddings[members].astype(np.float64), sums[group])
        order = np.argsort(-central, kind="stable")
        nearest = int(similar[group].argmax()) if n_topics else NOISE
        candidates.append(
            Candidate(
                name=topic.name,
                size=topic.size,
                keywords=topic.keywords,
                documents=tuple(members[order].tolist()),
                representatives=topic.representatives,
                n_before=int(n_before[group]),
                similarity=float(tight[group]),
                nearest_topic=nearest,
                topic_similarity=float(similar[group, nearest]) if n_topics else float("nan"),
            )
        )

    # Ties are in the order of the documents, which their content determines.
    return tuple(sorted(candidates, key=lambda group: (-group.size, min(group.documents))))


def redescribed(
    result: TopicResult, origins: Sequence[Topic | None], keeps_name: BoolArray
) -> TopicResult:
    """Return a result with its topics described again, and named as by `carry_names`."""
    topics, topic_terms = describe_again(result, result.clustering)
    topics = carry_names(topics, origins, keeps_name)
    return dataclasses.replace(result, topics=topics, topic_terms=topic_terms)


def tabulate(
    result: TopicResult, candidates: Sequence[Candidate], topic_ids: Sequence[int]
) -> pd.DataFrame:
    """Return a row for each candidate, with the id of its topic, or -1; see `Extension`."""
    texts = result.corpus.texts
    columns = {
        "topic": np.array(topic_ids, dtype=np.int64),
        "name": [group.name for group in candidates],
        "size": np.array([group.size for group in candidates], dtype=np.int64),
        "terms": [list(group.keywords) for group in candidates],
        "n_before": np.array([group.n_before for group in candidates], dtype=np.int64),
        "similarity": np.array([group.similarity for group in candidates], dtype=np.float64),
        "nearest_topic": np.array([group.nearest_topic for group in candidates], dtype=np.int64),
        "topic_similarity": np.array(
            [group.topic_similarity for group in candidates], dtype=np.float64
        ),
        "examples": [
            [excerpt(texts[row]) for row in group.representatives] for group in candidates
        ],
        "representatives": [list(group.representatives) for group in candidates],
        "documents": [list(group.documents) for group in candidates],
    }
    return pd.DataFrame(columns)


def adopt_candidates(result: TopicResult, candidates: Sequence[Candidate]) -> TopicResult:
    """Make topics of candidates, with the next ids; the others keep their ids and names.

    The terms of all topics are weighted again. The documents of the new topics count when further
    texts are assigned.
    """
    if not candidates:
        return result
    assert result.added is not None
    before = result.clustering
    labels = before.labels.copy()
    probabilities = before.probabilities.copy()
    reasons = None if before.reasons is None else before.reasons.copy()
    added = result.added.copy()
    for topic, candidate in enumerate(candidates, result.n_topics):
        members = np.array(candidate.documents)
        vectors = result.embeddings[members].astype(np.float64)
        central = np.einsum("id,d->i", vectors, vectors.sum(axis=0))
        labels[members] = topic
        # A group has no density: the depth is relative to the most central document.
        probabilities[members] = np.clip(central / central.max(), 0.01, 1.0).astype(np.float32)
        if reasons is not None:
            reasons[members] = Reason.IN_TOPIC
        added[members] = False

    persistence = np.append(before.persistence, np.full(len(candidates), np.nan))
    clustering = Clustering(labels, probabilities, persistence, reasons)
    grown = dataclasses.replace(result, clustering=clustering)
    is_old = np.arange(result.n_topics + len(candidates)) < result.n_topics
    grown = redescribed(grown, [*result.topics, *[None] * len(candidates)], is_old)

    of_new = np.where(labels >= result.n_topics, labels, NOISE).astype(np.int32)
    before_shares = result.memberships
    shape = (len(labels), result.n_topics + len(candidates))
    parts = (before_shares.data, before_shares.indices, before_shares.indptr)
    memberships = csr_matrix(parts, shape=shape, copy=True)

    listed = ", ".join(
        f"{topic.topic_id} ({topic.name})" for topic in grown.topics[result.n_topics :]
    )
    message = f"adopted groups of added documents as topics: {listed}"
    edit = Edit("note", {"n_adopted": len(candidates)}, message, (), tuple(range(result.n_topics)))

    adopted = dataclasses.replace(
        grown,
        memberships=with_own_share(memberships, of_new),
        history=(*result.history, edit),
        stability=None,
        added=added if added.any() else None,
    )
    return rescored(adopted, result)
