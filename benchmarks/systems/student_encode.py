"""One task of static_student.py in a process of its own: make, time, or score an encoder."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TEACHER = "all-MiniLM-L6-v2"
K = 15


def main() -> None:
    task, kind, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    content = json.loads((folder / "texts.json").read_text("utf-8"))
    answer = {"make": make, "time": clock, "score": score}[task](kind, folder, content)
    print(json.dumps(answer))


def make(kind: str, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Make a table, and keep it; imports, loading and all encoding of the teacher count."""
    began = time.monotonic()
    from embedtopics import SentenceEncoder
    from embedtopics.training import distill

    if kind == "student":
        teacher = SentenceEncoder(TEACHER, precision="int8", local_files_only=True)
        student = distill(
            teacher,
            content["titles"],
            method="texts",
            general=content["general"],
            show_progress=False,
        )
        student.save(folder / kind)
        names = ("n_words", "agreement_distilled", "agreement")
        more = {name: student.made_from[name] for name in names}
    else:
        teacher = SentenceEncoder(TEACHER, precision="float32", local_files_only=True)
        words = content["titles"] if kind == "distilled with words" else None
        distill(teacher, words, show_progress=False).save(folder / kind)
        more = {}
    return {"seconds": round(time.monotonic() - began, 1), **more}


def load(kind: str, folder: Path) -> Callable[[list[str]], np.ndarray]:
    """Return the function that encodes."""
    from embedtopics import SentenceEncoder
    from embedtopics.encoders import StaticEncoder

    if kind == "teacher":
        return SentenceEncoder(TEACHER, precision="float32", local_files_only=True).encode
    return StaticEncoder(folder / kind).encode


def clock(kind: str, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Time one pass over the test titles; the first few are encoded before the clock starts."""
    titles = content["test_titles"]
    if kind == "teacher":
        titles = titles[:: max(1, len(titles) // content["n_slow"])]
    run = load(kind, folder)
    run(titles[:100])
    began = time.perf_counter()
    run(titles)
    return {"titles_a_second": round(len(titles) / (time.perf_counter() - began), 1)}


def score(kind: str, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Return the correlation with people's judgements, and how often neighbours tell a category."""
    from scipy.stats import spearmanr

    from embedtopics.evaluation._labels import neighbor_votes
    from embedtopics.neighbors._graph import build_graph

    run = load(kind, folder)
    first, second = (
        run([pair[key] for pair in content["pairs"]]).astype(np.float64)
        for key in ("sentence1", "sentence2")
    )
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    cosines = np.einsum("ij,ij->i", first, second) / np.maximum(lengths, 1e-30)
    rho = spearmanr(cosines, [pair["score"] for pair in content["pairs"]]).statistic
    vectors = run(content["test_titles"])
    has_vector = np.flatnonzero(np.any(vectors, axis=1))
    graph = build_graph(vectors[has_vector], K)
    classes = np.unique(content["test_categories"], return_inverse=True)[1]
    votes = neighbor_votes(graph.indices, graph.similarities, classes[has_vector])
    return {
        "dimensions": int(first.shape[1]),
        "spearman": round(float(rho), 5),
        # A title without a vector counts as wrong.
        "knn_accuracy": round(float((votes == classes[has_vector]).sum() / len(classes)), 5),
    }


if __name__ == "__main__":
    main()
