"""Clusters of documents at any resolution, cut from one tree, with the constraints applied."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import is_count
from embedtopics.clustering._hierarchy import labels_at
from embedtopics.clustering._partition import Partitioner, PartitionTree, cluster_means, ward_merges
from embedtopics.clustering._resolution import (
    FEWEST,
    default_min_cluster_size,
    topics_by_min_cluster_size,
)
from embedtopics.clustering.results import NOISE, Clustering, SpanningTree
from embedtopics.errors import InputError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import BoolArray, Float64Array, FloatArray, Int32Array, Int64Array
from embedtopics.terms.results import TermCounts
from embedtopics.topics._repetition import groups_of_many, none_uninformative, repeated_groups
from embedtopics.topics._support import (
    BEYOND,
    CLEAR,
    ENOUGH_NEIGHBORS,
    FEW_SMALL,
    FEWEST_A_TOPIC,
    MOST,
    STEP,
    Judge,
    Level,
    best_level,
    clearest,
    n_themes,
    numbers_to_try,
    uninformative_topics,
)
from embedtopics.topics.results import TopicConstraints

NAMES = ("auto", "fine", "coarse")
FINER = 2
"""Factor between the numbers of topics at "auto" and "fine"."""

FEWER = 4
"""Factor by which the size of a dense group may fall if it leaves fewer than two groups."""

FEW_CLUSTERS = 8
"""Clusters of the first partition if there are fewer than two dense groups."""

TRIALS = 8
"""Numbers of clusters to try if some of the clusters turn out uninformative."""

UninformativeTest = Callable[[Int32Array, int], BoolArray]
"""Takes labels (n_documents,) and their number; returns which clusters are uninformative."""


@dataclass(frozen=True)
class Resolution:
    """A number of topics, or a smallest cluster size with n_topics="auto"."""

    n_topics: int | str = "auto"
    min_cluster_size: int | str = "auto"

    def __post_init__(self) -> None:
        """Check both values."""
        n_topics, size = self.n_topics, self.min_cluster_size
        if n_topics not in NAMES and not is_count(n_topics, 1):
            expected = '"auto", "fine", "coarse" or an integer from 1 up'
            raise InputError("n_topics", expected, n_topics)
        if size != "auto" and not is_count(size, 2):
            raise InputError("min_cluster_size", '"auto" or an integer from 2 up', size)
        if size != "auto" and n_topics != "auto":
            raise InputError("min_cluster_size", '"auto" if n_topics is given', size, "give one")


@dataclass(frozen=True, eq=False)
class ClusterCut:
    """Clusters at one resolution: labels, which clusters are informative, smallest dense group.

    `partition` (n_documents,) is the cluster of every document, dense or not; -1 for no cluster.
    In a cut that `is_repetitive` the clusters are repeated texts.
    """

    clustering: Clustering
    is_informative: BoolArray
    min_cluster_size: int | None
    partition: Int32Array | None = None
    is_repetitive: bool = False

    @property
    def n_informative(self) -> int:
        return int(self.is_informative.sum())


class NotEnoughTopics(InputError):
    """A hierarchy does not hold the requested number of topics; `best` is the cut with the most."""

    def __init__(self, best: ClusterCut, n_topics: int) -> None:
        expected, remedy = f"at most {best.n_informative} here", "these texts do not divide further"
        super().__init__("n_topics", expected, n_topics, remedy)
        self.best = best


@dataclass(frozen=True, eq=False)
class ClusterTree:
    """The clusters of documents at every resolution; `weights` (n_documents,) are the tree's.

    The hierarchy gives the dense groups of a smallest size, from which k-means divides the
    documents. Its partition is merged or divided into other numbers, and each one is refined. A
    tree with a `source` has the partitions of that tree. Repeated texts are groups only if they
    have a vector, `has_vector` (n_documents,).
    """

    tree: SpanningTree
    partitioner: Partitioner
    weights: Int64Array
    is_uninformative: UninformativeTest
    constrained_cut: Callable[[ClusterTree, Resolution], ClusterCut] | None = None
    judge: Judge | None = None
    source: ClusterTree | None = None
    has_vector: BoolArray | None = None

    def cut(self, resolution: Resolution) -> ClusterCut:
        """Cut clusters at a resolution, with the constraints applied."""
        make_cut = self.constrained_cut or ClusterTree.unconstrained_cut
        try:
            cut = make_cut(self, resolution)
        except NotEnoughTopics as error:
            error.best = dataclasses.replace(error.best, is_repetitive=self.is_repetitive)
            raise
        return dataclasses.replace(cut, is_repetitive=self.is_repetitive)

    def unconstrained_cut(self, resolution: Resolution) -> ClusterCut:
        """Cut clusters at a resolution; NotEnoughTopics if the tree holds fewer than asked."""
        n_topics, size = resolution.n_topics, resolution.min_cluster_size
        if not isinstance(size, str):
            dense = self._dense(size)
            if not dense.n_informative:
                return dense
            partition = self.partition(dense.n_informative)
            return _clusters_around(dense, partition, self._test, is_loose=False)

        # A requested number is met, however small the dense groups are.
        enough = np.flatnonzero(self._n_by_size >= 2)
        dense = self._auto
        if len(enough) and not isinstance(n_topics, str):
            dense = self._dense(min(self._size, int(enough[-1])))

        if not isinstance(n_topics, str):
            return self._cut_into(dense, int(n_topics))
        if not dense.n_informative:
            return dense

        try:
            return self._cut_into(dense, self.number(n_topics))
        except NotEnoughTopics as error:
            return error.best

    def number(self, name: str) -> int:
        """Return the number of topics at the resolution "auto", "fine" or "coarse"."""
        n_topics = self._automatic
        if name == "fine" and self.is_repetitive:
            return n_topics  # one text does not divide
        if name == "fine":
            return min(FINER * n_topics, self.partitions.n_most)
        return n_themes(self._heights(n_topics)) if name == "coarse" else n_topics

    @cached_property
    def _automatic(self) -> int:
        levels = self._scanned
        # Where words tell nothing, the dense groups are what there is.
        if not levels or max(level.word_gain for level in levels) <= 0:
            return self._auto.n_informative
        best = levels[best_level(levels)].n_topics
        # The numbers that were tried are a fifth apart.
        most = min(round(best * STEP**2), self.partitions.n_most - 1)
        return min(clearest(self._heights(most + 1), best, most, CLEAR), MOST)

    @cached_property
    def levels(self) -> list[Level]:
        """Levels with ascending numbers, up to four times the last that neighbors share."""
        levels = {level.n_topics: level for level in self._scanned}
        if self.judge and levels and self._automatic not in levels:
            levels[self._automatic] = self.judge.level(self.partitions.into(self._automatic))
        return [levels[n_topics] for n_topics in sorted(levels)]

    @cached_property
    def _scanned(self) -> list[Level]:
        levels: list[Level] = []
        if self.judge is None or self._auto.n_informative < 2 or self.is_repetitive:
            return levels

        n_counted = int((self.partitioner.weights > 0).sum())
        last = 2
        for n_topics in numbers_to_try(min(self.partitions.n_most, n_counted // FEWEST_A_TOPIC)):
            if n_topics > BEYOND * last:
                break
            partition = self.partitions.into(n_topics)
            sizes = np.bincount(partition, self.partitioner.weights)
            if (sizes < FEWEST).mean() > FEW_SMALL:
                continue
            levels.append(self.judge.level(partition))
            last = n_topics if levels[-1].neighbor_share >= ENOUGH_NEIGHBORS else last

        return levels

    def partition(self, n_topics: int) -> Int64Array:
        """Return the cluster of each document among `n_topics`, refined by the vectors."""
        if n_topics not in self._refined:
            partition = self.partitions.into(n_topics)
            if not self.is_repetitive:
                partition = self.partitioner.refined(partition)
            self._refined[n_topics] = partition
        return self._refined[n_topics]

    @cached_property
    def _refined(self) -> dict[int, Int64Array]:
        return {} if self.source is None else self.source._refined

    def sharing(self, other: ClusterTree) -> ClusterTree:
        """Return this tree, with the partitions of another if those start from the same groups."""
        one, two = self._auto, other._auto
        is_same = (
            np.array_equal(self.partitioner.coordinates, other.partitioner.coordinates)
            and np.array_equal(one.clustering.labels, two.clustering.labels)
            and np.array_equal(one.is_informative, two.is_informative)
        )
        return dataclasses.replace(self, source=other) if is_same else self

    def _heights(self, n_topics: int) -> Float64Array:
        """Return the heights of the merges of a partition, in order."""
        labels, of_tree = self.partitions.into(n_topics), self.partitioner
        merges = ward_merges(*cluster_means(of_tree.coordinates, of_tree.weights, labels))
        return np.asarray(np.sqrt(np.maximum.accumulate(merges[1])))

    def _cut_into(self, dense: ClusterCut, n_topics: int) -> ClusterCut:
        """Return a cut of `n_topics` informative clusters."""
        if not dense.n_informative:
            raise NotEnoughTopics(dense, n_topics)
        n_most = self.partitions.n_most
        n = min(n_topics, n_most)
        best = dense

        for trial in range(TRIALS):
            # The one text of a cluster is its core; others of the partition are not.
            is_loose = not self.is_repetitive
            cut = _clusters_around(dense, self.partition(n), self._test, is_loose=is_loose)
            lacking = n_topics - cut.n_informative
            if lacking == 0:
                return cut
            if lacking < 0:  # a broad cluster is uninformative as a whole, and its parts are not
                parts = self.partition(n_topics)
                cut = _clusters_around(dense, parts, lambda _, n: np.zeros(n, dtype=np.bool_))
                if cut.n_informative == n_topics:
                    return cut
                break

            if trial == 0 or lacking < n_topics - best.n_informative:
                best = cut
            if n == n_most:
                break
            n = min(n + lacking, n_most)

        raise NotEnoughTopics(best, n_topics)

    def _dense(self, size: int) -> ClusterCut:
        """Return the dense groups of a smallest size."""
        dense = repeated_groups(self.partitioner.coordinates, self._repeatable, size)
        if dense is None:
            dense = labels_at(self.tree, size, self.weights, allow_one_place=True)
        return self._tested(dense, size)

    def _tested(self, clustering: Clustering, size: int) -> ClusterCut:
        """Return a cut that knows which clusters are informative."""
        is_informative = ~self._test(clustering.labels, len(clustering.persistence))
        return ClusterCut(clustering, is_informative, size)

    @cached_property
    def is_repetitive(self) -> bool:
        """Whether a few repeated texts are nearly all there is; each is a group of its own."""
        return repeated_groups(self.partitioner.coordinates, self._repeatable) is not None

    @property
    def _repeatable(self) -> Int64Array:
        """Rows of the documents that may be repeated texts, (n_documents,); 0 without a vector."""
        if self.has_vector is None:
            return self.partitioner.weights
        return np.where(self.has_vector, self.partitioner.weights, 0)

    @property
    def _test(self) -> UninformativeTest:
        """The test of words, which needs several texts in a group."""
        if self.is_repetitive and self.constrained_cut is None:
            return none_uninformative
        return self.is_uninformative

    @cached_property
    def _size(self) -> int:
        """Smallest size of the dense groups; smaller if that leaves fewer than two of them."""
        if self.is_repetitive:
            return FEWEST
        partitioner, n_by_size = self.partitioner, self._n_by_size
        size = default_min_cluster_size(partitioner.coordinates, partitioner.weights)
        if size < len(n_by_size) and n_by_size[size] >= 2:
            return size
        enough = np.flatnonzero(n_by_size[: size + 1] >= 2)
        return int(enough[-1]) if len(enough) and enough[-1] >= max(FEWEST, size / FEWER) else size

    @cached_property
    def _n_by_size(self) -> Int64Array:
        return topics_by_min_cluster_size(self.tree, self.weights)

    @cached_property
    def _auto(self) -> ClusterCut:
        dense = self._dense(self._size)
        if dense.n_informative >= 2 or self.is_repetitive:
            return dense
        # Many texts that repeat each other, such as templates, may be groups without being dense.
        groups = groups_of_many(self.partitioner.coordinates, self._repeatable)
        return dense if groups is None else self._tested(groups, FEWEST)

    @cached_property
    def partitions(self) -> PartitionTree:
        """Partitions of the documents into any number of clusters, nested around that of "auto"."""
        if self.source is not None:
            return self.source.partitions
        informative = self._auto.is_informative
        if informative.sum() < 2:
            return PartitionTree(self.partitioner, self.partitioner.into(FEW_CLUSTERS))
        number = np.append(np.where(informative, np.cumsum(informative) - 1, NOISE), NOISE)
        groups = number[self._auto.clustering.labels].astype(np.int32)
        partition = self.partitioner.around(groups)
        if self.is_repetitive:
            partition = np.where(groups != NOISE, groups, partition)
        return PartitionTree(self.partitioner, partition)


def _clusters_around(
    cut: ClusterCut,
    partition: Int64Array,
    is_uninformative: UninformativeTest,
    *,
    is_loose: bool = True,
) -> ClusterCut:
    """Return the clusters of a partition (n_documents,), with informative dense groups as cores.

    Uninformative dense groups stay clusters of their own. With hardly a dense document, a cluster
    is all core if `is_loose`; without any it is else empty.
    """
    dense, is_informative = cut.clustering, cut.is_informative
    n_clusters = int(partition.max(initial=-1)) + 1
    is_core = np.append(is_informative, False)[dense.labels]
    if is_loose:
        in_uninformative = np.append(~is_informative, False)[dense.labels]
        n_core = np.bincount(partition[is_core], minlength=n_clusters)
        is_core |= (n_core < FEWEST)[partition] & ~in_uninformative
    # The uninformative groups are numbered after the clusters.
    extra_number = n_clusters + np.cumsum(~is_informative) - 1
    number = np.append(np.where(is_informative, NOISE, extra_number), NOISE)
    in_cluster = np.where(is_core, partition, NOISE).astype(np.int32)
    return _compact(
        np.where(is_core, partition, number[dense.labels]).astype(np.int32),
        np.where(is_core & (dense.labels == NOISE), 1.0, dense.probabilities),
        np.append(_mean_persistence(dense, partition, is_core), dense.persistence[~is_informative]),
        np.append(
            ~is_uninformative(in_cluster, n_clusters),
            np.zeros(int((~is_informative).sum()), dtype=np.bool_),
        ),
        cut.min_cluster_size,
        partition,
    )


def _mean_persistence(
    dense: Clustering, partition: Int64Array, is_core: BoolArray
) -> npt.NDArray[np.float64]:
    """Return the mean persistence of each cluster's core documents, (n_clusters,); NaN without."""
    n_clusters = int(partition.max(initial=-1)) + 1
    persistence = np.append(dense.persistence, np.nan)[dense.labels]
    counted = is_core & ~np.isnan(persistence)
    n_counted = np.bincount(partition[counted], minlength=n_clusters)
    sums = np.bincount(partition[counted], persistence[counted], minlength=n_clusters)
    means = np.full(n_clusters, np.nan)
    return np.asarray(np.divide(sums, n_counted, out=means, where=n_counted > 0))


