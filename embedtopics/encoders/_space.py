"""One answer to the question whether stored vectors come from the space of an encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embedtopics.encoders._base import unit_vectors
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.errors import InputError, Remedy
from embedtopics.protocols import FloatArray

N_COMPARED = 16
"""Number of texts that are encoded again to compare their vectors."""

SAME_VECTOR_COSINE = 1 - 1e-4
"""Minimum cosine of two vectors that count as the same: other processors, and other versions of
libraries, round differently."""

MIN_SPACE_COSINE = 0.95
"""Minimum median cosine of vectors that one checkpoint makes in two precisions: those of
all-MiniLM-L6-v2 in int8 and float32 have 0.997, and 0.979 at the lowest, on four corpora."""

MIN_GIVEN_COSINE = 0.5
"""Minimum median cosine of given vectors and those that an encoder makes of the texts. From another
encoder they are near 0; a title before the text leaves them near 1."""

GIVEN = "given"
"""Recorded name of the encoder of vectors that the caller gave."""


@dataclass(frozen=True, eq=False)
class StoredVectors:
    """Vectors that are stored with the description of their encoder.

    Parameters
    ----------
    settings : mapping
        Contains what `describe_encoder` returned.
    owner : str
        What the vectors belong to, for messages: "the fit" or "the index".
    sample : function
        Returns some texts and their unit vectors, (n_texts, n_dimensions).
    redo : str
        How to make the vectors anew, for messages: "fit again".
    """

    settings: Mapping[str, Any]
    owner: str
    sample: Callable[[], tuple[Sequence[str], FloatArray]]
    redo: str


def describe_encoder(encoder: BaseEncoder) -> dict[str, Any]:
    """Return the record by which an encoder is recognized and made again."""
    info = encoder.info
    return {
        "encoder": info.name,
        "encoder_fingerprint": info.fingerprint,
        "encoder_space": info.space,
        "encoder_settings": info.settings,
    }


def space_of(settings: Mapping[str, Any]) -> str | None:
    """Return the recorded space of vectors, or the fingerprint if the encoder has no space."""
    space: str | None = settings.get("encoder_space") or settings.get("encoder_fingerprint")
    return space


def check_encoder(encoder: BaseEncoder, stored: StoredVectors) -> None:
    """Make sure that an encoder's vectors can be compared with stored ones.

    They can where the fingerprints are equal. Otherwise some texts are encoded again. A checkpoint
    in another precision passes where its vectors are nearly the same, an encoder that learned from
    texts where its vectors are the same but for rounding, and an encoder without a fingerprint
    where its vectors are similar.

    Raises
    ------
    InputError
        If the vectors cannot be compared.
    """
    settings = stored.settings
    expected, fingerprint = settings.get("encoder_fingerprint"), encoder.fingerprint
    name = settings.get("encoder")
    if expected == fingerprint and (expected is not None or name != GIVEN):
        return  # without a fingerprint, an object of the user's own
    texts, vectors = stored.sample()
    if expected is None or fingerprint is None:
        check_space(encoder, texts, vectors, "give the one that made them")
        return
    if encoder.learns:
        matches = _are_same(encoder, texts, vectors)
    else:
        is_one_space = space_of(settings) == encoder.space
        matches = is_one_space and _median_cosine(encoder, texts, vectors) >= MIN_SPACE_COSINE
    if not matches:
        expectation = f"the encoder of {stored.owner} ({name}, fingerprint {expected[:12]})"
        described = f"{encoder.name} (fingerprint {fingerprint[:12]})"
        remedy = Remedy("encoder", None, f"give the encoder of {stored.owner}, or {stored.redo}")
        raise InputError("encoder", expectation, found=described, remedy=remedy)


def check_space(
    encoder: BaseEncoder, texts: Sequence[str], vectors: FloatArray, remedy: str
) -> None:
    """Make sure that an encoder's vectors of texts are similar to given unit vectors."""
    texts, vectors = texts[:N_COMPARED], vectors[:N_COMPARED]
    if not _median_cosine(encoder, texts, vectors, otherwise=0.0) >= MIN_GIVEN_COSINE:
        expected = f"that of the given embeddings ({vectors.shape[1]} dimensions)"
        raise InputError("encoder", expected, encoder.name, remedy)


def _median_cosine(
    encoder: BaseEncoder, texts: Sequence[str], vectors: FloatArray, *, otherwise: float = 1.0
) -> float:
    """Return the median cosine; texts without a vector on both sides count as `otherwise`."""
    cosines, is_empty = _cosines(encoder, texts, vectors)
    return float(np.median(np.where(is_empty, otherwise, cosines))) if len(cosines) else 1.0


def _are_same(encoder: BaseEncoder, texts: Sequence[str], vectors: FloatArray) -> bool:
    cosines, is_empty = _cosines(encoder, texts, vectors)
    return bool((is_empty | (cosines >= SAME_VECTOR_COSINE)).all())


def _cosines(encoder: BaseEncoder, texts: Sequence[str], vectors: FloatArray) -> tuple[Any, Any]:
    """Return cosines with new vectors of the texts, and where both vectors are zero."""
    if not len(texts):
        return np.zeros(0), np.zeros(0, dtype=np.bool_)
    encoded: Any = encoder.uncached.encode_with_report(list(texts), show_progress=False).embeddings
    if hasattr(encoded, "toarray"):
        encoded = encoded.toarray()
    encoded = unit_vectors(np.asarray(encoded, dtype=np.float32))
    if encoded.shape != vectors.shape:
        return np.full(len(texts), -1.0), np.zeros(len(texts), dtype=np.bool_)
    is_empty = ~encoded.any(axis=1) & ~vectors.any(axis=1)
    return np.einsum("ij,ij->i", encoded, vectors, dtype=np.float64), is_empty
