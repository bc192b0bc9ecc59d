"""Shares, trends and regressions that hold although labels err."""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
