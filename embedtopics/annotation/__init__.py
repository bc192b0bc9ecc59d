"""Label texts with active learning; estimate valid shares of the labels."""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
