"""Probe an encoder for parts of speech in a fresh process: ``python ... ENCODER QUICK``."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.corpora import DATA

__all__ = ["main"]

TREEBANK = DATA / "ud_english_ewt"
PARTS = ("train", "dev", "test")


def main() -> None:
    """Extract and probe on the clock; then all that an accuracy is read beside."""
    from embedtopics import probing

    encoder, quick = sys.argv[1], sys.argv[2] == "1"
    words = [probing.read_treebank(TREEBANK / f"{part}.tsv.gz") for part in PARTS]
    task = probing.make_task(dict(zip(PARTS, words, strict=True)), "upos")
    if quick:
        task = _some(task, 40)
    began = time.perf_counter()
    states = probing.hidden_states(encoder, task, show_progress=False)
    extracted = time.perf_counter()
    found = probing.probe(states, task, control=True, show_progress=False)
    probed = time.perf_counter()
    random = probing.hidden_states(encoder, task, random_weights=True, show_progress=False)
    mixed = probing.probe(states, task, baseline=random, mix=True, show_progress=False)
    others = mixed.to_frame().query("what in ['random model', 'scalar mix']")
    scores = pd.concat([found.to_frame(), others])
    print(json.dumps({
        "n_train": found.n_train, "n_dev": found.n_dev, "n_test": found.n_test,
        "seconds_extraction": extracted - began, "seconds_probe": probed - extracted,
        "seconds_rest": time.perf_counter() - probed,
        "mix": {"weights": mixed.mix.weights.tolist(), "gain": mixed.mix.gain.tolist()},
        "scores": [
            {
                "what": s.what, "layer": None if pd.isna(s.layer) else s.layer,
                "metric": s.metric, "value": s.value,
                "low": _finite(s.low), "high": _finite(s.high), "n": s.n,
            }
            for s in scores.itertuples()
        ],
    }))  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _some(task: Any, n: int) -> Any:
    """Keep every so manieth sentence."""
    from dataclasses import replace

    step = max(1, len(task.texts) // (3 * n))
    return replace(
        task, texts=task.texts[::step], labels=task.labels[::step], parts=task.parts[::step]
    )


if __name__ == "__main__":
    main()
