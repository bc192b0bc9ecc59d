"""What a static student keeps of its teacher, beside a plain distilled table, and at what cost."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.corpora import load_sts
from benchmarks.jobs import EMBEDTOPICS, run_python
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from benchmarks.student_texts import load_student_texts

__all__ = ["measure", "render"]

SCRIPT = Path(__file__).resolve().parent / "systems" / "student_encode.py"
ROUNDS = 5
N_SLOW = 2_000
"""Titles that the teacher is timed on."""
MADE = ("distilled", "distilled with words", "student")
KINDS = (*MADE, "teacher")


def measure(options: Options) -> dict[str, Any]:
    """Make the tables once, then let all encoders take turns; the test sets are looked at once."""
    texts = load_student_texts(quick=options.quick)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        content = {
            "titles": texts.titles, "general": texts.general, "test_titles": texts.test_titles,
            "test_categories": texts.test_categories, "pairs": load_sts("test"),
            "n_slow": N_SLOW // 10 if options.quick else N_SLOW,
        }  # fmt: skip
        (folder / "texts.json").write_text(json.dumps(content), "utf-8")
        made = {kind: _run(folder, "make", kind) for kind in MADE}
        print(f"  {made}", file=sys.stderr)
        speeds: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for _ in range(1 if options.quick else ROUNDS):
            for kind in KINDS:
                speeds[kind].append(_run(folder, "time", kind)["titles_a_second"])
        scores = {kind: _run(folder, "score", kind) for kind in KINDS}
    return {
        "n_titles": len(texts.titles),
        "sources": texts.sources,
        "n_test_titles": len(texts.test_titles),
        "student": made["student"],
        "encoders": [
            {
                "encoder": kind,
                "seconds_to_make": made.get(kind, {}).get("seconds"),
                "titles_a_second": speeds[kind],
                **scores[kind],
            }
            for kind in KINDS
        ],
    }


def _run(folder: Path, task: str, kind: str) -> dict[str, Any]:
    """Run one task in a fresh process of this environment."""
    printed = run_python(EMBEDTOPICS, str(SCRIPT), task, kind, str(folder))
    answer: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return answer


def render(result: Mapping[str, Any]) -> str:
    """Return the tables of a result."""
    teacher = next(row for row in result["encoders"] if row["encoder"] == "teacher")
    rows = [
        [
            row["encoder"],
            figure(row["dimensions"]),
            figure(100 * row["spearman"], 1),
            figure(row["knn_accuracy"], 3),
            figure(100 * row["knn_accuracy"] / teacher["knn_accuracy"], 1),
            figure(statistics.median(row["titles_a_second"])),
            figure(row["seconds_to_make"]),
        ]
        for row in result["encoders"]
    ]
    header = [
        "encoder", "dimensions", "Spearman x 100, STS-B test", "k-NN accuracy", "% of the teacher",
        "titles a second", "s to make",
    ]  # fmt: skip
    student = result["student"]
    sources = ", ".join(f"{name} {figure(n)}" for name, n in result["sources"].items())
    return "\n\n".join(
        [
            markdown_table(header, rows),
            f"The student learned from {figure(result['n_titles'])} titles of the archive, and "
            f"from general texts ({sources}). It has {figure(student['n_words'])} words of its "
            "own. On held-out texts its mean cosine with the teacher is "
            f"{student['agreement']:.3f}, that of the distilled table "
            f"{student['agreement_distilled']:.3f}.",
        ]
    )
