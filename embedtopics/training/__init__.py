"""Makes a better encoder for a corpus, and says whether it became one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "TYPE_CHECKING",
    "Any",
    "import_module",
]
