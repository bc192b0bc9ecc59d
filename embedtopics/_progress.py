"""Progress bars for work that may take more than a moment."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["progress_bar"]


def progress_bar(*, total: int, unit: str, description: str, show: bool | None) -> Any:
    """Return a tqdm bar on stderr.

    Parameters
    ----------
    total : int
        Units of work.
    unit : str
        What is counted.
    description : str
        What is being done.
    show : bool or None
        None shows the bar where stderr is a terminal or a notebook listens.
    """
    from tqdm.auto import tqdm

    if show is None:
        show = sys.stderr.isatty() or "ipykernel" in sys.modules
    return tqdm(
        total=total,
        unit=unit,
        desc=description,
        disable=not show,
        unit_scale=True,
        file=sys.stderr,
        leave=False,
        delay=2.0,
    )