def check_constraints(
    constraints: TopicConstraints | None,
    resolution: Resolution | None,
    coverage: float | str = "auto",
) -> None:
    """Raise InputError if the fixed topics of the constraints rule out a resolution."""
    if constraints is None or resolution is None or not constraints.is_fixed:
        return
    n_topics, size = resolution.n_topics, resolution.min_cluster_size
    n_fixed = len(constraints.names)
    if constraints.is_complete:
        if n_topics not in ("auto", n_fixed) or (size, coverage) != ("auto", "auto"):
            expected = '"auto", like min_cluster_size and coverage, with ManualLabels'
            remedy = f"edit the {n_fixed} topics after the fit"
            raise InputError("n_topics", expected, (n_topics, size, coverage), remedy)
    elif not isinstance(n_topics, str) and n_topics < n_fixed:
        expected = f"at least {n_fixed}, the number of named topics with matching texts"
        raise InputError("n_topics", expected, n_topics, 'give "auto", or fewer names')


def cluster_tree(
    tree: SpanningTree,
    coordinates: FloatArray,
    weights: Int64Array,
    counts: TermCounts,
    graph: NeighborGraph,
    vectors: FloatArray,
    constraints: TopicConstraints | None = None,
) -> ClusterTree:
    """Return the clusters at every resolution, with the constraints applied.

    Without constraints, the vectors refine the clusters.

    Documents of fixed topics leave the clusters. A cluster is dropped as a remainder if more than
    half of it left, or if its rest has more neighbors in fixed topics than in itself.
    """
    is_uninformative = partial(uninformative_topics, counts)
    has_vector = np.asarray(vectors.any(axis=1))
    if constraints is None:
        partitioner = Partitioner(coordinates, weights, vectors)
        judge = Judge(counts, graph, weights > 0)
        return ClusterTree(
            tree, partitioner, weights, is_uninformative, judge=judge, has_vector=has_vector
        )

    n_fixed = len(constraints.names) if constraints.is_fixed else 0
    counted = np.where(constraints.groups >= 0, 0, weights) if n_fixed else weights

    def is_uninformative_or_remainder(labels: Int32Array, n_clusters: int) -> BoolArray:
        rest = _outside_fixed(labels, constraints)
        remainders = _is_remainder(rest, labels, n_clusters, weights, graph, constraints)
        return is_uninformative(rest, n_clusters) | remainders

    def constrained_cut(clusters: ClusterTree, resolution: Resolution) -> ClusterCut:
        check_constraints(constraints, resolution)
        n_topics = resolution.n_topics
        if not isinstance(n_topics, str) and n_topics == n_fixed:
            size = default_min_cluster_size(coordinates, weights)
            return _with_fixed(_no_clusters(len(weights), size), constraints)
        n_others = n_topics if isinstance(n_topics, str) else n_topics - n_fixed
        try:
            cut = clusters.unconstrained_cut(dataclasses.replace(resolution, n_topics=n_others))
        except NotEnoughTopics as error:
            best = constrain_cut(error.best, weights, graph, constraints)
            raise NotEnoughTopics(best, int(n_topics)) from None
        return constrain_cut(cut, weights, graph, constraints)

    test = is_uninformative_or_remainder if n_fixed else is_uninformative
    partitioner = Partitioner(coordinates, counted)
    judge = Judge(counts, graph, counted > 0)
    return ClusterTree(
        tree, partitioner, weights, test, constrained_cut, judge, has_vector=has_vector
    )


