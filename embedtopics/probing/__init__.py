"""Looks inside an encoder: vectors of words at every layer, and what can be read from them."""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
