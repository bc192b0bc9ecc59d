"""How fast texts become vectors by a table of token vectors, and what is lost by it.

Three encoders read the same sentences: the static encoder, model2vec on the very folder that the
static encoder wrote, and the sentence encoder that it was made from. Each is a process of its own,
for model2vec changes an environment variable that slows later tokenisers of the process down.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.corpora import load_sts
from benchmarks.jobs import EMBEDTOPICS, run_python
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table

__all__ = ["measure", "render"]

SCRIPT = Path(__file__).resolve().parent / "systems" / "static_encode.py"
PARTS = ("train", "dev", "test")
N_SLOW = 2_000
"""Sentences that the sentence encoder is timed on."""
ROUNDS = 5
"""Turns that the encoders take; each times one pass over the sentences."""
KINDS = ("static", "model2vec", "sentence")


def measure(options: Options) -> dict[str, Any]:
    """Distil once, then let all encoders take turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_sentences(folder, quick=options.quick)
        rounds = 1 if options.quick else ROUNDS
        distilled = _run(folder, "distill", "static")
        runs: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
        for _ in range(rounds):
            for kind in KINDS:
                runs[kind].append(_run(folder, "encode", kind))
                print(f"  {kind} {runs[kind][-1]}", file=sys.stderr)
        quality = {kind: _run(folder, "score", kind) for kind in KINDS}
    return {
        "versions": {name: version(name) for name in ("model2vec", "tokenizers")},
        "distill": distilled,
        "encoders": [
            {
                "encoder": kind,
                "n_texts": runs[kind][0]["n_texts"],
                "texts_a_second": [run["texts_a_second"] for run in runs[kind]],
                **quality[kind],
            }
            for kind in KINDS
        ],
    }


def _run(folder: Path, task: str, kind: str) -> dict[str, Any]:
    """Run one task in a fresh process of this environment."""
    printed = run_python(EMBEDTOPICS, str(SCRIPT), task, kind, str(folder))
    answer: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return answer


def _write_sentences(folder: Path, *, quick: bool) -> None:
    """Write the pairs of the STS benchmark; the sentences of all parts are those timed."""
    pairs = {part: load_sts(part) for part in PARTS}
    sentences = [row[key] for part in PARTS for row in pairs[part] for key in row if key != "score"]
    content = {
        "pairs": pairs["test"],
        "sentences": sentences[:N_SLOW] if quick else sentences,
        "n_slow": N_SLOW // 10 if quick else N_SLOW,
    }
    (folder / "sentences.json").write_text(json.dumps(content), "utf-8")


def render(result: Mapping[str, Any]) -> str:
    """Return the tables of a result."""
    speeds = {
        row["encoder"]: statistics.median(row["texts_a_second"]) for row in result["encoders"]
    }
    rows = [
        [
            row["encoder"],
            figure(row["n_texts"]),
            figure(speeds[row["encoder"]]),
            figure(speeds["static"] / speeds[row["encoder"]], 1),
            figure(row["dimensions"]),
            figure(100 * row["spearman"], 2),
        ]
        for row in result["encoders"]
    ]
    header = ["encoder", "texts", "texts a second", "static is faster by", "dimensions"]
    return "\n\n".join(
        [
            markdown_table([*header, "Spearman x 100, STS-B test"], rows),
            f"Distilling took {figure(result['distill']['seconds'], 1)} s.",
            f"model2vec {result['versions']['model2vec']}, tokenizers "
            f"{result['versions']['tokenizers']}.",
        ]
    )
