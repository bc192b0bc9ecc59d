"""New documents as a caller gives them: read, and refused before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, Int64Array

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Batch", "DocumentId", "checked_id", "read_batch"]

DocumentId: TypeAlias = str | int | float


@dataclass(frozen=True, eq=False)
class Batch:
    """New documents and their passages.

    Parameters
    ----------
    ids : list of str, int or float
    texts : list of str
    positions : int64 ndarray of shape (n_passages,)
        Document of each passage, ascending, from 0.
    spans : int32 ndarray of shape (n_passages, 2)
    """

    ids: list[DocumentId]
    texts: list[str]
    positions: Int64Array
    spans: Int32Array


def checked_id(value: object, row: int) -> DocumentId:
    """Return an id as Python's own text or number.

    Raises
    ------
    InputError
        If it is neither, or cannot be stored.
    """
    where = f"the id in row {row + 1}"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{where} must be text or a number; got {value!r}; give it another one")
    if isinstance(value, str):
        if not _is_unicode(value):
            raise InputError(
                f"{where}, {value!r}, holds half a character and cannot be written as UTF-8; "
                "give it another one"
            )
        return str.__str__(value)
    if isinstance(value, float):
        if value != value:
            raise InputError(f"{where} is NaN, which is equal to nothing; give it another one")
        return float(value) + 0.0
    if not -(2**63) <= value < 2**63:
        raise InputError(f"{where}, {value}, needs more than 64 bits; give it as text")
    return int(value)


def read_batch(
    ids: Iterable[object],
    texts: Iterable[object],
    metadata: pd.DataFrame | None,
    passages: tuple[npt.ArrayLike, npt.ArrayLike],
) -> Batch:
    """Read new documents.

    Raises
    ------
    InputError
        If lengths differ, an id is none or stands twice, a text is none, or a passage does not
        lie in its document.
    """
    checked = [checked_id(value, row) for row, value in enumerate(ids)]
    checked_texts = list(texts)
    lengths = {"ids": len(checked), "texts": len(checked_texts)}
    if metadata is not None:
        lengths["rows of metadata"] = len(metadata)
    if len(set(lengths.values())) > 1:
        raise InputError(
            "expected one id, one text and one row of metadata for each document; got "
            + ", ".join(f"{count:,} {name}" for name, count in lengths.items())
        )
    for row, text in enumerate(checked_texts):
        if not isinstance(text, str) or not _is_unicode(text):
            raise InputError(
                f"the text in row {row + 1} must be text that can be written as UTF-8; got "
                f"{text!r:.80}; Corpus.of repairs such texts"
            )
    _refuse_repeated(checked)
    documents = [str.__str__(text) for text in checked_texts]
    positions, spans = _read_passages(passages, documents)
    return Batch(checked, documents, positions, spans)


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_repeated(ids: Sequence[DocumentId]) -> None:
    row_of: dict[Any, int] = {}
    for row, id in enumerate(ids):
        first = row_of.setdefault(id, row)
        if first != row:
            raise InputError(
                f"the id {id!r} stands in row {first + 1} and again in row {row + 1}; give every "
                "document its own"
            )


def _read_passages(
    passages: tuple[npt.ArrayLike, npt.ArrayLike], texts: list[str]
) -> tuple[Int64Array, Int32Array]:
    positions = np.array(passages[0])
    spans = np.array(passages[1])
    if not len(texts) and not positions.size:
        return np.empty(0, np.int64), np.empty((0, 2), np.int32)
    is_whole = positions.dtype.kind in "iu" and spans.dtype.kind in "iu"
    if positions.ndim != 1 or spans.shape != (len(positions), 2) or not is_whole:
        raise InputError(
            "expected passages as integers, the document of each, shape (n,), and its span, shape "
            f"(n, 2); got {positions.dtype} {positions.shape} and {spans.dtype} {spans.shape}"
        )
    positions, spans = positions.astype(np.int64), spans.astype(np.int64)
    steps = np.diff(positions, prepend=-1, append=len(texts))
    right = (steps == 0) | (steps == 1)
    right[[0, -1]] = steps[[0, -1]] == 1
    right[:-1] &= positions < len(texts)
    if not right.all():
        at = int(np.flatnonzero(~right)[0])
        raise InputError(
            "expected passages in the order of their documents, 0, 1, ..., "
            f"{len(texts) - 1}, one or more for each; it is not so at passage {at + 1}"
        )
    ends = np.array([len(text) for text in texts], np.int64)[positions]
    wrong = (spans[:, 0] < 0) | (spans[:, 0] > spans[:, 1]) | (spans[:, 1] > ends)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"passage {at + 1} goes from character {spans[at, 0]} to {spans[at, 1]}; the text "
            f"in row {positions[at] + 1} has {ends[at]:,}; give spans within the text"
        )
    return positions, spans.astype(np.int32)
