"""Coarser or finer topics from the same hierarchy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics.clustering.results import Level
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, RandomState
from embedtopics.topics._clusters import ClusterTree, NotEnoughTopics, Resolution, cluster_tree
from embedtopics.topics._describe import describe_again
from embedtopics.topics._propagation import assign_outliers, checked_coverage
from embedtopics.topics._relabel import edit_of
from embedtopics.topics._stability import adjusted_rand, recipe_of, replicate_at, side_by_side
from embedtopics.topics.constraints._apply import named_topics
from embedtopics.topics.naming._score_labels import rescored
from embedtopics.topics.results import ResolutionChoice, TopicResult


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
        Smallest number of texts in the dense group of a topic, instead of `n_topics`.
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
    return rescored(_recut(result, n_topics, min_cluster_size, coverage), result)


def _recut(
    result: TopicResult, n_topics: int | str, min_cluster_size: int | str, coverage: Any
) -> TopicResult:
    """Cut a result at another resolution, without scores of the labels."""
    clusters = clusters_of(result)
    if coverage is None:
        coverage = result.settings.get("coverage", "auto")
    coverage = checked_coverage(coverage)
    resolution = Resolution(n_topics, min_cluster_size)
    weights, graph, constraints = result.documents.weights, result.graph, result.constraints
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
    """List numbers of topics into which a result can be cut, with the evidence for each.

    "auto" is the smallest number with 96 % of the largest word gain, but at most the largest one
    with a neighbor share of .7.

    Parameters
    ----------
    result : TopicResult

    Returns
    -------
    tuple of Level
        Ascending numbers from 2 on, each about a fifth larger. Constraints are not applied.

    Raises
    ------
    InputError
        If the result has no hierarchy.
    """
    return tuple(clusters_of(result).levels)


def suggest_resolution(
    result: TopicResult,
    n_replicates: int = 6,
    *,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> ResolutionChoice:
    """Show the evidence for every number of topics, and cut the result at the automatic one.

    The evidence is that of `levels`, and how well the topics recur in random halves of the
    documents. Fewer topics recur more often; other numbers may serve a question better.

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
    Lange et al. (2004), "Stability-based validation of clustering solutions".
    """
    checked_count(n_replicates, "n_replicates")
    seed, recipe = resolve_seed(random_state), replace(recipe_of(result), coverage=1.0)
    clusters = clusters_of(result)
    scored = list(clusters.levels)
    if not scored:
        raise InputError("result", "one that can be cut into two topics", found=repr(result))
    resolutions = [Resolution(level.n_topics) for level in scored]

    def make(number: int) -> list[Int32Array]:
        return list(replicate_at(recipe, np.random.default_rng([seed, number]), resolutions))

    replicates = side_by_side(make, n_replicates, "levels", show_progress)
    for place, level in enumerate(scored):
        try:
            cut = _recut(result, level.n_topics, "auto", 1.0)
        except NotEnoughTopics:  # of the clusters, some are uninformative
            continue
        same = [adjusted_rand(cut.clustering.labels, labels[place]) for labels in replicates]
        examples = tuple(cut.topics[i].label for i in sorted({0, cut.n_topics // 2}))
        scored[place] = replace(level, recurrence=float(np.mean(same)), examples=examples)
    numbers = [level.n_topics for level in scored]
    suggested = numbers.index(clusters.number("auto"))
    return ResolutionChoice(tuple(scored), suggested, n_replicates, at_resolution(result))


def clusters_of(result: TopicResult) -> ClusterTree:
    """Return the clusters of a result at every resolution."""
    if result.tree is None:
        expected = "one with a density hierarchy, of the default clusterer"
        remedy = "fit all documents with it, or merge topics with reduce or merge"
        origin = "given labels, another clusterer, or one document"
        raise InputError("result", expected, remedy=remedy, found=origin)
    places, vectors, weights = result.coordinates, result.embeddings, result.documents.weights
    counts, graph, constraints = result.term_counts, result.graph, result.constraints
    return cluster_tree(result.tree, places, weights, counts, graph, vectors, constraints)
