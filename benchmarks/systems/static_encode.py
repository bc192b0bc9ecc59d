"""One task of static_encoder.py in a process of its own: distil, time, or score an encoder."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TABLE = "table"


def main() -> None:
    task, kind, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    content = json.loads((folder / "sentences.json").read_text("utf-8"))
    answer = {"distill": distil, "encode": encode, "score": score}[task](kind, folder, content)
    print(json.dumps(answer))


def distil(kind: str, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Make the table, and keep it beside the sentences; imports and loading count."""
    began = time.monotonic()
    from embedtopics import SentenceEncoder
    from embedtopics.training import distill

    encoder = SentenceEncoder("all-MiniLM-L6-v2", precision="float32", local_files_only=True)
    distill(encoder, show_progress=False).save(folder / TABLE)
    return {"encoder": kind, "seconds": round(time.monotonic() - began, 2)}


def load(kind: str, folder: Path) -> Callable[[list[str]], np.ndarray]:
    """Return the function that encodes."""
    if kind == "model2vec":
        from model2vec import StaticModel

        return StaticModel.from_pretrained(folder / TABLE).encode
    from embedtopics import SentenceEncoder
    from embedtopics.encoders import StaticEncoder

    if kind == "static":
        return StaticEncoder(folder / TABLE).encode
    return SentenceEncoder("all-MiniLM-L6-v2", precision="float32", local_files_only=True).encode


def encode(kind: str, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Time one pass over the sentences; the first few are encoded before the clock starts."""
    sentences = content["sentences"]
    if kind == "sentence":
        step = max(1, len(sentences) // content["n_slow"])
        sentences = sentences[::step]
    run = load(kind, folder)
    run(sentences[:100])
    began = time.perf_counter()
    run(sentences)
    seconds = time.perf_counter() - began
    return {"n_texts": len(sentences), "texts_a_second": round(len(sentences) / seconds, 1)}


def score(kind: str, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Return the rank correlation of cosines and judgements on the pairs."""
    from scipy.stats import spearmanr

    run = load(kind, folder)
    first, second = (
        run([pair[key] for pair in content["pairs"]]).astype(np.float64)
        for key in ("sentence1", "sentence2")
    )
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    cosines = np.einsum("ij,ij->i", first, second) / np.maximum(lengths, 1e-30)
    rho = spearmanr(cosines, [pair["score"] for pair in content["pairs"]]).statistic
    return {"dimensions": int(first.shape[1]), "spearman": round(float(rho), 5)}


if __name__ == "__main__":
    main()