def constrain_cut(
    cut: ClusterCut, weights: Int64Array, graph: NeighborGraph, constraints: TopicConstraints | None
) -> ClusterCut:
    """Return a cut with the fixed topics of the constraints in it."""
    if constraints is None or not constraints.is_fixed:
        return cut
    if constraints.is_complete:
        return _with_fixed(_no_clusters(len(weights), cut.min_cluster_size), constraints)
    clusters, informative = cut.clustering, cut.is_informative
    rest = _outside_fixed(clusters.labels, constraints)
    is_dropped = _is_remainder(rest, clusters.labels, len(informative), weights, graph, constraints)
    labels = np.where(np.append(is_dropped, False)[rest], NOISE, rest)
    others = _compact(
        labels, clusters.probabilities, clusters.persistence, informative, cut.min_cluster_size
    )
    return _with_fixed(others, constraints)


def _with_fixed(cut: ClusterCut, constraints: TopicConstraints) -> ClusterCut:
    """Return a cut with the fixed topics numbered after its clusters."""
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
    """Return the most frequent class of each topic's texts, (n_topics,); -1 for no class."""
    both = (labels >= 0) & (classes >= 0)
    # Not a table of topics and classes: there may be as many of each as documents.
    pairs, pair_of = np.unique(
        labels[both].astype(np.int64) * n_classes + classes[both], return_inverse=True
    )
    n_rows = np.bincount(pair_of, weights[both], minlength=len(pairs))
    pair_topics, pair_classes = np.divmod(pairs, max(n_classes, 1))
    order = np.lexsort((pair_classes, -n_rows, pair_topics))
    topics, first = np.unique(pair_topics[order], return_index=True)
    owner = np.full(n_topics, NOISE, dtype=np.int32)
    owner[topics] = pair_classes[order][first]
    return owner


