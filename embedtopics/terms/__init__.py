"""Texts and labels -> terms of topics: counts, weights, keywords, representative documents.

Documents are tokenized once. Everything else is counted from the word ids.
"""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
