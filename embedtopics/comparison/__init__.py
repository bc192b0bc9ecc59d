"""Encoders side by side: their neighbours, their maps, their scores and their differences."""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
