"""What a probe sees of a unit: one layer's vector, or two of them side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from embedtopics.errors import InputError
from embedtopics.probing.probes.labels import pair_rows
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results import HiddenStates

__all__ = ["Features", "pair_features", "pieces_of"]

UNITS_AT_ONCE = 4096


def pair_features(states: HiddenStates, pairs: npt.ArrayLike, layer: int) -> FloatArray:
    """Return what a probe of pairs sees: both vectors, their difference and their product.

    Parameters
    ----------
    states : HiddenStates
        Of words, or of whole texts: then the words that a pair names do not count.
    pairs : array_like of int, shape (n_pairs, 4)
        First text, word in it, second text, word in it; from 0.
    layer : int

    Returns
    -------
    float32 ndarray of shape (n_pairs, 4 * width)
        u, v, abs(u - v) and u * v, as in Conneau et al. (2017), "Supervised learning of universal
        sentence representations from natural language inference data", figure 1.

    Raises
    ------
    InputError
        If a pair names what is not there, or the layer was not kept.
    """
    rows = pair_rows(states, np.asarray(pairs, dtype=np.int64).reshape(-1, 4))
    seen = Features(states.layer(layer), rows).take(np.arange(len(rows)))
    return np.asarray(seen.numpy())


@dataclass(frozen=True, eq=False)
class Features:
    """The features of units, read from where the vectors are stored as they are needed.

    Parameters
    ----------
    vectors : ndarray of shape (n_rows, width)
    rows : int64 ndarray of shape (n_units, 1) or (n_units, 2)
    shift, scale : float32 Tensor of shape (n_features,), optional
        Subtracted, and multiplied with.
    """

    vectors: npt.NDArray[Any]
    rows: Int64Array
    shift: torch.Tensor | None = None
    scale: torch.Tensor | None = None

    @property
    def width(self) -> int:
        """Number of features."""
        return int(self.vectors.shape[1]) * (4 if self.rows.shape[1] == 2 else 1)

    def take(self, units: Int64Array) -> torch.Tensor:
        """Return the features of some units, float32 of shape (n, width)."""
        # A view that is no memory map: taking rows of it yields plain arrays.
        stored = np.asarray(self.vectors)
        sides = [torch.from_numpy(stored[rows]).float() for rows in self.rows[units].T]
        if len(sides) == 2:
            u, v = sides
            sides = [torch.cat([u, v, (u - v).abs_(), u * v], dim=1)]
        x = sides[0]
        if self.shift is not None and self.scale is not None:
            x.sub_(self.shift).mul_(self.scale)
        return x

    def standardised(self, units: Int64Array) -> Features:
        """Return the same with mean 0 and variance 1 over some units.

        A feature that does not vary there becomes 0.

        Raises
        ------
        InputError
            If a vector of any unit is not finite, among those that are only asked about too.
        """
        self._refuse_infinite()
        total = torch.zeros(self.width, dtype=torch.float64)
        squares = torch.zeros(self.width, dtype=torch.float64)
        bare = Features(self.vectors, self.rows)
        begin = bare.take(units[:1])[0].double()  # near the mean: no digits are lost
        for piece in pieces_of(units):
            x = bare.take(piece).double()
            total += (x - begin).sum(dim=0)
            squares += (x - begin).square_().sum(dim=0)
        mean = total / len(units)
        deviation = (squares / len(units) - mean.square()).clamp_(min=0).sqrt()
        varies = deviation > 1e-6 * (1 + (mean + begin).abs())
        scale = torch.where(varies, 1 / deviation, torch.zeros_like(deviation))
        return Features(self.vectors, self.rows, (mean + begin).float(), scale.float())

    def _refuse_infinite(self) -> None:
        """Refuse vectors that half precision cannot hold: a probe would answer by them, wrongly."""
        stored = np.asarray(self.vectors)
        for piece in pieces_of(self.rows):
            is_finite = np.isfinite(stored[piece]).all(axis=2)
            if not is_finite.all():
                raise InputError(
                    f"expected finite vectors; that of row {int(piece[~is_finite][0])} is not: "
                    "read the states anew, in float32"
                )


def pieces_of(units: Int64Array, size: int = UNITS_AT_ONCE) -> Iterator[Int64Array]:
    """Yield some units at a time."""
    for begin in range(0, len(units), size):
        yield units[begin : begin + size]
