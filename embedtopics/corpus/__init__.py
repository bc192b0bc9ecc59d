"""Files, frames and lists become a `Corpus`: texts with ids, content hashes and metadata."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
