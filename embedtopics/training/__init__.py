"""Makes a better encoder for a corpus, and says whether it became one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedtopics.training.curves.labels import fit_label_curve, label_curve
    from embedtopics.training.curves.reading import read_curves
    from embedtopics.training.examples import Examples
    from embedtopics.training.settings import TrainingSettings

__all__ = [
    "Examples",
    "TrainingSettings",
    "fit_label_curve",
    "label_curve",
    "read_curves",
]

# torch and the trainer are loaded when something is trained.
_HOME = {
    "Examples": "examples",
    "TrainingSettings": "settings",
    "fit_label_curve": "curves.labels",
    "label_curve": "curves.labels",
    "read_curves": "curves.reading",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
