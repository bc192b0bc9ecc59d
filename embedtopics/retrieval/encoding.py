"""Texts and queries -> unit vectors, by the encoder that a collection was made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from embedtopics.encoders import describe_encoder, encoder_from_settings, resolve_encoder
from embedtopics.errors import InputError
from embedtopics.neighbors import unit_rows
from embedtopics.protocols import Encoder, FloatArray
from embedtopics.results import Encoding

__all__ = ["check_same", "encode_texts", "given_vectors", "stored_encoder"]


def encode_texts(
    encoder: Encoder, texts: Sequence[str], *, show_progress: bool | None = None
) -> tuple[FloatArray, Encoding | None]:
    """Return a unit vector a text, and what the encoder saw of the texts where it says so.

    Parameters
    ----------
    encoder : Encoder
    texts : sequence of str
    show_progress : bool, optional

    Returns
    -------
    vectors : float32 ndarray of shape (n_texts, n_dimensions)
        Zeros for a text of which the encoder makes nothing.
    report : Encoding or None

    Raises
    ------
    InputError
        Where there is not one finite, dense vector a text.
    """
    with_report = getattr(encoder, "encode_with_report", None)
    report = None if with_report is None else with_report(texts, show_progress=show_progress)
    made: Any = encoder.encode(texts) if report is None else report.embeddings
    if hasattr(made, "toarray"):
        raise InputError(
            f"expected an encoder of dense vectors, {type(encoder).__name__} makes sparse ones, by "
            'words; search by words with mode="lexical", or take encoder="lsa"'
        )
    return _checked(np.asarray(made), len(texts), "the encoder's vectors"), report


def given_vectors(vectors: Any, n_rows: int, what: str = "embeddings") -> FloatArray:
    """Return vectors that the caller has, scaled to length one.

    Parameters
    ----------
    vectors : array_like of shape (n_rows, n_dimensions)
    n_rows : int
    what : str
        What they are called in an error.

    Returns
    -------
    float32 ndarray of shape (n_rows, n_dimensions)
        Zeros stay zeros.

    Raises
    ------
    InputError
        Where there is not one finite vector a row.
    """
    return _checked(np.asarray(vectors), n_rows, what)


def _checked(vectors: Any, n_rows: int, what: str) -> FloatArray:
    if vectors.ndim != 2 or len(vectors) != n_rows:
        raise InputError(
            f"expected {what} to have one row a text, {n_rows:,}, got shape {vectors.shape}"
        )
    return unit_rows(vectors, what=what, keep_zeros=True)


def stored_encoder(settings: Mapping[str, Any], given: Any = None) -> Encoder:
    """Return the encoder of a collection.

    Parameters
    ----------
    settings : mapping
        What `describe_encoder` said when the collection was made.
    given : str, path or Encoder, optional
        Otherwise it is made from what was recorded.

    Raises
    ------
    InputError
        If it cannot be made again, or is another one.
    ModelLoadError
        If it cannot be loaded.
    """
    recorded = settings.get("encoder_settings")
    if given is None and settings.get("encoder") is None:
        raise InputError(
            "the collection was made of embeddings alone, without an encoder; give embeddings= to "
            'add and vectors= to search, load it with encoder=, or search with mode="lexical"'
        )
    if given is None and not isinstance(recorded, Mapping):
        raise InputError(
            f"the collection was made with an encoder of your own ({settings.get('encoder')}), "
            "which cannot be loaded by name; load the index with encoder=, or search with "
            'mode="lexical"'
        )
    if given is None:
        assert isinstance(recorded, Mapping)
        encoder = encoder_from_settings(recorded)
    else:
        encoder = resolve_encoder(given)
    if not getattr(encoder, "is_fitted", True):
        raise InputError(
            f"the encoder of the collection ({settings.get('encoder')}) has learnt from texts, and "
            "is not stored with it; load the index with the fitted one as encoder=, or search with "
            'mode="lexical"'
        )
    check_same(settings, encoder)
    return encoder


def check_same(settings: Mapping[str, Any], encoder: Encoder) -> None:
    """Refuse an encoder whose vectors cannot be compared with those of the collection.

    Raises
    ------
    InputError
        If its fingerprint is another.
    """
    expected, found = settings.get("encoder_fingerprint"), getattr(encoder, "fingerprint", None)
    if expected is not None and found != expected:
        said = describe_encoder(encoder)["encoder"]
        raise InputError(
            f"expected the encoder of the collection ({settings.get('encoder')}, fingerprint "
            f"{expected[:12]}), got {said} ({(found or 'none')[:12]}), whose vectors cannot be "
            "compared with its own; leave encoder= out, or build the collection again"
        )
