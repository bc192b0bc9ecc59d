"""Several layers as one: their mean, sum or all of them side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.results import HiddenStates

__all__ = ["combine"]

_HOW = ("mean", "sum", "concat")


def combine(
    states: HiddenStates, layers: int | str | Sequence[int] = "last 4", how: str = "mean"
) -> npt.NDArray[np.float32]:
    """Make one vector a unit of those of several layers.

    Which layers serve best depends on the task: Devlin et al. (2019, table 7) found the last four
    side by side best for named entities, and their sum nearly as good.

    Parameters
    ----------
    states : HiddenStates
    layers : int, sequence of int, "all" or "last N"
        Negative numbers count from the last.
    how : {"mean", "sum", "concat"}

    Returns
    -------
    float32 ndarray of shape (n_units, width), or (n_units, n_layers * width) for "concat"

    Raises
    ------
    InputError
        If a layer is not among those of the states, or none is asked for.

    Examples
    --------
    >>> combine(states, "last 4", "concat").shape  # doctest: +SKIP
    (204577, 1536)
    """
    if how not in _HOW:
        raise InputError(f"expected how to be one of {', '.join(_HOW)}; got {how!r}")
    chosen = [states.layer(layer) for layer in chosen_layers(states, layers)]
    if how == "concat":
        return np.concatenate([np.asarray(one, dtype=np.float32) for one in chosen], axis=1)
    total = np.zeros((len(states), states.width), dtype=np.float32)
    for one in chosen:
        total += one
    return total / np.float32(len(chosen)) if how == "mean" else total


def chosen_layers(states: HiddenStates, layers: int | str | Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of the layers that are meant, ascending as given.

    Raises
    ------
    InputError
    """
    if isinstance(layers, str):
        words = layers.split()
        if words == ["all"]:
            return states.layers
        if len(words) != 2 or words[0] != "last" or not words[1].isdecimal() or words[1] == "0":
            raise InputError(f'expected layers as numbers, "all" or "last 4"; got {layers!r}')
        if int(words[1]) > len(states.layers):
            raise InputError(
                f"expected at most {len(states.layers)} layers, all that were kept; got {layers!r}"
            )
        return states.layers[-int(words[1]) :]
    wanted = [layers] if isinstance(layers, (int, np.integer)) else list(layers)
    if not wanted:
        raise InputError("expected at least one layer, got none")
    for layer in wanted:
        states.layer(layer)
    last = states.layers[-1]
    return tuple(int(last + 1 + layer if layer < 0 else layer) for layer in wanted)
