"""Encoders side by side: their neighbours, their maps, their scores and their differences."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
