"""The command line: one thin file a command over the Python API."""

from __future__ import annotations

from embedtopics.cli.app import main

__all__ = ["main"]
