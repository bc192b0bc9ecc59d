"""Read every layer of every word in a fresh process; started as ``python ... TASK JOB.json``.

``states`` extracts with embedtopics, ``plain`` runs the model alone over the same sentences in
batches of like length and keeps nothing, ``flair`` and ``minicons`` extract one layer with those
libraries, ``compare`` has embedtopics extract the same layer. One line of JSON is printed.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["main"]


def main() -> None:
    """Do what was asked for, and say how long it took."""
    task, job = sys.argv[1], json.loads(Path(sys.argv[2]).read_text("utf-8"))
    print(json.dumps(globals()[f"_{task}"](job)))


def _states(job: dict[str, Any]) -> dict[str, Any]:
    from embedtopics import probing

    sentences = [tuple(words) for words in job["sentences"]]
    probing.hidden_states(job["encoder"], sentences[:8])  # what is loaded once is not timed
    began = time.perf_counter()
    states = probing.hidden_states(job["encoder"], sentences, out=job["out"], show_progress=False)
    seconds = time.perf_counter() - began
    on_disk = sum(path.stat().st_size for path in Path(job["out"]).rglob("*") if path.is_file())
    return {
        "seconds": seconds, "n_words": len(states), "n_missing": int(states.missing.sum()),
        "n_pieces": int(states.n_pieces.sum()), "n_layers": len(states.layers),
        "width": states.width, "store_bytes": on_disk,
        "vector_bytes": len(states) * len(states.layers) * states.width * 2,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }  # fmt: skip


def _plain(job: dict[str, Any]) -> dict[str, Any]:
    """Run the model over padded batches, the longest sentences first."""
    import torch

    model, tokenizer = _model_of(job)
    texts = [" ".join(words) for words in job["sentences"]]
    with torch.inference_mode():
        model(**tokenizer(texts[:8], return_tensors="pt", padding=True))
        began = time.perf_counter()
        ids = tokenizer(texts, truncation=True, max_length=job["max_length"])["input_ids"]
        n_pieces = sum(map(len, ids)) - 2 * len(ids)
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        begin = 0
        while begin < len(order):
            longest = len(ids[order[begin]])
            end = begin + max(1, job["tokens_per_batch"] // longest)
            batch = tokenizer.pad({"input_ids": [ids[i] for i in order[begin:end]]},
                                  return_tensors="pt")  # fmt: skip
            model(**batch)
            begin = end
    return {"seconds": time.perf_counter() - began, "n_pieces": n_pieces}


def _minicons(job: dict[str, Any]) -> dict[str, Any]:
    from minicons import cwe

    model = cwe.CWE(_folder_of(job))
    queries = [(" ".join(words), words[place]) for words, place in _uses(job)]
    model.extract_representation([queries[0]], layer=job["layer"])
    began = time.perf_counter()
    vectors = [
        model.extract_representation(queries[i : i + 32], layer=job["layer"]).numpy()
        for i in range(0, len(queries), 32)
    ]
    return _kept(job, np.concatenate(vectors), time.perf_counter() - began)


def _flair(job: dict[str, Any]) -> dict[str, Any]:
    from flair.data import Sentence
    from flair.embeddings import TransformerWordEmbeddings

    embedder = TransformerWordEmbeddings(
        _folder_of(job), layers=str(job["layer"]), subtoken_pooling="mean", fine_tune=False
    )
    sentences = [Sentence(list(words)) for words, _ in _uses(job)]
    embedder.embed(Sentence(["a"]))
    began = time.perf_counter()
    for i in range(0, len(sentences), 32):
        embedder.embed(sentences[i : i + 32])
    seconds = time.perf_counter() - began
    vectors = [s[place].embedding for s, (_, place) in zip(sentences, _uses(job), strict=True)]
    return _kept(job, np.array([vector.cpu().numpy() for vector in vectors]), seconds)


def _compare(job: dict[str, Any]) -> dict[str, Any]:
    from embedtopics import probing

    uses = _uses(job)
    sentences = [tuple(words) for words, _ in uses]
    probing.hidden_states(job["encoder"], sentences[:8])
    began = time.perf_counter()
    states = probing.hidden_states(
        sentences, job["encoder"], layers=[job["layer"]], show_progress=False
    )
    seconds = time.perf_counter() - began
    rows = [states.rows_of(i).start + place for i, (_, place) in enumerate(uses)]
    return _kept(job, states.layer(job["layer"])[rows].astype(np.float32), seconds)


def _uses(job: dict[str, Any]) -> list[tuple[list[str], int]]:
    """Return sentences with the place of their longest word that occurs once."""
    found = []
    for words in job["sentences"]:
        once = [i for i, word in enumerate(words) if " ".join(words).count(word) == 1]
        if once:
            found.append((words, max(once, key=lambda i: len(words[i]))))
    return found


def _kept(job: dict[str, Any], vectors: np.ndarray, seconds: float) -> dict[str, Any]:
    np.save(job["vectors"], vectors.astype(np.float32))
    return {"seconds": seconds, "n_words": len(vectors)}


def _folder_of(job: dict[str, Any]) -> str:
    return str(job["folder"])


def _model_of(job: dict[str, Any]) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    folder = _folder_of(job)
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


if __name__ == "__main__":
    main()
