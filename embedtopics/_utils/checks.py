"""Checks of arguments and of values read from files."""

from collections.abc import Hashable, Iterable
from importlib import import_module
from numbers import Integral, Rational, Real
from typing import Any

from embedtopics.errors import InputError, MissingExtraError


def is_whole(value: Any) -> bool:
    """Return whether a value is an integer of Python or NumPy, not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number of Python or NumPy, not a bool."""
    return is_whole(value) or (isinstance(value, Real) and not isinstance(value, Rational))


def is_count(value: Any, least: int = 1) -> bool:
    """Return whether a value is an integer from `least` up."""
    return is_whole(value) and int(value) >= least


def checked_count(value: Any, name: str, least: int = 1) -> int:
    """Return an integer from `least` up, or refuse it."""
    if not is_count(value, least):
        raise InputError(name, f"an integer from {least} up", value)
    return int(value)


def optional_count(value: Any, name: str, least: int = 1) -> int | None:
    """Return an integer from `least` up, or None, or refuse it."""
    return None if value is None else checked_count(value, name, least)


def checked_between(
    value: Any, name: str, low: float, high: float, *, closed: bool = False
) -> float:
    """Return a number between two others, themselves included if `closed`, or refuse it."""
    if not is_number(value) or not (low <= value <= high if closed else low < value < high):
        span = f"from {low} to {high}" if closed else f"above {low} and below {high}"
        raise InputError(name, f"a finite number {span}", value)
    return float(value)


def resolve_seed(random_state: Any) -> int:
    """Return the seed of a fit."""
    import numpy as np  # imported here: --help reads this module and must not wait for NumPy

    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if is_count(random_state, 0) and int(random_state) < 2**31:
        return int(random_state)
    expected = "None, an integer from 0 to 2147483647 or a numpy Generator"
    raise InputError("random_state", expected, random_state)


def checked_choice(value: Any, name: str, choices: Iterable[Any]) -> Any:
    """Return one of the choices, or refuse the value."""
    options = tuple(choices)
    if not isinstance(value, Hashable) or value not in options:
        raise InputError(name, f"one of {', '.join(map(repr, options))}", value)
    return value


def require(module: str, work: str, extra: str) -> Any:
    """Import a library of an extra; if it is not installed, name what needs it and the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f'{work} needs {module}: pip install "embedtopics[{extra}]"'
        ) from error
