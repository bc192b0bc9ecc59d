"""The topic model, and the questions that a fitted result answers."""

from embedtopics._utils.public import attach

MOVED = {"TopicModel": "et.TopicModel"}
"""Former public names, and where they are now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
