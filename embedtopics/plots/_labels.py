"""Placement of names on a map, so that none covers another."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int32Array

# Offsets of a label from its anchor, in its own widths and heights, best first: on the anchor,
# then around it. Further out, a label would seem to name what lies beneath it.
_OFFSETS = (
    (0.0, 0.0), (0.0, -1.0), (0.0, 1.0), (0.6, 0.0), (-0.6, 0.0), (0.5, -0.8), (-0.5, -0.8),
    (0.5, 0.8), (-0.5, 0.8),
)  # fmt: skip
# Beside points a label may stand further off: it has the colour of what it names.
_BESIDE_POINTS = (*_OFFSETS, *((0.0, up) for up in (2.0, -2.0, 3.0, -3.0)))
_PADDING = 6.0


class Placement(NamedTuple):
    """A placed label, and the pixels from its anchor to its centre."""

    label: int
    shift: tuple[float, float]


def densest_points(
    positions: FloatArray, labels: Int32Array, n_topics: int
) -> npt.NDArray[np.float64]:
    """Return the densest point of each topic, (n_topics, 2); a mean could lie on another topic."""
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(n_topics + 1))
    densest = np.full((n_topics, 2), np.nan)
    for topic in range(n_topics):
        members = order[bounds[topic] : bounds[topic + 1]]
        if len(members):
            densest[topic] = _densest(positions[members].astype(np.float64))
    return densest


def _densest(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the point nearest to the peak of a smoothed histogram of the points."""
    from scipy.ndimage import gaussian_filter

    low, high = np.quantile(points, (0.02, 0.98), axis=0)  # so that strays do not coarsen the cells
    span = np.maximum(high - low, 1e-9)
    n_cells = 24
    cells = np.floor((points - low) / span * n_cells).astype(np.int64)
    inside = np.all((cells >= 0) & (cells <= n_cells), axis=1)
    cells = np.minimum(cells, n_cells - 1)[inside]
    counts = np.zeros((n_cells, n_cells))
    np.add.at(counts, (cells[:, 0], cells[:, 1]), 1.0)
    density = gaussian_filter(counts, sigma=2.0, mode="constant")
    peak = np.unravel_index(int(np.argmax(density)), density.shape)
    centre = low + (np.array(peak) + 0.5) / n_cells * span
    distances = np.square((points - centre) / span).sum(axis=1)
    nearest: npt.NDArray[np.float64] = points[int(np.argmin(distances))]
    return nearest


def place_labels(
    anchors: npt.NDArray[np.float64],
    boxes: Sequence[tuple[float, float]],
    size: tuple[float, float],
    max_labels: int,
    points: npt.ArrayLike = (),
) -> list[Placement]:
    """Place labels at anchors (n_labels, 2) in their order, beside each other and all `points`."""
    placed: list[Placement] = []
    centres = np.reshape(points, (-1, 2))
    boxes_placed = np.hstack([centres - _PADDING, centres + _PADDING])
    for index, (anchor, box) in enumerate(zip(anchors, boxes, strict=True)):
        if len(placed) >= max_labels:
            break
        if not np.isfinite(anchor).all():
            continue
        extent = np.array(box) + _PADDING
        for offset in _BESIDE_POINTS if len(centres) else _OFFSETS:
            centre = anchor + np.array(offset) * extent
            centre = np.clip(centre, extent / 2, np.maximum(np.array(size) - extent / 2, 0.0))
            edges = np.concatenate([centre - extent / 2, centre + extent / 2])
            apart = (edges[:2] >= boxes_placed[:, 2:]) | (edges[2:] <= boxes_placed[:, :2])
            if apart.any(axis=1).all():
                right, up = centre - anchor
                placed.append(Placement(index, (round(float(right), 1), round(float(up), 1))))
                boxes_placed = np.vstack([boxes_placed, edges])
                break
    return placed


def spread(heights: Sequence[float], apart: float) -> list[float]:
    """Move heights to between 0 and 1 and at least `apart`, by as little as possible."""
    order = np.argsort(heights, kind="stable")
    steps = apart * np.arange(len(order))
    lowest = np.maximum.accumulate(np.maximum(heights, 0.0)[order] - steps) + steps
    placed = np.empty(len(order))
    placed[order] = np.minimum(lowest, 1.0 - steps[::-1])
    return [float(place) for place in placed]
