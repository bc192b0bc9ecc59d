"""Classifiers of texts with few labels or many, how far to trust them, and shares of a corpus."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
