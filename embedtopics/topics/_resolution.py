"""Coarser or finer topics from the same hierarchy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.machine import side_by_side
from embedtopics._utils.progress import progress_bar
from embedtopics.clustering._partition import cluster_means
from embedtopics.clustering._resolution import topics_by_min_cluster_size
from embedtopics.clustering.results import Level, SpanningTree
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, Int64Array, RandomState
from embedtopics.topics._clusters import ClusterCut, Resolution, cluster_tree
from embedtopics.topics._describe import describe_again
from embedtopics.topics._propagation import assign_outliers, checked_coverage
from embedtopics.topics._relabel import edit_of
from embedtopics.topics._stability import SHARE, adjusted_rand, recipe_of, replicate_at
from embedtopics.topics.constraints._apply import named_topics
from embedtopics.topics.results import ResolutionChoice, TopicResult

LEVEL_STEP = 2**0.5
"""Factor between the smallest cluster sizes of successive levels."""

FINEST_LEVEL = 5  # smallest cluster size

ROWS_AT_ONCE = 1024
"""Documents per block of distances to all topics."""


def at_resolution(
    result: TopicResult,
    n_topics: int | str = "auto",
    *,
    min_cluster_size: int | str = "auto",
    coverage: float | str | None = None,
) -> TopicResult:
    """Cut a result at another resolution, from the same graph, coordinates and hierarchy.

    Edits after the fit do not carry over to the new topics; `replay` repeats them. The message of
    the edit lists dropped names.

    Parameters
    ----------
    result : TopicResult
    n_topics : {"auto", "fine", "coarse"} or int
        An integer is met exactly; it includes topics named before the fit, which stay.
    min_cluster_size : "auto" or int
        Smallest number of texts in the cluster of a topic, instead of `n_topics`; see `levels`.
    coverage : "auto", float or None
        As in `TopicModel`; None keeps the coverage of the result.

    Returns
    -------
    TopicResult
        With new topics, memberships and term weights; everything else is shared.

    Raises
    ------
    InputError
        If the result has no hierarchy or not enough topics.
    """
    tree = _hierarchy(result)
    if coverage is None:
        coverage = result.settings.get("coverage", "auto")
    coverage = checked_coverage(coverage)
    resolution = Resolution(n_topics, min_cluster_size)
    weights, graph, constraints = result.documents.weights, result.graph, result.constraints
    counts, coordinates = result.term_counts, result.coordinates
    clusters = cluster_tree(tree, coordinates, weights, counts, graph, constraints)
    cut = clusters.cut(resolution)
    assigned = assign_outliers(graph, cut, weights, coverage, constraints)
    topics, topic_terms = describe_again(result, assigned.clustering)
    topics = named_topics(topics, assigned.clustering.labels, weights, constraints)
    parameters: dict[str, Any] = {"n_topics": n_topics, "min_cluster_size": min_cluster_size}
    parameters["coverage"] = coverage
    settings = {**result.settings, **parameters, "min_cluster_size": cut.min_cluster_size}
    settings["min_margin"] = assigned.min_margin
    name = "n_topics" if min_cluster_size == "auto" else "min_cluster_size"
    message = f"cut at {name}={parameters[name]}, coverage={coverage}: {len(topics)} topics"
    labels = {topic.label for topic in topics}
    lost = [topic.label for topic in result.topics if topic.is_named and topic.label not in labels]
    if lost:
        message += f"; dropped names: {', '.join(lost)}"
    return replace(
        result,
        clustering=assigned.clustering,
        memberships=assigned.memberships,
        topics=topics,
        topic_terms=topic_terms,
        settings=settings,
        history=(*result.history, edit_of(result, "at_resolution", parameters, message)),
        stability=None,
    )


def levels(result: TopicResult) -> tuple[Level, ...]:
    """List the resolutions at which a result can be cut, finest first.

    Parameters
    ----------
    result : TopicResult

    Returns
    -------
    tuple of Level
        Smallest sizes grow by a factor of the square root of two; sizes that change nothing are
        left out. Uninformative clusters do not count, as in `at_resolution`.

    Raises
    ------
    InputError
        If the result has no hierarchy.
    """
    tree = _hierarchy(result)
    weights, counts, constraints = result.documents.weights, result.term_counts, result.constraints
    clusters = cluster_tree(tree, result.coordinates, weights, counts, result.graph, constraints)
    n_by_size = topics_by_min_cluster_size(tree, weights)
    listed: list[Level] = []
    n_before, step = 0, float(FINEST_LEVEL)
    while (size := round(step)) < len(n_by_size) and n_by_size[size] >= 2:
        if n_by_size[size] != n_before:
            n_before, cut = n_by_size[size], clusters.cut(Resolution("auto", size))
            if not listed or listed[-1].n_topics != cut.n_informative:
                listed.append(_level(cut, weights))
        step *= LEVEL_STEP
    return tuple(listed)


def _level(cut: ClusterCut, weights: Int64Array) -> Level:
    """Return the figures of a cut."""
    is_inside = np.append(cut.is_informative, False)[cut.clustering.labels]
    coverage = float(weights[is_inside].sum() / weights.sum())
    persistence = float(np.nanmean(cut.clustering.persistence[cut.is_informative]))
    assert cut.min_cluster_size is not None
    return Level(cut.min_cluster_size, cut.n_informative, coverage, persistence)


MOST_SUGGESTED = 60
"""Largest number of topics of a suggested level."""


def suggest_resolution(
    result: TopicResult,
    n_replicates: int = 6,
    *,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> ResolutionChoice:
    """Score each level of a result by recurrence and separation, and suggest one.

    The suggested level has the largest product of both: fewer topics recur more often, more topics
    lie farther apart. Other levels may serve a question better; the table shows their scores.

    Parameters
    ----------
    result : TopicResult
        A result of the default reducer and clusterer.
    n_replicates : int
        Random halves of the documents, clustered again at each level.
    random_state : int, numpy.random.Generator or None
    show_progress : bool or None

    Returns
    -------
    ResolutionChoice

    Raises
    ------
    InputError
        If the result has no levels or comes from another reducer or clusterer, or a parameter is
        invalid.

    References
    ----------
    Lange et al. (2004), "Stability-based validation of clustering solutions"; Hruschka et al.
    (2004), "Evolutionary algorithms for clustering gene-expression data" (simplified silhouette).
    """
    checked_count(n_replicates, "n_replicates")
    seed, recipe = resolve_seed(random_state), replace(recipe_of(result), coverage=1.0)
    scored = [level for level in levels(result) if 2 <= level.n_topics <= MOST_SUGGESTED]
    if not scored:
        expected = f"one that can be cut into 2 to {MOST_SUGGESTED} topics"
        raise InputError("result", expected, found=repr(result))
    sizes = [level.min_cluster_size for level in scored]
    resolutions = [Resolution("auto", max(2, round(SHARE * size))) for size in sizes]

    def make(number: int) -> list[Int32Array]:
        return list(replicate_at(recipe, np.random.default_rng([seed, number]), resolutions))

    replicates = []
    with progress_bar(
        total=n_replicates, unit="replicate", description="levels", show=show_progress
    ) as bar:
        for labels in side_by_side(make, n_replicates):
            replicates.append(labels)
            bar.update()
    for place, size in enumerate(sizes):
        cut = at_resolution(result, min_cluster_size=size, coverage=1.0)
        same = [adjusted_rand(cut.clustering.labels, labels[place]) for labels in replicates]
        scored[place] = replace(
            scored[place],
            recurrence=float(np.mean(same)),
            separation=_separation(result, cut.clustering.labels, cut.n_topics),
            examples=tuple(cut.topics[i].label for i in sorted({0, cut.n_topics // 2})),
        )
    suggested = int(np.argmax([level.recurrence * level.separation for level in scored]))
    best = scored[suggested]
    message = (
        f"{best.n_topics} topics have the largest product of recurrence (adjusted Rand index "
        f"{best.recurrence:.2f} in {n_replicates} random halves) and separation "
        f"({best.separation:.2f}) of {len(scored)} levels."
    )
    decision = Decision("clustering", "suggested_n_topics", best.n_topics, message)
    cut = at_resolution(result, min_cluster_size=best.min_cluster_size)
    cut = replace(cut, decisions=(*cut.decisions, decision))
    return ResolutionChoice(tuple(scored), suggested, n_replicates, cut)


def _separation(result: TopicResult, labels: Int32Array, n_topics: int) -> float:
    """Return the simplified silhouette: mean (b - a) / max(a, b) of distances to means."""
    inside, weights = np.flatnonzero(labels >= 0), result.documents.weights
    total = 0.0
    means, _ = cluster_means(result.coordinates[inside], weights[inside], labels[inside])
    for begin in range(0, len(inside), ROWS_AT_ONCE):
        rows = inside[begin : begin + ROWS_AT_ONCE]
        away = result.coordinates[rows, None] - means[None]
        distances = np.sqrt(np.einsum("ijk,ijk->ij", away, away))
        own_distance = np.take_along_axis(distances, labels[rows, None], axis=1)[:, 0]
        np.put_along_axis(distances, labels[rows, None].astype(np.int64), np.inf, axis=1)
        other = distances.min(axis=1)
        larger = np.maximum(own_distance, other)
        apart = np.divide(other - own_distance, larger, out=np.zeros_like(other), where=larger > 0)
        total += float((weights[rows] * apart).sum())
    return total / float(weights[inside].sum())


def _hierarchy(result: TopicResult) -> SpanningTree:
    if result.tree is None:
        expected = "one with a density hierarchy, of the default clusterer"
        remedy = "fit all documents with it, or merge topics with reduce, merge or at_level"
        origin = "given labels, another clusterer, or one document"
        raise InputError("result", expected, remedy=remedy, found=origin)
    return result.tree
