"""Coordinates -> labels: density clusters, numbered from the largest down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.clustering._density import DensityClusterer as DensityClusterer

__getattr__, __dir__, __all__ = attach(__name__, __file__)
