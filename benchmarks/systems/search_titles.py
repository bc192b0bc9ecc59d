"""Search titles in a fresh process; started as ``python ... TASK JOB.json``.

``dense`` compares exact search with a bare FAISS index, and every kind with exact search;
``memory`` says what one kind takes, ``build`` makes a collection, ``search`` opens it and asks it,
``vicinity`` searches the same vectors with that library. One line of JSON is printed.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["main"]

K = 10


def main() -> None:
    """Do what was asked for, and print what was measured."""
    task, job = sys.argv[1], json.loads(Path(sys.argv[2]).read_text("utf-8"))
    print(json.dumps(globals()[f"_{task}"](job)))


def _vectors(job: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return np.load(job["vectors"], mmap_mode="r"), np.load(job["queries"])


def _dense(job: dict[str, Any]) -> dict[str, Any]:
    import faiss
    from threadpoolctl import threadpool_limits

    from embedtopics.retrieval.dense._build import build_dense
    from embedtopics.retrieval.dense._segment import DenseSettings, open_dense

    vectors, queries = _vectors(job)
    bare = faiss.IndexFlatIP(vectors.shape[1])
    bare.add(np.ascontiguousarray(vectors))
    folder = Path(job["folder"])
    built, segments = {}, {}
    for kind in job["kinds"]:
        place = folder / kind
        place.mkdir()
        began = time.perf_counter()
        about = build_dense(place, np.ascontiguousarray(vectors), DenseSettings(kind=kind))
        segments[kind] = open_dense(place)
        built[kind] = {
            "seconds": time.perf_counter() - began, "kind": about["kind"],
            "bytes": about["bytes"], "recorded": about["measured"],
        }  # fmt: skip
        print(f"  {kind} {built[kind]}", file=sys.stderr)
    _, truth = bare.search(queries, K)
    flat = segments["flat"]
    rounds = {"batch": [], "single": []}
    for turn in range(job["rounds"]):
        # The first two change places, for a machine that grows warm favours the second.
        pair = [("bare", lambda q: bare.search(q, K)), ("flat", lambda q: flat.search(q, K))]
        pair = pair[::-1] if turn % 2 else pair
        rounds["batch"].append({name: _batches(search, queries, 64) for name, search in pair})
        with threadpool_limits(1):
            faiss.omp_set_num_threads(1)
            some = queries[: job["n_exact"]]
            rounds["single"].append({name: _median(search, some) for name, search in pair})
            faiss.omp_set_num_threads(job["threads"])
    kinds = {}
    with threadpool_limits(1):
        faiss.omp_set_num_threads(1)
        for kind, segment in segments.items():
            some = queries[: job["n_exact"]] if kind == "flat" else queries
            found = np.concatenate([segment.search(q[None], K)[1] for q in queries])
            kinds[kind] = {
                **built[kind],
                "recall": float(np.mean([len(set(a) & set(b)) / K
                                         for a, b in zip(truth, found, strict=True)])),
                "milliseconds": _median(lambda q, s=segment: s.search(q, K), some),
            }  # fmt: skip
    return {"rounds": rounds, "kinds": kinds, "float32_bytes": int(vectors.nbytes)}


def _batches(search: Callable[[np.ndarray], Any], queries: np.ndarray, size: int) -> float:
    """Return milliseconds for a batch, the median."""
    parts = [queries[i : i + size] for i in range(0, min(len(queries), 6 * size), size)]
    return _timed(search, [part for part in parts if len(part) == size])


def _median(search: Callable[[np.ndarray], Any], queries: np.ndarray) -> float:
    """Return milliseconds for a query that comes alone, the median."""
    return _timed(search, [query[None] for query in queries])


def _timed(search: Callable[[np.ndarray], Any], asked: list[np.ndarray]) -> float:
    search(asked[0])
    seconds = []
    for one in asked:
        began = time.perf_counter()
        search(one)
        seconds.append(time.perf_counter() - began)
    return 1000 * statistics.median(seconds)


def _memory(job: dict[str, Any]) -> dict[str, Any]:
    """Return by how much the process grows while it searches a segment of one kind.

    "own" is memory that only this process can give back; "mapped" are pages of files, which the
    system takes back when it needs room, and reads again.
    """
    from embedtopics.retrieval.dense._segment import open_dense

    queries = np.load(job["queries"])
    # What any first search loads and compiles, on a segment of a few vectors, is not counted.
    open_dense(job["small"]).search(queries[:1], K)
    before = _resident()
    segment = open_dense(job["segment"])
    for query in queries:
        segment.search(query[None], K)
    return {name: now - before[name] for name, now in _resident().items()}


def _resident() -> dict[str, int]:
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    parts = {"own": "RssAnon", "mapped": "RssFile"}
    return {
        name: 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))
        for name, field in parts.items()
    }


def _build(job: dict[str, Any]) -> dict[str, Any]:
    import pandas as pd

    from embedtopics import Corpus, SearchIndex

    titles = json.loads(Path(job["titles"]).read_text("utf-8"))
    vectors, _ = _vectors(job)
    bucket = np.random.default_rng(0).integers(0, 100, len(titles))
    frame = pd.DataFrame({
        "id": [f"t{i}" for i in range(len(titles))], "title": titles, "bucket": bucket,
    })  # fmt: skip
    corpus = Corpus(frame, text="title", id="id")
    began = time.perf_counter()
    index = SearchIndex.build(
        corpus, job["index"], encoder="all-MiniLM-L6-v2", embeddings=vectors, languages=["en"]
    )
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "n": len(index), "kind": index.measured[0]["kind"]}


def _search(job: dict[str, Any]) -> dict[str, Any]:
    from embedtopics import SearchIndex

    began = time.perf_counter()
    index = SearchIndex.load(job["index"])
    len(index)
    load = time.perf_counter() - began
    vectors, queries = _vectors(job)
    asked = json.loads(Path(job["asked"]).read_text("utf-8"))
    bucket = np.random.default_rng(0).integers(0, 100, len(vectors))
    rows = np.flatnonzero(bucket == 7)
    near = queries @ np.asarray(vectors[rows]).T
    truth = rows[np.argsort(-near, axis=1, kind="stable")[:, :K]]
    hits = index.search(
        [""] * len(queries), K, mode="dense", where="bucket == 7", vectors=queries
    ).hits
    found = [{hit.id for hit in some} for some in hits]
    recall = np.mean([
        len({f"t{row}" for row in wanted} & some) / K
        for wanted, some in zip(truth.tolist(), found, strict=True)
    ])  # fmt: skip
    times: dict[str, dict[str, float]] = {}
    for name, how in {
        "hybrid": {}, "dense": {"mode": "dense"}, "lexical": {"mode": "lexical"},
        "hybrid, 1 % pass": {"where": "bucket == 7"},
    }.items():  # fmt: skip
        index.search(asked[0], K, **how)
        seconds = []
        for query in asked:
            start = time.perf_counter()
            index.search(query, K, **how)
            seconds.append(time.perf_counter() - start)
        times[name] = {
            "median": 1000 * statistics.median(seconds),
            "p95": 1000 * float(np.quantile(seconds, 0.95)),
        }
    return {
        "load_seconds": load, "filtered_recall": float(recall), "n_passing": len(rows),
        "filtered_full": bool(all(len(some) == K for some in hits)), "milliseconds": times,
    }  # fmt: skip


def _vicinity(job: dict[str, Any]) -> dict[str, Any]:
    import faiss
    from threadpoolctl import threadpool_limits
    from vicinity import Backend, Vicinity

    vectors, queries = _vectors(job)
    exact = faiss.IndexFlatIP(vectors.shape[1])
    exact.add(np.ascontiguousarray(vectors))
    _, truth = exact.search(queries, K)
    made = {}
    for name, backend in (("hnsw", Backend.HNSW), ("usearch", Backend.USEARCH)):
        began = time.perf_counter()
        try:
            index = Vicinity.from_vectors_and_items(
                vectors=np.ascontiguousarray(vectors), items=list(range(len(vectors))),
                backend_type=backend,
            )  # fmt: skip
        except ImportError as error:
            made[name] = {"failed": str(error)}
            continue
        seconds = time.perf_counter() - began
        with threadpool_limits(1):
            found = [[item for item, _ in index.query(q[None], k=K)[0]] for q in queries]
            made[name] = {
                "seconds": seconds,
                "recall": float(np.mean([len(set(a.tolist()) & set(b)) / K
                                         for a, b in zip(truth, found, strict=True)])),
                "milliseconds": _median(lambda q, i=index: i.query(q, k=K), queries),
            }  # fmt: skip
    return made


if __name__ == "__main__":
    main()
