"""Masked language modelling: how fast, and whether it learns what transformers' Trainer does."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import _read_rows
from benchmarks.jobs import EMBEDTOPICS, ROOT, run_python
from benchmarks.options import Options
from benchmarks.rendering import markdown_table

__all__ = ["measure", "render"]

SCRIPT = ROOT / "benchmarks" / "systems" / "masked_language_model.py"
N_TEXTS, N_STEPS, BATCH, LENGTH, SEEDS = 400, 8, 16, 128, (1, 2, 3)


def measure(options: Options) -> dict[str, Any]:
    """Pre-train one small BERT from the same weights in both systems, in turn, by seed."""
    rows = _read_rows("arxiv_abstracts/arxiv_abstracts.jsonl.gz")
    order = np.random.default_rng(0).permutation(len(rows))[:N_TEXTS].tolist()
    runs = []
    with tempfile.TemporaryDirectory() as name:
        for seed in SEEDS[: 1 if options.quick else None]:
            for system in ("embedtopics", "transformers"):
                job = {
                    "system": system, "seed": seed, "steps": 3 if options.quick else N_STEPS,
                    "batch": BATCH, "length": LENGTH, "folder": f"{name}/{system}-{seed}",
                    "texts": [rows[place]["abstract"] for place in order],
                }  # fmt: skip
                file = Path(name) / "job.json"
                file.write_text(json.dumps(job), "utf-8")
                printed = run_python(EMBEDTOPICS, str(SCRIPT), str(file))
                runs.append(json.loads(printed.splitlines()[-1]))
                print(f"  {runs[-1]}", file=sys.stderr)
    return {"n_texts": N_TEXTS, "batch": BATCH, "length": LENGTH, "runs": runs}


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    rows = []
    steps = range(result["runs"][0]["steps"])
    for system in ("embedtopics", "transformers"):
        own = [run for run in result["runs"] if run["system"] == system]
        wall, processor, loss = (
            [run[name] for run in own]
            for name in ("tokens_per_second", "tokens_per_processor_second", "loss")
        )
        curve = np.mean([run["training_loss"] for run in own], axis=0)
        rows.append([
            system, *(f"{np.median(v):,.0f} ({min(v):,.0f} to {max(v):,.0f})"
                      for v in (processor, wall)),
            f"{np.mean(loss):.3f} ({min(loss):.3f} to {max(loss):.3f})",
            ", ".join(f"{curve[step]:.2f}" for step in steps),
        ])  # fmt: skip
    header = ["system", "tokens a processor second, median (range)", "tokens/s, median (range)",
              "held-out loss, mean (range)", "training loss by step, mean"]  # fmt: skip
    n = len(result["runs"]) // 2
    return "\n\n".join([
        markdown_table(header, rows),
        f"A BERT of 4 layers and 256 dimensions with MiniLM's vocabulary, from random weights, on "
        f"{result['n_texts']:,} arXiv abstracts, {result['batch']} texts of at most "
        f"{result['length']} tokens a batch, {len(steps)} steps, one thread, seeds: {n}, in turn, "
        "on a machine whose two cores other work shared. Tokens are those of the texts, padding "
        "not counted; the held-out loss of both is measured by the same code under the same masks.",
    ])  # fmt: skip
