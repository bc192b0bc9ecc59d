"""Whether given vectors are those that an encoder makes of the texts, in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embedtopics._utils.display import one_line
from embedtopics.encoders._base import unit_vectors
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._similarity import NAMES
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray
from embedtopics.results import Decision

# Number of texts whose given vectors are compared with their encodings, and the fewest.
N_ORDERED = 32
MIN_ORDERED = 3

MIN_SHARE_IN_PLACE = 0.75
"""Share of these vectors that must be nearest to the encoding of their own text. With
all-MiniLM-L6-v2 on questions, requests, film reviews and templates, the share was at least .91 for
int8, a prompt, a title before the text, and texts cut at 12 tokens; at most .09 for other orders
and random vectors, .56 for a shift by one row among texts sorted by class, .5 for half of the
rows shifted."""

UNIT = 1e-3
"""Largest difference of a length from 1, by rounding."""

ROUNDING = 1e-3
"""Difference of cosines that may come from rounding, for near-duplicates among the texts."""


def check_order(encoder: BaseEncoder, texts: Sequence[str], vectors: Any) -> Decision | None:
    """Make sure that given vectors, (n_texts, n_dimensions), are those of the texts, row by row.

    A sample of distinct texts is encoded again. Vectors of another order, or of another encoder of
    as many dimensions, are refused. With another number of dimensions, or if the encoder cannot
    encode the texts, nothing can be compared: the note says so. An encoder that has yet to learn
    from texts has made no vectors.
    """
    # Rows of distinct texts, from the beginning to the end.
    rows = list({text: row for row, text in enumerate(texts) if text.strip()}.values())
    if not encoder.is_fitted or len(rows) < MIN_ORDERED:
        return None
    rows = [rows[place] for place in np.linspace(0, len(rows) - 1, N_ORDERED).round().astype(int)]
    rows = list(dict.fromkeys(rows))
    sample = np.stack([np.asarray(dense(vectors[row]), dtype=np.float32).ravel() for row in rows])

    try:
        width = encoder.dimensions
        share = share_in_place(encoder, [texts[row] for row in rows], sample)
    except Exception as error:  # whatever an encoder of the caller's raises
        message = (
            f"The embeddings were not compared with the vectors of {encoder.name}, which could "
            f"not encode the texts: {one_line(error)}"
        )
        return Decision("encoder", "not_compared", True, message)

    if share is None or share >= MIN_SHARE_IN_PLACE:
        return None

    if width is not None and width != sample.shape[1]:
        message = (
            f"The embeddings have {sample.shape[1]} dimensions and are not those of "
            f"{encoder.name}, which has {width}: they cannot be compared with other texts."
        )
        return Decision("encoder", "other_dimensions", width, message)

    n_wrong = round((1 - share) * len(rows))
    raise InputError(
        "embeddings",
        f"the vectors that {encoder.name} makes of the texts, in the order of the texts",
        found=f"vectors that differ: of {len(rows)} rows, {n_wrong} are nearer to other texts",
        remedy="give them in the order of the texts, or leave their encoder out",
    )


def require_cosine(encoder: BaseEncoder) -> None:
    """Refuse an encoder whose vectors have other neighbors by its measure than by cosine.

    For vectors of length 1, the dot product and the Euclidean distance give the order of cosines.
    """
    measure = encoder.similarity_fn_name
    if measure == "cosine":
        return
    vector = np.asarray(dense(encoder.uncached.encode(["a text"])), dtype=np.float64)
    if measure != "manhattan" and abs(np.linalg.norm(vector) - 1) < UNIT:
        return
    raise InputError(
        "encoder",
        "one whose vectors are compared by cosine, as in an index",
        found=f"{encoder.name}, which compares by {NAMES.get(measure, measure)}",
        remedy="SentenceEncoder(name, normalize=True) makes vectors of length 1, if cosine will do",
    )


def share_in_place(encoder: BaseEncoder, texts: Sequence[str], vectors: FloatArray) -> float | None:
    """Return the share of given vectors that are nearest to the encoding of their own text.

    None for fewer than three texts with vectors. The mean of either side is subtracted: vectors of
    some encoders all point to one side, so that cosines of any two are large. Of vectors that were
    cut, the same dimensions are compared.
    """
    encoded: Any = encoder.encode_with_report(list(texts), show_progress=False).embeddings
    encoded = np.asarray(dense(encoded), dtype=np.float64)
    width = min(encoded.shape[1], vectors.shape[1])
    encoded = encoded[:, :width]
    given = np.asarray(vectors[:, :width], dtype=np.float64)

    is_present = encoded.any(axis=1) & given.any(axis=1) & np.isfinite(given).all(axis=1)
    if is_present.sum() < MIN_ORDERED:
        return None

    encoded = np.asarray(unit_vectors(encoded[is_present]), dtype=np.float64)
    given = np.asarray(unit_vectors(given[is_present]), dtype=np.float64)
    encoded -= encoded.mean(axis=0)
    given -= given.mean(axis=0)
    similarities = np.asarray(unit_vectors(encoded)) @ np.asarray(unit_vectors(given)).T
    nearest = similarities.max(axis=0)
    return float((np.diag(similarities) >= nearest - ROUNDING).mean())


def dense(vectors: Any) -> Any:
    """Return vectors as an array, not sparse."""
    return vectors.toarray() if hasattr(vectors, "toarray") else vectors
