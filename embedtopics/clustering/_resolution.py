"""Smallest cluster sizes: the default ones, and the number of clusters at every size."""

import math

import numpy as np

from embedtopics.clustering._hierarchy import hierarchy_of
from embedtopics.clustering._spanning_tree import checked_weights
from embedtopics.clustering.results import SpanningTree
from embedtopics.protocols import FloatArray, Int64Array

FEWEST = 5
"""Smallest size of a topic, unless the user sets another."""

FEW = 10
"""Documents of a topic in a small collection; smaller groups are often chance."""

SHARE = 1 / 40
"""Share of a collection that makes a topic, up to ENOUGH documents."""

ENOUGH = 120
"""Documents that make a topic in any collection."""

LARGE = 20_000
"""Documents above which the smallest topic grows with the square root of the collection."""

FINER = 4
"""Factor by which a size may fall where few documents are left, such as new ones."""


def automatic_min_cluster_size(n_texts: int, times: float = 1.0) -> int:
    """Return the smallest size of a topic's core, from the number of distinct texts.

    The size is a fortieth of the texts, at most 120; above 20,000 texts the 120 grow with the
    square root of the number. In a small collection it is 10 or a quarter of the texts, at least 5.
    Chosen on nine labelled corpora of 900 to 20,000 texts, where it gives 8 to 33 topics. If each
    text occurs `times` times, the size counts rows.
    """
    enough = ENOUGH * max(1.0, math.sqrt(n_texts / LARGE))
    few = min(FEW, n_texts / 4)
    return max(FEWEST, round(times * max(few, min(n_texts * SHARE, enough))))


def place_numbers(coordinates: FloatArray) -> Int64Array:
    """Return the number of the distinct row that each row of coordinates is, (n_documents,)."""
    # Equal rows have equal sums; other rows have other sums.
    factors = np.sqrt(2.0 + np.arange(coordinates.shape[1]))
    sums = np.einsum("ij,j->i", coordinates, factors, dtype=np.float64)
    return np.unique(sums, return_inverse=True)[1].astype(np.int64)


def default_min_cluster_size(coordinates: FloatArray, weights: Int64Array) -> int:
    """Return the smallest size of a dense group.

    The size follows from the number of distinct rows of coordinates, times the geometric mean of
    their weights. So copies of every text leave the topics as they are, and many copies of a few
    change little. Shapes: `coordinates` (n_documents, n_components), `weights` (n_documents,).
    """
    of_place = np.bincount(place_numbers(coordinates), weights)
    of_place = of_place[of_place > 0]
    usual = round(float(np.exp(np.log(of_place).mean())), 6) if len(of_place) else 1.0
    return automatic_min_cluster_size(len(of_place), usual)


def topics_by_min_cluster_size(tree: SpanningTree, weights: Int64Array | None = None) -> Int64Array:
    """Count the leaf clusters of a tree at every smallest size, (total weight + 2,).

    A component of the hierarchy is a leaf if it reaches the smallest size and none of its parts
    does: at every size above that of its largest part, up to its own.
    """
    weights = checked_weights(weights, tree.n_documents)
    hierarchy = hierarchy_of(tree)
    parents, levels = hierarchy.parents, hierarchy.levels
    sizes = hierarchy.sizes(weights)
    # As in `condense`: copies are a part of their own only if they stood alone.
    counted = sizes.copy()
    of_document = slice(0, tree.n_documents)
    alone = levels[of_document] < levels[parents[of_document]]
    counted[of_document][~alone] = 0
    largest_part = np.zeros(len(parents), dtype=np.int64)
    np.maximum.at(largest_part, parents[:-1], counted[:-1])
    reaches = counted > largest_part
    n_sizes = int(weights.sum()) + 2
    begins = np.bincount(largest_part[reaches] + 1, minlength=n_sizes)
    ends = np.bincount(counted[reaches] + 1, minlength=n_sizes)
    change = begins - ends
    n_leaves = np.cumsum(change)
    n_leaves[n_leaves < 2] = 0  # the root is no cluster
    n_leaves[:2] = 0
    return np.asarray(n_leaves, dtype=np.int64)


def _top(ancestor: list[int], node: int) -> int:
    while ancestor[node] != node:
        ancestor[node] = node = ancestor[ancestor[node]]
    return node


def subtree(tree: SpanningTree, documents: Int64Array) -> SpanningTree:
    """Restrict a spanning tree to some of its documents, (n_kept,), ascending.

    Two documents meet at the distance at which they meet in the whole tree: this is the
    single-linkage hierarchy of the whole without the other documents.
    """
    ancestor = list(range(tree.n_documents))
    # The first kept document of each component, by its number among the kept; -1 for none.
    kept_in = np.full(tree.n_documents, -1, dtype=np.int64)
    kept_in[documents] = np.arange(len(documents))
    first = kept_in.tolist()
    edges: list[list[int]] = []
    places: list[int] = []
    for place, ends in enumerate(tree.edges.tolist()):
        if len(edges) == len(documents) - 1:
            break
        one, other = (_top(ancestor, end) for end in ends)
        ancestor[other] = one
        if first[other] < 0:
            continue
        if first[one] >= 0:
            edges.append(sorted((first[one], first[other])))
            places.append(place)
            first[one] = min(first[one], first[other])
        else:
            first[one] = first[other]
    ends_of = np.array(edges, dtype=np.int64).reshape(-1, 2)
    distances = tree.distances[places]
    order = np.lexsort((ends_of[:, 1], ends_of[:, 0], distances))
    return SpanningTree(ends_of[order], distances[order], tree.core_distances[documents])
