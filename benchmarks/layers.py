"""Every layer of every word: how fast it is read, and what a probe reads from it."""

from __future__ import annotations

import csv
import gzip
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import DATA, _existing
from benchmarks.jobs import EMBEDTOPICS, System, run_python
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table

__all__ = ["measure", "render"]

ENCODER = "all-MiniLM-L6-v2"
SYSTEMS = Path(__file__).resolve().parent / "systems"
ROUNDS = 3
MAX_LENGTH, TOKENS_PER_BATCH = 256, 512
N_COMPARED, LAYER = 500, 4
"""Sentences that the other libraries read, and the layer."""

PEERS = System(
    "peers", SYSTEMS / "extract_states.py",
    python=os.environ.get("EMBEDTOPICS_PEERS_PYTHON") or sys.executable,
)  # fmt: skip
"""An environment with flair and minicons, which want other versions than this package."""


def measure(options: Options) -> dict[str, Any]:
    """Extract in turns with the bare model, compare with other libraries, then probe."""
    train = read_sentences("train")[: 200 if options.quick else None]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = {
            "encoder": ENCODER, "folder": _folder(), "sentences": train, "max_length": MAX_LENGTH,
            "tokens_per_batch": TOKENS_PER_BATCH, "layer": LAYER,
        }  # fmt: skip
        extraction = [
            {
                "plain": _run(folder, "plain", job),
                "states": _run(folder, "states", {**job, "out": str(folder / f"store{turn}")}),
            }
            for turn in range(1 if options.quick else ROUNDS)
        ]
        print(f"  {extraction}", file=sys.stderr)
        test = read_sentences("test")[: 40 if options.quick else N_COMPARED]
        peers = _peers(folder, {**job, "sentences": test})
        print(f"  {peers}", file=sys.stderr)
        printed = run_python(
            EMBEDTOPICS, str(SYSTEMS / "probe_layers.py"), ENCODER, "1" if options.quick else "0"
        )
    return {
        "n_sentences": len(train), "extraction": extraction, "peers": peers,
        "probe": json.loads(printed.splitlines()[-1]),
    }  # fmt: skip


def read_sentences(part: str) -> list[list[str]]:
    """Return the words of each sentence of the English web treebank."""
    path = _existing(DATA / f"ud_english_ewt/{part}.tsv.gz", "EMBEDTOPICS_DATA")
    sentences: dict[str, list[str]] = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
            sentences.setdefault(row["sent_id"], []).append(row["form"])
    return list(sentences.values())


def _peers(folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Let each library read the same word of each sentence; those that are not there are named."""
    found: dict[str, Any] = {}
    ours: np.ndarray | None = None
    for kind, system in (("compare", EMBEDTOPICS), ("flair", PEERS), ("minicons", PEERS)):
        place = folder / f"{kind}.npy"
        try:
            answer = _run(folder, kind, {**job, "vectors": str(place)}, system)
        except SystemExit as error:
            found[kind] = {"failed": str(error).splitlines()[-1]}
            continue
        vectors = np.load(place)
        ours = vectors if ours is None else ours
        length = np.linalg.norm(vectors, axis=1) * np.linalg.norm(ours, axis=1)
        cosine = (vectors * ours).sum(axis=1) / length
        found["embedtopics" if kind == "compare" else kind] = {
            **answer, "mean_cosine": float(cosine.mean()), "least_cosine": float(cosine.min()),
        }  # fmt: skip
    return found


def _run(
    folder: Path, task: str, job: dict[str, Any], system: System = EMBEDTOPICS
) -> dict[str, Any]:
    (folder / "job.json").write_text(json.dumps(job), "utf-8")
    printed = run_python(system, str(SYSTEMS / "extract_states.py"), task, str(folder / "job.json"))
    answer: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return answer


def _folder() -> str:
    from embedtopics import SentenceEncoder

    return str(SentenceEncoder(ENCODER).recipe.checkpoint.folder)


def render(result: Mapping[str, Any]) -> str:
    """Return the tables of a result."""
    turns = result["extraction"]
    ours = statistics.median(t["states"]["n_pieces"] / t["states"]["seconds"] for t in turns)
    plain = statistics.median(t["plain"]["n_pieces"] / t["plain"]["seconds"] for t in turns)
    ratios = [
        (t["states"]["n_pieces"] / t["states"]["seconds"])
        / (t["plain"]["n_pieces"] / t["plain"]["seconds"])
        for t in turns
    ]
    one = turns[0]["states"]
    speed = (
        f"All {one['n_layers']} layers of {figure(one['n_words'])} words in "
        f"{figure(result['n_sentences'])} sentences: {figure(ours)} tokens a second, the model "
        f"alone {figure(plain)}, {statistics.median(ratios):.2f} of it. Peak memory "
        f"{max(t['states']['peak_bytes'] for t in turns) / 1e9:.2f} GB; the store takes "
        f"{one['store_bytes'] / one['vector_bytes']:.3f} of its vectors' size. "
        f"{one['n_missing']} words have no token."
    )
    peers = [
        [
            name,
            *(
                ["", "", found["failed"]]
                if "failed" in found
                else [
                    f"{found['n_words'] / found['seconds']:.0f}",
                    f"{found['mean_cosine']:.5f}",
                    f"{found['least_cosine']:.5f}",
                ]
            ),
        ]
        for name, found in result["peers"].items()
    ]
    probe = result["probe"]
    rows = [
        [
            score["what"],
            "" if score["layer"] is None else str(score["layer"]),
            score["metric"],
            f"{score['value']:.4f}",
            "" if score["low"] is None else f"[{score['low']:.4f}, {score['high']:.4f}]",
        ]
        for score in probe["scores"]
    ]
    return "\n\n".join([
        speed,
        markdown_table(["library", "sentences a second", "mean cosine", "least"], peers),
        f"Part of speech on the same treebank, its own parts: {probe['seconds_extraction']:.0f} s "
        f"of extraction and {probe['seconds_probe']:.0f} s for a linear probe over all layers with "
        f"controls; {probe['seconds_rest']:.0f} s for everything else in the table.",
        markdown_table(["what", "layer", "figure", "value", "95 %"], rows),
    ])  # fmt: skip
