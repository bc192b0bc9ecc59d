"""Coarser or finer topics from the same hierarchy, without fitting again."""

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
from embedtopics.topics._clusters import ClusterCut, Resolution, cuts_of
from embedtopics.topics._describe import describe_again
from embedtopics.topics._propagation import checked_coverage
from embedtopics.topics._relabel import edit_of
from embedtopics.topics._stability import SHARE, adjusted_rand, recipe_of, replicate_at
from embedtopics.topics.constraints._apply import assign_constrained, named_topics
from embedtopics.topics.results import ResolutionChoice, TopicResult

LEVEL_STEP = 2**0.5
"""Factor between the smallest sizes of the levels that are offered."""

FINEST_LEVEL = 5
"""Smallest cluster of a topic at the finest level that is offered."""

ROWS_AT_ONCE = 1024
"""Documents whose distances from all topics are held at a time."""


def at_resolution(
    result: TopicResult,
    n_topics: int | str = "auto",
    *,
    min_cluster_size: int | str = "auto",
    coverage: float | str | None = None,
) -> TopicResult:
    """Cut a result at another resolution, from the same graph, coordinates and hierarchy.

    Names given after the fit, which the edit lists, and other edits do not carry over to the new
    topics; `replay` repeats them where it can.

    Parameters
    ----------
    result : TopicResult
    n_topics : {"auto", "fine", "coarse"} or int
        An integer is met exactly. Topics named before the fit count, and stay as they are.
    min_cluster_size : "auto" or int
        Fewest texts in the cluster of a topic, in place of `n_topics`; see `levels`.
    coverage : "auto", float or None
        As in `TopicModel`; None keeps that of the result.

    Returns
    -------
    TopicResult
        With topics, memberships and terms of its own; everything else is shared.

    Raises
    ------
    InputError
        Where the result has no hierarchy, or not as many topics.
    """
    tree = _hierarchy(result)
    if coverage is None:
        coverage = result.settings.get("coverage", "auto")
    coverage = checked_coverage(coverage)
    resolution = Resolution(n_topics, min_cluster_size)
    weights, graph, constraints = result.documents.weights, result.graph, result.constraints
    counts, coordinates = result.term_counts, result.coordinates
    cut = cuts_of(tree, coordinates, weights, counts, graph, constraints).at(resolution)
    assigned = assign_constrained(graph, cut, weights, coverage, constraints)
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
        message += f"; names given by hand were dropped: {', '.join(lost)}"
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
        Smallest sizes grow by the square root of two from one to the next; sizes that change
        nothing are left out. Clusters about nothing are not counted, as in `at_resolution`.

    Raises
    ------
    InputError
        Where the result has no hierarchy.
    """
    tree = _hierarchy(result)
    weights, counts, constraints = result.documents.weights, result.term_counts, result.constraints
    cuts = cuts_of(tree, result.coordinates, weights, counts, result.graph, constraints)
    n_by_size = topics_by_min_cluster_size(tree, weights)
    found: list[Level] = []
    n_before, step = 0, float(FINEST_LEVEL)
    while (size := round(step)) < len(n_by_size) and n_by_size[size] >= 2:
        if n_by_size[size] != n_before:
            n_before, cut = n_by_size[size], cuts.at(Resolution("auto", size))
            if not found or found[-1].n_topics != cut.n_informative:
                found.append(_level(cut, weights))
        step *= LEVEL_STEP
    return tuple(found)


def _level(cut: ClusterCut, weights: Int64Array) -> Level:
    """Say what a cut is like."""
    is_inside = np.append(cut.is_informative, False)[cut.clustering.labels]
    coverage = float(weights[is_inside].sum() / weights.sum())
    persistence = float(np.nanmean(cut.clustering.persistence[cut.is_informative]))
    assert cut.min_cluster_size is not None
    return Level(cut.min_cluster_size, cut.n_informative, coverage, persistence)


MOST_SUGGESTED = 60
"""Topics up to which levels are judged: more are read by their number, with `at_resolution`."""


def suggest_resolution(
    result: TopicResult,
    n_replicates: int = 6,
    *,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> ResolutionChoice:
    """Judge each level of a result by whether its topics come back and lie apart.

    The suggested level has the largest product of recurrence and separation: fewer topics recur
    more often, and more topics lie farther apart. It is one reading of many; the table and
    `embedtopics.plots.resolutions` show what speaks for the others.

    Parameters
    ----------
    result : TopicResult
        Of the default coordinates and clusterer.
    n_replicates : int
        Random halves of the documents in which topics are found anew at each level.
    random_state : int, numpy.random.Generator or None
    show_progress : bool or None

    Returns
    -------
    ResolutionChoice

    Raises
    ------
    InputError
        Where the result has no levels, comes from another reducer or clusterer, or a parameter is
        bad.

    References
    ----------
    Lange et al. (2004), "Stability-based validation of clustering solutions"; Hruschka et al.
    (2004), "Evolutionary algorithms for clustering gene-expression data" (simplified silhouette).
    """
    checked_count(n_replicates, "n_replicates")
    seed, recipe = resolve_seed(random_state), replace(recipe_of(result), coverage=1.0)
    found = [level for level in levels(result) if 2 <= level.n_topics <= MOST_SUGGESTED]
    if not found:
        expected = f"one that can be cut into 2 to {MOST_SUGGESTED} topics"
        raise InputError("result", expected, found=repr(result))
    sizes = [level.min_cluster_size for level in found]
    asked = [Resolution("auto", max(2, round(SHARE * size))) for size in sizes]

    def make(number: int) -> list[Int32Array]:
        return list(replicate_at(recipe, np.random.default_rng([seed, number]), asked))

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
        found[place] = replace(
            found[place],
            recurrence=float(np.mean(same)),
            separation=_separation(result, cut.clustering.labels, cut.n_topics),
            examples=tuple(cut.topics[i].label for i in sorted({0, cut.n_topics // 2})),
        )
    chosen = int(np.argmax([level.recurrence * level.separation for level in found]))
    best = found[chosen]
    message = (
        f"{best.n_topics} topics recur (adjusted Rand index {best.recurrence:.2f} in "
        f"{n_replicates} random halves) and lie apart ({best.separation:.2f}) more than those of "
        f"the {len(found) - 1} other levels."
    )
    decision = Decision("clustering", "suggested_n_topics", best.n_topics, message)
    read = at_resolution(result, min_cluster_size=best.min_cluster_size)
    read = replace(read, decisions=(*read.decisions, decision))
    return ResolutionChoice(tuple(found), chosen, n_replicates, read)


def _separation(result: TopicResult, labels: Int32Array, n_topics: int) -> float:
    """Return the mean of 1 - a / b; a, b: distances to the own and the nearest other mean."""
    inside, weights = np.flatnonzero(labels >= 0), result.documents.weights
    total = 0.0
    means, _ = cluster_means(result.coordinates[inside], weights[inside], labels[inside])
    for begin in range(0, len(inside), ROWS_AT_ONCE):
        rows = inside[begin : begin + ROWS_AT_ONCE]
        away = result.coordinates[rows, None] - means[None]
        distances = np.sqrt(np.einsum("ijk,ijk->ij", away, away))
        own = np.take_along_axis(distances, labels[rows, None], axis=1)[:, 0]
        np.put_along_axis(distances, labels[rows, None].astype(np.int64), np.inf, axis=1)
        other = distances.min(axis=1)
        larger = np.maximum(own, other)
        apart = np.divide(other - own, larger, out=np.zeros_like(own), where=larger > 0)
        total += float((weights[rows] * apart).sum())
    return total / float(weights[inside].sum())


def _hierarchy(result: TopicResult) -> SpanningTree:
    if result.tree is None:
        expected = "of the default clusterer, which keeps a density hierarchy"
        remedy = "fit all documents with it, or merge topics with reduce, merge or at_level"
        found = "one without (given labels, another clusterer, a combined result, or one document)"
        raise InputError("result", expected, remedy=remedy, found=found)
    return result.tree
