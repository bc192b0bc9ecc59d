"""Progress bars."""

import sys
from typing import Any


def progress_bar(*, total: int, unit: str, description: str, show: bool | None) -> Any:
    """Return a tqdm bar on stderr."""
    from tqdm.auto import tqdm

    if show is None:
        show = sys.stderr.isatty() or "ipykernel" in sys.modules
    options: Any = {"unit_scale": True, "file": sys.stderr, "leave": False, "delay": 2.0}
    return tqdm(total=total, unit=unit, desc=description, disable=not show, **options)
