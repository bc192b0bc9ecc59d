"""Coordinates -> labels: density clusters, numbered from the largest down."""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
