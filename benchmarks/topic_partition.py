"""How well topics agree with the classes of labelled sets, beside k-means and BERTopic."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_mutual_info_score

from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from benchmarks.topic_sets import (
    CHOSEN_ON,
    QUICK,
    SEED,
    SETS,
    Fit,
    fit_bertopic,
    fit_set,
    shown,
)
from embedtopics.topics import recluster

__all__ = ["measure", "render"]

SYSTEMS = {"embedtopics": "embedtopics", "k_means": "k-means", "bertopic": "BERTopic"}


def measure(options: Options) -> dict[str, Any]:
    """Divide every set into as many topics as embedtopics chooses, and as it has classes."""
    rows = []
    for name in QUICK if options.quick else SETS:
        fit = fit_set(name)
        for at, n_topics in (("chosen", fit.result.n_topics), ("classes", len(set(fit.classes)))):
            labels = {
                "embedtopics": recluster(fit.result, n_topics, coverage=1.0).labels,
                "k_means": KMeans(n_topics, n_init=10, random_state=SEED).fit_predict(fit.vectors),
                "bertopic": _with_outliers(fit, n_topics),
            }
            ami = {
                system: round(float(adjusted_mutual_info_score(fit.classes, one)), 4)
                for system, one in labels.items()
            }
            rows.append({"set": name, "at": at, "n_topics": n_topics, "ami": ami})
            print(rows[-1], file=sys.stderr)
    return {"rows": rows}


def _with_outliers(fit: Fit, n_topics: int) -> np.ndarray:
    """Return BERTopic's topics, its outliers in the topic of the nearest mean vector."""
    labels, vectors = fit_bertopic(fit, n_topics)[0], fit.vectors
    if not (labels >= 0).any():
        return labels
    means = np.stack([vectors[labels == topic].mean(axis=0) for topic in range(labels.max() + 1)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return np.where(labels < 0, (vectors @ means.T).argmax(axis=1), labels)


def render(result: Mapping[str, Any]) -> str:
    """Return a row for each set, and the means."""
    by_set = {(row["set"], row["at"]): row for row in result["rows"]}
    names = list(dict.fromkeys(row["set"] for row in result["rows"]))
    numbers = ("chosen", "classes")
    rows = []
    for name in names:
        row = [shown(name)]
        for at in numbers:
            one = by_set[name, at]
            row += [figure(one["n_topics"]), *(figure(one["ami"][s], 3) for s in SYSTEMS)]
        rows.append(row)
    groups = {
        "mean": names,
        "mean, nothing chosen": [name for name in names if name not in CHOSEN_ON],
    }
    for title, some in groups.items():
        row = [title]
        for at in numbers if some else ():
            means = (statistics.fmean(by_set[n, at]["ami"][s] for n in some) for s in SYSTEMS)
            row += ["", *(figure(mean, 3) for mean in means)]
        rows += [row] if some else []
    header = ["AMI"]
    for shown_at in ("topics, chosen", "topics, as classes"):
        header += [shown_at, *SYSTEMS.values()]
    return markdown_table(header, rows)
