"""What was written when a result was exported."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from embedtopics.results.inputs import Decision

__all__ = ["Exported"]


@dataclass(frozen=True)
class Exported:
    """Files that were written, and what had to be changed for their format.

    Parameters
    ----------
    paths : tuple of Path
    notes : tuple of Decision
        One for each kind of change, with the number of cells or the columns that it concerns.
    """

    paths: tuple[Path, ...]
    notes: tuple[Decision, ...] = ()
