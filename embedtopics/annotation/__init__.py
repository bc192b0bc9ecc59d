"""Label texts with active learning; estimate valid shares of the labels."""

from embedtopics._utils.public import attach

MOVED = {"AnnotationProject": "et.AnnotationProject"}
"""Former public names, and where they are now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
