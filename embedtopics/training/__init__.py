"""Makes a better encoder for a corpus, and says whether it became one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedtopics.training.examples import Examples
    from embedtopics.training.settings import TrainingSettings
    from embedtopics.training.students.fitting import StudentResult, fit_static_student
    from embedtopics.training.students.settings import StudentSettings

__all__ = [
    "Examples",
    "StudentResult",
    "StudentSettings",
    "TrainingSettings",
    "fit_static_student",
]

# torch and the trainer are loaded when something is trained.
_HOME = {
    "Examples": "examples",
    "StudentResult": "students.fitting",
    "StudentSettings": "students.settings",
    "TrainingSettings": "settings",
    "fit_static_student": "students.fitting",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
