"""Names of topics on a map, as annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.plots.labels import place_labels
from embedtopics.plots.palette import dark
from embedtopics.plots.text import escape

__all__ = ["HALO", "label_annotations"]

HALO = ", ".join(f"{x}px {y}px 2px #fff" for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y)
"""A white rim, on which a name can be read wherever it stands."""


def label_annotations(
    names: Sequence[Sequence[str]],
    anchors: npt.NDArray[np.float64],
    pixels: npt.NDArray[np.float64],
    colors: Sequence[str],
    drawing: tuple[float, float],
    max_labels: int,
    *,
    size: int = 12,
) -> list[dict[str, Any]]:
    """Return names as annotations that do not cover one another.

    Parameters
    ----------
    names : sequence of sequence of str
        Lines of each name, the most important name first.
    anchors, pixels : float64 ndarray of shape (n_names, 2)
        Where each stands in the data, and in the drawing.
    colors : sequence of str
    drawing : (float, float)
        Width and height in pixels.
    max_labels : int
    size : int
        Of the letters, in pixels.
    """
    # a glyph is about 0.58 of the size wide; measured on the system fonts of FONT
    boxes = [
        (0.58 * size * max(len(line) for line in lines), 1.35 * size * len(lines))
        for lines in names
    ]
    return [
        {
            "x": float(anchors[place.index, 0]),
            "y": float(anchors[place.index, 1]),
            "xshift": place.shift[0],
            "yshift": place.shift[1],
            "text": "<br>".join(escape(line) for line in names[place.index]),
            "showarrow": False,
            "font": {
                "size": size, "color": dark(colors[place.index]), "weight": 650, "shadow": HALO,
            },
        }
        for place in place_labels(pixels, boxes, drawing, max_labels)
    ]  # fmt: skip
