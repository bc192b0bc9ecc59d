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
    from embedtopics.probing.probes.baselines import control_labels
    from embedtopics.probing.probes.features import pair_features
    from embedtopics.probing.probes.running import probe, probe_vectors
    from embedtopics.probing.storing import open_states
    from embedtopics.probing.words.change import semantic_change
    from embedtopics.probing.words.nearest import neighbor_table, neighbors, static_neighbors

__all__ = [
    "cka",
    "combine",
    "contextualization",
    "control_labels",
    "hidden_states",
    "neighbor_table",
    "neighbors",
    "norms",
    "open_states",
    "pair_features",
    "probe",
    "probe_vectors",
    "semantic_change",
    "static_neighbors",
    "word_map",
]

# torch is loaded when a text is read or a probe is trained.
_HOME = {
    "cka": "geometry.kernels",
    "combine": "combining",
    "contextualization": "geometry.contextual",
    "control_labels": "probes.baselines",
    "hidden_states": "extracting",
    "neighbor_table": "words.nearest",
    "neighbors": "words.nearest",
    "norms": "geometry.lengths",
    "open_states": "storing",
    "pair_features": "probes.features",
    "probe": "probes.running",
    "probe_vectors": "probes.running",
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
