"""What keeping vectors on disk costs at first, and saves later."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.corpora import ENCODED, sample_rows
from benchmarks.jobs import EMBEDTOPICS, run_python
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table

__all__ = ["measure", "render"]

SCRIPT = Path(__file__).resolve().parent / "systems" / "encode_texts.py"
N_TEXTS = 60_000
ROUNDS = 3


def measure(options: Options) -> dict[str, Any]:
    """Encode titles past the cache, into an empty one, and out of the full one, in turns."""
    n_texts = 3_000 if options.quick else N_TEXTS
    titles = sorted(set(ENCODED["arxiv_titles"]()))
    runs = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = [titles[row] for row in sample_rows(len(titles), n_texts)]
        (folder / "texts.json").write_text(json.dumps({"texts": texts}), "utf-8")
        for number in range(1 if options.quick else ROUNDS):
            shutil.rmtree(folder / "vectors", ignore_errors=True)
            # The first two change places, for a machine that grows warm favours the first.
            order = ("past", "into") if number % 2 else ("into", "past")
            made = {kind: _run(folder, kind) for kind in order}
            made["out of"] = _run(folder, "out of")
            print(f"  {made}", file=sys.stderr)
            runs.append(made)
        n_bytes = sum(p.stat().st_size for p in (folder / "vectors").rglob("*.shard"))
    return {"n_texts": n_texts, "n_bytes": n_bytes, "runs": runs}


def _run(folder: Path, kind: str) -> dict[str, Any]:
    printed = run_python(EMBEDTOPICS, str(SCRIPT), "cache", kind, str(folder))
    answer: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return answer


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    seconds = {
        kind: statistics.median(run[kind]["seconds"] for run in result["runs"])
        for kind in ("past", "into", "out of")
    }
    overheads = [run["into"]["seconds"] / run["past"]["seconds"] - 1 for run in result["runs"]]
    rows = [
        [
            figure(result["n_texts"]),
            figure(seconds["past"], 1),
            figure(seconds["into"], 1),
            f"{100 * statistics.median(overheads):+.1f} %",
            figure(seconds["out of"], 2),
            figure(seconds["into"] / seconds["out of"]),
            figure(result["n_bytes"] / 1e6),
        ]
    ]
    header = [
        "texts", "without cache, s", "first run, s", "overhead", "second run, s", "ratio",
        "on disk, MB",
    ]  # fmt: skip
    return markdown_table(header, rows)
