"""Classify texts and words, evaluate classifiers, and estimate the share of each class."""

from embedtopics._utils.public import attach

MOVED = {"TextClassifier": "et.TextClassifier", "TokenClassifier": "et.TokenClassifier"}
"""Former public names, and where they are now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
