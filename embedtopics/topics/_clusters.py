"""Clusters cut from the density hierarchy at one resolution, with the constraints applied."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import is_count
from embedtopics.clustering._partition import Partitions, PartitionTree
from embedtopics.clustering._resolution import (
    named_min_cluster_size,
    topics_by_min_cluster_size,
)
from embedtopics.clustering._selection import labels_at
from embedtopics.clustering.results import NOISE, Clustering, SpanningTree
from embedtopics.errors import InputError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import BoolArray, FloatArray, Int32Array, Int64Array
from embedtopics.terms._subject import uninformative_topics
from embedtopics.terms.results import TermCounts
from embedtopics.topics.results import TopicConstraints

NAMES = ("auto", "fine", "coarse")

FEW_CELLS = 8
"""Cells around which partitions are nested where there are no two dense groups."""

TRIALS = 8
"""Numbers of clusters that are tried, where some turn out to be about nothing."""

Without = Callable[[Int32Array, int], BoolArray]
"""Returns which clusters are about nothing, from their labels and their number."""


@dataclass(frozen=True)
class Resolution:
    """A number of topics, or the smallest size of a cluster where that is "auto"."""

    n_topics: int | str = "auto"
    min_cluster_size: int | str = "auto"

    def __post_init__(self) -> None:
        """Refuse what cannot be met."""
        n_topics, size = self.n_topics, self.min_cluster_size
        if n_topics not in NAMES and not is_count(n_topics, 1):
            expected = '"auto", "fine", "coarse" or an integer from 1 up'
            raise InputError("n_topics", expected, n_topics)
        if size != "auto" and not is_count(size, 2):
            raise InputError("min_cluster_size", '"auto" or an integer from 2 up', size)
        if size != "auto" and n_topics != "auto":
            raise InputError("min_cluster_size", '"auto" where n_topics is given', size, "give one")


@dataclass(frozen=True, eq=False)
class ClusterCut:
    """Clusters, which are informative (n_clusters,), and the fewest texts in a dense group.

    `cells` (n_documents,) is the cluster that each document belongs to, dense or not; -1 for none.
    """

    clustering: Clustering
    is_informative: BoolArray
    min_cluster_size: int | None
    cells: Int32Array | None = None

    @property
    def n_informative(self) -> int:
        """Number of clusters that are about something."""
        return int(self.is_informative.sum())


class NotEnoughTopics(InputError):
    """A hierarchy does not hold the wanted number of topics; `best` is the cut with the most."""

    def __init__(self, best: ClusterCut, wanted: int) -> None:
        super().__init__(
            "n_topics",
            f"at most {best.n_informative} here",
            wanted,
            "these texts cannot be divided further",
        )
        self.best = best


@dataclass(frozen=True, eq=False)
class Cuts:
    """The clusters of documents at every resolution, in one tree.

    The density hierarchy says which documents lie in dense groups of a smallest size. At "auto" the
    documents are divided by k-means that starts from those groups that are about something; the
    partitions into other numbers are nested around this one. `weights` (n_documents,) are those of
    the density hierarchy; the partitions may count fewer documents.
    """

    tree: SpanningTree
    partitions: Partitions
    weights: Int64Array
    without: Without
    constrained: Callable[["Cuts", Resolution], ClusterCut] | None = None

    def at(self, resolution: Resolution) -> ClusterCut:
        """Cut clusters at a resolution, with what constrains them."""
        return (
            self.free(resolution)
            if self.constrained is None
            else self.constrained(self, resolution)
        )

    def free(self, resolution: Resolution) -> ClusterCut:
        """Cut clusters at a resolution.

        Raises
        ------
        NotEnoughTopics
        """
        wanted, size = resolution.n_topics, resolution.min_cluster_size
        if isinstance(wanted, str):
            named = self._auto if (wanted, size) == ("auto", "auto") else None
            found = named or self._dense(self._size(wanted) if isinstance(size, str) else size)
            if not found.n_informative:
                return found
            cells = self.cells.into(found.n_informative)
            return _divided(found, cells, self.without, is_loose=isinstance(size, str))
        # Who asks for a number gets it, however small the dense groups are.
        enough = np.flatnonzero(self._n_by_size >= 2)
        size = self._size("auto")
        found = self._dense(min(size, int(enough[-1]))) if len(enough) else self._auto
        return self._into(found, int(wanted))

    def _into(self, found: ClusterCut, wanted: int) -> ClusterCut:
        """Divide into so many clusters that are about something."""
        if not found.n_informative:
            raise NotEnoughTopics(found, wanted)
        n_most = self.cells.n_most
        n, best = min(wanted, n_most), found
        for trial in range(TRIALS):
            cut = _divided(found, self.cells.into(n), self.without)
            lacking = wanted - cut.n_informative
            if lacking == 0:
                return cut
            if trial == 0 or 0 < lacking < wanted - best.n_informative:
                best = cut
            if n == n_most:
                break
            n = min(n + max(1, lacking), n_most)
        raise NotEnoughTopics(best, wanted)

    def _dense(self, size: int) -> ClusterCut:
        """Return the dense groups of a smallest size, and which of them are about something."""
        dense = labels_at(self.tree, size, self.weights, method="leaf", allow_one_place=True)
        return ClusterCut(dense, ~self.without(dense.labels, len(dense.persistence)), size)

    def _size(self, name: str) -> int:
        """Return the size of a named resolution; smaller where that leaves less than two groups."""
        cells, n_by_size = self.partitions, self._n_by_size
        size = named_min_cluster_size(name, cells.coordinates, cells.weights)
        if size < len(n_by_size) and n_by_size[size] >= 2:
            return size
        finest = named_min_cluster_size("fine", cells.coordinates, cells.weights)
        enough = np.flatnonzero(n_by_size[: size + 1] >= 2)
        return int(enough[-1]) if len(enough) and enough[-1] >= finest else size

    @cached_property
    def _n_by_size(self) -> Int64Array:
        return topics_by_min_cluster_size(self.tree, self.weights)

    @cached_property
    def _auto(self) -> ClusterCut:
        return self._dense(self._size("auto"))

    @cached_property
    def cells(self) -> PartitionTree:
        """The partitions of the documents, nested around that of "auto"."""
        informative = self._auto.is_informative
        if informative.sum() < 2:
            return PartitionTree(self.partitions, self.partitions.into(FEW_CELLS))
        number = np.append(np.where(informative, np.cumsum(informative) - 1, NOISE), NOISE)
        groups = number[self._auto.clustering.labels].astype(np.int32)
        return PartitionTree(self.partitions, self.partitions.around(groups))


def _divided(
    found: ClusterCut, cells: Int64Array, without: Without, *, is_loose: bool = True
) -> ClusterCut:
    """Make clusters of cells (n_documents,), the dense documents their cores.

    Dense groups about nothing stay as they are. A cell without a dense document is all core where
    clusters may be loose, and none where a smallest size was asked for.
    """
    dense, informative = found.clustering, found.is_informative
    n_cells = int(cells.max(initial=-1)) + 1
    is_core = np.append(informative, False)[dense.labels]
    is_empty = np.append(~informative, False)[dense.labels]
    if is_loose:
        is_core |= ~np.isin(cells, cells[is_core]) & ~is_empty
    number = np.append(np.where(informative, NOISE, n_cells + np.cumsum(~informative) - 1), NOISE)
    labels = np.where(is_core, cells, number[dense.labels]).astype(np.int32)
    persistence = np.append(dense.persistence, np.nan)[dense.labels]
    known = is_core & ~np.isnan(persistence)
    n_known = np.bincount(cells[known], minlength=n_cells)
    sums = np.bincount(cells[known], persistence[known], minlength=n_cells)
    means = np.divide(sums, n_known, out=np.full(n_cells, np.nan), where=n_known > 0)
    is_about = ~without(np.where(is_core, cells, NOISE).astype(np.int32), n_cells)
    probabilities = np.where(is_core & (dense.labels == NOISE), 1.0, dense.probabilities)
    return _compact(
        labels,
        probabilities,
        np.append(means, dense.persistence[~informative]),
        np.append(is_about, np.zeros(int((~informative).sum()), dtype=np.bool_)),
        found.min_cluster_size,
        cells,
    )


def check_constraints(
    constraints: TopicConstraints | None,
    resolution: Resolution | None,
    coverage: float | str = "auto",
) -> None:
    """Refuse a resolution that the topics of the constraints rule out."""
    if constraints is None or resolution is None or not constraints.is_fixed:
        return
    wanted, size, n_fixed = resolution.n_topics, resolution.min_cluster_size, len(constraints.names)
    if constraints.is_complete:
        if wanted not in ("auto", n_fixed) or (size, coverage) != ("auto", "auto"):
            expected = '"auto", as min_cluster_size and coverage, where all topics are given labels'
            remedy = f"edit the {n_fixed} topics after the fit"
            raise InputError("n_topics", expected, (wanted, size, coverage), remedy)
    elif not isinstance(wanted, str) and wanted < n_fixed:
        expected = f"at least {n_fixed}, the topics named beforehand that texts match"
        raise InputError("n_topics", expected, wanted, 'give "auto", or fewer names')


def cuts_of(
    tree: SpanningTree,
    coordinates: FloatArray,
    weights: Int64Array,
    counts: TermCounts,
    graph: NeighborGraph,
    constraints: TopicConstraints | None = None,
) -> Cuts:
    """Return the clusters at every resolution, with the constraints applied.

    Documents of fixed topics leave the clusters; one of which more than half left, or whose rest
    has more neighbours there than in itself, is dropped as a remainder.
    """
    without = partial(uninformative_topics, counts)
    if constraints is None:
        return Cuts(tree, Partitions(coordinates, weights), weights, without)
    n_fixed = len(constraints.names) if constraints.is_fixed else 0
    counted = np.where(constraints.groups >= 0, 0, weights) if n_fixed else weights

    def without_or_remainder(labels: Int32Array, n_clusters: int) -> BoolArray:
        left = _left(labels, constraints)
        remainder = _is_remainder(left, labels, n_clusters, weights, graph, constraints)
        return without(left, n_clusters) | remainder

    def constrained(cuts: Cuts, resolution: Resolution) -> ClusterCut:
        check_constraints(constraints, resolution)
        wanted = resolution.n_topics
        if not isinstance(wanted, str) and wanted == n_fixed:
            size = named_min_cluster_size("auto", coordinates, weights)
            return _with_fixed(_no_clusters(len(weights), size), constraints)
        others = wanted if isinstance(wanted, str) else wanted - n_fixed
        try:
            cut = cuts.free(dataclasses.replace(resolution, n_topics=others))
        except NotEnoughTopics as error:
            best = constrain_cut(error.best, weights, graph, constraints)
            raise NotEnoughTopics(best, int(wanted)) from None
        return constrain_cut(cut, weights, graph, constraints)

    refused = without_or_remainder if n_fixed else without
    return Cuts(tree, Partitions(coordinates, counted), weights, refused, constrained)


def constrain_cut(
    cut: ClusterCut, weights: Int64Array, graph: NeighborGraph, constraints: TopicConstraints | None
) -> ClusterCut:
    """Return a cut with the constraints applied."""
    if constraints is None:
        return cut
    if not constraints.is_fixed:
        return cut
    if constraints.is_complete:
        return _with_fixed(_no_clusters(len(weights), cut.min_cluster_size), constraints)
    found, informative = cut.clustering, cut.is_informative
    left = _left(found.labels, constraints)
    dropped = _is_remainder(left, found.labels, len(informative), weights, graph, constraints)
    labels = np.where(np.append(dropped, False)[left], NOISE, left)
    rest = _compact(
        labels, found.probabilities, found.persistence, informative, cut.min_cluster_size
    )
    return _with_fixed(rest, constraints)


def _with_fixed(cut: ClusterCut, constraints: TopicConstraints) -> ClusterCut:
    before, n_before, n_added = cut.clustering, len(cut.is_informative), len(constraints.names)
    inside = constraints.groups >= 0
    return _compact(
        np.where(inside, n_before + constraints.groups, before.labels),
        np.where(inside, constraints.probabilities, before.probabilities),
        np.append(before.persistence, np.full(n_added, np.nan)),
        np.append(cut.is_informative, np.ones(n_added, dtype=np.bool_)),
        cut.min_cluster_size,
    )


def owners(
    labels: Int32Array, classes: Int32Array, weights: Int64Array, n_topics: int, n_classes: int
) -> Int32Array:
    """Return the class of most labelled texts of each topic, (n_topics,); -1 where none has one."""
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


def _left(labels: Int32Array, constraints: TopicConstraints) -> Int32Array:
    """Return the labels of the documents that are in no fixed topic."""
    return np.where(constraints.groups >= 0, NOISE, labels).astype(np.int32)


def _is_remainder(
    left: Int32Array,
    labels: Int32Array,
    n_clusters: int,
    weights: Int64Array,
    graph: NeighborGraph,
    constraints: TopicConstraints,
) -> BoolArray:
    """Return which clusters are remainders of fixed topics; see `cut_clusters`."""
    near, of_near = left[graph.indices], constraints.groups[graph.indices]
    is_near = graph.similarities > 0
    known = ((of_near >= 0) & is_near).sum(axis=1)
    own = ((near == left[:, None]) & is_near).sum(axis=1)
    inside, whole = left != NOISE, labels != NOISE
    lead = np.bincount(left[inside], (known - own)[inside], minlength=n_clusters)
    n_left = np.bincount(left[inside], weights[inside], minlength=n_clusters)
    n_whole = np.bincount(labels[whole], weights[whole], minlength=n_clusters)
    return np.asarray((lead > 0) | (2 * n_left < n_whole))


def _no_clusters(n_documents: int, min_cluster_size: int | None) -> ClusterCut:
    labels = np.full(n_documents, NOISE, dtype=np.int32)
    nothing = Clustering(labels, np.zeros(n_documents, dtype=np.float32), np.empty(0))
    return ClusterCut(nothing, np.empty(0, dtype=np.bool_), min_cluster_size)


def _compact(
    labels: npt.NDArray[Any],
    probabilities: npt.NDArray[Any],
    persistence: npt.NDArray[np.float64],
    is_informative: BoolArray,
    min_cluster_size: int | None,
    cells: Int64Array | None = None,
) -> ClusterCut:
    """Return the clusters that hold a document, numbered in their order."""
    used = np.unique(labels[labels != NOISE])
    number = np.full(len(is_informative) + 1, NOISE, dtype=np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    numbered = number[labels]
    inside = np.where(numbered == NOISE, 0.0, probabilities).astype(np.float32)
    clustering = Clustering(numbered, inside, persistence[used])
    renumbered = None if cells is None else number[cells]
    return ClusterCut(clustering, is_informative[used], min_cluster_size, renumbered)
