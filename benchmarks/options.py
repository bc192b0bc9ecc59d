"""What the command line asks of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.jobs import BERTOPIC, EMBEDTOPICS, System

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """How much to measure.

    Parameters
    ----------
    systems : tuple of System
        In the order in which they run.
    quick : bool
        The smallest size or corpus only: shows that everything works, and no more.
    seeded : bool
        Time seeded fits too.
    repeats : int
        How often each timing is taken (tables show the median run), and with how many seeds
        quality is measured (tables show the means).
    sections : tuple of str
        Of a benchmark that has sections: those to measure again; by default all.
    """

    systems: tuple[System, ...] = (BERTOPIC, EMBEDTOPICS)
    quick: bool = False
    seeded: bool = False
    repeats: int = 1
    sections: tuple[str, ...] = ()
