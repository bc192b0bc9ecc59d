"""The sets that encoders are trained and measured on, no sentence of a test in training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.corpora import _read_rows

__all__ = [
    "INFERENCE",
    "TESTS",
    "inference_dev",
    "inference_pairs",
    "sts_pairs",
    "sts_training_pairs",
    "test_pairs",
]

INFERENCE = ("lingnli", "snli_counterfactual", "multinli_sample", "mpe", "xnli")
TESTS = ("STS-B test", "STS12", "STS13", "STS14", "SICK-R test")
_NAMES = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True, eq=False)
class _Read:
    """Where inference pairs lie: file, and what its columns are called."""

    file: str
    premise: str = "premise"


_FILES = {
    "lingnli": _Read("lingnli/train"),
    "snli_counterfactual": _Read("snli_counterfactual/train"),
    "multinli_sample": _Read("multinli_sample/train"),
    "mpe": _Read("mpe/train", "premises"),
    "xnli": _Read("xnli/en_validation"),
}


def sts_pairs(part: str) -> dict[str, Any]:
    """Return the STS benchmark's pairs, scores from 0 to 1, as a job holds them."""
    rows = _read_rows(f"stsb/en_{part}.jsonl.gz")
    return {
        "kind": "graded",
        "columns": [[row["sentence1"] for row in rows], [row["sentence2"] for row in rows]],
        "labels": [float(row["score"]) / 5 for row in rows],
    }


def sts_training_pairs() -> dict[str, Any]:
    """Return the training part without the few pairs that the other parts hold, too."""
    train = sts_pairs("train")
    held = set().union(*(_unordered(sts_pairs(part)) for part in ("dev", "test")))
    kept = [place for place, pair in enumerate(_unordered(train)) if pair not in held]
    return {
        "kind": "graded",
        "columns": [[column[place] for place in kept] for column in train["columns"]],
        "labels": [train["labels"][place] for place in kept],
    }


def test_pairs() -> dict[str, dict[str, Any]]:
    """Return the graded pairs of every test, by its name."""
    found = {"STS-B test": sts_pairs("test")}
    rows = [row for row in _read_rows("sts12_14/sts12_14.jsonl.gz") if not row["in_stsb"]]
    for year in (2012, 2013, 2014):
        own = [row for row in rows if int(row["year"]) == year and row["split"] != "train"]
        found[f"STS{year % 100}"] = {
            "kind": "graded",
            "columns": [[row["sentence1"] for row in own], [row["sentence2"] for row in own]],
            "labels": [float(row["score"]) / 5 for row in own],
        }
    sick = [row for row in _read_rows("sick/sick.jsonl.gz") if row["split"].lower() == "test"]
    found["SICK-R test"] = {
        "kind": "graded",
        "columns": [[row["sentence_a"] for row in sick], [row["sentence_b"] for row in sick]],
        "labels": [(float(row["relatedness"]) - 1) / 4 for row in sick],
    }
    return found


def inference_pairs(n: int | None, seed: int = 0) -> tuple[dict[str, Any], dict[str, int]]:
    """Return inference pairs, and how many of them come from which set.

    No sentence of them is in a test of similarity. All hypotheses of a premise are taken or none.

    Parameters
    ----------
    n : int or None
        How many; all by default.
    seed : int
    """
    held = {
        _plain(text)
        for content in test_pairs().values()
        for column in content["columns"]
        for text in column
    }
    rows = []
    for name in INFERENCE:
        read = _FILES[name]
        for row in _read_rows(f"{read.file}.jsonl.gz"):
            premise = row[read.premise]
            premise = premise if isinstance(premise, str) else " ".join(premise)
            label = str(row["label"]).lower()
            texts = (premise, row["hypothesis"])
            if label in _NAMES and not any(_plain(text) in held for text in texts):
                rows.append((name, *texts, _NAMES.index(label)))
    premises = sorted({row[1] for row in rows})
    order = np.random.default_rng(seed).permutation(len(premises))
    place = {premises[number]: rank for rank, number in enumerate(order)}
    rows.sort(key=lambda row: (place[row[1]], row[2], row[3]))
    rows = rows if n is None else rows[:n]
    counts = {name: sum(row[0] == name for row in rows) for name in INFERENCE}
    return {
        "kind": "nli",
        "columns": [[row[1] for row in rows], [row[2] for row in rows]],
        "labels": [row[3] for row in rows],
        "names": list(_NAMES),
    }, counts


def inference_dev(n: int = 1_500) -> dict[str, Any]:
    """Return inference pairs of a development part, for choosing the weights that are kept."""
    rows = [row for row in _read_rows("lingnli/val.jsonl.gz") if row["label"] in _NAMES]
    premises = sorted({row["premise"] for row in rows})[: n // 3]
    chosen = set(premises)
    rows = [row for row in rows if row["premise"] in chosen]
    return {
        "kind": "nli",
        "columns": [[row["premise"] for row in rows], [row["hypothesis"] for row in rows]],
        "labels": [_NAMES.index(row["label"]) for row in rows],
        "names": list(_NAMES),
    }


def _unordered(content: dict[str, Any]) -> list[frozenset[str]]:
    return [frozenset(pair) for pair in zip(*content["columns"], strict=True)]


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
