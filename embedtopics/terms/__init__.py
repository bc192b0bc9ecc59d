"""Texts and labels -> what each topic is about: terms, weights, keywords, representative documents.

Documents are tokenised once; everything else is counted from the word ids.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
