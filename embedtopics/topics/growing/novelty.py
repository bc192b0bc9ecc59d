"""What is new about added documents: more outside the topics than expected, and groups of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedtopics.clustering import named_min_cluster_size
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.results import NOISE, Candidate, Clustering, Topic, TopicResult
from embedtopics.terms import ClassTfidf, without_subject
from embedtopics.topics.assign import decide, least_ratio_of
from embedtopics.topics.describe import describe_topics
from embedtopics.topics.growing.centroids import centroids, cosines, tightness
from embedtopics.topics.memberships import closeness, rank, vote
from embedtopics.topics.recorded import languages_of, term_settings_of

__all__ = ["chance_of", "expected_outside", "find_candidates"]

LOOSEST = 0.25
"""Share of the topics that may be looser than a candidate."""

RARE = 0.01
"""Chance from which so large a group is taken for one that was there before."""

MOST = 4000
"""Documents that are grouped pair by pair; of more, others join the groups of these."""

DIGITS = 6
"""Of a similarity; further ones depend on the machine, and must not decide who is grouped."""


def expected_outside(result: TopicResult) -> tuple[float, int]:
    """Return the share of the documents of the fit that would belong nowhere if they came anew.

    Each is judged by its neighbours in the graph, as a new document is by its nearest ones.

    Returns
    -------
    share : float
    n_documents : int
        Documents of the fit.
    """
    fit = np.arange(len(result.documents))
    if result.added is not None:
        fit = np.flatnonzero(~result.added)
    if result.graph.k == 0:
        return float(np.mean(result.clustering.labels[fit] == NOISE)), len(fit)
    near = result.graph.similarities[fit]
    shares = vote(result.graph.indices[fit], near, result.clustering.labels, result.n_topics)
    close = closeness(near)
    labels = decide(shares, rank(close, close), least_ratio_of(result))
    return float(np.mean(labels == NOISE)), len(fit)


def chance_of(n_outside: int, n_new: int, expected: float, n_fitted: int) -> float:
    """Return the chance of so many documents outside the topics, or more.

    The share outside is not known but estimated from the fit. So the number among the new ones is
    beta-binomial: the predictive distribution after the documents of the fit, from Jeffreys' prior.

    Parameters
    ----------
    n_outside, n_new : int
        New documents outside the topics, and all.
    expected : float
        Share outside among those of the fit.
    n_fitted : int
        Documents of the fit.

    Returns
    -------
    float

    References
    ----------
    Gelman et al. (2013), "Bayesian Data Analysis", sections 2.4 and 2.8.
    """
    from scipy.special import betaln, gammaln

    if n_new == 0:
        return 1.0
    n_before = round(expected * n_fitted)
    outside, inside = n_before + 0.5, n_fitted - n_before + 0.5
    counts = np.arange(n_outside, n_new + 1)
    ways = gammaln(n_new + 1) - gammaln(counts + 1) - gammaln(n_new - counts + 1)
    logs = ways + betaln(counts + outside, n_new - counts + inside) - betaln(outside, inside)
    return float(min(1.0, np.exp(logs).sum()))


def find_candidates(result: TopicResult, least_size: int | str = "auto") -> tuple[Candidate, ...]:
    """Find groups among the added documents outside the topics that might be topics.

    Groups are those of average linkage that are at least as tight as the loosest quarter of the
    topics, and have words of their own. Documents of the fit outside the topics are grouped with
    the others; a group that takes no larger a share of what was added than of the fit is nothing
    new, and is left out.

    Parameters
    ----------
    result : TopicResult
        Extended. Documents of earlier extensions count, too, so that a group may gather slowly.
    least_size : "auto" or int
        Added rows in a candidate at the least; "auto" takes the finest topics that a fit of as many
        rows would have.

    Returns
    -------
    tuple of Candidate
        Largest first.
    """
    assert result.added is not None
    weights, added = result.documents.weights, result.added
    if isinstance(least_size, str):
        least_size = named_min_cluster_size("fine", int(weights[added].sum()))
    outside = (result.clustering.labels == NOISE) & result.embeddings.any(axis=1)
    new, old = np.flatnonzero(outside & added), np.flatnonzero(outside & ~added)
    if len(new) < 2:
        return ()
    everyone = np.concatenate([new, old])
    groups = _groups(result.embeddings[everyone], _least_tightness(result))
    n_groups = int(groups.max()) + 1
    n_new = np.bincount(groups[: len(new)], minlength=n_groups)
    n_old = np.bincount(groups[len(new) :], minlength=n_groups)
    sizes = np.bincount(groups[: len(new)], weights[new], minlength=n_groups)
    is_kept = (sizes >= least_size) & (n_new >= 2)
    n_added, n_fitted = int(added.sum()), int((~added).sum())
    for group in np.flatnonzero(is_kept).tolist():
        share = n_old[group] / n_fitted
        is_kept[group] = chance_of(int(n_new[group]), n_added, share, n_fitted) < RARE
    labels = np.full(len(added), NOISE, dtype=np.int32)
    labels[new] = _kept(groups[: len(new)], is_kept)
    n_before = n_old[is_kept]
    if len(n_before):
        is_subject = ~without_subject(result.term_counts, labels, len(n_before))
        labels[new] = _kept(labels[new], is_subject)
        n_before = n_before[is_subject]
    return _described(result, labels, n_before) if len(n_before) else ()


def _least_tightness(result: TopicResult) -> float:
    """Return how tight the loosest quarter of the topics is; without topics, near neighbours."""
    labels = result.clustering.labels
    sizes = np.bincount(labels[labels != NOISE], minlength=result.n_topics)
    found = tightness(centroids(result.embeddings, labels, result.n_topics), sizes)
    found = found[np.isfinite(found)]
    if len(found):
        return float(np.quantile(found, LOOSEST))
    nearest = result.graph.similarities[:, :1]
    nearest = nearest if result.added is None else nearest[~result.added]
    return float(np.median(nearest)) if nearest.size else 1.0


def _groups(vectors: FloatArray, least: float) -> Int64Array:
    """Group documents by average linkage until two groups are less alike than that on average."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    # Documents are ordered by a hash of their content: the first of a kind are a fair sample.
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


