"""Inference pairs as teachers: softmax beside ranking, from a trained and a raw encoder."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.corpora import CACHE
from benchmarks.encoder_training import score, train
from benchmarks.jobs import EMBEDTOPICS, ROOT, run_python
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from benchmarks.training_sets import TESTS, inference_dev, inference_pairs, test_pairs

__all__ = ["measure", "render"]

BASE = "all-MiniLM-L6-v2"
N_PAIRS = {"sentence encoder": 20_000, "raw encoder": 40_000}
OBJECTIVES = ("softmax", "ranking")
SETTINGS = {
    "sentence encoder": {"epochs": 1, "batch_size": 32, "learning_rate": 2e-5},
    "raw encoder": {"epochs": 1, "batch_size": 32, "learning_rate": 2e-4},
}
"""A raw and small encoder has far to go, and is quick: its step is larger, and it sees more."""

RAW = ROOT / "benchmarks" / "systems" / "pretrain.py"


def measure(options: Options) -> dict[str, Any]:
    """Train on the same pairs with both objectives, from both encoders; score all at the end."""
    dev = inference_dev(90 if options.quick else 1_500)
    tests = test_pairs()
    starts = {"sentence encoder": BASE, "raw encoder": str(_raw(options.quick))}
    runs, scores, counts = [], {}, {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for start, encoder in starts.items():
            pairs, counts[start] = inference_pairs(300 if options.quick else N_PAIRS[start])
            tuned = []
            for objective in OBJECTIVES:
                place = folder / f"{start.split()[0]}-{objective}"
                settings = {
                    **SETTINGS[start], "precision": "bfloat16", "seed": 1,
                    "validations_per_epoch": 8, "patience": None,
                }  # fmt: skip
                job = {"system": "embedtopics", "objective": objective, "encoder": encoder,
                       "train": pairs, "dev": dev, "out": str(place),
                       "settings": settings}  # fmt: skip
                found = train(folder, job)
                print(f"  {start} {objective}: {found}", file=sys.stderr)
                runs.append({"start": start, "objective": objective, **found})
                tuned.append(str(place))
            scores[start] = score(folder, [encoder, *tuned], tests)
            if start == "raw encoder":
                printed = run_python(
                    EMBEDTOPICS,
                    str(RAW),
                    "word-vectors",
                    str(folder / "scores.json"),
                    "2000" if options.quick else "0",
                )
                scores["fastText, averaged"] = json.loads(printed.splitlines()[-1])
    return {"counts": counts, "settings": SETTINGS, "runs": runs, "scores": scores}


def _raw(quick: bool) -> Path:
    """Return the raw encoder's folder; it is trained once, which takes most of an hour."""
    place = CACHE / ("raw-encoder-quick" if quick else "raw-encoder")
    if not (place / "model.safetensors").is_file():
        run_python(EMBEDTOPICS, str(RAW), "pretrain", str(place), "20" if quick else "0")
    return place


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    rows = []
    for start, scored in result["scores"].items():
        names = ["before", *(f"after {name}" for name in OBJECTIVES)][: len(scored)]
        for name, found in zip(names, scored, strict=True):
            cells = [
                f"{100 * found[test]['spearman']:.2f}"
                + ("" if name == "before" else f" ({100 * found[test]['difference']:+.2f})")
                for test in TESTS
            ]
            label = start if len(scored) == 1 else f"{start}, {name}"
            rows.append([label, *cells])
    return "\n\n".join([
        markdown_table(["encoder", *TESTS], rows),
        "Spearman x 100. " + " ".join(
            f"The {start} learned from {figure(sum(sets.values()))} inference pairs ("
            + ", ".join(f"{name} {figure(n)}" for name, n in sets.items())
            + f"), {result['settings'][start]['epochs']} x."
            for start, sets in result["counts"].items()
        ) + " No sentence of a test is among them.",
    ])  # fmt: skip
