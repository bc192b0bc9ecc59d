"""Texts and labels -> terms of topics: counts, weights, keywords, representative documents.

Documents are tokenized once. Everything else is counted from the word ids.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
