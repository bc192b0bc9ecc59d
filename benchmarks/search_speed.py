"""How fast an index of titles answers, beside a bare FAISS index and another library."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import load_encoded, sample_rows
from benchmarks.jobs import EMBEDTOPICS, System, run_python
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table

__all__ = ["measure", "render"]

SCRIPT = Path(__file__).resolve().parent / "systems" / "search_titles.py"
N_TITLES, N_QUERIES, N_EXACT, ROUNDS = 200_000, 1_000, 100, 5
KINDS = ("flat", "auto")
SMALL = 1_000

VICINITY = System(
    "vicinity", SCRIPT, python=os.environ.get("EMBEDTOPICS_VICINITY_PYTHON") or sys.executable
)  # fmt: skip
"""An environment with vicinity, hnswlib and usearch."""


def measure(options: Options) -> dict[str, Any]:
    """Search 200,000 titles; titles that are not among them are the queries."""
    n = 5_000 if options.quick else N_TITLES
    titles, vectors = load_encoded("arxiv_titles")
    chosen = sample_rows(len(titles), n + N_QUERIES)
    order = np.random.default_rng(1).permutation(chosen)
    held_out, rows = order[:N_QUERIES], np.sort(order[N_QUERIES:])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "vectors.npy", _unit(vectors[rows]))
        np.save(folder / "queries.npy", _unit(vectors[held_out]))
        (folder / "titles.json").write_text(json.dumps([titles[i] for i in rows]), "utf-8")
        asked = [titles[i] for i in held_out[:100]]
        (folder / "asked.json").write_text(json.dumps(asked), "utf-8")
        job: dict[str, Any] = {
            **{part: str(folder / f"{part}.npy") for part in ("vectors", "queries")},
            **{part: str(folder / f"{part}.json") for part in ("titles", "asked")},
            "folder": str(folder), "index": str(folder / "index"), "kinds": KINDS,
            "rounds": 1 if options.quick else ROUNDS, "n_exact": N_EXACT,
            "threads": os.cpu_count() or 1,
        }  # fmt: skip
        made = {"n": n, "n_queries": N_QUERIES, "dense": _run(folder, "dense", job)}
        made["memory"] = _memories(folder, job)
        made["build"] = _run(folder, "build", job)
        made["search"] = _run(folder, "search", job)
        try:
            made["vicinity"] = _run(folder, "vicinity", job, VICINITY)
        except SystemExit as error:
            made["vicinity"] = {"failed": str(error).splitlines()[-1]}
    return made


def _memories(folder: Path, job: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Measure each kind in a process of its own."""
    small = folder / "small"
    small.mkdir()
    np.save(folder / "few.npy", np.load(job["vectors"], mmap_mode="r")[:SMALL])
    script = (
        "import sys, numpy as np; from pathlib import Path; "
        "from embedtopics.retrieval.dense._build import build_dense; "
        "from embedtopics.retrieval.dense._segment import DenseSettings; "
        "build_dense(Path(sys.argv[1]), np.load(sys.argv[2]), DenseSettings())"
    )
    run_python(EMBEDTOPICS, "-c", script, str(small), str(folder / "few.npy"))
    return {
        kind: _run(folder, "memory", {**job, "small": str(small), "segment": str(folder / kind)})
        for kind in KINDS
    }


def _run(
    folder: Path, task: str, job: dict[str, Any], system: System = EMBEDTOPICS
) -> dict[str, Any]:
    (folder / "job.json").write_text(json.dumps(job), "utf-8")
    printed = run_python(system, str(SCRIPT), task, str(folder / "job.json"))
    answer: dict[str, Any] = json.loads(printed.splitlines()[-1])
    print(f"  {task} {answer}", file=sys.stderr)
    return answer


def _unit(vectors: np.ndarray) -> np.ndarray:
    vectors = np.asarray(vectors, dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def render(result: Mapping[str, Any]) -> str:
    """Return the tables of a result."""
    dense, search = result["dense"], result["search"]
    flat = dense["kinds"]["flat"]
    rows = [
        [
            f"{kind} ({found['kind']})" if kind != found["kind"] else kind,
            f"{found['recall']:.4f}",
            f"{found['milliseconds']:.3f}",
            f"{flat['milliseconds'] / found['milliseconds']:.1f}",
            f"{found['bytes']['memory'] / 1e6:.0f}",
            f"{found['bytes']['memory'] / dense['float32_bytes']:.2f}",
            f"{result['memory'][kind]['own'] / 1e6:.0f}",
            f"{result['memory'][kind]['mapped'] / 1e6:.0f}",
            f"{found['seconds']:.0f}",
        ]
        for kind, found in dense["kinds"].items()
    ]
    rows += [
        [f"vicinity, {name}", *(
            [found["failed"], *[""] * 7] if "failed" in found else [
                f"{found['recall']:.4f}", f"{found['milliseconds']:.3f}",
                f"{flat['milliseconds'] / found['milliseconds']:.1f}", *[""] * 4,
                f"{found['seconds']:.0f}",
            ]
        )]
        for name, found in _others(result["vicinity"]).items()
    ]  # fmt: skip
    header = [
        "index", "recall@10", "ms a query", "times exact", "must hold, MB", "of float32",
        "process: own, MB", "mapped, MB", "built in, s",
    ]  # fmt: skip
    whole = [
        [name, f"{found['median']:.1f}", f"{found['p95']:.1f}"]
        for name, found in search["milliseconds"].items()
    ]
    collection = (
        f"The whole collection, built in {result['build']['seconds']:.0f} s from ready vectors, "
        f"opens in {search['load_seconds']:.3f} s. Under a filter that "
        f"{figure(search['n_passing'])} titles pass, recall@10 is "
        f"{search['filtered_recall']:.4f} against brute force, and "
        f"{'every' if search['filtered_full'] else 'not every'} query gets 10. One query at a "
        "time, encoding, texts and explanation included:"
    )
    return "\n\n".join([
        _exact(dense, result["n"]), markdown_table(header, rows), collection,
        markdown_table(["search", "median, ms", "95 %, ms"], whole),
    ])  # fmt: skip


def _exact(dense: Mapping[str, Any], n: int) -> str:
    """Return how exact search compares with a bare index."""
    ratios = {
        what: statistics.median(turn["flat"] / turn["bare"] for turn in dense["rounds"][what])
        for what in ("batch", "single")
    }
    ms = {
        what: {
            name: statistics.median(turn[name] for turn in dense["rounds"][what])
            for name in ("bare", "flat")
        }
        for what in ("batch", "single")
    }
    return (
        f"Exact search of {figure(n)} titles: a batch of 64 queries takes "
        f"{ms['batch']['flat']:.1f} ms, a bare IndexFlatIP {ms['batch']['bare']:.1f} "
        f"({ratios['batch']:.2f} times, median of turns); a single query on one thread "
        f"{ms['single']['flat']:.2f} ms and {ms['single']['bare']:.2f} "
        f"({ratios['single']:.2f} times)."
    )


def _others(vicinity: Mapping[str, Any]) -> dict[str, Any]:
    return {"all": dict(vicinity)} if "failed" in vicinity else dict(vicinity)
