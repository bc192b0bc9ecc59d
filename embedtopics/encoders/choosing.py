"""From what a user names to an encoder; and encoders that learn from the corpus first."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from embedtopics.encoders.static import StaticEncoder
from embedtopics.encoders.static_files import holds_static_encoder
from embedtopics.encoders.transformer import SentenceEncoder
from embedtopics.errors import InputError
from embedtopics.protocols import Encoder

__all__ = ["fitted", "resolve_encoder"]

_BY_NAME: dict[str, tuple[str, str, dict[str, Any]]] = {}
"""Names of encoders that need no checkpoint: module, class and arguments. A folder of such a name
is given with its path, as in "./tfidf"."""


def resolve_encoder(spec: Any) -> Encoder:
    """Return an encoder for a name, a folder, or an object that is one.

    Parameters
    ----------
    spec : str, path or Encoder

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
        module, name, arguments = _BY_NAME[spec]
        made: Encoder = getattr(import_module(module), name)(**arguments)
        return made
    if isinstance(spec, (str, os.PathLike)):
        if holds_static_encoder(Path(spec).expanduser()):
            return StaticEncoder(spec)
        return SentenceEncoder(spec)
    if isinstance(spec, type) or not callable(getattr(spec, "encode", None)):
        raise InputError(
            "expected an encoder: a hub name, the folder of a checkpoint or an object with "
            f"encode(texts); got {spec!r}"
        )
    encoder: Encoder = spec
    return encoder


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
