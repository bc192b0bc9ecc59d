"""Files, frames and lists become a `Corpus`: texts with ids, content hashes and metadata."""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
