"""Titles and abstracts as teachers: what an encoder gains in a field, and forgets elsewhere."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import _read_rows
from benchmarks.encoder_training import train
from benchmarks.jobs import EMBEDTOPICS, ROOT, run_python
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from benchmarks.training_sets import sts_pairs

__all__ = ["measure", "render"]

BASE = "all-MiniLM-L6-v2"
N_PAIRS, N_DEV, N_TEST = 20_000, 1_000, 10_000
SETTINGS = {
    "epochs": 1, "batch_size": 64, "learning_rate": 2e-5, "max_length": 96,
    "precision": "bfloat16", "seed": 1, "validations_per_epoch": 6, "patience": None,
}  # fmt: skip
SCRIPT = ROOT / "benchmarks" / "systems" / "compare_encoders.py"


def measure(options: Options) -> dict[str, Any]:
    """Train on pairs of some papers; measure on the titles of others."""
    part = 50 if options.quick else 1
    rows = _read_rows("arxiv_abstracts/arxiv_abstracts.jsonl.gz")
    order = np.random.default_rng(0).permutation(len(rows))
    bounds = np.cumsum([N_PAIRS, N_DEV, N_TEST]) // part
    learned, dev, test = (
        [rows[place] for place in places] for places in np.split(order, bounds)[:3]
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = {
            "system": "embedtopics", "objective": "pairs", "encoder": BASE,
            "train": _pairs(learned), "dev": _pairs(dev), "out": str(folder / "tuned"),
            "settings": SETTINGS,
        }  # fmt: skip
        found = train(folder, job)
        print(f"  {found}", file=sys.stderr)
        content = {
            "before": BASE, "after": str(folder / "tuned"),
            "texts": [row["title"] for row in test],
            "classes": [row["primary_cat"] for row in test],
            "general": {"STS-B test": sts_pairs("test")},
        }  # fmt: skip
        (folder / "compare.json").write_text(json.dumps(content), "utf-8")
        printed = run_python(EMBEDTOPICS, str(SCRIPT), str(folder / "compare.json"))
    return {
        "n_pairs": len(learned), "n_test": len(test), "settings": SETTINGS, "training": found,
        "changes": json.loads(printed.splitlines()[-1]),
    }  # fmt: skip


def _pairs(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "kind": "pairs",
        "columns": [[row["title"] for row in rows], [row["abstract"] for row in rows]],
    }


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    rows = [
        [
            f"{change['task']}, {change['metric']}",
            f"{change['before']:.4f}",
            f"{change['after']:.4f}",
            f"{change['difference']:+.4f} [{change['low']:.4f}, {change['high']:.4f}]",
            change["verdict"],
        ]
        for change in result["changes"]
    ]
    training = result["training"]
    return "\n\n".join([
        markdown_table(["measured on", "before", "after", "difference, 95 %", "verdict"], rows),
        f"{figure(result['n_pairs'])} titles with their abstracts, one epoch at "
        f"{result['settings']['learning_rate']:g}, batch {result['settings']['batch_size']}, "
        f"{figure(training['seconds'])} s; measured on the titles of "
        f"{figure(result['n_test'])} other papers and on general similarity.",
    ])  # fmt: skip
