"""What shards cost: assignment against the fit, two processes against one, and Ray against both.

What a million rows and more take is computed from the seconds of a row in a worker of one thread.

Half of a corpus is fitted from its embeddings; the other half, written several times with marks
that make its texts new, is assigned. Processor time, because others use the machine.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.corpora import load_labelled
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics import TopicModel
from embedtopics.batch._jobs import AssignTopics, EmbedTexts
from embedtopics.batch._manifest import make_manifest
from embedtopics.batch._rows import Columns
from embedtopics.batch._runners import Worker, describe_work, seconds_per_row

__all__ = ["measure", "render"]

SEED, COPIES, ROW_GROUP = 42, 32, 4096
SIZES, CORES = (1, 10, 100), (2, 16, 128)
"""Millions of rows, and cores, for which the hours are computed."""


def measure(options: Options) -> dict[str, Any]:
    """Fit a half, and assign the other half in shards."""
    corpus = load_labelled("bbc_news" if options.quick else "20newsgroups")
    order = np.random.default_rng(SEED).permutation(len(corpus.texts))
    fitted, held = np.array_split(order, 2)
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = TopicModel(languages=["en"], random_state=SEED, show_progress=False)
        with _timed() as of_fit:
            model.fit([corpus.texts[row] for row in fitted], embeddings=corpus.embeddings[fitted])
        model.save(folder / "model")
        rows = np.tile(held, COPIES)
        pd.DataFrame({
            "text": [f"{corpus.texts[row]} {i}" for i, row in enumerate(rows)],
            "vector": list(corpus.embeddings[rows]),
        }).to_parquet(folder / "data.parquet", row_group_size=ROW_GROUP)  # fmt: skip
        manifest = make_manifest(folder / "data.parquet")
        job, columns = AssignTopics(folder / "model"), Columns(vectors="vector")
        (folder / "here" / "_errors").mkdir(parents=True)
        worker = Worker(describe_work(job, columns, folder / "here"))
        worker.do(manifest.shards[0], "warm")
        with _timed() as of_assignment:
            for number, shard in enumerate(manifest.shards):
                worker.do(shard, str(number))
        sizing = []
        for what, one, of in (
            ("embed, all-MiniLM-L6-v2", EmbedTexts("all-MiniLM-L6-v2"), Columns()),
            ("assign, vectors given", job, columns),
        ):
            out = folder / one.name
            (out / "_errors").mkdir(parents=True)
            work = describe_work(one, of, out)
            a_row = seconds_per_row(manifest.shards[0], work)
            Worker(work).do(manifest.shards[-1], "last")
            n_bytes = (out / "part-last.parquet").stat().st_size / manifest.shards[-1].n_rows
            sizing.append({
                "job": what, "seconds_per_row": a_row, "bytes_per_row": n_bytes,
            })  # fmt: skip
        for runner in ("processes", *(["ray"] if find_spec("ray") else [])):
            for n_workers in (1, 2):
                # A process that has imported nothing else: its workers import what it has.
                command = [
                    sys.executable, "-m", "embedtopics", "batch", "assign",
                    str(folder / "data.parquet"), "--model", str(folder / "model"), "--out",
                    str(folder / f"{runner}{n_workers}"), "--vectors", "vector",
                    "--n-workers", str(n_workers), "--runner", runner,
                ]  # fmt: skip
                with _timed() as run:
                    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                if runner == "ray":  # whose actors are no children of this process
                    run["processor_seconds"] = None
                runs.append({"runner": runner, "workers": n_workers, **run})
                print(f"  {runs[-1]}", file=sys.stderr)
    return {
        "corpus": corpus.name, "n_fitted": len(fitted), "n_assigned": manifest.n_rows,
        "n_shards": len(manifest.shards), "fit": of_fit, "assign": of_assignment, "runs": runs,
        "sizing": sizing, "characters": float(np.mean([len(text) for text in corpus.texts])),
    }  # fmt: skip


@contextmanager
def _timed() -> Iterator[dict[str, Any]]:
    """Give wall seconds, and processor seconds of this process and of its ended children."""

    def spent() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    found: dict[str, Any] = {}
    begin, used = time.perf_counter(), spent()
    yield found
    found["seconds"] = round(time.perf_counter() - begin, 2)
    found["processor_seconds"] = round(spent() - used, 2)


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    header = ["work", "texts", "seconds", "processor seconds", "texts a processor second"]
    n_assigned = result["n_assigned"]
    named = [
        ("fit, vectors given", result["n_fitted"], result["fit"]),
        ("assign, model loaded", n_assigned, result["assign"]),
        *((f"assign, {run['runner']}, workers: {run['workers']}", n_assigned, run)
          for run in result["runs"]),
    ]  # fmt: skip
    rows = [
        [name, figure(n), figure(run["seconds"])]
        + ([figure(used), figure(n / used)] if (used := run["processor_seconds"]) else ["", ""])
        for name, n, run in named
    ]
    return f"{markdown_table(header, rows)}\n\n{_sizing(result)}"


def _sizing(result: Mapping[str, Any]) -> str:
    """Return the table of what large collections take, computed from what a row took."""
    header = ["work", "rows, million", *(f"hours, {n} cores" for n in CORES),
              "disk, GB"]  # fmt: skip
    rows = [
        [one["job"], figure(n), *(figure(one["seconds_per_row"] * n * 1e6 / cores / 3600, 2)
                                  for cores in CORES),
         figure(one["bytes_per_row"] * n / 1e3, 1)]
        for one in result["sizing"] for n in SIZES
    ]  # fmt: skip
    return (
        f"Computed from what a row took one thread (texts of {result['characters']:,.0f} "
        f"characters on average):\n\n{markdown_table(header, rows)}"
    )
