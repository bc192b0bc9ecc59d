"""Train an encoder on examples, and find out whether it became a better one."""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
