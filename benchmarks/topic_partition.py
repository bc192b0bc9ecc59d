"""How well topics divide the documents: beside k-means, at the same numbers, and under noise.

Measured for embedtopics alone. At the number of topics that it chooses, and at the number of
classes, all documents get a topic (``coverage=1``); k-means gets the same vectors and the same
number. Every figure is the mean over the seeds. Noise of 1e-6 stands for another CPU.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from benchmarks.corpora import LabelledCorpus, load_labelled
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics.topics import TopicModel, at_resolution

__all__ = ["measure", "render"]

QUICK = ("bbc_news",)
CORPORA = ("bbc_news", "ag_news", "20newsgroups", "octis_m10")
FIRST_SEED = 42
LEAST_SEEDS = 3
NOISE = 1e-6


def measure(options: Options) -> dict[str, Any]:
    """Divide every corpus by both, with several seeds."""
    n_seeds = max(LEAST_SEEDS, options.repeats)
    cases = []
    for name in QUICK if options.quick else CORPORA:
        cases += _cases(load_labelled(name), range(FIRST_SEED, FIRST_SEED + n_seeds))
        print(f"  {cases[-2:]}", file=sys.stderr)
    return {"n_seeds": n_seeds, "noise": NOISE, "cases": cases}


def _cases(corpus: LabelledCorpus, seeds: range) -> list[dict[str, Any]]:
    """Return the figures at the chosen number of topics, and at that of the classes."""
    kept = [row for row, text in enumerate(corpus.texts) if text]
    texts, classes = [corpus.texts[row] for row in kept], [corpus.classes[row] for row in kept]
    vectors = corpus.embeddings[kept]
    fits = [_fit(texts, vectors, seed) for seed in seeds]
    moved = [_fit(texts, _noisy(vectors, seed), FIRST_SEED) for seed in seeds]
    found = []
    for is_chosen, n_topics in ((True, fits[0].n_topics), (False, len(set(classes)))):
        ours, noisy = (
            [at_resolution(one, "auto" if is_chosen else n_topics, coverage=1.0) for one in some]
            for some in (fits, moved)
        )
        labels = [one.labels for one in ours]
        others = [KMeans(n_topics, n_init=1, random_state=s).fit_predict(vectors) for s in seeds]
        found.append(
            {
                "corpus": corpus.name,
                "n_documents": len(texts),
                "n_topics": n_topics,
                "is_chosen": is_chosen,
                "coverage": round(fits[0].coverage, 4),
                "embedtopics": _figures(classes, labels),
                "k-means": _figures(classes, others),
                "n_same_number": sum(one.n_topics == ours[0].n_topics for one in noisy),
                "ari_under_noise": round(
                    float(np.mean([adjusted_rand_score(labels[0], one.labels) for one in noisy])), 4
                ),
            }
        )
    return found


def _fit(texts: list[str], vectors: np.ndarray, seed: int) -> Any:
    model = TopicModel(random_state=seed, show_progress=False)
    return model.fit(texts, embeddings=vectors).result_


def _noisy(vectors: np.ndarray, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(scale=NOISE, size=vectors.shape)
    return (vectors + noise).astype(np.float32)


def _figures(classes: list[str], labels: list[np.ndarray]) -> dict[str, float]:
    """Return the mean agreement with the classes, and that between seeds."""
    among = [adjusted_rand_score(one, other) for one, other in combinations(labels, 2)]
    return {
        "ami": round(float(np.mean([adjusted_mutual_info_score(classes, x) for x in labels])), 4),
        "ari": round(float(np.mean([adjusted_rand_score(classes, x) for x in labels])), 4),
        "between_seeds": round(float(np.mean(among)), 4),
    }


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    rows = []
    for case in result["cases"]:
        number = f"{case['n_topics']} ({'chosen' if case['is_chosen'] else 'classes'})"
        row = [f"{case['corpus']} ({figure(case['n_documents'])} documents)", number]
        for measure_ in ("ami", "ari", "between_seeds"):
            row += [figure(case[system][measure_], 3) for system in ("embedtopics", "k-means")]
        row += [
            figure(case["ari_under_noise"], 3),
            f"{case['n_same_number']} of {result['n_seeds']}",
        ]
        rows.append([*row, figure(case["coverage"], 3)])
    header = [
        "corpus", "topics", "AMI", "of k-means", "ARI", "of k-means", "ARI between seeds",
        "of k-means", "ARI under noise", "same number", "coverage by default",
    ]  # fmt: skip
    return markdown_table(header, rows)
