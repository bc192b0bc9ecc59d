"""How much memory this process has held at most."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

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


# Which versions made a result.

PACKAGES = (
    "embedtopics",
    "numpy",
    "scipy",
    "scikit-learn",
    "faiss-cpu",
    "numba",
    "torch",
    "transformers",
)


def package_versions() -> dict[str, str]:
    """Return the installed versions of Python and of the packages that shape a result."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
