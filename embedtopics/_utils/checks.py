"""Checks of arguments and of values read from files."""

from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from numbers import Integral, Rational, Real
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from embedtopics.errors import InputError

T = TypeVar("T")


def typed(part: T) -> T:
    """Return a dataclass that was read from a file if its fields have the declared types."""
    for name, hint in _hints(type(part)).items():  # type: ignore[arg-type]
        value = getattr(part, name)
        if not is_of(value, hint):
            type_name = (
                getattr(hint, "__name__", str(hint)) if get_origin(hint) is None else str(hint)
            )
            raise ValueError(
                f"{name} of a {type(part).__name__} is {value!r:.80}, expected {type_name}"
            )
    return part


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)


def is_of(value: Any, hint: Any) -> bool:
    """Return whether a value from JSON or an array has a type."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind is Any:
        return True
    if kind in (Union, UnionType):
        return any(is_of(value, part) for part in parts)
    if kind in (int, float):
        return is_whole(value) if kind is int else is_number(value)
    if not isinstance(value, kind):
        return False
    if kind is tuple and parts[-1:] == (...,):
        if parts[0] is not str:
            return all(is_of(one, parts[0]) for one in value)
        # Texts are joined because there may be very many. A lone surrogate breaks tables.
        return set(map(type, value)) <= {str} and is_whole_text("".join(value))
    if kind is tuple:
        return len(value) == len(parts) and all(map(is_of, value, parts))
    if kind is Mapping:
        return all(is_of(key, parts[0]) and is_of(one, parts[1]) for key, one in value.items())
    return True


def is_whole_text(text: str) -> bool:
    """Return whether a text holds no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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
    if value is not None and not is_count(value, least):
        raise InputError(name, f"an integer from {least} up or None", value)
    return None if value is None else int(value)


def checked_share(value: Any, name: str) -> float:
    """Return a number from 0 to 1, both included, or refuse it."""
    if not is_number(value) or not 0.0 <= float(value) <= 1.0:
        raise InputError(name, "a number from 0 to 1", value)
    return float(value)


def checked_between(
    value: Any, name: str, low: float, high: float, *, closed: bool = False
) -> float:
    """Return a number between two others, themselves included if `closed`, or refuse it."""
    inside = is_number(value) and (low <= value <= high if closed else low < value < high)
    if not inside:
        span = f"from {low} to {high}" if closed else f"above {low} and below {high}"
        raise InputError(name, f"a finite number {span}", value)
    return float(value)


def checked_level(value: Any, name: str = "confidence") -> float:
    """Return a number between 0 and 1, neither included, or refuse it."""
    if not is_number(value) or not 0.0 < float(value) < 1.0:
        raise InputError(name, "between 0 and 1", value)
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
