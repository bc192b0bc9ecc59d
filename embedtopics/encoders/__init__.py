"""Texts to vectors: sentence encoders, found on this machine before any network is asked.

And baselines that need no checkpoint: TF-IDF, fastText, pretrained word vectors, and random
projections, the floor.
"""

from embedtopics._utils.public import attach

MOVED = {"SentenceEncoder": "et.SentenceEncoder"}
"""Former public names, and where they are now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
