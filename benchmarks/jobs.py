"""Fits in processes of their own, so that imports, compilation and memory count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "BERTOPIC",
    "EMBEDTOPICS",
    "ROOT",
    "Outcome",
    "System",
    "answer",
    "fit",
    "run_python",
    "write_inputs",
]

ROOT = Path(__file__).resolve().parents[1]
_SCRIPTS = Path(__file__).resolve().parent / "systems"


@dataclass(frozen=True)
class System:
    """A script that fits topics, and the interpreter that runs it.

    Parameters
    ----------
    name : str
        As its package is called.
    script : Path
        Started as ``python script JOB.json STARTED``; systems/fitjob.py says what is in the job.
    python : str
        Interpreter.
    environment : mapping of str to str
        Variables set for it, beside those of this process.
    """

    name: str
    script: Path
    python: str = sys.executable
    environment: Mapping[str, str] = field(default_factory=dict)


BERTOPIC = System(
    "bertopic",
    _SCRIPTS / "bertopic_fit.py",
    python=os.environ.get("EMBEDTOPICS_BERTOPIC_PYTHON") or sys.executable,
)
# The working tree is measured, whether or not it is what is installed.
EMBEDTOPICS = System(
    "embedtopics", _SCRIPTS / "embedtopics_fit.py", environment={"PYTHONPATH": str(ROOT)}
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one fit found, and what it took.

    Parameters
    ----------
    labels : int64 ndarray of shape (n_texts,)
        Noise is -1.
    words : list of list of str
        Up to ten words of each topic, best first.
    seconds : float
        From the start of the process to the result.
    seconds_to_exit : float
        From the start of the process to its end: the writing of the files counts too.
    stages : dict of str to float
        Seconds of the script's parts: interpreter, imports, loading, fit, tables,
        predict.
    timings : dict of str to float
        Seconds by stage as the system itself tells them, if it does.
    peak_rss_mb : float
        Largest resident set of the process, in 10^6 bytes.
    """

    labels: np.ndarray
    words: list[list[str]]
    seconds: float
    seconds_to_exit: float
    stages: dict[str, float]
    timings: dict[str, float]
    peak_rss_mb: float

    @property
    def n_topics(self) -> int:
        """Number of topics, noise left out."""
        return len(self.words)

    @property
    def coverage(self) -> float:
        """Share of all texts, empty ones included, that are in a topic."""
        return float(np.mean(self.labels >= 0))

    def costs(self) -> dict[str, Any]:
        """Return the seconds and megabytes, rounded, for a JSON file."""
        return {
            "seconds": round(self.seconds, 2),
            "seconds_to_exit": round(self.seconds_to_exit, 2),
            "peak_rss_mb": round(self.peak_rss_mb, 1),
            "stages": {name: round(value, 3) for name, value in self.stages.items()},
            "timings": {name: round(value, 3) for name, value in self.timings.items()},
        }


def write_inputs(folder: Path, texts: Sequence[str], embeddings: np.ndarray) -> None:
    """Write what every system reads: texts.jsonl and embeddings.npy (float32)."""
    if len(texts) != len(embeddings):
        raise SystemExit(
            f"expected one embedding a text; got {len(texts)} texts and {len(embeddings)} rows; "
            "make the embeddings again"
        )
    with (folder / "texts.jsonl").open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(text) + "\n" for text in texts)
    np.save(folder / "embeddings.npy", np.asarray(embeddings, dtype=np.float32))


def fit(
    system: System,
    inputs: Path,
    *,
    random_state: int | None = None,
    stop_words: str | None = None,
    n_held_out: int = 0,
    numba_cache: Path | None = None,
) -> Outcome:
    """Run one fit in a fresh process.

    Parameters
    ----------
    system : System
    inputs : Path
        Folder filled by `write_inputs`.
    random_state : int or None
    stop_words : str or None
    n_held_out : int
        Last texts that are not fitted, but predicted afterwards.
    numba_cache : Path or None
        Folder of the compiled functions; None leaves them where Numba puts them.

    Returns
    -------
    Outcome

    Raises
    ------
    SystemExit
        If the process fails; the message ends with the last lines that it wrote.
    """
    options = {"random_state": random_state, "stop_words": stop_words, "n_held_out": n_held_out}
    with tempfile.TemporaryDirectory() as name:
        report, to_exit = _run_job(system, inputs, Path(name), options, numba_cache)
        labels = np.load(Path(name) / "labels.npy")
    return Outcome(
        labels=labels,
        words=report["words"],
        seconds=report["seconds"],
        seconds_to_exit=to_exit,
        stages=report["stages"],
        timings=report["timings"],
        peak_rss_mb=report["peak_rss_mb"],
    )


def answer(
    system: System, inputs: Path, options: Mapping[str, Any], *, numba_cache: Path | None = None
) -> dict[str, Any]:
    """Run a job that asks for something else than one fit, and return what it reports.

    Parameters
    ----------
    system : System
    inputs : Path
        Folder filled by `write_inputs`.
    options : mapping
        Of the job, as the system's script knows them.
    numba_cache : Path or None
        As in `fit`.

    Raises
    ------
    SystemExit
        If the process fails.
    """
    with tempfile.TemporaryDirectory() as name:
        return _run_job(system, inputs, Path(name), options, numba_cache)[0]


def _run_job(
    system: System,
    inputs: Path,
    outcome: Path,
    options: Mapping[str, Any],
    numba_cache: Path | None,
) -> tuple[dict[str, Any], float]:
    """Return what a system reports of a job, and the seconds from its start to its end."""
    job = outcome / "job.json"
    description = {
        "texts": str(inputs / "texts.jsonl"),
        "embeddings": str(inputs / "embeddings.npy"),
        "outcome": str(outcome),
        "options": dict(options),
    }
    job.write_text(json.dumps(description), "utf-8")
    cache = {} if numba_cache is None else {"NUMBA_CACHE_DIR": str(numba_cache)}
    began = time.monotonic()
    run_python(system, str(system.script), str(job), repr(began), environment=cache)
    to_exit = time.monotonic() - began
    return json.loads((outcome / "report.json").read_text("utf-8")), to_exit


def run_python(
    system: System, *arguments: str, environment: Mapping[str, str] | None = None
) -> str:
    """Run a system's interpreter to its end and return what it printed."""
    done = subprocess.run(
        [system.python, *arguments],
        env={**os.environ, **system.environment, **(environment or {})},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode != 0:
        last = "\n".join(done.stderr.splitlines()[-15:])
        raise SystemExit(f"{system.name} failed with exit code {done.returncode}:\n{last}")
    return done.stdout
