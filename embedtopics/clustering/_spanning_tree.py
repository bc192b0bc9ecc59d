"""The exact minimum spanning tree of mutual reachability, from coordinates."""

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count
from embedtopics.clustering._boruvka import boruvka, neighborhoods
from embedtopics.clustering.results import SpanningTree
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, Int64Array


def spanning_tree(coordinates: npt.ArrayLike, *, min_samples: int = 10) -> SpanningTree:
    """Span documents by the minimum tree of mutual reachability; `coordinates` (n_documents, few).

    The mutual reachability of two documents is the largest of their distance and their two
    core distances; a document's core distance is that to its `min_samples`-th neighbour, the
    document itself not counted (the convention of hdbscan and fast_hdbscan). Documents in one
    place count as one there: copies do not make a place dense. The tree is exact, and the same with
    any number of threads.
    Source: Campello, Moulavi and Sander (2013), "Density-Based Clustering Based on Hierarchical
    Density Estimates", definitions 1 and 2; McInnes and Healy (2017), "Accelerated Hierarchical
    Density Based Clustering", section III.
    """
    points = _checked_coordinates(coordinates)
    min_samples = checked_count(min_samples, "min_samples")

    places, of_row, row_of = _distinct_places(points)
    core, listed, reach = neighborhoods(places, min_samples)
    joined = boruvka(places, core, listed, reach)

    # Rows in one place are as near to each other as their common core distance: a star.
    rows = np.arange(len(points))
    copies = rows[row_of[of_row] != rows]
    ends = np.concatenate(
        [
            np.stack([row_of[joined.first], row_of[joined.second]], axis=1),
            np.stack([row_of[of_row[copies]], copies], axis=1),
        ]
    )
    ends.sort(axis=1)
    distances = np.concatenate([joined.weights, core[of_row[copies]]])
    order = np.lexsort((ends[:, 1], ends[:, 0], distances))
    return SpanningTree(ends[order], distances[order], core[of_row])


def checked_weights(weights: npt.ArrayLike | None, n_documents: int) -> Int64Array:
    """Return weights (n_documents,) as int64, ones by default."""
    if weights is None:
        return np.ones(n_documents, dtype=np.int64)
    given = np.asarray(weights)
    if given.shape != (n_documents,) or given.dtype.kind not in "iu" or given.min(initial=1) < 1:
        expected = f"whole numbers from 1 up, one a document, shape ({n_documents},)"
        raise InputError("weights", expected, weights)
    return given.astype(np.int64)


def _checked_coordinates(coordinates: npt.ArrayLike) -> Float64Array:
    points = np.asarray(coordinates)
    if points.ndim != 2 or 0 in points.shape or points.dtype.kind not in "fiu":
        found = f"shape {points.shape} of {points.dtype}"
        raise InputError("coordinates", "numbers, a document a row", found=found)
    points = points.astype(np.float64)
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError("coordinates", "finite", points[row].tolist(), row=row)
    return points


def _distinct_places(points: Float64Array) -> tuple[Float64Array, Int64Array, Int64Array]:
    """Return distinct points, the place of each row, and the first row of each place.

    A k-d tree cannot divide identical points. The places come in the tree's own order, in which
    neighbours lie close together in memory; it depends on the points, not on their order.
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
