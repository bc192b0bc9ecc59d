"""Which versions made a result."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

__all__ = ["package_versions"]

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
