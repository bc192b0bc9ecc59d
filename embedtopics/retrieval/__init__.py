"""Search over a collection: by meaning, by words, or both, under filters, from a folder on disk."""

from embedtopics._utils.public import attach

MOVED = {"SearchIndex": "et.SearchIndex", "check": "et.SearchIndex.check"}
"""Former public names, and where they are now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
