"""Where added documents lie: on the map, in the space of clustering, and in its hierarchy.

A document is placed by the documents of the fit alone, so that its place depends neither on what
is added with it nor on what was added before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.results import NOISE, SpanningTree

__all__ = ["grown_tree", "place"]

SAME = 1 - 1e-6
"""Cosine similarity from which two vectors count as the same, and share a place."""

Float64Array = npt.NDArray[np.float64]


def place(
    positions: FloatArray,
    indices: Int32Array,
    similarities: FloatArray,
    labels: Int32Array,
    topics: Int32Array,
    hashes: npt.NDArray[np.uint64] | None = None,
) -> FloatArray:
    """Place documents among their neighbours.

    A document lies at the mean of its neighbours' positions, those of its own topic if it has one,
    nearer ones weighing more. Means alone would pile up in the middle of a topic. So on the map it
    is moved from there, in a direction and by a share that its content decides, within the circle
    that holds half of its neighbours by weight.

    Parameters
    ----------
    positions : float32 ndarray of shape (n_documents, n_components)
        Of documents that have a place.
    indices : int32 ndarray of shape (n_new, k)
        The nearest of these documents to each new one.
    similarities : float32 ndarray of shape (n_new, k)
        Descending.
    labels : int32 ndarray of shape (n_documents,)
        Topics of the documents that have a place.
    topics : int32 ndarray of shape (n_new,)
        Topics of the new ones.
    hashes : uint64 ndarray of shape (n_new, 2), optional
        Content hashes of the new ones, for positions on the map; without them nothing is moved.

    Returns
    -------
    float32 ndarray of shape (n_new, n_components)
        A document with the very vector of another lies where that one lies.
    """
    there = positions[indices].astype(np.float64)
    weights = _weights(similarities)
    own = (labels[indices] == topics[:, None]) | (topics == NOISE)[:, None]
    weights = np.where(own, weights, 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    middle = np.einsum("ik,ikd->id", weights, there)
    if hashes is not None:
        distances = np.sqrt(((there - middle[:, None]) ** 2).sum(axis=2))
        share, turn = (hashes / 2.0**64).T
        radius = _weighted_median(distances, weights) * np.sqrt(share)
        angle = 2 * np.pi * turn
        middle += radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    is_same = similarities[:, 0] >= SAME
    middle[is_same] = there[is_same, 0]
    placed: FloatArray = middle.astype(np.float32)
    return placed


def _weights(similarities: FloatArray) -> Float64Array:
    """Return weights that fall with the distance behind the nearest, in units of its mean."""
    behind = similarities[:, :1].astype(np.float64) - similarities
    scale = behind.mean(axis=1, keepdims=True)
    relative = np.divide(behind, scale, out=np.zeros_like(behind), where=scale > 0)
    return np.asarray(np.exp(-relative))


def _weighted_median(values: Float64Array, weights: Float64Array) -> Float64Array:
    """Return, of each row, the least value up to which half of the weight lies."""
    order = np.argsort(values, axis=1, kind="stable")
    reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1) >= 0.5 - 1e-12
    column = np.take_along_axis(order, reached.argmax(axis=1)[:, None], axis=1)
    return np.asarray(np.take_along_axis(values, column, axis=1)[:, 0])


def grown_tree(
    tree: SpanningTree | None,
    coordinates: FloatArray,
    old_places: Int64Array,
    new_places: Int64Array,
    neighbors: npt.NDArray[Any],
) -> SpanningTree | None:
    """Hang new documents on a hierarchy, each on the neighbour that it reaches first.

    The hierarchy of the documents that were there stays as it is; new ones join it as leaves. As
    core distance they have the median distance to their neighbours.

    Parameters
    ----------
    tree : SpanningTree or None
        Of the old documents.
    coordinates : float32 ndarray of shape (n_documents, n_components)
        Of all documents.
    old_places : int64 ndarray of shape (n_old,)
        Number among all documents of each old one.
    new_places : int64 ndarray of shape (n_new,)
        Numbers of the new ones.
    neighbors : int ndarray of shape (n_new, k)
        Numbers of the nearest old documents of each new one.

    Returns
    -------
    SpanningTree or None
        Of all documents; None where there was none.
    """
    if tree is None:
        return None
    cores = np.empty(len(coordinates))
    cores[old_places] = tree.core_distances
    steps = coordinates[neighbors].astype(np.float64) - coordinates[new_places][:, None]
    distances = np.sqrt((steps**2).sum(axis=2))
    cores[new_places] = np.median(distances, axis=1)
    reach = np.maximum(np.maximum(distances, cores[neighbors]), cores[new_places][:, None])
    # Of those equally far, the one with the lowest number.
    first = np.lexsort((neighbors, reach), axis=1)[:, :1]
    leaves = np.stack([np.take_along_axis(neighbors, first, axis=1)[:, 0], new_places], axis=1)
    edges = np.concatenate([old_places[tree.edges], leaves.astype(np.int64)])
    edges.sort(axis=1)
    lengths = np.concatenate([tree.distances, np.take_along_axis(reach, first, axis=1)[:, 0]])
    order = np.lexsort((edges[:, 1], edges[:, 0], lengths))
    return SpanningTree(edges[order], lengths[order], cores)
