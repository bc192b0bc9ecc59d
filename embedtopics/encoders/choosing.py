"""From what a user names to an encoder; and encoders that learn from the corpus first."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from embedtopics.encoders.cached import CachedEncoder
from embedtopics.encoders.static import StaticEncoder
from embedtopics.encoders.static_files import holds_static_encoder
from embedtopics.encoders.transformer import SentenceEncoder
from embedtopics.errors import InputError
from embedtopics.protocols import Encoder

__all__ = ["describe_encoder", "encoder_from_settings", "fitted", "resolve_encoder"]

_BY_KIND: dict[str, tuple[str, str]] = {
    "fasttext": ("embedtopics.encoders.fasttext", "FastTextEncoder"),
    "random": ("embedtopics.encoders.random_projection", "RandomProjectionEncoder"),
    "static": ("embedtopics.encoders.static", "StaticEncoder"),
    "tfidf": ("embedtopics.encoders.tfidf", "TfidfEncoder"),
    "word vectors": ("embedtopics.encoders.word_vectors", "WordVectorEncoder"),
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
    """Return an encoder for a name, a folder, or an object that is one.

    Parameters
    ----------
    spec : str, path or Encoder
        "tfidf", "lsa", "fasttext" and "random" are the baselines that need no checkpoint.
    cached : bool
        Whether a checkpoint that is named keeps its vectors on disk, see `CachedEncoder`. An
        object is returned as it is.

    Returns
    -------
    Encoder

    Raises
    ------
    InputError
        If `spec` is something else.
    ModelLoadError
        If a name or folder cannot be loaded.
    """
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
    """Make an encoder from what its `settings` said, not yet fitted where it is one that learns.

    Parameters
    ----------
    settings : mapping
        Arguments of a `SentenceEncoder`; or a "kind", and arguments of that kind of encoder.

    Returns
    -------
    Encoder

    Raises
    ------
    InputError
        If the kind is not known here, or an argument is bad.
    ModelLoadError
        If files that it needs cannot be loaded.
    """
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


def fitted(encoder: Encoder, texts: Sequence[str]) -> Encoder:
    """Return an encoder that has learned what it needs to learn from a corpus.

    TF-IDF and fastText learn from the texts themselves: they have ``fit(texts)`` and
    ``is_fitted``. One that the caller has fitted already stays as it is; of one that is not, a
    copy is fitted, so that the caller's object does not change.

    Parameters
    ----------
    encoder : Encoder
    texts : sequence of str

    Returns
    -------
    Encoder
    """
    if getattr(encoder, "is_fitted", True) or not hasattr(encoder, "fit"):
        return encoder
    made: Encoder = copy.copy(encoder).fit(texts)
    return made


def describe_encoder(encoder: Encoder) -> dict[str, Any]:
    """Return what has to be known of an encoder to tell it from others, and to load it again."""
    return {
        "encoder": getattr(encoder, "name", type(encoder).__name__),
        "encoder_fingerprint": getattr(encoder, "fingerprint", None),
        # Only what can be made again from a few words has settings.
        "encoder_settings": getattr(encoder, "settings", None),
    }
