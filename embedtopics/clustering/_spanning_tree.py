"""The exact minimum spanning tree of mutual reachability, by Boruvka's algorithm."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count
from embedtopics._utils.machine import in_parts
from embedtopics.clustering.results import SpanningTree
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Float64Array, Int64Array

SPARE_NEIGHBORS = 5
"""Neighbors listed beyond the core distance; more find more edges at once, and cost more."""

BLOCK = 1 << 22
"""Neighbor distances that are held at a time."""

WORTH_THREADS = 2048
"""Queries below which starting threads costs more than it saves."""

ASKED_FIRST = 64
"""Every 64th of the places that search outside their component does so before the others."""

CERTAIN_SHARE = 0.25
"""Share of components below which a search outside pays more than another round without it."""


def spanning_tree(coordinates: npt.ArrayLike, *, min_samples: int = 10) -> SpanningTree:
    """Build the minimum spanning tree of mutual reachability; `coordinates` (n_documents, few).

    The mutual reachability of two documents is the largest of their distance and their two core
    distances. The core distance of a document is the distance to its `min_samples`-th neighbor,
    itself not counted (the convention of hdbscan and fast_hdbscan). Documents in one place count
    as one: copies do not make a place dense. The tree is exact and independent of the number of
    threads.

    Source: Campello, Moulavi and Sander (2013), "Density-Based Clustering Based on Hierarchical
    Density Estimates", definitions 1 and 2; McInnes and Healy (2017), "Accelerated Hierarchical
    Density Based Clustering", section III.
    """
    points = _checked_coordinates(coordinates)
    min_samples = checked_count(min_samples, "min_samples")

    places, of_row, row_of = _distinct_places(points)
    core, listed, reach = neighborhoods(places, min_samples)
    edges = boruvka(places, core, listed, reach)

    # Rows in one place are a star: each is at its core distance from the first.
    rows = np.arange(len(points))
    copies = rows[row_of[of_row] != rows]
    ends = np.concatenate(
        [
            np.stack([row_of[edges.first], row_of[edges.second]], axis=1),
            np.stack([row_of[of_row[copies]], copies], axis=1),
        ]
    )
    ends.sort(axis=1)
    distances = np.concatenate([edges.weights, core[of_row[copies]]])
    order = np.lexsort((ends[:, 1], ends[:, 0], distances))
    return SpanningTree(ends[order], distances[order], core[of_row])


def checked_weights(weights: npt.ArrayLike | None, n_documents: int) -> Int64Array:
    """Return weights (n_documents,) as int64, ones by default."""
    if weights is None:
        return np.ones(n_documents, dtype=np.int64)
    array = np.asarray(weights)
    if array.shape != (n_documents,) or array.dtype.kind not in "iu" or array.min(initial=1) < 1:
        expected = f"integers from 1 up, one per document, shape ({n_documents},)"
        raise InputError("weights", expected, weights)
    return array.astype(np.int64)


def _checked_coordinates(coordinates: npt.ArrayLike) -> Float64Array:
    points = np.asarray(coordinates)
    if points.ndim != 2 or 0 in points.shape or points.dtype.kind not in "fiu":
        shape = f"shape {points.shape} of {points.dtype}"
        raise InputError("coordinates", "numbers, one document per row", found=shape)
    points = points.astype(np.float64)
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError("coordinates", "finite", points[row].tolist(), row=row)
    return points


def _distinct_places(points: Float64Array) -> tuple[Float64Array, Int64Array, Int64Array]:
    """Return distinct points, the place of each row, and the first row of each place.

    A k-d tree cannot divide identical points. The places are in the order of the tree, in which
    neighbors lie close together in memory; it depends on the points, not on their order.
    """
    from scipy.spatial import cKDTree

    order = np.lexsort(points.T)
    ordered = points[order]
    is_new = np.ones(len(points), dtype=bool)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    places = ordered[is_new]
    near = cKDTree(places).indices
    rank = np.empty(len(places), dtype=np.int64)
    rank[near] = np.arange(len(places))
    of_row = np.empty(len(points), dtype=np.int64)
    of_row[order] = rank[np.cumsum(is_new) - 1]
    return places[near], of_row, order[is_new][near]


class Edges(NamedTuple):
    """Candidate edges, lightest first; their order breaks ties."""

    first: Int64Array
    second: Int64Array
    weights: Float64Array

    def sorted(self) -> Edges:
        """Return the edges from the lightest, ties in the order they had."""
        return self.take(np.argsort(self.weights, kind="stable"))

    def take(self, positions: Int64Array | BoolArray) -> Edges:
        """Return the edges at positions, or under a mask."""
        return Edges(self.first[positions], self.second[positions], self.weights[positions])

    @classmethod
    def none(cls) -> Edges:
        """Return no edges."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))

    @classmethod
    def concatenate(cls, parts: list[Edges]) -> Edges:
        """Return the edges of all parts, one part after the other."""
        first, second, weights = zip(*parts, strict=True)
        return cls(np.concatenate(first), np.concatenate(second), np.concatenate(weights))


