"""Search over a collection: by meaning, by words, or both, under filters, from a folder on disk."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
