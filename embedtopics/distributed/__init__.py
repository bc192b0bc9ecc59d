"""Process large files in shards, in a pool of processes or on Ray; an interrupted run resumes."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
