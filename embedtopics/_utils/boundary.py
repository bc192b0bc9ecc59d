"""Where a public call fails because an argument is of a wrong type, an error that names it.

Nothing is checked before a call, so that whatever works is served, and costs nothing. The types are
those of the signatures: there is no second list of them.
"""

import ast
import errno
import functools
import inspect
import math
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any

from embedtopics._utils.checks import is_number, is_whole, is_whole_text
from embedtopics._utils.names import ARGUMENTS
from embedtopics.errors import EmbedTopicsError, InputError

FAULTS = (TypeError, AttributeError, ValueError, LookupError, ArithmeticError)
"""What Python raises for values that code was not written for."""


def explained(value: Any) -> Any:
    """Return a public function that explains its failures; a class, with such methods."""
    if isinstance(value, FunctionType):
        return value if hasattr(value, "__wrapped__") else _explained(value)
    if isinstance(value, type) and not issubclass(value, Exception):
        owners = [kind for kind in value.__mro__ if kind.__module__.startswith("embedtopics.")]
        for owner, name, member in [(o, *one) for o in owners for one in list(vars(o).items())]:
            inner = getattr(member, "__func__", member)
            is_ours = isinstance(inner, FunctionType) and not hasattr(inner, "__wrapped__")
            if is_ours and inner.__module__ == owner.__module__:
                if name == "__init__" or not name.startswith("_"):
                    made = _explained(inner)
                    setattr(owner, name, made if member is inner else type(member)(made))
    return value


def _explained(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (OSError, RuntimeError) as error:
            if refusal := unusable(error):
                raise refusal from error
            raise
        except FAULTS as error:
            # scikit-learn's NotFittedError says enough, as do the errors of this package.
            if isinstance(error, EmbedTopicsError) or type(error).__name__ == "NotFittedError":
                raise
            _blame(function, args, kwargs, error)
            raise

    return call


def unusable(error: Exception) -> InputError | None:
    """Return what to say of names that no system takes, rights and full disks; None of the rest."""
    number, text = getattr(error, "errno", 0), str(error)[:200]
    if number in (errno.ENAMETOOLONG, errno.ELOOP) or "Symlink loop" in text:
        message = "the name of a file or folder is too long, or a link that leads to itself"
        return InputError(f"{message}; name another ({text})")
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return InputError(f"a file cannot be opened or written ({text}); change who may, or name "
                          "another")  # fmt: skip
    if number in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT) or "No usable temporary" in text:
        return InputError(f"a file cannot be written ({text}); free some space, also in the "
                          "folder for temporary files")  # fmt: skip
    return None


def _blame(function: Callable[..., Any], args: Any, kwargs: Any, error: Exception) -> None:
    """Raise InputError for the first argument that is not of its type; else do nothing."""
    known = dict(inspect.signature(function).parameters)
    try:
        given = dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except TypeError:
        for name in kwargs.keys() & ARGUMENTS.keys() - known.keys():
            raise InputError(name, ARGUMENTS[name], kwargs[name]) from error
        return  # of the wrong number of arguments, Python tells enough
    owner = given.pop("self", None)
    if hasattr(owner, "get_params") and function.__name__ != "__init__":
        # Of a scikit-learn estimator, parameters are looked at when they are used.
        known |= inspect.signature(type(owner).__init__).parameters
        given |= owner.get_params(deep=False)
    for name, value in given.items():
        if known[name].kind is inspect.Parameter.VAR_KEYWORD:
            continue
        spelled = known[name].annotation
        spelled = spelled if isinstance(spelled, str) else inspect.formatannotation(spelled)
        if not _fits(value, ast.parse(spelled, mode="eval").body):
            raise InputError(name, f"of the type {spelled}", value) from error


def _fits(value: Any, kind: ast.expr) -> bool:
    """Return whether a value is of a type as a signature spells it; unknown names fit all."""
    if isinstance(kind, ast.BinOp):
        return _fits(value, kind.left) or _fits(value, kind.right)
    if isinstance(kind, ast.Constant):
        return value is None if kind.value is None else value == kind.value
    if isinstance(kind, ast.Subscript):
        inner = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
        if isinstance(kind.value, ast.Name) and kind.value.id == "Literal":
            return isinstance(value, str) and value in [ast.literal_eval(one) for one in inner]
        if not _fits(value, kind.value):
            return False
        if isinstance(value, Mapping):
            return all(_fits(key, inner[0]) and _fits(value[key], inner[-1]) for key in value)
        return not isinstance(value, (list, tuple)) or all(_fits(one, inner[0]) for one in value)
    name = ast.unparse(kind).rpartition(".")[2]
    if name in _KINDS:
        return _KINDS[name](value)
    return (
        name in ("Any", "object")
        or not name.startswith(_OURS)
        or name in map(_name_of, type(value).__mro__)
    )


def _name_of(kind: type) -> str:
    return kind.__name__


_OURS = ("Topic", "Corpus", "Extension", "SearchHits")
"""Beginnings of the names of results that questions are asked of; protocols are not among them."""

_KINDS: dict[str, Callable[[Any], bool]] = {
    # No count, index or length of anything is larger.
    "int": lambda value: is_whole(value) and abs(int(value)) < 1 << 31,
    "float": lambda value: is_number(value) and math.isfinite(value),
    "bool": lambda value: type(value).__name__ in ("bool", "bool_"),
    # A half of a character or a NUL is in no name of a file and no text.
    "str": lambda value: isinstance(value, str) and not _is_odd(value),
    "Path": lambda value: isinstance(value, os.PathLike) and not _is_odd(str(value)),
    "PathLike": lambda value: isinstance(value, os.PathLike) and not _is_odd(str(value)),
    "Hashable": lambda value: isinstance(value, Hashable),
    "Mapping": lambda value: isinstance(value, Mapping),
    "Sequence": lambda value: _is_list(value) and isinstance(value, Sequence),
    "Iterable": lambda value: _is_list(value),
}


def _is_list(value: Any) -> bool:
    is_text = isinstance(value, (str, bytes))
    return isinstance(value, Iterable) and not is_text and getattr(value, "ndim", 1) == 1


def _is_odd(text: str) -> bool:
    return "\0" in text or not is_whole_text(text)
