"""How often learning curves are read rightly: drawn, simulated, and of five runs provoked."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.encoder_training import train
from benchmarks.options import Options
from benchmarks.rendering import markdown_table
from benchmarks.training_sets import sts_training_pairs

__all__ = ["PROVOKED", "measure", "render"]

N_DRAWS, FIRST_SEED = {"first": 200, "second": 60}, 1000
"""Draws of each generator, other than those that the limits of the reader were set on."""

BASE = "all-MiniLM-L6-v2"

PROVOKED: dict[str, dict[str, Any]] = {
    "just right": {"n": 5_000, "epochs": 1, "learning_rate": 5e-5},
    "could learn more": {"n": 2_000, "epochs": 1, "learning_rate": 3e-6},
    "learns nothing": {"n": 1_000, "epochs": 2, "learning_rate": 1e-9},
    "chaotic": {"n": 1_000, "epochs": 4, "learning_rate": 5e-3, "batch_size": 4},
    "overlearning": {"n": 200, "epochs": 30, "learning_rate": 1e-4, "weight_decay": 0.0},
}
"""What is done to a run so that its curves are of a kind."""

N_VALIDATION = 600
"""Of the same part as the training examples: the STS benchmark's own development part is of other
sources in other shares, and would look like a gap between the losses."""


def measure(options: Options) -> dict[str, Any]:
    """Read curves whose kind is known."""
    shares = {name: _confusion(name, 5 if options.quick else n) for name, n in N_DRAWS.items()}
    return {"confusion": shares, "provoked": _provoked(options.quick)}


def _confusion(name: str, n: int) -> dict[str, dict[str, int]]:
    from embedtopics.training._curves import read_curves
    from tests.training import curves_first, curves_second

    draw = {"first": curves_first.draw, "second": curves_second.draw}[name]
    found = {}
    for kind in PROVOKED:
        seeds = range(FIRST_SEED, FIRST_SEED + n)
        verdicts = Counter(read_curves(draw(kind, seed)).verdict for seed in seeds)
        found[kind] = dict(verdicts.most_common())
    return found


def _provoked(quick: bool) -> dict[str, dict[str, Any]]:
    """Train five times, each time in the way of one kind."""
    from embedtopics.training import TrainingReport

    data = _distinct(sts_training_pairs())
    order = np.random.default_rng(0).permutation(len(data["labels"]))
    held_out, order = order[:N_VALIDATION], order[N_VALIDATION:]
    found = {}
    for kind, how in list(PROVOKED.items())[: 1 if quick else None]:
        settings = {"batch_size": 32, **{key: how[key] for key in how if key != "n"}}
        places = order[: 60 if quick else how["n"]]
        with tempfile.TemporaryDirectory() as name:
            job = {
                "system": "embedtopics", "objective": "cosine", "encoder": BASE,
                "train": _some(data, places), "dev": _some(data, held_out),
                "out": str(Path(name) / "tuned"),
                "settings": {
                    **settings, "precision": "bfloat16", "seed": 1, "patience": None,
                    "validations_per_epoch": max(1, round(12 / settings["epochs"])),
                },
            }  # fmt: skip
            train(Path(name), job)
            report = TrainingReport.load(Path(name) / "tuned")
        print(f"  {kind}: {report.diagnosis.verdict}", file=sys.stderr)
        columns = report.curves.to_frame().round(6).to_dict("list")
        table = {
            name: [None if np.isnan(value) else value for value in values]
            for name, values in columns.items()
        }
        found[kind] = {
            "settings": how, "verdict": report.diagnosis.verdict,
            "confidence": report.diagnosis.confidence,
            "evidence": report.diagnosis.evidence["says"].tolist(),
            "advice": list(report.advice), "curves": table,
        }  # fmt: skip
    return found


def _distinct(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first example of each pair: some are in the set twice."""
    places: dict[frozenset[str], int] = {}
    for place, pair in enumerate(zip(*content["columns"], strict=True)):
        places.setdefault(frozenset(pair), place)
    return _some(content, list(places.values()))


def _some(content: Mapping[str, Any], places: Any) -> dict[str, Any]:
    chosen = [int(place) for place in places]
    return {
        **content,
        "columns": [[column[place] for place in chosen] for column in content["columns"]],
        "labels": [content["labels"][place] for place in chosen],
    }


def render(result: Mapping[str, Any]) -> str:
    """Return the tables of a result."""
    rows = []
    for name, kinds in result["confusion"].items():
        for kind, verdicts in kinds.items():
            n = sum(verdicts.values())
            others = ", ".join(f"{v} {c}" for v, c in verdicts.items() if v != kind) or "none"
            rows.append([name, kind, f"{100 * verdicts.get(kind, 0) / n:.1f}", str(n), others])
    runs = [
        [kind, run["verdict"], f"{100 * run['confidence']:.0f} %", _how(run["settings"])]
        for kind, run in result["provoked"].items()
    ]
    return "\n\n".join([
        markdown_table(["generator", "kind", "read rightly, %", "draws", "else"], rows),
        markdown_table(["provoked", "read as", "confidence", "how"], runs),
    ])  # fmt: skip


def _how(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in settings.items())
