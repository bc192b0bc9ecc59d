"""Process large files in shards, in a pool of processes or on Ray; an interrupted run resumes."""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
