"""Search over a collection: by meaning, by words, or both, under filters, from a folder on disk."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__: list[str] = []

_HOME: dict[str, str] = {}
"""The module of each name; it is imported when the name is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
