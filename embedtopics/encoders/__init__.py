"""Texts to vectors: sentence encoders, found on this machine before any network is asked."""

from __future__ import annotations

from embedtopics.encoders.cached import CachedEncoder
from embedtopics.encoders.languages import language_warning
from embedtopics.encoders.transformer import SentenceEncoder, resolve_encoder

__all__ = ["CachedEncoder", "SentenceEncoder", "language_warning", "resolve_encoder"]
