"""Boruvka's algorithm for mutual reachability, on places in the order of a k-d tree."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Float64Array, Int64Array

SPARE_NEIGHBORS = 5
"""Neighbours listed beyond the core distance; more find more edges at once, and cost more."""

BLOCK = 1 << 22
"""Neighbour distances that are held at a time."""

WORTH_THREADS = 2048
"""Queries below which starting threads costs more than it saves."""

ASKED_FIRST = 64
"""Every so many of the places that look outside their components do so before the others."""

CERTAIN_SHARE = 0.25
"""Share of components below which a search outside pays more than another round without it."""


class Edges(NamedTuple):
    """Candidate edges, lightest first; their order breaks ties."""

    first: Int64Array
    second: Int64Array
    weights: Float64Array

    def sorted(self) -> Edges:
        """Return the edges from the lightest, ties in the order they had."""
        return self.take(np.argsort(self.weights, kind="stable"))

    def take(self, chosen: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Edges:
        """Return the edges at positions, or under a mask."""
        return Edges(self.first[chosen], self.second[chosen], self.weights[chosen])

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
        found = np.asarray(near, dtype=np.int64)
        distances = _distances(places, np.broadcast_to(block[:, None], found.shape), found)
        order = np.argsort(distances, axis=1, kind="stable")
        found = np.take_along_axis(found, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
        core[block] = distances[:, needed]
        reach[block] = distances[:, -1]
        neighbors[block] = found
    if k == len(places):
        reach[:] = np.inf
    first = np.repeat(np.arange(len(places)), k)
    second = neighbors.ravel()
    first, second = first[first != second], second[first != second]
    return core, Edges(first, second, _reachability(places, core, first, second)), reach


def boruvka(places: Float64Array, core: Float64Array, listed: Edges, reach: Float64Array) -> Edges:
    """Join all places by the lightest edges; see `neighborhoods` for the arguments.

    In each round, the lightest listed edge that leaves a component belongs to the tree if no
    place in the component could have a lighter one that is not listed. Where that is in doubt
    for most components, their unlisted edges are searched.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    component = np.arange(len(places))
    count = len(places)
    kept = [Edges.none()]
    edges = listed.sorted()
    boxes = Boxes.around(places, core)
    while count > 1:
        edges = edges.take(component[edges.first] != component[edges.second])
        lightest, weight = _lightest(edges, component, count)
        doubtful = _doubtful(component, weight, reach)
        if np.count_nonzero(~doubtful) < CERTAIN_SHARE * count:
            found, reach = _search_outside(places, core, boxes, component, weight, reach)
            edges = Edges.concatenate([edges, found]).sorted()
            lightest, weight = _lightest(edges, component, count)
            doubtful = _doubtful(component, weight, reach)
        chosen = edges.take(np.unique(lightest[~doubtful]))
        kept.append(chosen)
        ends = component[chosen.first], component[chosen.second]
        graph = coo_array((np.ones(len(ends[0])), ends), shape=(count, count))
        count, merged = connected_components(graph, directed=False)
        component = merged.astype(np.int64)[component]
    return Edges.concatenate(kept)


def _lightest(edges: Edges, component: Int64Array, count: int) -> tuple[Int64Array, Float64Array]:
    """Return the position and weight of the lightest edge at each component (infinite: none)."""
    position = np.arange(len(edges.weights))
    lightest = np.full(count, len(position))
    np.minimum.at(lightest, component[edges.first], position)
    np.minimum.at(lightest, component[edges.second], position)
    return lightest, np.append(edges.weights, np.inf)[lightest]


def _doubtful(
    component: Int64Array, weight: Float64Array, reach: Float64Array
) -> npt.NDArray[np.bool_]:
    """Say which components may have a lighter edge than the one that is known."""
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

    That with most places in doubt is left out: the others will join it. A few places of each are
    asked first, for what they find is as far as the others have to look.
    """
    from embedtopics.clustering._kernels import NOBODY, nearest_outside

    weight, reach = weight.copy(), reach.copy()
    in_doubt = reach < weight[component]
    spared = np.argmax(np.bincount(component[in_doubt], minlength=len(weight)))
    asking = np.flatnonzero(in_doubt & (component != spared))
    lowest = _by_node(component, np.minimum, len(weight))
    highest = _by_node(component, np.maximum, NOBODY)
    inside = np.where(lowest == highest, lowest, NOBODY)
    found = [Edges.none()]
    for some in (asking[::ASKED_FIRST], asking):
        some = some[reach[some] < weight[component[some]]]
        nearest, least = np.empty(len(some), dtype=np.int64), weight[component[some]]
        nearest_outside(places, core, component, some, *boxes, inside, nearest, least)
        reach[some] = np.maximum(reach[some], least)
        first, second = (ends[nearest != NOBODY] for ends in (some, nearest))
        near = Edges(first, second, _reachability(places, core, first, second))
        np.minimum.at(weight, component[first], near.weights)
        found.append(near)
    return Edges.concatenate(found), reach


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
