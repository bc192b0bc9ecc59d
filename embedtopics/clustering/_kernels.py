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


@compiled(
    numba.void(
        numba.int64, numba.int64,
        numba.float64[:, ::1], numba.float64[::1], numba.int64[::1], numba.int64[::1],
        numba.float64[:, ::1], numba.float64[:, ::1], numba.float64[::1], numba.int64[::1],
        numba.int64[::1], numba.float64[::1],
    ),
    nogil=True,
)  # fmt: skip
def nearest_outside(
    first_asking: int,
    end_asking: int,
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
    """Find the nearest place outside its component for some asking places, if below its weight.

    Boxes are a binary heap; its last half holds LEAF places each. `inside` is the component of all
    places in a box, NOBODY for several.
    """
    first_leaf = len(lower) // 2
    waiting = np.empty(64, dtype=np.int64)
    gaps = np.empty(64)
    for q in range(first_asking, end_asking):
        i = asking[q]
        best, best_place = weights[q], NOBODY
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
            near = far = 0.0  # squares of the distances to the two boxes
            for c in range(places.shape[1]):
                outside = max(lower[left, c] - places[i, c], places[i, c] - upper[left, c], 0.0)
                near += outside * outside
                outside = max(lower[right, c] - places[i, c], places[i, c] - upper[right, c], 0.0)
                far += outside * outside
            near, far = near * ROUNDING, far * ROUNDING
            if near > far:
                left, right, near, far = right, left, far, near
            waiting[top], gaps[top] = right, far
            waiting[top + 1], gaps[top + 1] = left, near
            top += 2
        nearest[q], weights[q] = best_place, best
