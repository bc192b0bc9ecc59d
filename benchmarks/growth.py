"""How time and memory grow from tens of thousands of documents to a million.

The documents are titles of arXiv papers and, where these do not suffice, halves of two titles of a
category put together. Their vectors are given: static ones, distilled from all-MiniLM-L6-v2 and
turned into its 384 dimensions, because a million texts take the encoder itself half an hour.
Each size is fitted in a process of its own, with the 2-d map and the topic table.
"""

from __future__ import annotations

import csv
import gzip
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import CACHE, DATA
from benchmarks.jobs import EMBEDTOPICS, fit, write_inputs
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table

__all__ = ["draw", "measure", "render"]

SIZES = (60_000, 120_000, 250_000, 573_800, 1_000_000)


def measure(options: Options) -> dict[str, Any]:
    """Fit every size, the smallest first."""
    sizes = (5_000,) if options.quick else SIZES
    runs = []
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        folder = Path(name)
        texts, vectors = _documents(sizes[-1])
        fit(EMBEDTOPICS, _inputs(folder, texts, vectors, 2_000), random_state=0)  # compiles
        for size in sizes:
            outcome = fit(EMBEDTOPICS, _inputs(folder, texts, vectors, size), random_state=0)
            runs.append({"n_documents": size, "n_topics": outcome.n_topics, **outcome.costs()})
            print(f"  {runs[-1]}", file=sys.stderr)
    return {"runs": runs, "n_dimensions": vectors.shape[1]}


def _inputs(folder: Path, texts: list[str], vectors: np.ndarray, size: int) -> Path:
    write_inputs(folder, texts[:size], vectors[:size])
    return folder


def _documents(size: int) -> tuple[list[str], np.ndarray]:
    """Return texts in an order by chance, and their vectors, (size, 384)."""
    import embedtopics as et

    with gzip.open(
        Path(DATA) / "arxiv_titles" / "arxiv_titles.tsv.gz", "rt", encoding="utf-8"
    ) as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    rng = np.random.default_rng(0)
    order = rng.permutation(len(rows))
    texts = [rows[row]["title"] for row in order[:size]]
    of_category: dict[str, list[int]] = {}
    for row in order:
        of_category.setdefault(rows[row]["primary_cat"], []).append(row)
    for row in order[: size - len(texts)]:
        others = of_category[rows[row]["primary_cat"]]
        first = rows[row]["title"].split()
        second = rows[others[rng.integers(len(others))]]["title"].split()
        texts.append(" ".join(first[: len(first) // 2 + 1] + second[len(second) // 2 :]))
    texts = [texts[place] for place in rng.permutation(len(texts))]
    static = et.training.distill("all-MiniLM-L6-v2").encode(texts, show_progress=False)
    turn, _ = np.linalg.qr(rng.normal(size=(384, static.shape[1])))
    return texts, static @ turn.T.astype(np.float32)


def render(result: Mapping[str, Any]) -> str:
    """Return the table: seconds by stage, memory, and growth beside n log n."""
    first = result["runs"][0]
    header = ["documents", "topics", "neighbours, s", "layout, s", "clustering, s", "terms, s",
              "fit, s", "tables, s", "peak, MB", "fit beside n log n"]  # fmt: skip
    rows = []
    for run in result["runs"]:
        seconds = [run["timings"][stage] for stage in STAGES]
        growth = run["stages"]["fit"] / first["stages"]["fit"] / _n_log_n(run, first)
        rows.append([
            figure(run["n_documents"]), figure(run["n_topics"]), *(figure(s, 1) for s in seconds),
            figure(run["stages"]["fit"], 1), figure(run["stages"]["tables"], 1),
            figure(run["peak_rss_mb"]), figure(growth, 2),
        ])  # fmt: skip
    return markdown_table(header, rows)


STAGES = ("neighbors", "reduction", "clustering", "terms")


def _n_log_n(run: Mapping[str, Any], first: Mapping[str, Any]) -> float:
    n, before = run["n_documents"], first["n_documents"]
    return float(n * np.log(n) / (before * np.log(before)))


def draw(result: Mapping[str, Any]) -> Any:
    """Return the growth of each stage as a figure, on logarithmic axes, beside n log n."""
    import plotly.graph_objects as go

    runs = result["runs"]
    sizes = [run["n_documents"] for run in runs]
    made = go.Figure()
    for stage in STAGES:
        made.add_scatter(x=sizes, y=[run["timings"][stage] for run in runs], name=stage,
                         mode="lines+markers")  # fmt: skip
    whole = [run["stages"]["fit"] for run in runs]
    made.add_scatter(x=sizes, y=whole, name="the whole fit", line={"width": 4, "color": "black"})
    made.add_scatter(x=sizes, y=[whole[0] * _n_log_n(run, runs[0]) for run in runs],
                     name="n log n", line={"dash": "dot", "color": "grey"})  # fmt: skip
    made.update_xaxes(type="log", title="documents", tickvals=sizes,
                      ticktext=[f"{size:,}" for size in sizes])  # fmt: skip
    made.update_yaxes(type="log", title="seconds on two cores, vectors given", dtick=1)
    return made.update_layout(template="simple_white", width=900, height=520)
