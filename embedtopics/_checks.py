"""Numbers that a caller gave, told apart from what only looks like them, in one wording."""

from __future__ import annotations

from typing import Any

import numpy as np

from embedtopics.errors import InputError

__all__ = [
    "checked_count", "checked_level", "checked_share", "is_count", "is_number", "is_whole",
    "optional_count",
]  # fmt: skip


def is_whole(value: Any) -> bool:
    """Tell whether a value is an integer, of Python or of NumPy; a truth value is none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Tell whether a value is a real number, of Python or of NumPy; a truth value is none."""
    return is_whole(value) or isinstance(value, (float, np.floating))


def is_count(value: Any, least: int = 1) -> bool:
    """Tell whether a value is an integer, and no less than another."""
    return is_whole(value) and int(value) >= least


def checked_count(value: Any, name: str, least: int = 1) -> int:
    """Return an integer from `least` up, or refuse it.

    Examples
    --------
    >>> checked_count(3, "n")
    3
    >>> checked_count(True, "n")
    Traceback (most recent call last):
        ...
    embedtopics.errors.InputError: n must be an integer from 1 up; got True
    """
    if not is_count(value, least):
        raise InputError(f"{name} must be an integer from {least} up; got {value!r}")
    return int(value)


def optional_count(value: Any, name: str, least: int = 1) -> int | None:
    """Return an integer from `least` up, or None, or refuse it."""
    if value is not None and not is_count(value, least):
        raise InputError(f"{name} must be an integer from {least} up or None; got {value!r}")
    return None if value is None else int(value)


def checked_share(value: Any, name: str) -> float:
    """Return a number from 0 to 1, both included, or refuse it."""
    if not is_number(value) or not 0.0 <= float(value) <= 1.0:
        raise InputError(f"{name} must be a number from 0 to 1; got {value!r}")
    return float(value)


def checked_level(value: Any, name: str = "confidence") -> float:
    """Return a number between 0 and 1, neither included, or refuse it."""
    if not is_number(value) or not 0.0 < float(value) < 1.0:
        raise InputError(f"{name} must be between 0 and 1; got {value!r}")
    return float(value)
