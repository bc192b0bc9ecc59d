"""Small multiples: where each panel goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from embedtopics._checks import checked_count
from embedtopics.errors import InputError
from embedtopics.plots.text import FONT, INK

__all__ = ["ASSUMED_WIDTH", "Panels", "checked_sizes", "chosen_columns", "panel_layout", "spread"]

ASSUMED_WIDTH = 1100
"""Pixels for which a figure without a width of its own is laid out."""


@dataclass(frozen=True)
class Panels:
    """Panels of one size in rows, in pixels.

    Parameters
    ----------
    n, columns : int
    width, height : float
        Of a panel's drawing.
    head, foot : float
        Above each panel for its name, and below it for its axis.
    gap : float
        Between two panels of a row.
    left, right, top, bottom : int
        Margins of the figure.
    """

    n: int
    columns: int
    width: float
    height: float
    head: float = 26
    foot: float = 8
    gap: float = 16
    left: int = 16
    right: int = 16
    top: int = 16
    bottom: int = 12

    @property
    def rows(self) -> int:
        """Rows of panels."""
        return -(-self.n // self.columns)

    @property
    def inner(self) -> tuple[float, float]:
        """Width and height of what lies within the margins."""
        across = self.columns * self.width + (self.columns - 1) * self.gap
        return across, self.rows * (self.head + self.height + self.foot)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the figure."""
        across, up = self.inner
        return round(across) + self.left + self.right, round(up) + self.top + self.bottom

    def domain(self, place: int) -> tuple[list[float], list[float]]:
        """Return the shares of the inner width and height that a panel takes."""
        row, column = divmod(place, self.columns)
        across, up = self.inner
        left = column * (self.width + self.gap)
        upper = up - row * (self.head + self.height + self.foot) - self.head
        return (
            [left / across, min((left + self.width) / across, 1.0)],
            [max((upper - self.height) / up, 0.0), min(upper / up, 1.0)],
        )

    def heading(self, place: int, text: str, shift: float = 5, **more: Any) -> dict[str, Any]:
        """Return a name above a panel, at its left edge."""
        across, up = self.domain(place)
        return {
            "x": across[0], "y": up[1], "xref": "paper", "yref": "paper", "xanchor": "left",
            "yanchor": "bottom", "yshift": shift, "align": "left", "showarrow": False,
            "text": text, **more,
        }  # fmt: skip


def chosen_columns(n: int, columns: int | None, width: int, least: float, gap: float = 16) -> int:
    """Return in how many columns panels stand: as many as fit, with rows as even as can be."""
    if columns is not None:
        return min(checked_count(columns, "columns"), max(n, 1))
    fit = max(int((width + gap) / (least + gap)), 1)
    rows = -(-n // fit)
    return max(-(-n // max(rows, 1)), 1)


def checked_sizes(width: int | None, height: int | None, least: int = 300) -> None:
    """Refuse sizes that no figure can have."""
    for name, pixels in (("width", width), ("height", height)):
        if pixels is not None and not pixels >= least:
            raise InputError(f"{name} must be None or at least {least} pixels; got {pixels!r}")


def panel_layout(
    panels: Panels, width: int | None, height: int | None, annotations: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return what the figures of small multiples have in common."""
    return {
        "template": "none", "width": width, "height": height or panels.size[1],
        "margin": {"l": panels.left, "r": panels.right, "t": panels.top, "b": panels.bottom},
        "font": {"family": FONT, "size": 13, "color": INK},
        "hoverlabel": {"bgcolor": "#fff", "align": "left", "font": {"family": FONT, "color": INK}},
        "hovermode": "closest", "annotations": list(annotations),
    }  # fmt: skip


def spread(heights: Sequence[float], apart: float) -> list[float]:
    """Move labels so that each lies at its line as nearly as the others let it.

    Parameters
    ----------
    heights : sequence of float
        Where the labels would stand, from 0 to 1.
    apart : float
        What two of them need.
    """
    order = sorted(range(len(heights)), key=heights.__getitem__)
    placed = [0.0] * len(heights)
    floor = 0.0
    for i in order:
        placed[i] = max(heights[i], floor)
        floor = placed[i] + apart
    roof = 1.0
    for i in reversed(order):
        placed[i] = min(placed[i], roof)
        roof = placed[i] - apart
    return placed
