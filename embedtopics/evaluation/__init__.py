"""Measures of topics, labels, encoders and searches, as pure functions."""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
