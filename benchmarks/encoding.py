"""How fast texts become vectors beside sentence-transformers, and whether they are the same."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.corpora import load_labelled, load_sts
from benchmarks.jobs import EMBEDTOPICS, System, run_python
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table

__all__ = ["measure", "render"]

SCRIPT = Path(__file__).resolve().parent / "systems" / "encode_texts.py"
PEER = "sentence-transformers"
OWN = ("float32", "int8")
EXPORTED = (f"{PEER}, ONNX", f"{PEER}, ONNX int8")
"""The peer's other back-ends, in an environment of their own: they need an older transformers."""
NAMES = {name: name for name in (PEER, *EXPORTED)} | {
    "float32": "embedtopics, float32", "int8": "embedtopics, int8 (default)",
}  # fmt: skip
ONNX = System(
    f"{PEER}[onnx]", SCRIPT, python=os.environ.get("EMBEDTOPICS_ONNX_PYTHON") or sys.executable
)
EVERY, N_LONG = 4, 100
ROUNDS = 3
"""Turns that the encoders take, each in a process of its own; the fastest counts."""
STARTS = 3


def measure(options: Options) -> dict[str, Any]:
    """Time starts and passes over short and long texts; then compare vectors and judgements."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = load_sts("test")
        step = 20 if options.quick else 1
        sets = {
            "STS-B": [pair[key] for pair in pairs for key in ("sentence1", "sentence2")][
                :: EVERY * step
            ],
            "bbc_news": load_labelled("bbc_news").texts[::4][:N_LONG:step],
        }
        (folder / "pairs.json").write_text(json.dumps(pairs), "utf-8")
        (folder / "texts.json").write_text(json.dumps(sets), "utf-8")
        has_exported = "EMBEDTOPICS_ONNX_PYTHON" in os.environ
        kinds = (PEER, *(EXPORTED if has_exported else ()), *OWN)
        found = {name: version(name) for name in (PEER, "onnxruntime", "torch")}
        if has_exported:
            found |= _run(folder, "export", EXPORTED[0])
        started = [_start(folder, kind) for kind in OWN]  # nothing is ready yet
        tokens = _run(folder, "count", "float32")
        runs: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
        starts: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(1 if options.quick else ROUNDS):
            for kind in kinds:
                runs[kind].append(_run(folder, "encode", kind))
                print(f"  {kind} {runs[kind][-1]}", file=sys.stderr)
        for _ in range(1 if options.quick else STARTS):
            for kind in kinds:
                starts[kind].append(_start(folder, kind))
        return {
            "versions": found,
            "sets": [
                {"name": name, "n_texts": len(texts), "n_tokens": tokens[name]}
                for name, texts in sets.items()
            ],
            "first_ever": dict(zip(OWN, started, strict=True)),
            "encoders": [
                {
                    "encoder": kind,
                    "seconds": {name: [run[name] for run in runs[kind]] for name in sets},
                    "starts": starts[kind],
                    **_run(folder, "score", kind),
                    **_run(folder, "alone", kind),
                }
                for kind in kinds
            ],
        }


def _run(folder: Path, task: str, kind: str) -> dict[str, Any]:
    """Run one task in a fresh process of this environment, with a cache folder of its own."""
    printed = run_python(
        ONNX if kind in EXPORTED else EMBEDTOPICS, str(SCRIPT), task, kind, str(folder),
        environment={"EMBEDTOPICS_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return answer


def _start(folder: Path, kind: str) -> float:
    """Return the seconds of a process that makes one embedding."""
    began = time.monotonic()
    _run(folder, "first", kind)
    return time.monotonic() - began


def render(result: Mapping[str, Any]) -> str:
    """Return the tables of a result."""
    encoders = {row["encoder"]: row for row in result["encoders"]}
    speeds = {
        (kind, of_set["name"]):
            of_set["n_tokens"] / min(row["seconds"][of_set["name"]])
        for kind, row in encoders.items() for of_set in result["sets"]
    }  # fmt: skip
    rows = [
        [
            NAMES[kind],
            *(
                cell
                for of_set in result["sets"]
                for cell in (
                    figure(speeds[kind, of_set["name"]]),
                    figure(speeds[kind, of_set["name"]] / speeds[PEER, of_set["name"]], 2),
                )
            ),
            figure(100 * row["spearman"], 2),
            f"{row['largest_difference']:.0e}",
            f"{1 - row['lowest_cosine']:.0e}",
        ]
        for kind, row in encoders.items()
    ]
    of_sets = [
        title
        for of_set in result["sets"]
        for title in (
            f"{of_set['name']} ({of_set['n_texts']:,} texts), tokens a core second",
            f"{of_set['name']}, ratio",
        )
    ]  # fmt: skip
    header = ["encoder", *of_sets, "STS-B test", "alone or in a batch: differs by", "1 - cosine"]
    starts = [
        [
            NAMES[kind],
            figure(min(row["starts"]), 2),
            figure(min(encoders[PEER]["starts"]) / min(row["starts"]), 1),
            figure(result["first_ever"].get(kind), 1),
        ]
        for kind, row in encoders.items()
    ]
    first = ["from the start of the process to the first embedding", "s", "ratio", "first ever, s"]
    versions = ", ".join(f"{name} {found}" for name, found in result["versions"].items())
    return "\n\n".join(
        [markdown_table(header, rows), markdown_table(first, starts), f"{versions}."]
    )
