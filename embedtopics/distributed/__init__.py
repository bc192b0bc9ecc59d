"""The same work in shards: on a pool of processes, or on Ray; resumable after any kill."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
