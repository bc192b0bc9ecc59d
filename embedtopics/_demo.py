"""Where the demo corpus lies: inside an installed package, or in the repository."""

from __future__ import annotations

from pathlib import Path

from embedtopics.errors import InputError

__all__ = ["demo_path"]


def demo_path() -> Path:
    """Return the path of the demo corpus, a CSV file.

    Raises
    ------
    InputError
        Where the installation is incomplete.
    """
    package = Path(__file__).parent
    for path in (package / "data" / "demo.csv", package.parent / "data" / "demo.csv"):
        if path.is_file():
            return path
    raise InputError("the demo corpus is missing from this installation; install the package again")
