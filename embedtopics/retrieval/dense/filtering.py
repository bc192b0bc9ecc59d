"""Rows that may be found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.retrieval.dense._threads import faiss_module

__all__ = ["Allowed", "allowed_rows"]


@dataclass(frozen=True, eq=False)
class Allowed:
    """Rows that may be found, as they are needed.

    Parameters
    ----------
    mask : bool ndarray of shape (n,)
    n_rows : int
        How many of it are true.
    """

    mask: npt.NDArray[np.bool_]
    n_rows: int

    @property
    def share(self) -> float:
        """Of all rows."""
        return self.n_rows / max(1, len(self.mask))

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self.n_rows == len(self.mask)

    def rows(self) -> Int64Array:
        """Return the rows, ascending."""
        return np.arange(self.n_rows) if self.is_all else np.flatnonzero(self.mask)

    def selector(self) -> tuple[Any, Any]:
        """Return what FAISS asks, None for all rows, and the bits that must live as long."""
        if self.is_all:
            return None, None
        faiss = faiss_module()
        bits = np.packbits(self.mask, bitorder="little")
        return faiss.IDSelectorBitmap(bits), bits


def allowed_rows(rows: npt.ArrayLike | None, n: int) -> Allowed:
    """Return which of n rows may be found.

    Parameters
    ----------
    rows : int array of rows, or bool array of shape (n,), optional
        By default all.
    n : int

    Raises
    ------
    InputError
        If they are neither rows below n nor a mask of n truth values.
    """
    if rows is None:
        return Allowed(np.broadcast_to(np.True_, n), n)
    given = np.asarray(rows)
    if given.dtype == np.bool_:
        if given.shape != (n,):
            raise InputError(
                f"expected a mask of shape ({n},), one truth value a row; got {given.shape}"
            )
        return Allowed(given, int(np.count_nonzero(given)))
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InputError(
            "expected allowed rows as a one-dimensional array of whole numbers, or a mask; got "
            f"{given.dtype} of shape {given.shape}"
        )
    if given.size and (given.min() < 0 or given.max() >= n):
        bad = given.min() if given.min() < 0 else given.max()
        raise InputError(f"expected allowed rows from 0 to {n - 1}; got {bad}")
    mask = np.zeros(n, dtype=np.bool_)
    mask[given.astype(np.int64)] = True
    return Allowed(mask, int(np.count_nonzero(mask)))
