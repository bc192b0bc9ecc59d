"""From a parquet file of many abstracts to a folder of results, by the command and nothing else.

The documents are abstracts of arXiv papers and, where these do not suffice, the first sentences of
one with the last ones of another of its category. A run is ``embedtopics topics`` in a process of
its own, with an empty cache of vectors.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import CACHE, _read_rows
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table

__all__ = ["measure", "render"]

SIZES = (int(os.environ.get("MILLION", 1_000_000)),)
"""Documents; MILLION=250000 makes it fewer."""
WAYS = {"--distill 20000": ("--distill", "20000")}
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def measure(options: Options) -> dict[str, Any]:
    """Run the command once for each size and way."""
    sizes, ways = ((2_000,), {"--distill 500": ("--distill", "500")}) if options.quick else (
        SIZES, WAYS,
    )  # fmt: skip
    runs = []
    CACHE.mkdir(exist_ok=True)
    for size in sizes:
        with tempfile.TemporaryDirectory(dir=CACHE) as name:
            file = Path(name) / "documents.parquet"
            _write(file, size)
            for way, arguments in ways.items():
                runs.append({"n_documents": size, "way": way, **_run(file, arguments)})
                print(f"  {runs[-1]}", file=sys.stderr)
    return {"runs": runs}


def _write(file: Path, size: int) -> None:
    import pandas as pd

    rows = _read_rows("arxiv_abstracts/arxiv_abstracts.jsonl.gz")
    rng = np.random.default_rng(0)
    order = rng.permutation(len(rows)).tolist()
    texts = [rows[row]["abstract"] for row in order[:size]]
    of_category: dict[str, list[int]] = {}
    for row in order:
        of_category.setdefault(rows[row]["primary_cat"], []).append(row)
    while len(texts) < size:
        row = rows[order[len(texts) % len(order)]]
        others = of_category[row["primary_cat"]]
        first = _SENTENCES.split(row["abstract"])
        second = _SENTENCES.split(rows[others[rng.integers(len(others))]]["abstract"])
        texts.append(" ".join(first[: len(first) // 2 + 1] + second[len(second) // 2 :]))
    pd.DataFrame({"id": np.arange(size), "text": texts}).to_parquet(file)


def _run(file: Path, arguments: tuple[str, ...]) -> dict[str, Any]:
    """Return seconds on the wall and of processors, gigabytes at most, and the stages."""
    from embedtopics.topics.results import TopicResult

    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        out = Path(name) / "results"
        command = [
            sys.executable, "-m", "embedtopics", "topics", str(file), "--text", "text", "--out",
            str(out), "--n-replicates", "0", *arguments,
        ]  # fmt: skip
        environment = {**os.environ, "EMBEDTOPICS_CACHE": str(Path(name) / "cache")}
        load, began = os.getloadavg()[0], time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"expected results from {' '.join(command)}; got status {status}")
        seconds = time.perf_counter() - began
        result = TopicResult.load(out / "model")
        disk: dict[str, float] = {}
        for file in out.rglob("*"):
            if file.is_file():
                part = file.relative_to(out).parts[0]
                disk[part] = disk.get(part, 0) + file.stat().st_size / 1e9
        decisions = [one.message for one in result.decisions if one.stage == "encoder"]
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_gb": round(used.ru_maxrss / 1e6, 2),
        "disk_gb": {name: round(size, 3) for name, size in disk.items()},
        "load_before": round(load, 1),
        "decisions": decisions,
        "n_topics": result.n_topics,
        "timings": {stage: round(value, 1) for stage, value in result.timings.items()},
    }


def render(result: Mapping[str, Any]) -> str:
    """Return the table: time in all, by stage, and memory."""
    stages = list(dict.fromkeys(name for run in result["runs"] for name in run["timings"]))
    header = ["documents", "way", "topics", "wall, min", "processors, min", "peak, GB",
              "disk, GB", "load before", *(f"{stage}, s" for stage in stages)]  # fmt: skip
    return markdown_table(header, [
        [figure(run["n_documents"]), run["way"], figure(run["n_topics"]),
         figure(run["seconds"] / 60, 1), figure(run["cpu_seconds"] / 60, 1),
         figure(run["peak_gb"], 1), figure(sum(run["disk_gb"].values()), 1),
         figure(run["load_before"], 1),
         *(figure(run["timings"].get(stage, 0), 0) for stage in stages)]
        for run in result["runs"]
    ])  # fmt: skip