def _kept(labels: npt.NDArray[np.integer], is_kept: npt.NDArray[np.bool_]) -> Int32Array:
    """Give the labels that are kept new numbers; the others, and noise, become noise."""
    number = np.full(len(is_kept) + 1, NOISE, dtype=np.int32)
    number[:-1][is_kept] = np.arange(int(is_kept.sum()), dtype=np.int32)
    return np.asarray(number[labels], dtype=np.int32)


def _described(
    result: TopicResult, groups: Int32Array, n_before: Int64Array
) -> tuple[Candidate, ...]:
    """Describe groups by what sets them apart from the topics, and from one another."""
    n_groups = len(n_before)
    n_topics, labels = result.n_topics, result.clustering.labels
    drafts = np.where(groups == NOISE, labels, n_topics + groups).astype(np.int32)
    persistence = np.full(n_topics + n_groups, np.nan)
    described, _ = describe_topics(
        result.term_counts, result.embeddings,
        Clustering(drafts, np.ones(len(drafts), dtype=np.float32), persistence),
        result.documents, ClassTfidf(), term_settings_of(result), languages_of(result),
    )  # fmt: skip
    sums = centroids(result.embeddings, groups, n_groups)
    tight = tightness(sums, np.bincount(groups[groups != NOISE], minlength=n_groups))
    of_topics = centroids(result.embeddings, labels, n_topics, result.documents.weights)
    alike = cosines(sums, of_topics)
    found = [
        _candidate(result, described[n_topics + group], groups == group, sums[group],
                   int(n_before[group]), float(tight[group]), alike[group])
        for group in range(n_groups)
    ]  # fmt: skip
    # The sums of rows of equal size are told apart by the documents, which content orders.
    return tuple(sorted(found, key=lambda one: (-one.size, min(one.documents))))


def _candidate(
    result: TopicResult,
    about: Topic,
    is_member: npt.NDArray[np.bool_],
    total: npt.NDArray[np.float64],
    before: int,
    tight: float,
    alike: npt.NDArray[np.float64],
) -> Candidate:
    members = np.flatnonzero(is_member)
    central = np.einsum("id,d->i", result.embeddings[members].astype(np.float64), total)
    order = np.argsort(-central, kind="stable")
    nearest = int(alike.argmax()) if len(alike) else NOISE
    return Candidate(
        label=about.label,
        size=about.size,
        keywords=about.keywords,
        documents=tuple(members[order].tolist()),
        representatives=about.representatives,
        before=before,
        similarity=tight,
        nearest_topic=nearest,
        topic_similarity=float(alike[nearest]) if len(alike) else float("nan"),
    )
