"""Makes a better encoder for a corpus, and says whether it became one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedtopics.training.card import model_card
    from embedtopics.training.effects.comparing import compare_before_after
    from embedtopics.training.effects.tables import change_table
    from embedtopics.training.examples import Examples
    from embedtopics.training.report_files import read_report, write_report
    from embedtopics.training.settings import TrainingSettings

__all__ = [
    "Examples",
    "TrainingSettings",
    "change_table",
    "compare_before_after",
    "model_card",
    "read_report",
    "write_report",
]

# torch and the trainer are loaded when something is trained.
_HOME = {
    "Examples": "examples",
    "TrainingSettings": "settings",
    "change_table": "effects.tables",
    "compare_before_after": "effects.comparing",
    "model_card": "card",
    "read_report": "report_files",
    "write_report": "report_files",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
