"""Coarser or finer topics from the same hierarchy, without fitting again."""

from __future__ import annotations

import dataclasses
from typing import Any

from embedtopics.clustering import labels_at, topics_by_min_cluster_size
from embedtopics.errors import InputError
from embedtopics.protocols import TermWeighting
from embedtopics.results import NOISE, Level, SpanningTree, TopicResult
from embedtopics.topics.cores import Cores, NotEnoughTopics, Resolution, choose_cores
from embedtopics.topics.describe import describe_topics
from embedtopics.topics.guidance.guided_cores import cut_cores
from embedtopics.topics.guidance.settling import named_topics, settle
from embedtopics.topics.memberships import checked_coverage
from embedtopics.topics.recorded import (
    describe_weighting,
    languages_of,
    term_settings_of,
    weighting_of,
)
from embedtopics.topics.relabeling import edit_of

__all__ = ["Cores", "NotEnoughTopics", "Resolution", "at_resolution", "choose_cores", "levels"]

LEVEL_STEP = 2**0.5
"""Factor between the smallest sizes of the levels that are offered."""

FINEST_LEVEL = 5
"""Smallest core of a topic at the finest level that is offered."""


def at_resolution(
    result: TopicResult,
    n_topics: int | str = "auto",
    *,
    min_cluster_size: int | str = "auto",
    coverage: float | str | None = None,
    weighting: TermWeighting | None = None,
) -> TopicResult:
    """Read a result at another resolution, from the same graph, layout and hierarchy.

    The topics are other ones: names that were given after the fit, which the edit lists, and what
    else was done to the topics do not carry over; `replay` does it again where it can.

    Parameters
    ----------
    result : TopicResult
    n_topics : {"auto", "fine", "coarse"} or int
        An integer is met exactly. Topics named before the fit count, and stay as they are; the
        others are cut anew.
    min_cluster_size : "auto" or int
        Fewest texts in the core of a topic, in place of `n_topics`; see `levels`.
    coverage : "auto", float or None
        As in `TopicModel`; None keeps that of the result.
    weighting : object with ``fit_transform(topic_counts)``, optional
        By default the one of the fit.

    Returns
    -------
    TopicResult
        With topics, memberships and terms of their own; everything else is shared. Names that were
        given by hand are given up, which the edit says: these are other topics.

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
    documents, counts = result.documents, result.term_counts
    weights, graph, guide = documents.weights, result.graph, result.guide
    cores = cut_cores(tree, weights, resolution, counts, graph, guide)
    joined = settle(graph, cores, weights, coverage, result.embeddings, guide)
    topics, topic_terms = describe_topics(
        counts,
        result.embeddings,
        joined.clustering,
        documents,
        weighting_of(result, weighting),
        term_settings_of(result),
        languages_of(result),
    )
    topics = named_topics(topics, joined.clustering.labels, weights, guide)
    settings = {
        **result.settings,
        "n_topics": resolution.n_topics,
        "min_cluster_size": cores.min_cluster_size,
        "coverage": coverage,
        "least_ratio": joined.least_ratio,
    }
    asked = (
        f"n_topics={resolution.n_topics}"
        if min_cluster_size == "auto"
        else f"min_cluster_size={min_cluster_size}"
    )
    parameters: dict[str, Any] = {
        "n_topics": n_topics, "min_cluster_size": min_cluster_size, "coverage": coverage,
    }  # fmt: skip
    if weighting is not None:
        settings["weighting"] = parameters["weighting"] = describe_weighting(weighting)
    message = f"read at {asked}, coverage={coverage}: {len(topics)} topics"
    labels = {topic.label for topic in topics}
    lost = [topic.label for topic in result.topics if topic.is_named and topic.label not in labels]
    if lost:
        message += f"; names given by hand were given up: {', '.join(lost)}"
    edit = edit_of(result, "at_resolution", parameters, message)
    return dataclasses.replace(
        result,
        clustering=joined.clustering,
        memberships=joined.memberships,
        topics=topics,
        topic_terms=topic_terms,
        settings=settings,
        history=(*result.history, edit),
        stability=None,
    )


def levels(result: TopicResult) -> tuple[Level, ...]:
    """List the resolutions at which a result can be read, finest first.

    Parameters
    ----------
    result : TopicResult

    Returns
    -------
    tuple of Level
        Smallest sizes grow by the square root of two from one to the next; sizes that change
        nothing are left out.

    Raises
    ------
    InputError
        Where the result has no hierarchy.
    """
    tree = _hierarchy(result)
    weights = result.documents.weights
    n_by_size = topics_by_min_cluster_size(tree, weights)
    found: list[Level] = []
    size = float(FINEST_LEVEL)
    while round(size) < len(n_by_size) and n_by_size[round(size)] >= 2:
        if not found or n_by_size[round(size)] != found[-1].n_topics:
            cut = labels_at(tree, round(size), weights, method="leaf")
            found.append(
                Level(
                    min_cluster_size=round(size),
                    n_topics=len(cut.persistence),
                    coverage=float(weights[cut.labels != NOISE].sum() / weights.sum()),
                    persistence=float(cut.persistence.mean()),
                )
            )
        size *= LEVEL_STEP
    return tuple(found)


def _hierarchy(result: TopicResult) -> SpanningTree:
    if result.tree is None:
        raise InputError(
            "the result holds no density hierarchy, because its labels were given or come from "
            "another clusterer, it was combined of several, or there is one document only; fit all "
            "documents with the default clusterer, or join topics with reduce, merge or at_level"
        )
    return result.tree
