"""What a comparison decides, and how long its stages take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from embedtopics.results import Decision

__all__ = ["Log"]


@dataclass
class Log:
    """Collects the decisions, and the seconds of each stage in the order of their beginning."""

    decisions: list[Decision] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)

    def note(self, stage: str, name: str, value: Any, message: str) -> None:
        self.decisions.append(Decision(stage, name, value, message))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - begin
