"""Further pre-training of an encoder on a field's texts: what it learns, gains and forgets."""

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
from benchmarks.training_sets import sts_pairs

__all__ = ["measure", "render"]

BASE = "all-MiniLM-L6-v2"
SCRIPT = ROOT / "benchmarks" / "systems" / "adapt_encoder.py"
N_LEARNED, N_HELD_OUT, N_PAIRS, N_TITLES = 120, 20, 100, 500
SETTINGS = {"max_steps": 20, "batch_size": 16, "max_length": 64, "random_state": 1}
ARMS = {"geometry kept": True, "without": False}


def measure(options: Options) -> dict[str, Any]:
    """Go on with masked words on abstracts, with and without the vectors of before."""
    rows = _read_rows("arxiv_abstracts/arxiv_abstracts.jsonl.gz")
    part = 10 if options.quick else 1
    bounds = np.cumsum([N_LEARNED, N_HELD_OUT, N_PAIRS, N_TITLES]) // part
    order = np.random.default_rng(0).permutation(len(rows))
    learned, held_out, pairs, titles = (
        [rows[place] for place in places] for places in np.split(order, bounds)[:4]
    )
    settings = {**SETTINGS, "max_steps": 2} if options.quick else SETTINGS
    arms = {}
    with tempfile.TemporaryDirectory() as name:
        for arm, is_kept in ARMS.items():
            job = {
                "encoder": BASE, "learned": [row["abstract"] for row in learned],
                "held_out": [row["abstract"] for row in held_out], "out": f"{name}/{arm}",
                "settings": {**settings, "keep_geometry": is_kept},
                "texts": [row["title"] for row in titles],
                "classes": [row["primary_cat"] for row in titles], "general": sts_pairs("test"),
                "pairs": {"kind": "pairs", "columns": [
                    [row["abstract"] for row in pairs], [row["title"] for row in pairs]
                ]},
            }  # fmt: skip
            file = Path(name) / "job.json"
            file.write_text(json.dumps(job), "utf-8")
            printed = run_python(EMBEDTOPICS, str(SCRIPT), str(file))
            arms[arm] = json.loads(printed.splitlines()[-1])
            print(f"  {arm}: {arms[arm]}", file=sys.stderr)
    counts = {"n_learned": len(learned), "n_pairs": len(pairs), "n_titles": len(titles)}
    return {"settings": settings, **counts, "arms": arms}


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    table = []
    for arm, found in result["arms"].items():
        table += [
            [
                arm, f"{change['task']}, {change['metric']}", f"{change['before']:.4f}",
                f"{change['after']:.4f}",
                f"{change['difference']:+.4f} [{change['low']:.4f}, {change['high']:.4f}]",
                change["verdict"],
            ]
            for change in found["changes"]
        ]  # fmt: skip
    settings = result["settings"]
    seconds = ", ".join(
        f"{found['processor_seconds']:,.0f} ({arm})" for arm, found in result["arms"].items()
    )
    header = ["pre-training", "measured on", "before", "after", "difference, 95 %", "verdict"]
    return "\n\n".join([
        markdown_table(header, table),
        f"{BASE}, {result['n_learned']:,} arXiv abstracts in blocks of {settings['max_length']} "
        f"tokens, {settings['max_steps']} steps of {settings['batch_size']} blocks after as many "
        f"for the head, random masks, one seed; processor seconds of both: {seconds}. Measured on "
        f"{result['n_pairs']} other pairs of abstract and title, the titles of "
        f"{result['n_titles']} others by their category, and general similarity.",
    ])  # fmt: skip
