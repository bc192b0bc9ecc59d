"""Trials of an attack: each in a child process with limits; a crash or a hang is pinned to its own.

Run as a program this is the child: it does the trials of a family from a position on, and writes
a line before and after each.
"""

import importlib
import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SECONDS = 40
"""Of one trial, on a machine with other work; what takes longer is taken for a hang."""
SETUP = 180.0
"""Between trials: imports, a fit, an index."""
MEMORY = 8 << 30
"""Bytes of address space; the libraries alone reserve half of it."""
LONGEST = 10_000
"""Characters of a message that a person can still read; a path may be half of it."""

REFUSED, SERVED, FAILED = "refused", "served", "failed"


@dataclass(frozen=True)
class Trial:
    """What is tried, and what must come: a test of the answer, or "refuse" where none may come."""

    name: str
    call: Callable[[], Any]
    must: Callable[[Any], bool] | str | None = None


@dataclass
class Outcome:
    """How many trials of a family ended in which way."""

    counts: Counter = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, name: str, kind: str, detail: str = "") -> None:
        self.counts[kind] += 1
        if kind == FAILED:
            sys.stdout.write(f"{name}: {detail}\n")
            self.failures.append(f"{name}: {detail}")

    def __str__(self) -> str:
        parts = (f"{kind} {self.counts[kind]:,}" for kind in (REFUSED, SERVED, FAILED))
        return f"tried {self.counts.total():,}, {', '.join(parts)}"


def judged(trial: Trial) -> tuple[str, str]:
    """Do a trial and return how it ended, and what was wrong with it."""
    from sklearn.exceptions import NotFittedError

    from embedtopics.errors import EmbedTopicsError

    try:
        answer = trial.call()
    except (EmbedTopicsError, NotFittedError) as error:
        message = str(error)
        is_clear = message.strip() and "\n" not in message and len(message) <= LONGEST
        return (REFUSED, "") if is_clear else (FAILED, f"no clear sentence: {message[:300]!r}")
    except (OSError, UnicodeEncodeError):  # Python's own sentence about a path
        return REFUSED, ""
    except BaseException as error:
        if "embedded null" in str(error):
            return REFUSED, ""
        found = traceback.extract_tb(error.__traceback__)
        places = [f for f in found if "embedtopics" in f.filename] or found
        place = f"{places[-1].filename.rpartition('embedtopics/')[2]}:{places[-1].lineno}"
        return FAILED, f"{type(error).__name__}: {str(error)[:200]!r} at {place}"
    if trial.must == "refuse":
        return FAILED, f"was served: {repr(answer)[:100]}"
    if callable(trial.must) and not trial.must(answer):
        return FAILED, f"a wrong answer: {repr(answer)[:200]}"
    return SERVED, ""


def child(module: str, start: int) -> None:
    """Do the trials of a family from a position on."""
    # What is printed by what is tried must not stand between the lines for the parent.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="embedtopics-attack-") as folder:
        os.chdir(folder)
        trials = importlib.import_module(f"tests.attacks.{module}").trials()
        print(json.dumps(["begin"]), file=out)
        for place, trial in enumerate(trials):
            if place < start:
                continue
            print(json.dumps(["try", place, trial.name]), file=out)
            print(json.dumps(["end", *judged(trial)]), file=out)
        print(json.dumps(["done"]), file=out)
        os.chdir("/")


def attack(module: str, seconds: float = SECONDS) -> Outcome:
    """Do all trials of a family, in a new child after each crash or hang."""
    outcome, start = Outcome(), 0
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUTF8": "1"}
    while start is not None:
        with subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.attacks.trials", module, str(start)],
            stdout=subprocess.PIPE, env=environment,
        ) as process:  # fmt: skip
            start = _follow(process, outcome, start, seconds)
    return outcome


def _follow(process: Any, outcome: Outcome, start: int, seconds: float) -> int | None:
    """Note what a child reports; return where the next one starts, or None after the last."""
    trying, pending, name, begun = None, b"", "", time.monotonic()
    limit = SETUP
    while True:
        left = begun + limit - time.monotonic()
        ready = select.select([process.stdout], [], [], max(0.0, left))[0]
        chunk = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
        if not chunk:
            process.kill()
            process.wait()
            how = f"ended with {process.returncode}" if ready else f"no end after {limit:g} s"
            outcome.add(name or f"{trying}", FAILED, how)
            return None if trying is None else trying + 1
        *lines, pending = (pending + chunk).split(b"\n")
        for line in map(json.loads, lines):
            begun, limit = time.monotonic(), seconds if line[0] == "try" else SETUP
            if line[0] == "try":
                trying, name = line[1:]
            elif line[0] == "end":
                outcome.add(name, *line[1:])
            elif line[0] == "done":
                process.wait()
                return None


if __name__ == "__main__":
    child(sys.argv[1], int(sys.argv[2]))
