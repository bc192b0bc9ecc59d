"""Training on graded pairs, beside sentence-transformers' trainer with the same data and steps."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.jobs import EMBEDTOPICS, ROOT, run_python
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from benchmarks.training_sets import sts_pairs, sts_training_pairs

__all__ = ["RECIPES", "measure", "render", "score", "train"]

SCRIPT = ROOT / "benchmarks" / "systems" / "train_encoder.py"
SCORE = ROOT / "benchmarks" / "systems" / "score_encoders.py"
BASE = "all-MiniLM-L6-v2"

RECIPES: dict[str, dict[str, Any]] = {
    "chosen": {
        "objective": "cosine",
        "settings": {"epochs": 4, "batch_size": 32, "learning_rate": 4e-5},
    },
}
"""What did best on the development part, of a handful."""

RUNS = (
    ("sentence-transformers", "chosen", "float32"),
    ("embedtopics", "chosen", "float32"),
    ("embedtopics", "chosen", "bfloat16"),
)


def measure(options: Options) -> dict[str, Any]:
    """Train in turns, each in a fresh process; look at the test part once, at the end."""
    data, dev = sts_training_pairs(), sts_pairs("dev")
    if options.quick:
        data, dev = _first(data, 160), _first(dev, 60)
    runs = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for system, recipe, precision in RUNS[: 2 if options.quick else None]:
            place = folder / f"{system}-{recipe}-{precision}"
            chosen = RECIPES[recipe]
            job = {
                "system": system, "objective": chosen["objective"], "encoder": BASE,
                "train": data, "dev": dev, "out": str(place),
                "settings": {
                    **chosen["settings"], "precision": precision, "seed": 1,
                    "validations_per_epoch": 2,
                },
            }  # fmt: skip
            found = train(folder, job)
            print(f"  {system} {recipe} {precision}: {found}", file=sys.stderr)
            runs.append({"system": system, "recipe": recipe, "precision": precision,
                         "folder": str(place), **found})  # fmt: skip
        encoders = [BASE, *(run["folder"] for run in runs)]
        scores = score(folder, encoders, {"test": sts_pairs("test")})
    for run, scored in zip(runs, scores[1:], strict=True):
        run.pop("folder")
        run |= {"test": scored["test"]}
    return {
        "base": BASE, "n_pairs": len(data["labels"]), "n_dev": len(dev["labels"]),
        "recipes": RECIPES, "before": scores[0]["test"], "runs": runs,
    }  # fmt: skip


def train(folder: Path, job: Mapping[str, Any]) -> dict[str, Any]:
    """Run one training in a fresh process."""
    path = folder / "job.json"
    path.write_text(json.dumps(job), "utf-8")
    answer: dict[str, Any] = json.loads(
        run_python(EMBEDTOPICS, str(SCRIPT), str(path)).splitlines()[-1]
    )
    return answer


def score(
    folder: Path, encoders: list[str], tests: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Score encoders on graded pairs: Spearman, and its difference from the first encoder's."""
    path = folder / "scores.json"
    path.write_text(json.dumps({"encoders": encoders, "tests": tests}), "utf-8")
    answer: list[dict[str, Any]] = json.loads(
        run_python(EMBEDTOPICS, str(SCORE), str(path)).splitlines()[-1]
    )
    return answer


def _first(content: Mapping[str, Any], n: int) -> dict[str, Any]:
    columns = [column[:n] for column in content["columns"]]
    return {**content, "columns": columns, "labels": content["labels"][:n]}


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    runs = result["runs"]
    pace = {
        (run["recipe"], run["precision"]): run["examples_per_second"]
        for run in runs
        if run["system"] == "sentence-transformers"
    }
    rows = []
    for run in runs:
        theirs = pace.get((run["recipe"], run["precision"])) or pace[run["recipe"], "float32"]
        test = run["test"]
        rows.append([
            f"{run['system']}, {run['recipe']}, {run['precision']}",
            figure(100 * max(run["metric"]), 2),
            figure(100 * test["spearman"], 2),
            f"{100 * test['difference']:+.2f} [{100 * test['low']:.2f}, {100 * test['high']:.2f}]",
            figure(run["examples_per_second"], 1),
            f"{run['examples_per_second'] / theirs:.2f}",
        ])  # fmt: skip
    header = [
        "training", "dev", "STS-B test", "gain over the base, 95 %", "pairs a second", "ratio",
    ]  # fmt: skip
    recipes = "; ".join(
        f"{name}: {recipe['objective']}, {recipe['settings']['epochs']} epochs, batch "
        f"{recipe['settings']['batch_size']}, {recipe['settings']['learning_rate']:g}"
        for name, recipe in result["recipes"].items()
    )
    return "\n\n".join([
        markdown_table(header, rows),
        f"Spearman x 100; {result['base']} before training: "
        f"{100 * result['before']['spearman']:.2f}. {figure(result['n_pairs'])} pairs; {recipes}. "
        "Pairs a second without validation and checkpoints; the ratio is to "
        "sentence-transformers' trainer with the same recipe and numbers, where it was run.",
    ])  # fmt: skip
