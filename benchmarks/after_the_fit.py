"""How long the questions after a fit take: edits, time, groups, hierarchy, mixtures, saving.

Both systems get the same arXiv abstracts and embeddings, and embedtopics the number of topics
that BERTopic found. Operations are timed inside one process of each system.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.corpora import load_arxiv, load_arxiv_dates, sample_rows
from benchmarks.jobs import ROOT, answer, write_inputs
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table

__all__ = ["measure", "render"]

N_DOCUMENTS = 60_000
QUICK_DOCUMENTS = 3_000
MIN_TOPIC_SIZE = 30
"""Of BERTopic, so that it finds some 200 topics and not the 700 of its default."""
N_CLASSES = 20
REPEATS = 3
OTHER = "other"
SCRIPTS = {
    "bertopic": ROOT / "benchmarks" / "systems" / "bertopic_after.py",
    "embedtopics": ROOT / "benchmarks" / "systems" / "embedtopics_after.py",
}
OPERATIONS = {
    "update_terms": "terms anew after other stop words",
    "merge": "merge two groups of topics",
    "reduce": "reduce to 50 topics",
    "over_time": "topics over time, 20 bins",
    "by_group": "topics by class, 20 classes",
    "hierarchy": "hierarchy of all topics",
    "mixtures": "mixtures of 2,000 documents",
    "save_and_load": "save and load",
}
SHOWN_AS = {
    "save_and_load": {
        "save and load (BERTopic: pickle, its default)": "save_and_load_pickle",
        "save and load (BERTopic: safetensors, without layout and clusters)":
            "save_and_load_safetensors",
    }
}  # fmt: skip
"""Rows with another operation of BERTopic beside the one of embedtopics."""


def measure(options: Options) -> dict[str, Any]:
    """Time every operation of both systems."""
    corpus, dates = load_arxiv(), load_arxiv_dates()
    rows = sample_rows(len(corpus.texts), QUICK_DOCUMENTS if options.quick else N_DOCUMENTS)
    common = {name for name, _ in Counter(corpus.classes).most_common(N_CLASSES - 1)}
    asked: dict[str, Any] = {
        "dates": [dates[row] for row in rows],
        "classes": [
            corpus.classes[row] if corpus.classes[row] in common else OTHER for row in rows
        ],
        "random_state": 42,
        "min_topic_size": 10 if options.quick else MIN_TOPIC_SIZE,
        "n_topics": "auto",
        "stop_words": ["results", "using", "based"],
        "merged": [[1, 2], [3, 4, 5]],
        "n_reduced": 5 if options.quick else 50,
        "n_bins": 20,
        "n_mixed": 200 if options.quick else 2_000,
        "repeats": 1 if options.quick else REPEATS,
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder), [corpus.texts[row] for row in rows], corpus.embeddings[rows])
        for system in options.systems:
            script = dataclasses.replace(system, script=SCRIPTS[system.name])
            found[system.name] = answer(script, Path(folder), asked)
            asked["n_topics"] = found[system.name]["n_topics"]
            print(f"  {system.name} {found[system.name]}", file=sys.stderr)
    return {"n_documents": len(rows), "systems": found}


def render(result: Mapping[str, Any]) -> str:
    """Return the seconds of every operation beside each other, and the size on disk."""
    theirs, ours = (result["systems"].get(name) for name in ("bertopic", "embedtopics"))
    rows = []
    for name, shown in OPERATIONS.items():
        for label, other in SHOWN_AS.get(name, {shown: name}).items():
            pair = [_median(theirs, other), _median(ours, name)]
            ratio = pair[0] / pair[1] if pair[0] and pair[1] else None
            rows.append([label, figure(pair[0], 2), figure(pair[1], 3), figure(ratio, 1)])
    table = markdown_table(["operation", "BERTopic, s", "embedtopics, s", "ratio"], rows)
    numbers = " and ".join(
        f"{figure(system['n_topics'])} ({name})" for name, system in result["systems"].items()
    )
    said = f"{result['n_documents']:,} documents; topics: {numbers}."
    if ours:
        share = ours["saved_bytes"] / ours["embeddings_and_texts_bytes"]
        said += (
            f" On disk embedtopics takes {ours['saved_bytes'] / 1e6:,.0f} MB, {share:.2f} times "
            "the float32 embeddings and the UTF-8 texts."
        )
    return f"{table}\n\n{said}"


def _median(system: Mapping[str, Any] | None, operation: str) -> float | None:
    return statistics.median(system["seconds"][operation]) if system else None
