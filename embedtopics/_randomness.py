"""One way to turn ``random_state`` into a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from embedtopics.errors import InputError

__all__ = ["resolve_seed"]


def resolve_seed(random_state: Any) -> int:
    """Return a seed for this fit.

    Parameters
    ----------
    random_state : None, int or numpy.random.Generator
        None draws a fresh seed (which the result records), a generator is drawn from once.

    Returns
    -------
    int
        In [0, 2**31).

    Examples
    --------
    >>> resolve_seed(42)
    42
    """
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if 0 <= int(random_state) < 2**31:
            return int(random_state)
    raise InputError(
        "random_state must be None, an integer from 0 to 2147483647 or a numpy Generator; "
        f"got {random_state!r}"
    )
