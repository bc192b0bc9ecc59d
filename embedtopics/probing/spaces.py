"""The vectors of one layer, read in blocks, shifted and scaled where that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.probing.combining import chosen_layers
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results import HiddenStates

__all__ = ["ADJUSTMENTS", "ROWS_AT_ONCE", "Space", "blocks", "open_space"]

Float64Array = npt.NDArray[np.float64]

ADJUSTMENTS = ("none", "center", "standardize")
ROWS_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class Space:
    """One layer, and what is done to its vectors before they are compared.

    Parameters
    ----------
    layer : int
    vectors : float16 or float32 ndarray of shape (n_units, width)
    shift, scale : float64 ndarray of shape (width,), optional
        Subtracted, then multiplied by.
    """

    layer: int
    vectors: npt.NDArray[Any]
    shift: Float64Array | None = None
    scale: Float64Array | None = None

    def raw(self, rows: Int64Array | slice) -> Float64Array:
        """Return some vectors, adjusted, in double precision.

        Raises
        ------
        InputError
            If one is not finite.
        """
        read = np.array(self.vectors[rows], dtype=np.float64)
        self._refuse_infinite(read, rows)
        return self._adjusted(read)

    def unit(self, rows: Int64Array | slice) -> Float64Array:
        """Return some vectors, adjusted and of length one; zeros stay."""
        read = self.raw(rows)
        read /= _lengths(read)[:, None]
        return read

    def unit32(self, rows: Int64Array | slice) -> FloatArray:
        """Return the same in single precision, at half the cost."""
        read = self._adjusted(np.array(self.vectors[rows], dtype=np.float32))
        self._refuse_infinite(read, rows)
        read /= _lengths(read)[:, None]
        return read

    def _adjusted(self, read: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.shift is not None:
            read -= self.shift.astype(read.dtype)
        if self.scale is not None:
            read *= self.scale.astype(read.dtype)
        return read

    def _refuse_infinite(self, read: npt.NDArray[Any], rows: Int64Array | slice) -> None:
        is_finite = np.isfinite(read).all(axis=1)
        if not is_finite.all():
            bad = int(np.flatnonzero(~is_finite)[0])
            row = rows.start + bad if isinstance(rows, slice) else int(rows[bad])
            raise InputError(
                f"expected finite vectors; that of unit {row} at layer {self.layer} is not: "
                "extract the states again in float32"
            )


def _lengths(read: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the length of each vector; 1 for those of zeros."""
    lengths = np.sqrt(np.einsum("ij,ij->i", read, read))
    return np.where(lengths > 0, lengths, lengths.dtype.type(1))


def blocks(n: int, size: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Cut rows into stretches that fit into memory."""
    for begin in range(0, n, size):
        yield slice(begin, min(begin + size, n))


def open_space(states: HiddenStates, layer: int, adjust: str = "none") -> Space:
    """Return one layer, with the adjustment that was asked for.

    A few dimensions with large means can decide most of every cosine, whatever the words mean;
    centring or standardizing every dimension over all units takes that out (Timkey and van
    Schijndel 2021, "All bark and no bite: rogue dimensions in transformer language models obscure
    representational quality", section 5).

    Parameters
    ----------
    states : HiddenStates
    layer : int
    adjust : {"none", "center", "standardize"}

    Raises
    ------
    InputError
        If there is no such layer or adjustment.
    """
    if adjust not in ADJUSTMENTS:
        raise InputError(f"expected adjust to be one of {', '.join(ADJUSTMENTS)}; got {adjust!r}")
    [number] = chosen_layers(states, layer)
    space = Space(number, states.layer(number))
    if adjust == "none":
        return space
    mean, sd = _moments(space, ~states.missing)
    if adjust == "center":
        return Space(number, space.vectors, mean)
    # A dimension that never moves tells nothing, and stays 0 after the shift.
    return Space(number, space.vectors, mean, 1.0 / np.where(sd > 0, sd, 1.0))


def _moments(space: Space, present: npt.NDArray[np.bool_]) -> tuple[Float64Array, Float64Array]:
    """Return mean and standard deviation of every dimension over the units with a vector."""
    n = max(1, int(present.sum()))
    sums = np.zeros(space.vectors.shape[1])
    for part in blocks(len(present)):
        sums += space.raw(part)[present[part]].sum(axis=0)
    mean = sums / n
    squares = np.zeros(len(mean))
    for part in blocks(len(present)):
        squares += ((space.raw(part)[present[part]] - mean) ** 2).sum(axis=0)
    return mean, np.sqrt(squares / n)
