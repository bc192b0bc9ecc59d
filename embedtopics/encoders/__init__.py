"""Texts to vectors: sentence encoders, found on this machine before any network is asked.

And baselines that need no checkpoint: TF-IDF, fastText, pretrained word vectors, and random
projections, the floor.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedtopics.encoders.cached import CachedEncoder
    from embedtopics.encoders.choosing import (
        describe_encoder,
        encoder_from_settings,
        fitted,
        resolve_encoder,
    )
    from embedtopics.encoders.distilling import distill
    from embedtopics.encoders.fasttext import FastTextEncoder
    from embedtopics.encoders.languages import language_warning
    from embedtopics.encoders.random_projection import RandomProjectionEncoder
    from embedtopics.encoders.static import StaticEncoder
    from embedtopics.encoders.tfidf import TfidfEncoder
    from embedtopics.encoders.transformer import SentenceEncoder
    from embedtopics.encoders.word_vectors import WordVectorEncoder

__all__ = [
    "CachedEncoder",
    "FastTextEncoder",
    "RandomProjectionEncoder",
    "SentenceEncoder",
    "StaticEncoder",
    "TfidfEncoder",
    "WordVectorEncoder",
    "describe_encoder",
    "distill",
    "encoder_from_settings",
    "fitted",
    "language_warning",
    "resolve_encoder",
]

# One encoder does not wait for what another needs: the first embedding comes within a second.
_HOME = {
    "CachedEncoder": "cached",
    "FastTextEncoder": "fasttext",
    "RandomProjectionEncoder": "random_projection",
    "SentenceEncoder": "transformer",
    "StaticEncoder": "static",
    "TfidfEncoder": "tfidf",
    "WordVectorEncoder": "word_vectors",
    "distill": "distilling",
    "describe_encoder": "choosing",
    "encoder_from_settings": "choosing",
    "fitted": "choosing",
    "language_warning": "languages",
    "resolve_encoder": "choosing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
