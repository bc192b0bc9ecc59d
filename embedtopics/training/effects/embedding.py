"""Texts of all test sets, embedded once by an encoder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.neighbors import unit_rows
from embedtopics.protocols import FloatArray, Int64Array

__all__ = ["Embedded", "cosines", "embed"]

ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Embedded:
    """Vectors of texts.

    Parameters
    ----------
    rows : float32 ndarray of shape (n_texts, n_dimensions)
        Of length one; zero where the encoder has nothing to say of a text.
    place : dict of str to int
        Row of each text.
    """

    rows: FloatArray
    place: dict[str, int]

    def places(self, texts: Sequence[str]) -> Int64Array:
        """Return the row of each text."""
        return np.array([self.place[text] for text in texts], dtype=np.int64)

    def of(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of texts, shape (n, n_dimensions)."""
        return self.rows[self.places(texts)]


def embed(encoder: Any, columns: Iterable[Sequence[str]], what: str) -> Embedded:
    """Encode each distinct text of some columns once.

    Parameters
    ----------
    encoder : Encoder
    columns : iterable of sequence of str
    what : str
        Which encoder it is, for errors.

    Returns
    -------
    Embedded

    Raises
    ------
    InputError
        Where it does not return one finite dense vector a text.
    """
    # In one order, so that nothing depends on the order of the examples.
    texts = sorted({text for column in columns for text in column})
    made = encoder.encode(texts)
    if hasattr(made, "toarray"):
        raise InputError(
            f"expected an encoder of dense vectors {what} training; {type(encoder).__name__} makes "
            "sparse ones; give it n_components"
        )
    rows = unit_rows(made, what=f"the vectors of the encoder {what} training", keep_zeros=True)
    if len(rows) != len(texts):
        raise InputError(
            f"expected the encoder {what} training to return one vector a text, {len(texts):,} "
            f"rows; it returned {len(rows):,}"
        )
    return Embedded(rows, {text: place for place, text in enumerate(texts)})


def cosines(first: FloatArray, second: FloatArray) -> npt.NDArray[np.float64]:
    """Return the cosine of each pair of rows, both of length one (or zero, which gives 0)."""
    found = np.empty(len(first))
    for begin in range(0, len(first), ROWS_AT_ONCE):
        part = slice(begin, begin + ROWS_AT_ONCE)
        found[part] = np.einsum("ij,ij->i", first[part], second[part], dtype=np.float64)
    return found