def _outside_fixed(labels: Int32Array, constraints: TopicConstraints) -> Int32Array:
    """Return the labels of the documents outside the fixed topics, -1 for the others."""
    return np.where(constraints.groups >= 0, NOISE, labels).astype(np.int32)


def _is_remainder(
    rest: Int32Array,
    labels: Int32Array,
    n_clusters: int,
    weights: Int64Array,
    graph: NeighborGraph,
    constraints: TopicConstraints,
) -> BoolArray:
    """Return which clusters are remainders of fixed topics; see `cluster_tree`."""
    neighbor_labels, neighbor_groups = rest[graph.indices], constraints.groups[graph.indices]
    is_similar = graph.similarities > 0
    n_fixed = ((neighbor_groups >= 0) & is_similar).sum(axis=1)
    n_same = ((neighbor_labels == rest[:, None]) & is_similar).sum(axis=1)
    inside, whole = rest != NOISE, labels != NOISE
    lead = np.bincount(rest[inside], (n_fixed - n_same)[inside], minlength=n_clusters)
    n_rest = np.bincount(rest[inside], weights[inside], minlength=n_clusters)
    n_whole = np.bincount(labels[whole], weights[whole], minlength=n_clusters)
    return np.asarray((lead > 0) | (2 * n_rest < n_whole))


def _no_clusters(n_documents: int, min_cluster_size: int | None) -> ClusterCut:
    labels = np.full(n_documents, NOISE, dtype=np.int32)
    clustering = Clustering(labels, np.zeros(n_documents, dtype=np.float32), np.empty(0))
    return ClusterCut(clustering, np.empty(0, dtype=np.bool_), min_cluster_size)


def _compact(
    labels: npt.NDArray[Any],
    probabilities: npt.NDArray[Any],
    persistence: npt.NDArray[np.float64],
    is_informative: BoolArray,
    min_cluster_size: int | None,
    partition: Int64Array | None = None,
) -> ClusterCut:
    """Return the clusters that hold a document, renumbered in their order."""
    used = np.unique(labels[labels != NOISE])
    number = np.full(len(is_informative) + 1, NOISE, dtype=np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    renumbered = number[labels]
    inside = np.where(renumbered == NOISE, 0.0, probabilities).astype(np.float32)
    clustering = Clustering(renumbered, inside, persistence[used])
    clusters = None if partition is None else number[partition]
    return ClusterCut(clustering, is_informative[used], min_cluster_size, clusters)
