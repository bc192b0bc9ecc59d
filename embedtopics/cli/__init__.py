"""The command line: one thin file a command over the Python API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.cli._app import main as main

__getattr__, __dir__, __all__ = attach(__name__, __file__)