def neighborhoods(
    places: Float64Array, min_samples: int
) -> tuple[Float64Array, Edges, Float64Array]:
    """Find core distances and the reach of each search, (n_places,), and edges to near places."""
    from scipy.spatial import cKDTree

    needed = min(min_samples, len(places) - 1)
    k = min(len(places), needed + 1 + SPARE_NEIGHBORS)
    tree = cKDTree(places)
    core = np.empty(len(places))
    reach = np.empty(len(places))
    neighbors = np.empty((len(places), k), dtype=np.int64)
    for start in range(0, len(places), max(1, BLOCK // k)):
        block = np.arange(start, min(len(places), start + max(1, BLOCK // k)))
        workers = -1 if len(block) >= WORTH_THREADS else 1
        _, near = tree.query(places[block], k=np.arange(1, k + 1), workers=workers)
        near = np.asarray(near, dtype=np.int64)
        distances = _distances(places, np.broadcast_to(block[:, None], near.shape), near)
        order = np.argsort(distances, axis=1, kind="stable")
        near = np.take_along_axis(near, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
        core[block] = distances[:, needed]
        reach[block] = distances[:, -1]
        neighbors[block] = near
    if k == len(places):
        reach[:] = np.inf
    first = np.repeat(np.arange(len(places)), k)
    second = neighbors.ravel()
    first, second = first[first != second], second[first != second]
    return core, Edges(first, second, _reachability(places, core, first, second)), reach


def boruvka(places: Float64Array, core: Float64Array, listed: Edges, reach: Float64Array) -> Edges:
    """Join all places by the lightest edges; see `neighborhoods` for the arguments.

    In each round, the lightest listed edge that leaves a component belongs to the tree if no
    place of the component can have a lighter edge that is not listed. If that is uncertain for
    most components, their unlisted edges are searched.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    component = np.arange(len(places))
    count = len(places)
    tree_edges = [Edges.none()]
    edges = listed.sorted()
    boxes = Boxes.around(places, core)
    while count > 1:
        edges = edges.take(component[edges.first] != component[edges.second])
        lightest, weight = _lightest(edges, component, count)
        doubtful = _doubtful(component, weight, reach)
        if np.count_nonzero(~doubtful) < CERTAIN_SHARE * count:
            more, reach = _search_outside(places, core, boxes, component, weight, reach)
            edges = Edges.concatenate([edges, more]).sorted()
            lightest, weight = _lightest(edges, component, count)
            doubtful = _doubtful(component, weight, reach)
        certain = edges.take(np.unique(lightest[~doubtful]))
        tree_edges.append(certain)
        ends = component[certain.first], component[certain.second]
        graph = coo_array((np.ones(len(ends[0])), ends), shape=(count, count))
        count, merged = connected_components(graph, directed=False)
        component = merged.astype(np.int64)[component]
    return Edges.concatenate(tree_edges)


def _lightest(edges: Edges, component: Int64Array, count: int) -> tuple[Int64Array, Float64Array]:
    """Return the position and weight of the lightest edge at each component (infinite: none)."""
    position = np.arange(len(edges.weights))
    lightest = np.full(count, len(position))
    np.minimum.at(lightest, component[edges.first], position)
    np.minimum.at(lightest, component[edges.second], position)
    return lightest, np.append(edges.weights, np.inf)[lightest]


def _doubtful(component: Int64Array, weight: Float64Array, reach: Float64Array) -> BoolArray:
    """Return which components may have a lighter edge than the listed one."""
    doubtful = np.zeros(len(weight), dtype=bool)
    doubtful[component[reach < weight[component]]] = True
    return doubtful


class Boxes(NamedTuple):
    """Bounding boxes of consecutive places: a bounding volume hierarchy, as a binary heap.

    The last half of the nodes are leaves.
    """

    lower: Float64Array  # (n_nodes, n_dimensions)
    upper: Float64Array
    least_core: Float64Array  # (n_nodes,), the smallest core distance in a box

    @classmethod
    def around(cls, places: Float64Array, core: Float64Array) -> Boxes:
        """Put boxes around places in the order of a k-d tree, of core distances (n_places,)."""
        return cls(
            _by_node(places, np.minimum, np.inf),
            _by_node(places, np.maximum, -np.inf),
            _by_node(core, np.minimum, np.inf),
        )


def _by_node(values: npt.NDArray[Any], best: np.ufunc, nothing: float) -> npt.NDArray[Any]:
    """Return the best of the values (n_places, ...) in each box, (n_nodes, ...)."""
    from embedtopics.clustering._kernels import LEAF

    of_leaves = best.reduceat(values, np.arange(0, len(values), LEAF))
    n = 1 << (len(of_leaves) - 1).bit_length()
    nodes = np.full((2 * n - 1, *values.shape[1:]), nothing, dtype=values.dtype)
    nodes[n - 1 : n - 1 + len(of_leaves)] = of_leaves
    while n > 1:
        children = nodes[n - 1 : 2 * n - 1]
        n //= 2
        nodes[n - 1 : 2 * n - 1] = best(children[::2], children[1::2])
    return nodes


def _search_outside(
    places: Float64Array,
    core: Float64Array,
    boxes: Boxes,
    component: Int64Array,
    weight: Float64Array,
    reach: Float64Array,
) -> tuple[Edges, Float64Array]:
    """Find, for all components but one, edges that leave them and weigh less than `weight`.

    The component with most uncertain places is left out: the others will join it. A few places of
    each component search first: what they find bounds the search of the others.
    """
    from embedtopics.clustering._kernels import NOBODY, nearest_outside

    weight, reach = weight.copy(), reach.copy()
    in_doubt = reach < weight[component]
    spared = np.argmax(np.bincount(component[in_doubt], minlength=len(weight)))
    asking = np.flatnonzero(in_doubt & (component != spared))
    lowest = _by_node(component, np.minimum, len(weight))
    highest = _by_node(component, np.maximum, NOBODY)
    inside = np.where(lowest == highest, lowest, NOBODY)
    parts = [Edges.none()]
    for some in (asking[::ASKED_FIRST], asking):
        some = some[reach[some] < weight[component[some]]]
        nearest, least = np.empty(len(some), dtype=np.int64), weight[component[some]]
        arrays = places, core, component, some, *boxes, inside, nearest, least
        in_parts(nearest_outside, len(some), *arrays, few=WORTH_THREADS)
        reach[some] = np.maximum(reach[some], least)
        first, second = (ends[nearest != NOBODY] for ends in (some, nearest))
        near = Edges(first, second, _reachability(places, core, first, second))
        np.minimum.at(weight, component[first], near.weights)
        parts.append(near)
    return Edges.concatenate(parts), reach


def _distances(points: Float64Array, first: Int64Array, second: Int64Array) -> Float64Array:
    """Return distances between pairs, always summed in the same order, so that equals are equal."""
    columns = points.T
    if first.size > len(points):  # worth having the columns in one piece
        columns = np.ascontiguousarray(columns)
    total = np.zeros(first.shape)
    for column in columns:
        difference = column[first] - column[second]
        total += difference * difference
    return np.sqrt(total)


def _reachability(
    points: Float64Array, core: Float64Array, first: Int64Array, second: Int64Array
) -> Float64Array:
    return np.maximum(_distances(points, first, second), np.maximum(core[first], core[second]))
