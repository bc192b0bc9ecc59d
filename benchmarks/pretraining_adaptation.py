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
N_LEARNED, N_HELD_OUT, N_PAIRS, N_TITLES = 800, 40, 500, 1000
SETTINGS = {"batch_size": 16, "max_length": 64, "learning_rate": 2e-4, "random_state": 1}
ABSTRACTS: dict[str, dict[str, Any]] = {
    "geometry kept": {"keep_geometry": True},
    "without": {"keep_geometry": False},
    "500 words, geometry kept": {"keep_geometry": True, "n_words": 500},
}
AMENDMENTS: dict[str, dict[str, Any]] = {
    "random masks": {"keep_geometry": False},
    "words of the groups": {"keep_geometry": False, "is_selective": True},
}
N_STEPS = {"arXiv": 60, "French amendments": 40}


def measure(options: Options) -> dict[str, Any]:
    """Go on with hidden words on abstracts and on amendments, each in several ways."""
    arms = {}
    with tempfile.TemporaryDirectory() as name:
        for corpus, data, ways in (
            ("arXiv", _abstracts(options), ABSTRACTS),
            ("French amendments", _amendments(options), AMENDMENTS),
        ):
            for arm, way in ways.items():
                settings = {
                    **SETTINGS, "max_steps": 2 if options.quick else N_STEPS[corpus],
                    "keep_geometry": way["keep_geometry"],
                }  # fmt: skip
                job = {
                    **data, "encoder": BASE, "out": f"{name}/{arm}", "settings": settings,
                    "n_words": way.get("n_words", 0), "general": sts_pairs("test"),
                    "terms_of": data["terms_of"] if way.get("is_selective") else None,
                }  # fmt: skip
                file = Path(name) / "job.json"
                file.write_text(json.dumps(job), "utf-8")
                printed = run_python(EMBEDTOPICS, str(SCRIPT), str(file))
                arms[f"{corpus}: {arm}"] = json.loads(printed.splitlines()[-1])
                print(f"  {arm}: {arms[f'{corpus}: {arm}']}", file=sys.stderr)
    counts = {"n_learned": N_LEARNED, "n_pairs": N_PAIRS, "n_titles": N_TITLES}
    return {"settings": SETTINGS, "n_steps": N_STEPS, **counts, "arms": arms}


def _abstracts(options: Options) -> dict[str, Any]:
    """Return abstracts to learn from; others by title, and titles of more with their category."""
    rows = _read_rows("arxiv_abstracts/arxiv_abstracts.jsonl.gz")
    part = 10 if options.quick else 1
    bounds = np.cumsum([N_LEARNED, N_HELD_OUT, N_PAIRS, N_TITLES]) // part
    order = np.random.default_rng(0).permutation(len(rows))
    learned, held_out, pairs, titles = (
        [rows[place] for place in places] for places in np.split(order, bounds)[:4]
    )
    return {
        "learned": [row["abstract"] for row in learned],
        "held_out": [row["abstract"] for row in held_out],
        "texts": [row["title"] for row in titles],
        "classes": [row["primary_cat"] for row in titles], "terms_of": None,
        "pairs": {"kind": "pairs", "columns": [
            [row["abstract"] for row in pairs], [row["title"] for row in pairs]
        ]},
    }  # fmt: skip


def _amendments(options: Options) -> dict[str, Any]:
    """Return half of the amendments with their authors' groups; the other half to be told apart."""
    rows = _read_rows("fr_parlement/amendments.jsonl.gz")
    rows = [row for row in rows if row["group"] and row["summary"]]
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    learned, others = order[: len(order) // 2], order[len(order) // 2 :]
    others = others[:100] if options.quick else others
    return {
        "learned": [rows[place]["summary"] for place in learned[N_HELD_OUT:]],
        "held_out": [rows[place]["summary"] for place in learned[:N_HELD_OUT]],
        "terms_of": [rows[place]["group"] for place in learned[N_HELD_OUT:]],
        "texts": [rows[place]["summary"] for place in others],
        "classes": [rows[place]["group"] for place in others], "pairs": None,
    }  # fmt: skip


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
    settings, n_steps = result["settings"], result["n_steps"]
    seconds = ", ".join(
        f"{found['processor_seconds']:,.0f} ({arm})" for arm, found in result["arms"].items()
    )
    pieces = ", ".join(
        f"{found['fertility'][0]:.2f} to {found['fertility'][1]:.2f} ({arm})"
        for arm, found in result["arms"].items() if found["fertility"][0] != found["fertility"][1]
    )  # fmt: skip
    header = ["pre-training", "measured on", "before", "after", "difference, 95 %", "verdict"]
    return "\n\n".join([
        markdown_table(header, table),
        f"{BASE}, {result['n_learned']:,} arXiv abstracts or half of the amendments, blocks of "
        f"{settings['max_length']} tokens; {n_steps['arXiv']} and "
        f"{n_steps['French amendments']} steps of {settings['batch_size']} blocks, after as many "
        f"for the head, learning rate {settings['learning_rate']:g}, one seed; processor seconds "
        f"of both: {seconds}. Pieces a word of held-out texts: {pieces}. Measured on "
        f"{result['n_pairs']} other pairs of abstract and title, the titles of "
        f"{result['n_titles']:,} others by their category, the other half of the amendments by "
        "their authors' group, and general similarity.",
    ])  # fmt: skip
