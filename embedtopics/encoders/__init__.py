"""Texts to vectors: sentence encoders, found on this machine before any network is asked.

And baselines that need no checkpoint: TF-IDF, fastText, pretrained word vectors, and random
projections, the floor.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
