"""How fast and how well new texts are put into topics.

Speed: both systems are fitted to 60,000 arXiv abstracts less 4,000, and predict these from their
embeddings, in fresh processes. Quality: both are fitted to a random half of 20newsgroups and
predict the other half.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import LabelledCorpus, load_arxiv, load_labelled, sample_rows
from benchmarks.jobs import fit, write_inputs
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics.evaluation import evaluate_clustering

__all__ = ["measure", "render"]

SEED = 42
N_HELD_OUT = 4_000


def measure(options: Options) -> dict[str, Any]:
    """Fit and predict with every system."""
    half = load_labelled("bbc_news" if options.quick else "20newsgroups")
    cases = [(half, len(half.texts) // 2)]
    if not options.quick:
        cases.insert(0, (load_arxiv(), N_HELD_OUT))
    return {"random_state": SEED, "cases": [_case(options, *case) for case in cases]}


def _case(options: Options, corpus: LabelledCorpus, n_held_out: int) -> dict[str, Any]:
    n_texts = len(corpus.texts)
    fitted = sample_rows(n_texts, n_texts - n_held_out)
    order = np.concatenate([fitted, np.setdiff1d(np.arange(n_texts), fitted)])
    classes = np.array(corpus.classes)[order]
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        texts = [corpus.texts[row] for row in order]
        write_inputs(Path(folder), texts, corpus.embeddings[order])
        for system in options.systems:
            outcome = fit(system, Path(folder), random_state=SEED, n_held_out=n_held_out)
            parts = slice(0, len(fitted)), slice(len(fitted), None)
            nmi = [evaluate_clustering(classes[part], outcome.labels[part]).nmi for part in parts]
            runs.append(
                {
                    "system": system.name,
                    "seconds": round(outcome.stages["predict"], 3),
                    "nmi_fitted": round(nmi[0], 4),
                    "nmi_held_out": round(nmi[1], 4),
                    "coverage_fitted": round(float(np.mean(outcome.labels[parts[0]] >= 0)), 4),
                    "coverage_held_out": round(float(np.mean(outcome.labels[parts[1]] >= 0)), 4),
                }
            )
            print(f"  {corpus.name} {runs[-1]}", file=sys.stderr)
    return {
        "corpus": corpus.name,
        "n_fitted": len(fitted),
        "n_held_out": n_held_out,
        "runs": runs,
    }


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    header = [
        "corpus", "system", "fitted", "predicted", "texts a second", "NMI, fitted",
        "NMI, predicted", "coverage, fitted", "coverage, predicted",
    ]  # fmt: skip
    measures = ("nmi_fitted", "nmi_held_out", "coverage_fitted", "coverage_held_out")
    rows = [
        [case["corpus"], run["system"], figure(case["n_fitted"]), figure(case["n_held_out"])]
        + [figure(case["n_held_out"] / run["seconds"])]
        + [figure(run[measure], 3) for measure in measures]
        for case in result["cases"]
        for run in case["runs"]
    ]
    return markdown_table(header, rows)
