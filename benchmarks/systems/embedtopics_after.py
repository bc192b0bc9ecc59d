"""What people ask of a fitted result, timed (see fitjob.py).

Options: those of bertopic_after.py, but for `min_topic_size`; in its place `n_topics`, which is
met exactly. Results are never changed, so that nothing is copied; the first run of each operation
counts as the others do.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fitjob import Job


def main() -> None:
    import pandas as pd

    import embedtopics as et

    job = Job.from_arguments()
    asked = job.options
    texts, embeddings = job.load()
    frame = pd.DataFrame({"text": texts, "date": asked["dates"], "class": asked["classes"]})
    corpus = et.Corpus(frame, text="text", time="date", group="class")
    model = et.TopicModel(n_topics=asked["n_topics"], random_state=asked["random_state"])
    result = model.fit(corpus, embeddings=embeddings).result_
    mixed = range(asked["n_mixed"])
    operations: dict[str, Callable[[], Any]] = {
        "update_terms": lambda: et.topics.update_terms(
            result, extra_stop_words=asked["stop_words"]
        ),
        "merge": lambda: et.topics.merge(result, asked["merged"]),
        "reduce": lambda: et.topics.merge(result, n_topics=asked["n_reduced"]),
        "over_time": lambda: et.topics.over_time(result),
        "by_group": lambda: et.topics.by_group(result, "class"),
        "hierarchy": lambda: et.topics.hierarchy(result),
        "mixtures": lambda: et.topics.mixtures(result, rows=mixed),
        "save_and_load": lambda: _save_and_load(result),
    }
    seconds = {}
    for name, operation in operations.items():
        taken = []
        for _ in range(asked["repeats"]):
            began = time.perf_counter()
            operation()
            taken.append(time.perf_counter() - began)
        seconds[name] = taken
    with tempfile.TemporaryDirectory() as folder:
        saved = result.save(Path(folder) / "model")
        n_bytes = sum(file.stat().st_size for file in saved.rglob("*") if file.is_file())
    least = result.embeddings.nbytes + sum(len(text.encode()) for text in texts)
    job.report(
        {
            "n_topics": result.n_topics,
            "seconds": seconds,
            "saved_bytes": n_bytes,
            "embeddings_and_texts_bytes": least,
        }
    )


def _save_and_load(result: Any) -> None:
    import embedtopics as et

    with tempfile.TemporaryDirectory() as folder:
        et.TopicResult.load(result.save(Path(folder) / "model"))


if __name__ == "__main__":
    main()
