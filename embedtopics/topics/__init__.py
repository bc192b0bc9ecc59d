"""The topic model, and the questions that a fitted result answers."""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
