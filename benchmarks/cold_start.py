"""What a new user waits for: imports, the first vectors, the first fit, and the demo."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.jobs import EMBEDTOPICS, System, run_python
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table

__all__ = ["measure", "render"]

TEXTS = """
import csv
from embedtopics._utils.folders import demo_path
with demo_path().open(encoding="utf-8", newline="") as file:
    texts = [row["text"] for row in csv.DictReader(file) if row["language"] == "en"]
"""
OURS = {
    "import": "from embedtopics import TopicModel",
    "first embedding": f"{TEXTS}import embedtopics as et; et.SentenceEncoder().encode(texts[:1])",
    "first fit, encoding included": f"{TEXTS}import embedtopics as et; "
    "et.TopicModel(random_state=42).fit(texts)",
    "`embedtopics demo`": "import sys, time; from embedtopics.cli._app import main; "
    "sys.argv = ['embedtopics', 'demo', '--out', f'results-{time.time()}']; main()",
}
THEIRS = {"import": "from bertopic import BERTopic; import sentence_transformers"}


def measure(options: Options) -> dict[str, Any]:
    """Run each step in fresh processes: with empty caches, and again with what that left.

    Installers compile packages to bytecode; here a run before the others does.
    """
    runs = []
    for system in options.systems:
        for step, code in (OURS if system.name == EMBEDTOPICS.name else THEIRS).items():
            with tempfile.TemporaryDirectory() as folder:
                bytecode = Path(folder, "bytecode")
                _run(system, code, Path(folder, "before"), bytecode)
                for caches in ("empty", "full"):
                    costs = _run(system, code, Path(folder, "measured"), bytecode)
                    runs.append({"system": system.name, "step": step, "caches": caches, **costs})
                    print(f"  {runs[-1]}", file=sys.stderr)
    return {"runs": runs}


def _run(system: System, code: str, folder: Path, bytecode: Path) -> dict[str, float]:
    """Return the seconds and processor seconds of a process with its caches in a folder."""
    folder.mkdir(exist_ok=True)
    environment = {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(bytecode),
        "NUMBA_CACHE_DIR": str(folder / "numba"),
        "EMBEDTOPICS_CACHE": str(folder / "cache"),
    }
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run_python(
        system, "-c", f"import os; os.chdir({str(folder)!r})\n{code}", environment=environment
    )
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor, 1),
        "load": round(os.getloadavg()[0], 1),
    }


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    header = ["system", "step", "caches", "processor seconds", "seconds", "load of the machine"]
    rows = [
        [run["system"], run["step"], run["caches"]]
        + [figure(run[name], 1) for name in ("processor_seconds", "seconds", "load")]
        for run in result["runs"]
    ]
    return markdown_table(header, rows)
