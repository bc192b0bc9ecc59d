"""Texts to vectors: sentence encoders, found on this machine before any network is asked.

And baselines that need no checkpoint: TF-IDF, fastText, pretrained word vectors, and random
projections, the floor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.encoders._cache import CachedEncoder as CachedEncoder
    from embedtopics.encoders.sentence._encoder import SentenceEncoder as SentenceEncoder
    from embedtopics.encoders.static._distill import distill as distill
    from embedtopics.encoders.static._encoder import StaticEncoder as StaticEncoder
    from embedtopics.encoders.words._fasttext import FastTextEncoder as FastTextEncoder
    from embedtopics.encoders.words._tfidf import RandomProjectionEncoder as RandomProjectionEncoder
    from embedtopics.encoders.words._tfidf import TfidfEncoder as TfidfEncoder
    from embedtopics.encoders.words._vectors import WordVectorEncoder as WordVectorEncoder

__getattr__, __dir__, __all__ = attach(__name__, __file__)
