"""The loop of Boruvka's search, compiled by Numba and kept in its cache."""

import math

import numba
import numpy as np

from embedtopics._utils.compiling import compiled
from embedtopics.protocols import Float64Array, Int64Array

LEAF = 16
"""Consecutive places that have a box in common."""

NOBODY = -1

ROUNDING = 1 - 1e-12
"""Times the square of a distance to a box: not more than that to any place in it, as rounded."""


@numba.njit(inline="always")
def _gap(place: Float64Array, lower: Float64Array, upper: Float64Array) -> float:
    """Return the square of the distance of a place to a box."""
    total = 0.0
    for c in range(len(place)):
        outside = max(lower[c] - place[c], place[c] - upper[c], 0.0)
        total += outside * outside
    return total * ROUNDING


@compiled(
    numba.void(
        numba.float64[:, ::1], numba.float64[::1], numba.int64[::1], numba.int64[::1],
        numba.float64[:, ::1], numba.float64[:, ::1], numba.float64[::1], numba.int64[::1],
        numba.int64[::1], numba.float64[::1],
    ),
    parallel=True, nogil=True,
)  # fmt: skip
def nearest_outside(
    places: Float64Array,
    core: Float64Array,
    component: Int64Array,
    asking: Int64Array,
    lower: Float64Array,
    upper: Float64Array,
    least_core: Float64Array,
    inside: Int64Array,
    nearest: Int64Array,
    weights: Float64Array,
) -> None:
    """Find the nearest place outside its component for each asking place, if below its weight.

    Boxes are a binary heap; its last half holds LEAF places each. `inside` is the component of all
    places in a box, NOBODY for several.
    """
    first_leaf = len(lower) // 2
    for q in numba.prange(len(asking)):
        i = asking[q]
        best, best_place = weights[q], NOBODY
        waiting = np.empty(64, dtype=np.int64)
        gaps = np.empty(64)
        waiting[0], gaps[0], top = 0, 0.0, 1
        while top > 0:
            top -= 1
            node = waiting[top]
            least = max(math.sqrt(gaps[top]), least_core[node], core[i])
            if least >= best or inside[node] == component[i]:
                continue
            if node >= first_leaf:
                begin = (node - first_leaf) * LEAF
                for j in range(begin, min(begin + LEAF, len(places))):
                    weight = max(core[i], core[j])
                    if component[j] == component[i] or weight >= best:
                        continue
                    total = 0.0
                    for c in range(places.shape[1]):
                        difference = places[i, c] - places[j, c]
                        total += difference * difference
                    weight = max(weight, math.sqrt(total))
                    if weight < best:
                        best, best_place = weight, j
                continue
            left, right = 2 * node + 1, 2 * node + 2
            near = _gap(places[i], lower[left], upper[left])
            far = _gap(places[i], lower[right], upper[right])
            if near > far:
                left, right, near, far = right, left, far, near
            waiting[top], gaps[top] = right, far
            waiting[top + 1], gaps[top + 1] = left, near
            top += 2
        nearest[q], weights[q] = best_place, best
