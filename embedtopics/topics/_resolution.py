"""Coarser or finer topics from the same hierarchy, without fitting again."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from embedtopics.clustering._resolution import topics_by_min_cluster_size
from embedtopics.clustering.results import Level, SpanningTree
from embedtopics.errors import InputError
from embedtopics.protocols import TermWeighting
from embedtopics.topics._clusters import Resolution, cut_clusters, partitions_of
from embedtopics.topics._describe import describe_again, describe_weighting
from embedtopics.topics._propagation import checked_coverage
from embedtopics.topics._relabel import edit_of
from embedtopics.topics.constraints._apply import assign_constrained, named_topics
from embedtopics.topics.results import TopicResult

LEVEL_STEP = 2**0.5
"""Factor between the smallest sizes of the levels that are offered."""

FINEST_LEVEL = 5
"""Smallest cluster of a topic at the finest level that is offered."""


def at_resolution(
    result: TopicResult,
    n_topics: int | str = "auto",
    *,
    min_cluster_size: int | str = "auto",
    coverage: float | str | None = None,
    weighting: TermWeighting | None = None,
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
    weighting : object with ``fit(counts)`` and ``transform(counts)``, optional
        By default the one of the fit.

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
    cells = partitions_of(result.coordinates, weights, constraints)
    cut = cut_clusters(tree, cells, weights, resolution, result.term_counts, graph, constraints)
    assigned = assign_constrained(graph, cut, weights, coverage, result.embeddings, constraints)
    topics, topic_terms = describe_again(result, assigned.clustering, weighting)
    topics = named_topics(topics, assigned.clustering.labels, weights, constraints)
    parameters: dict[str, Any] = {"n_topics": n_topics, "min_cluster_size": min_cluster_size}
    parameters["coverage"] = coverage
    settings = {**result.settings, **parameters, "min_cluster_size": cut.min_cluster_size}
    settings["least_ratio"] = assigned.min_margin
    if weighting is not None:
        settings["weighting"] = parameters["weighting"] = describe_weighting(weighting)
    name = "n_topics" if min_cluster_size == "auto" else "min_cluster_size"
    message = f"cut at {name}={parameters[name]}, coverage={coverage}: {len(topics)} topics"
    labels = {topic.label for topic in topics}
    lost = [topic.label for topic in result.topics if topic.is_named and topic.label not in labels]
    if lost:
        message += f"; names given by hand were dropped: {', '.join(lost)}"
    return dataclasses.replace(
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
    cells = partitions_of(result.coordinates, weights, constraints)
    n_by_size = topics_by_min_cluster_size(tree, weights)
    found: list[Level] = []
    n_before, step = 0, float(FINEST_LEVEL)
    while (size := round(step)) < len(n_by_size) and n_by_size[size] >= 2:
        if n_by_size[size] != n_before:
            n_before, asked = n_by_size[size], Resolution("auto", size)
            cut = cut_clusters(tree, cells, weights, asked, counts, result.graph, constraints)
            is_inside = np.append(cut.is_informative, False)[cut.clustering.labels]
            coverage = float(weights[is_inside].sum() / weights.sum())
            persistence = float(np.nanmean(cut.clustering.persistence[cut.is_informative]))
            found.append(Level(size, cut.n_informative, coverage, persistence))
        step *= LEVEL_STEP
    return tuple(found)


def _hierarchy(result: TopicResult) -> SpanningTree:
    if result.tree is None:
        expected = "of the default clusterer, which keeps a density hierarchy"
        remedy = "fit all documents with it, or merge topics with reduce, merge or at_level"
        found = "one without (given labels, another clusterer, a combined result, or one document)"
        raise InputError("result", expected, remedy=remedy, found=found)
    return result.tree
