"""Texts to vectors: sentence encoders, found on this machine before any network is asked.

And baselines that need no checkpoint: TF-IDF, fastText, pretrained word vectors, and random
projections, the floor.
"""

from __future__ import annotations

from embedtopics.encoders.cached import CachedEncoder
from embedtopics.encoders.choosing import encoder_from_settings, fitted, resolve_encoder
from embedtopics.encoders.fasttext import FastTextEncoder
from embedtopics.encoders.languages import language_warning
from embedtopics.encoders.random_projection import RandomProjectionEncoder
from embedtopics.encoders.tfidf import TfidfEncoder
from embedtopics.encoders.transformer import SentenceEncoder
from embedtopics.encoders.word_vectors import WordVectorEncoder

__all__ = [
    "CachedEncoder",
    "FastTextEncoder",
    "RandomProjectionEncoder",
    "SentenceEncoder",
    "TfidfEncoder",
    "WordVectorEncoder",
    "encoder_from_settings",
    "fitted",
    "language_warning",
    "resolve_encoder",
]
