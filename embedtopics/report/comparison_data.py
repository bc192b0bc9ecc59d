"""What the page of a comparison knows of the documents, small enough to open at once."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.plots import NOISE_COLOR, group_colors
from embedtopics.plots.labels import densest_points
from embedtopics.plots.palette import dark
from embedtopics.plots.text import cut
from embedtopics.results import Comparison, NeighborGraph

__all__ = ["FULL_TEXT", "comparison_json", "text_length"]

FULL_TEXT = 300
"""Characters shown of a text, where there is room."""

# Texts are most of a large page; beyond this many characters in all each is cut shorter.
_TEXT_BUDGET = 9_000_000
_NEIGHBORS = 10
_STEPS = 65535


def text_length(n_documents: int) -> int:
    """Return how many characters of each text the page holds.

    Examples
    --------
    >>> text_length(20_000), text_length(100_000)
    (300, 90)
    """
    return max(40, min(FULL_TEXT, _TEXT_BUDGET // max(n_documents, 1)))


def comparison_json(result: Comparison) -> str:
    """Return the documents, their places and their neighbours as JSON.

    Places are rounded to one 65,535th of what all maps span, and arrays travel as base64 of
    little-endian integers: 20,000 documents take 107 kB a map, and 533 kB for the nearest ten
    neighbours under an encoder.

    Parameters
    ----------
    result : Comparison

    Returns
    -------
    str
        ``texts`` and ``ids`` are lists of strings; ``rows``, ``weights`` and ``groups`` are uint32
        (a group is one more than in the result, 0 for none); each encoder has ``places`` (uint16
        pairs), ``neighbors`` (uint16 up to 65,535 documents, else uint32; `depth` a document,
        nearest first; the number of documents where there is none) and ``anchors`` (where each
        group is densest, or null). ``span`` is what the maps span, in steps of the places.
    """
    low, step, span = _grid(result)
    length = text_length(len(result.documents))
    rows = result.documents.first_rows
    colors = group_colors(result)
    narrow = "<u2" if len(rows) <= _STEPS else "<u4"
    depth = min([_NEIGHBORS, *(view.graph.k for view in result.encoders)])
    content: dict[str, Any] = {
        "n": len(rows),
        "depth": depth,
        "span": [round(float(value), 1) for value in span],
        "texts": [cut(result.corpus.texts[row], length) for row in rows.tolist()],
        "ids": [cut(result.corpus.ids[row], 80) for row in rows.tolist()],
        "rows": _pack(rows),
        "weights": _pack(result.documents.weights),
        "groups": _pack(result.groups + 1),
        "names": ["No group", *(cut(name, 60) for name in result.group_names)],
        "colors": [NOISE_COLOR, *colors],
        "inks": ["#5b6674", *(dark(color) for color in colors)],
        "encoders": [
            {
                "name": cut(view.name, 60),
                "places": _pack(np.rint((view.map - low) / step), "<u2"),
                "neighbors": _pack(_neighbors(view.graph, depth), narrow),
                "anchors": [
                    None if np.isnan(point).any() else np.rint((point - low) / step).tolist()
                    for point in densest_points(view.map, result.groups, len(result.group_names))
                ],
            }
            for view in result.encoders
        ],
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _grid(
    result: Comparison,
) -> tuple[npt.NDArray[np.float64], float, npt.NDArray[np.float64]]:
    """Return the corner, the step and the span in steps of the grid on which all maps lie."""
    every = np.vstack([view.map for view in result.encoders]).astype(np.float64)
    if not len(every):
        return np.zeros(2), 1.0, np.ones(2)
    low, high = every.min(axis=0), every.max(axis=0)
    step = float(np.max(high - low)) / _STEPS or 1.0
    return low, step, np.maximum((high - low) / step, 1.0)


def _neighbors(graph: NeighborGraph, depth: int) -> npt.NDArray[Any]:
    """Return the nearest neighbours, and the number of documents for nobody.

    What has nothing in common with a document only fills its list, and is no neighbour.
    """
    indices, similarities = graph.indices[:, :depth], graph.similarities[:, :depth]
    return np.where((indices < 0) | (similarities <= 0), len(graph), indices)


def _pack(values: npt.NDArray[Any], kind: str = "<u4") -> str:
    """Return an array as base64 of little-endian integers."""
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode("ascii")
