"""What people ask of a fitted BERTopic, timed (see fitjob.py).

Options: `dates` (ISO strings, one a text), `classes` (one a text), `random_state`,
`min_topic_size`, `stop_words` (to leave out later), `merged` (lists of topics), `n_reduced`,
`n_bins`, `n_mixed` and `repeats`. UMAP has BERTopic's settings and the seed; CountVectorizer
leaves out English stop words. Operations that change the model run on copies, made off the clock.
"""

from __future__ import annotations

import copy
import datetime
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fitjob import Job


def main() -> None:
    from bertopic import BERTopic
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer
    from umap import UMAP

    job = Job.from_arguments()
    asked = job.options
    texts, embeddings = job.load()
    layout = UMAP(
        n_neighbors=15,
        n_components=5,
        min_dist=0.0,
        metric="cosine",
        low_memory=False,
        random_state=asked["random_state"],
    )
    model = BERTopic(
        umap_model=layout,
        vectorizer_model=CountVectorizer(stop_words="english"),
        min_topic_size=asked["min_topic_size"],
    )
    model.fit(texts, embeddings)
    # As dates and not as strings, which it cannot read with pandas 3.
    dates = [datetime.datetime.fromisoformat(date) for date in asked["dates"]]
    fewer = CountVectorizer(stop_words=[*ENGLISH_STOP_WORDS, *asked["stop_words"]])
    operations: dict[str, Callable[[BERTopic], Any]] = {
        "update_terms": lambda m: m.update_topics(texts, vectorizer_model=fewer),
        "merge": lambda m: m.merge_topics(texts, asked["merged"]),
        "reduce": lambda m: m.reduce_topics(texts, nr_topics=asked["n_reduced"]),
        "over_time": lambda m: m.topics_over_time(texts, dates, nr_bins=asked["n_bins"]),
        "by_group": lambda m: m.topics_per_class(texts, asked["classes"]),
        "hierarchy": lambda m: m.hierarchical_topics(texts),
        "mixtures": lambda m: m.approximate_distribution(texts[: asked["n_mixed"]]),
        "save_and_load_pickle": lambda m: _save_and_load(m, "pickle"),
        "save_and_load_safetensors": lambda m: _save_and_load(m, "safetensors"),
    }
    seconds = {}
    for name, operation in operations.items():
        taken = []
        for _ in range(asked["repeats"]):
            fresh = copy.deepcopy(model)
            began = time.perf_counter()
            operation(fresh)
            taken.append(time.perf_counter() - began)
        seconds[name] = taken
        print(name, statistics.median(taken), flush=True)
    job.report({"n_topics": len(set(model.topics_) - {-1}), "seconds": seconds})


def _save_and_load(model: Any, serialization: str) -> None:
    from bertopic import BERTopic

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        model.save(path, serialization=serialization, save_ctfidf=True)
        BERTopic.load(path)


if __name__ == "__main__":
    main()
