"""Whether the name of a topic means the class of its texts, in sets whose classes have names.

The class of a topic is that of most of its texts. A label is right if, of the names of all
classes, the name of that class is nearest to it. Two encoders that made no topic judge:
multilingual E5, and latent semantic analysis of the texts.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from benchmarks.topic_sets import (
    ENCODERS,
    NAMED,
    QUICK,
    Fit,
    LatentWords,
    fit_bertopic,
    fit_set,
)
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.terms._representative import best_terms
from embedtopics.topics.naming._names import choose_keywords

__all__ = ["measure", "render"]

JUDGE = "multilingual-e5-small"
SYSTEMS = {
    "label": "embedtopics",
    "class_tfidf": "class-TF-IDF",
    "keybert": "KeyBERT-like",
    "mmr": "MMR",
    "bertopic": "BERTopic",
}


def measure(options: Options) -> dict[str, Any]:
    """Judge the labels of every set with named classes."""
    e5, rows = resolve_encoder(JUDGE, cached=False), []
    for name in [name for name in NAMED if not options.quick or name in QUICK]:
        fit = fit_set(name)
        judges = {"lsa": LatentWords(fit.texts)}
        if ENCODERS.get(name) != JUDGE:
            judges["e5"] = e5
        right = {
            system: {judge: _right(fit, *named, by) for judge, by in judges.items()}
            for system, named in _labels(fit).items()
        }
        rows.append({"set": name, "n_topics": fit.result.n_topics, "right": right})
        print(rows[-1], file=sys.stderr)
    return {"sets": rows}


def _labels(fit: Fit) -> dict[str, tuple[np.ndarray, list[str]]]:
    """Return the topic of each text, and the label of each topic, by system."""
    result, (labels, words) = fit.result, fit_bertopic(fit)
    terms, best = result.term_counts.terms, best_terms(result.topic_terms, result.term_counts, 3)
    lists = {
        "class_tfidf": [[terms[i] for i in ids] for ids, _ in best],
        "keybert": _names(choose_keywords(result, "embedding", n_terms=3)),
        "mmr": _names(choose_keywords(result, "diverse", n_terms=3)),
    }
    ours = {"label": [topic.name for topic in result.topics]}
    ours |= {system: [", ".join(row) for row in rows] for system, rows in lists.items()}
    theirs = labels, [", ".join(row[:3]) for row in words]
    return {**{system: (result.labels, one) for system, one in ours.items()}, "bertopic": theirs}


def _names(lists: Sequence[Sequence[tuple[str, float]]]) -> list[list[str]]:
    return [[term for term, _ in row] for row in lists]


def _right(fit: Fit, of_text: np.ndarray, labels: Sequence[str], judge: Any) -> float:
    """Return the share of topics whose label is nearest to the name of their class."""
    names, classes = np.unique(fit.classes, return_inverse=True)
    spelled = [name.replace("_", " ").replace("-", " ").replace("/", " and ") for name in names]
    owners = [np.bincount(classes[of_text == topic]).argmax() for topic in range(len(labels))]
    nearest = judge.encode(labels) @ judge.encode(spelled).T
    return round(float(np.mean(nearest.argmax(axis=1) == owners)), 4)


def render(result: Mapping[str, Any]) -> str:
    """Return a row for each set and judge, and the means."""
    rows = []
    for judge, title in (("e5", "E5"), ("lsa", "LSA")):
        judged = [row for row in result["sets"] if judge in row["right"]["label"]]
        for row in judged:
            figures = [figure(row["right"][system][judge], 2) for system in SYSTEMS]
            rows.append([row["set"], title, figure(row["n_topics"]), *figures])
        if judged:
            means = (
                statistics.fmean(row["right"][system][judge] for row in judged)
                for system in SYSTEMS
            )
            rows.append(["mean", title, "", *(figure(mean, 3) for mean in means)])
    return markdown_table(["set", "judge", "topics", *SYSTEMS.values()], rows)
