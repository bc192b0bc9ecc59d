"""Looks inside an encoder: vectors of words at every layer, and what can be read from them."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
