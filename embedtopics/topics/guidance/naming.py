"""Names that are given to topics beforehand."""

from __future__ import annotations

from typing import Any

from embedtopics.errors import InputError

__all__ = ["checked_name"]


def checked_name(name: Any) -> str:
    """Return a name with single spaces, after making sure that it is one.

    Raises
    ------
    InputError
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"a name must be a string that is not empty; got {name!r}")
    return " ".join(name.split())
