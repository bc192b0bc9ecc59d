"""Looks inside an encoder: vectors of words at every layer, and what can be read from them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedtopics.probing.combining import combine
    from embedtopics.probing.probes.baselines import control_labels
    from embedtopics.probing.probes.features import pair_features
    from embedtopics.probing.probes.running import probe, probe_vectors
    from embedtopics.probing.probes.structural import structural_probe

__all__ = [
    "combine",
    "control_labels",
    "pair_features",
    "probe",
    "probe_vectors",
    "structural_probe",
]

# torch is loaded when a text is read or a probe is trained.
_HOME = {
    "combine": "combining",
    "control_labels": "probes.baselines",
    "pair_features": "probes.features",
    "probe": "probes.running",
    "probe_vectors": "probes.running",
    "structural_probe": "probes.structural",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
