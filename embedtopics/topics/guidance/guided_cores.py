"""The dense cores of topics, with what a guide knows of them beforehand."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.clustering import automatic_min_cluster_size
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.results import (
    NOISE,
    Clustering,
    Guide,
    NeighborGraph,
    SpanningTree,
    TermCounts,
)
from embedtopics.terms import without_subject
from embedtopics.topics.cores import Cores, NotEnoughTopics, Resolution, choose_cores

__all__ = ["adopt_cores", "check_room", "cut_cores"]


def check_room(
    guide: Guide | None, resolution: Resolution | None, coverage: float | str = "auto"
) -> None:
    """Make sure that the topics known beforehand leave room for what else is wanted.

    Raises
    ------
    InputError
    """
    if guide is None or resolution is None or not guide.is_fixed:
        return
    wanted, size, n_fixed = resolution.n_topics, resolution.min_cluster_size, len(guide.names)
    if guide.is_complete:
        if wanted not in ("auto", n_fixed) or (size, coverage) != ("auto", "auto"):
            raise InputError(
                f"the topics are the {n_fixed} labels that were given, with just the texts that "
                'have them; leave n_topics, min_cluster_size and coverage at "auto", and edit the '
                f"topics after the fit; got {wanted!r}, {size!r} and {coverage!r}"
            )
        return
    if not isinstance(wanted, str) and wanted < n_fixed:
        raise InputError(
            f"n_topics must be at least {n_fixed}, the topics named beforehand that texts match; "
            f'got {wanted}; give "auto", or fewer names'
        )


def cut_cores(
    tree: SpanningTree,
    weights: Int64Array,
    resolution: Resolution,
    counts: TermCounts,
    graph: NeighborGraph,
    guide: Guide | None = None,
) -> Cores:
    """Cut the dense cores of topics from a hierarchy, as a guide wants them.

    The documents of topics known beforehand leave the cores that are cut. A core of which more
    than half left, or the rest of which has more neighbours there than in itself, is left over
    from these topics, and is none of its own.

    Parameters
    ----------
    tree : SpanningTree
    weights : int64 ndarray of shape (n_documents,)
    resolution : Resolution
        A number of topics counts those known beforehand.
    counts : TermCounts
    graph : NeighborGraph
    guide : Guide, optional

    Returns
    -------
    Cores

    Raises
    ------
    InputError
        Where more topics are known beforehand than are wanted.
    NotEnoughTopics
        Where the hierarchy does not hold as many topics as are wanted.
    """

    def without(labels: Int32Array, n_topics: int) -> npt.NDArray[np.bool_]:
        return without_subject(counts, labels, n_topics)

    if guide is None:
        return choose_cores(tree, weights, resolution, without)
    check_room(guide, resolution)
    wanted, n_fixed = resolution.n_topics, len(guide.names) if guide.is_fixed else 0

    def without_or_led(labels: Int32Array, n_topics: int) -> npt.NDArray[np.bool_]:
        left = _left(labels, guide)
        return without(left, n_topics) | _is_led(left, labels, n_topics, weights, graph, guide)

    if not isinstance(wanted, str) and wanted == n_fixed:
        size = automatic_min_cluster_size(int(weights.sum()))
        return _with_topics(_no_cores(len(weights), size), guide)
    others = wanted if isinstance(wanted, str) else wanted - n_fixed
    asked = dataclasses.replace(resolution, n_topics=others)
    try:
        cores = choose_cores(tree, weights, asked, without_or_led if n_fixed else without)
    except NotEnoughTopics as error:
        best = adopt_cores(error.best, weights, graph, guide)
        raise NotEnoughTopics(best, int(wanted)) from None
    return adopt_cores(cores, weights, graph, guide)


def adopt_cores(
    cores: Cores, weights: Int64Array, graph: NeighborGraph, guide: Guide | None
) -> Cores:
    """Return cores that were found without a guide as the guide wants them.

    Parameters
    ----------
    cores : Cores
    weights : int64 ndarray of shape (n_documents,)
    graph : NeighborGraph
    guide : Guide or None

    Returns
    -------
    Cores
    """
    if guide is None:
        return cores
    if guide.is_fixed:
        found = cores.clustering
        left = _left(found.labels, guide)
        n_cores = len(cores.is_subject)
        led = _is_led(left, found.labels, n_cores, weights, graph, guide)
        rest = dataclasses.replace(cores, clustering=dataclasses.replace(found, labels=left))
        return _with_topics(_without(rest, led), guide)
    return _pure(cores, weights, guide) if guide.is_pure else cores


def _with_topics(cores: Cores, guide: Guide) -> Cores:
    """Add the topics known beforehand; there are no others where the guide is complete."""
    before = _no_cores(len(guide.groups)) if guide.is_complete else cores
    n_before = len(before.is_subject)
    inside = guide.groups >= 0
    labels = np.where(inside, n_before + guide.groups, before.clustering.labels)
    strengths = np.where(inside, guide.strengths, before.clustering.strengths)
    n_added = len(guide.names)
    return _compact(
        labels,
        strengths,
        np.append(before.clustering.persistence, np.full(n_added, np.nan)),
        np.append(before.is_subject, np.ones(n_added, dtype=np.bool_)),
        cores.min_cluster_size,
    )


def _pure(cores: Cores, weights: Int64Array, guide: Guide) -> Cores:
    """Take documents out of cores of another class, and give a core to classes without one."""
    classes, labels = guide.groups, cores.clustering.labels.copy()
    n_cores, n_classes = len(cores.is_subject), len(guide.names)
    owner = owners(labels, classes, weights, n_cores, n_classes)
    owner[~cores.is_subject] = NOISE
    misplaced = (labels != NOISE) & (classes >= 0)
    misplaced &= owner[np.maximum(labels, 0)] != classes if n_cores else False
    labels[misplaced] = NOISE
    lacking = np.setdiff1d(classes[classes >= 0], owner)
    number = np.full(n_classes + 1, NOISE)
    number[lacking] = n_cores + np.arange(len(lacking))
    is_new = number[classes] >= 0
    labels[is_new] = number[classes[is_new]]
    strengths = np.where(is_new, guide.strengths, cores.clustering.strengths)
    return _compact(
        labels,
        strengths,
        np.append(cores.clustering.persistence, np.full(len(lacking), np.nan)),
        np.append(cores.is_subject, np.ones(len(lacking), dtype=np.bool_)),
        cores.min_cluster_size,
    )


def owners(
    labels: Int32Array, classes: Int32Array, weights: Int64Array, n_topics: int, n_classes: int
) -> Int32Array:
    """Return the class that most of the labelled texts of each topic have; -1 where none has one.

    Parameters
    ----------
    labels, classes : int32 ndarray of shape (n_documents,)
        -1 for none.
    weights : int64 ndarray of shape (n_documents,)
    n_topics, n_classes : int

    Returns
    -------
    int32 ndarray of shape (n_topics,)
        The lowest of several that as many have.
    """
    both = (labels >= 0) & (classes >= 0)
    # Not as a table of topics and classes, of which there may be as many as documents.
    pairs, pair_of = np.unique(
        labels[both].astype(np.int64) * n_classes + classes[both], return_inverse=True
    )
    n_rows = np.bincount(pair_of, weights[both], minlength=len(pairs))
    topics, held = np.divmod(pairs, max(n_classes, 1))
    order = np.lexsort((held, -n_rows, topics))
    found, first = np.unique(topics[order], return_index=True)
    owner = np.full(n_topics, NOISE, dtype=np.int32)
    owner[found] = held[order][first]
    return owner


def _left(labels: Int32Array, guide: Guide) -> Int32Array:
    """Return the labels of the documents that are in no topic known beforehand."""
    return np.where(guide.groups >= 0, NOISE, labels).astype(np.int32)


def _is_led(
    left: Int32Array,
    labels: Int32Array,
    n_cores: int,
    weights: Int64Array,
    graph: NeighborGraph,
    guide: Guide,
) -> npt.NDArray[np.bool_]:
    """Tell which cores are left-overs of topics known beforehand.

    More than half of the core is in these, or what is left of it has more neighbours there than
    in itself.
    """
    near, of_near = left[graph.indices], guide.groups[graph.indices]
    is_near = graph.similarities > 0
    known = ((of_near >= 0) & is_near).sum(axis=1)
    own = ((near == left[:, None]) & is_near).sum(axis=1)
    inside, whole = left != NOISE, labels != NOISE
    lead = np.bincount(left[inside], (known - own)[inside], minlength=n_cores)
    n_left = np.bincount(left[inside], weights[inside], minlength=n_cores)
    n_whole = np.bincount(labels[whole], weights[whole], minlength=n_cores)
    return np.asarray((lead > 0) | (2 * n_left < n_whole))


def _without(cores: Cores, dropped: npt.NDArray[np.bool_]) -> Cores:
    found = cores.clustering
    is_dropped = np.append(dropped, False)[found.labels]
    labels = np.where(is_dropped, NOISE, found.labels)
    return _compact(
        labels, found.strengths, found.persistence, cores.is_subject, cores.min_cluster_size
    )


def _no_cores(n_documents: int, min_cluster_size: int | None = None) -> Cores:
    nothing = Clustering(
        np.full(n_documents, NOISE, dtype=np.int32),
        np.zeros(n_documents, dtype=np.float32),
        np.empty(0),
    )
    return Cores(nothing, np.empty(0, dtype=np.bool_), min_cluster_size)


def _compact(
    labels: npt.NDArray[Any],
    strengths: npt.NDArray[Any],
    persistence: npt.NDArray[np.float64],
    is_subject: npt.NDArray[np.bool_],
    min_cluster_size: int | None,
) -> Cores:
    """Return the cores that hold a document, numbered in their order."""
    used = np.unique(labels[labels != NOISE])
    number = np.full(len(is_subject) + 1, NOISE, dtype=np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    numbered = number[labels]
    inside = np.where(numbered == NOISE, 0.0, strengths).astype(np.float32)
    return Cores(
        Clustering(numbered, inside, persistence[used]), is_subject[used], min_cluster_size
    )
