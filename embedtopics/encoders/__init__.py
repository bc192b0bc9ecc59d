"""Texts to vectors: sentence encoders, found on this machine before any network is asked."""

from __future__ import annotations

from embedtopics.encoders.cached import CachedEncoder
from embedtopics.encoders.choosing import fitted, resolve_encoder
from embedtopics.encoders.distilling import distill
from embedtopics.encoders.languages import language_warning
from embedtopics.encoders.static import StaticEncoder
from embedtopics.encoders.transformer import SentenceEncoder

__all__ = [
    "CachedEncoder",
    "SentenceEncoder",
    "StaticEncoder",
    "distill",
    "fitted",
    "language_warning",
    "resolve_encoder",
]
