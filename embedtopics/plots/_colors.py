"""Colours that every kind of colour vision can distinguish.

Many topics share a few colours, assigned so that neighbours on the map never look similar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.plots._labels import densest_points

if TYPE_CHECKING:
    from embedtopics.comparison.results import Comparison
    from embedtopics.topics.results import TopicResult

NOISE_COLOR = "#d3d7dd"
"""Colour of outliers."""

# Based on the colour-blind-safe sets of Okabe & Ito and of Paul Tol: lightness (0.35 to 0.8 in
# OKLab) varies with hue, so that readers who see fewer hues still see a step.
PALETTE = (
    "#0072b2", "#e69f00", "#009e73", "#c51b7d", "#56b4e9", "#d55e00", "#332288", "#ccbb44",
    "#882255", "#44aa99", "#cc79a7", "#8c510a", "#117733", "#8073ac", "#ee8866", "#bf812d",
)  # fmt: skip

_VARIED = 7
"""The first colours, which differ in hue for every kind of colour vision."""

_SWEEPS = 4

_CROWDING = 0.04
"""Penalty of each use of a colour, where a near group of that colour costs 1."""

_SOLID = 0.75
"""Recurrence from which a topic has its full colour."""

_PALEST = 0.25
"""Share of colour that a topic keeps if it recurs only by chance."""

# Machado, Oliveira & Fernandes 2009, "A Physiologically-based Model for Simulation of Color
# Vision Deficiency", table 1 at severity 1: protanopia, deuteranopia, tritanopia (linear RGB).
_VISIONS = np.array([
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
     [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
     [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
     [0.004733, 0.691367, 0.303900]],
])  # fmt: skip

# Ottosson 2020, "A perceptual color space for image processing" (OKLab).
_TO_CONES = np.array([
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
])  # fmt: skip
_TO_LAB = np.array([
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
])  # fmt: skip


def topic_colors(result: TopicResult) -> tuple[str, ...]:
    """Return a colour ``#rrggbb`` for each topic, the same in every figure, paler if unstable."""
    anchors = densest_points(result.map, result.clustering.labels, result.n_topics)
    return pale(spread_colors(anchors), result)


def group_colors(result: Comparison) -> tuple[str, ...]:
    """Return a colour ``#rrggbb`` for each group of a comparison, the same in all of its maps."""
    n_groups = len(result.group_names)
    apart = color_distances((*PALETTE, NOISE_COLOR))
    colors = list(range(_VARIED))
    while len(colors) < min(n_groups, len(PALETTE)):
        least = apart[:-1, [*colors, -1]].min(axis=1)  # grey is in use too
        least[colors] = -1.0
        colors.append(int(np.argmax(np.round(least, 9))))
    if n_groups > len(colors):
        places = [densest_points(view.map, result.groups, n_groups) for view in result.encoders]
        near = np.max([_nearness(positions) for positions in places], axis=0)
        for group in range(len(colors), n_groups):
            repulsion = near[group, :group] @ _similarity()[colors]
            repulsion += _CROWDING * np.bincount(colors, minlength=len(PALETTE))
            colors.append(int(np.argmin(np.round(repulsion, 9))))
    return tuple(PALETTE[color] for color in colors[:n_groups])


def pale(colors: tuple[str, ...], result: TopicResult) -> tuple[str, ...]:
    """Return the colours of topics, paler for those that are not stable."""
    if result.stability is None:
        return colors
    recurrence = np.nan_to_num(result.stability.recurrence)
    chance = result.stability.chance
    floor = np.zeros_like(recurrence) if chance is None else np.nan_to_num(chance)
    strength = np.clip((recurrence - floor) / np.maximum(_SOLID - floor, 0.1), 0.0, 1.0)
    shares = _PALEST + (1 - _PALEST) * strength
    return tuple(tint(color, share) for color, share in zip(colors, shares.tolist(), strict=True))


def spread_colors(positions: npt.NDArray[np.float64]) -> tuple[str, ...]:
    """Return a colour for each position (n_topics, 2) that its neighbours do not have."""
    n_topics = len(positions)
    nearness, similarity = _nearness(positions), _similarity()
    colors = np.full(n_topics, -1)
    for topic in [*range(n_topics)] * _SWEEPS:
        others = np.flatnonzero((colors >= 0) & (np.arange(n_topics) != topic))
        used = np.bincount(colors[others], minlength=len(PALETTE))
        # With nothing near, the least used colour is best, then the first.
        repulsion = nearness[topic, others] @ similarity[colors[others]]
        repulsion += _CROWDING * used + 0.002 * np.arange(len(PALETTE))
        if n_topics <= len(PALETTE):
            repulsion[used > 0] = np.inf
        colors[topic] = int(np.argmin(np.round(repulsion, 9)))
    return tuple(PALETTE[color] for color in colors)


def _nearness(positions: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the nearness of positions, from 0 to 1; 0 if a position is unknown."""
    n_topics = len(positions)
    gaps = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
    gaps[np.isnan(gaps) | np.eye(n_topics, dtype=bool)] = np.inf
    # Distances are relative to the third neighbour, because the density of maps varies.
    reach = np.sort(gaps, axis=1)[:, min(2, n_topics - 1)] if n_topics else np.empty(0)
    reach = np.clip(reach, 1e-9, 1e9)
    return np.asarray(np.exp(-np.square(gaps) / (reach[:, None] * reach)))


def _similarity() -> npt.NDArray[np.float64]:
    """Return the similarity of the colours of the palette, from 0 to 1."""
    return np.asarray(np.exp(-np.square(color_distances(PALETTE) / 10.0)))


def color_distances(colors: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """Return the distances of colours, (n_colors, n_colors), for the weakest colour vision."""
    linear = _linear(colors)
    seen = np.clip(np.einsum("vij,cj->vci", _VISIONS, linear), 0.0, 1.0)
    lab = 100.0 * np.cbrt(seen @ _TO_CONES.T) @ _TO_LAB.T
    apart = np.linalg.norm(lab[:, :, None] - lab[:, None], axis=-1)
    least: npt.NDArray[np.float64] = apart.min(axis=0)
    return least


def tint(color: str, share: float) -> str:
    """Return `color` mixed with white; a `share` of 1 leaves it as it is."""
    return _mix(color, 255, share)


def dark(color: str) -> str:
    """Return `color` darkened until text in it reads well on white."""
    for share in np.arange(1.0, 0.0, -0.05):
        candidate = _mix(color, 0, float(share))
        luminance = _linear((candidate,))[0] @ np.array([0.2126, 0.7152, 0.0722])
        if 1.05 / (luminance + 0.05) >= 7.0:
            return candidate
    return "#000000"


def _mix(color: str, other: int, share: float) -> str:
    """Return `share` of `color` and the rest of a grey level."""
    channels = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(share * c + (1 - share) * other):02x}" for c in channels)


def _linear(colors: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """Return linear-light RGB of ``#rrggbb`` colours, shape (n_colors, 3)."""
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colors]) / 255.0
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
