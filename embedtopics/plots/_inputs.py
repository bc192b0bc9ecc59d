"""The wrong object for a figure is an error that names the call that makes the right one."""

from __future__ import annotations

from typing import Any

from embedtopics.errors import InputError


def check_input(value: Any, parameter: str, kinds: type | tuple[type, ...], call: str) -> None:
    """Raise InputError unless a value is of the class, or of a class, that a figure draws.

    Parameters
    ----------
    value : object
    parameter : str
        Parameter of the figure.
    kinds : type or tuple of type
    call : str
        Call that returns such an object, as a user writes it.
    """
    if isinstance(value, kinds):
        return

    classes = kinds if isinstance(kinds, tuple) else (kinds,)
    expected = " or ".join(_with_article(kind.__name__) for kind in classes)
    found = type(value).__name__
    if isinstance(value, type):
        found = f"the class {value.__name__}"
    raise InputError(parameter, expected, remedy=f"call {call} first", found=found)


def _with_article(noun: str) -> str:
    """Return a noun after "a" or "an"."""
    article = "an" if noun[0] in "AEIOU" else "a"
    return f"{article} {noun}"
