"""Looks inside an encoder: vectors of words at every layer, and what can be read from them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedtopics.probing.combining import combine
    from embedtopics.probing.extracting import hidden_states
    from embedtopics.probing.mapping import word_map
    from embedtopics.probing.storing import open_states

__all__ = [
    "combine",
    "hidden_states",
    "open_states",
    "word_map",
]

# torch is loaded when a text is read or a probe is trained.
_HOME = {
    "combine": "combining",
    "hidden_states": "extracting",
    "open_states": "storing",
    "word_map": "mapping",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
