"""How many topics are found in labelled sets, beside their classes and BERTopic's topics."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from benchmarks.topic_sets import QUICK, SETS, fit_bertopic, fit_set, shown
from embedtopics.topics import recluster, themes

__all__ = ["measure", "render"]

LEAST, MOST = 0.5, 2.0
"""Ratios to the number of classes between which a number of topics counts as near."""


def measure(options: Options) -> dict[str, Any]:
    """Count the topics of every set."""
    rows = []
    for name in QUICK if options.quick else SETS:
        fit = fit_set(name)
        n_classes = len(set(fit.classes))
        numbers = {
            "topics": fit.result.n_topics,
            "themes": len(themes(fit.result)),
            "fine": recluster(fit.result, "fine").n_topics,
            "bertopic": int(fit_bertopic(fit)[0].max()) + 1,
        }
        near = {kind: LEAST * n_classes <= n <= MOST * n_classes for kind, n in numbers.items()}
        row = {"set": name, "n_texts": len(fit.texts), "n_classes": n_classes}
        rows.append(row | {"numbers": numbers, "near": near, "coverage": fit.result.coverage})
        print(rows[-1], file=sys.stderr)
    return {"sets": rows}


def render(result: Mapping[str, Any]) -> str:
    """Return a row for each set."""
    kinds = ("topics", "themes", "fine", "bertopic")

    def spell(row: Mapping[str, Any], kind: str) -> str:
        return figure(row["numbers"][kind]) + (" ✓" if row["near"][kind] else "")

    rows = [
        [f"{shown(row['set'])} ({figure(row['n_texts'])})", figure(row["n_classes"])]
        + [spell(row, kind) for kind in kinds]
        + ["yes" if row["near"]["topics"] or row["near"]["themes"] else "no"]
        + [figure(row["coverage"], 2)]
        for row in result["sets"]
    ]
    n_near = [sum(row["near"][kind] for row in result["sets"]) for kind in kinds]
    either = sum(row["near"]["topics"] or row["near"]["themes"] for row in result["sets"])
    rows.append(
        ["near, of " + figure(len(rows)), ""] + [figure(n) for n in [*n_near, either]] + [""]
    )
    header = [
        "set (texts)", "classes", "topics", "themes", "fine", "BERTopic's topics",
        "topics or themes near", "share of texts in a topic",
    ]  # fmt: skip
    return markdown_table(header, rows)
