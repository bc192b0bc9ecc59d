"""Looks inside an encoder: vectors of words at every layer, and what can be read from them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedtopics.probing.combining import combine
    from embedtopics.probing.extracting import hidden_states
    from embedtopics.probing.geometry.contextual import contextualization
    from embedtopics.probing.geometry.kernels import cka
    from embedtopics.probing.geometry.lengths import norms
    from embedtopics.probing.mapping import word_map
    from embedtopics.probing.storing import open_states
    from embedtopics.probing.words.change import semantic_change
    from embedtopics.probing.words.nearest import neighbor_table, neighbors, static_neighbors

__all__ = [
    "cka",
    "combine",
    "contextualization",
    "hidden_states",
    "neighbor_table",
    "neighbors",
    "norms",
    "open_states",
    "semantic_change",
    "static_neighbors",
    "word_map",
]

# torch is loaded when a text is read or a probe is trained.
_HOME = {
    "cka": "geometry.kernels",
    "combine": "combining",
    "contextualization": "geometry.contextual",
    "hidden_states": "extracting",
    "neighbor_table": "words.nearest",
    "neighbors": "words.nearest",
    "norms": "geometry.lengths",
    "open_states": "storing",
    "semantic_change": "words.change",
    "static_neighbors": "words.nearest",
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
