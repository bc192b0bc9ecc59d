"""From what a user names to an encoder; and encoders that learn from the corpus first."""

import copy
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from embedtopics.encoders._base import BaseEncoder
from embedtopics.encoders._cache import CachedEncoder
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.static._encoder import StaticEncoder
from embedtopics.encoders.static._files import holds_static_encoder
from embedtopics.errors import InputError
from embedtopics.protocols import Encoder

_BY_KIND: dict[str, tuple[str, str]] = {
    "fasttext": ("embedtopics.encoders.words._fasttext", "FastTextEncoder"),
    "random": ("embedtopics.encoders.words._tfidf", "RandomProjectionEncoder"),
    "static": ("embedtopics.encoders.static._encoder", "StaticEncoder"),
    "tfidf": ("embedtopics.encoders.words._tfidf", "TfidfEncoder"),
    "word vectors": ("embedtopics.encoders.words._vectors", "WordVectorEncoder"),
}
"""Module and class of the encoders whose settings name a kind."""

_BY_NAME: dict[str, dict[str, Any]] = {
    "fasttext": {"kind": "fasttext"},
    "lsa": {"kind": "tfidf", "n_components": 300},
    "random": {"kind": "random"},
    "tfidf": {"kind": "tfidf"},
}
"""Settings of encoders that need no checkpoint. A folder of such a name is given with its path, as
in "./tfidf"."""


def resolve_encoder(spec: Any, *, cached: bool = False) -> Encoder:
    """Return an encoder for a name, a folder, or an object that is one."""
    if isinstance(spec, str) and spec in _BY_NAME:
        return encoder_from_settings(_BY_NAME[spec])
    if isinstance(spec, (str, os.PathLike)):
        if holds_static_encoder(Path(spec).expanduser()):
            return StaticEncoder(spec)
        encoder = SentenceEncoder(spec)
        return CachedEncoder(encoder) if cached else encoder
    if isinstance(spec, type) or not callable(getattr(spec, "encode", None)):
        raise InputError(
            "expected an encoder: a hub name, the folder of a checkpoint or an object with "
            f"encode(texts); got {spec!r}"
        )
    given: Encoder = spec
    return given


def encoder_from_settings(settings: Mapping[str, Any]) -> Encoder:
    """Make an encoder from what its `settings` said, not yet fitted where it is one that learns."""
    arguments = dict(settings)
    kind = arguments.pop("kind", None)
    if kind is None:
        return SentenceEncoder(**arguments)
    if kind not in _BY_KIND:
        raise InputError(
            f"expected an encoder of a kind among {', '.join(_BY_KIND)}, got {kind!r}; give the "
            "encoder itself"
        )
    module, name = _BY_KIND[kind]
    made: Encoder = getattr(import_module(module), name)(**arguments)
    return made


def learns(encoder: Any) -> bool:
    """Return whether an encoder learns from the texts themselves, as TF-IDF and fastText do."""
    fit = getattr(type(getattr(encoder, "uncached", encoder)), "fit", None)
    return fit is not None and fit is not BaseEncoder.fit


def fitted(encoder: Encoder, texts: Sequence[str]) -> Encoder:
    """Return an encoder that has learned from a corpus: a fitted copy where it had not yet."""
    if getattr(encoder, "is_fitted", True) or not learns(encoder):
        return encoder
    learner: Any = copy.copy(encoder)
    made: Encoder = learner.fit(texts)
    return made


def describe_encoder(encoder: Encoder) -> dict[str, Any]:
    """Return what has to be known of an encoder to tell it from others, and to load it again."""
    return {
        "encoder": getattr(encoder, "name", type(encoder).__name__),
        "encoder_fingerprint": getattr(encoder, "fingerprint", None),
        # Only what can be made again from a few words has settings.
        "encoder_settings": getattr(encoder, "settings", None),
    }
