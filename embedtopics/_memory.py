"""How much memory this process has held at most."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["peak_memory"]

STATUS = Path("/proc/self/status")


def peak_memory() -> float:
    """Return the largest resident set of this process so far, in bytes; NaN where unknown.

    On Linux it is the kernel's figure for this address space: that of ``getrusage`` begins with
    the mark of the process that started this one.
    """
    if STATUS.exists():
        for line in STATUS.read_text("ascii", "replace").splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return float("nan")
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
