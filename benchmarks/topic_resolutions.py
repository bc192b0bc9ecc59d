"""How many topics are found by one rule, who is in them, and who is rightly left out.

Measured for embedtopics alone, with its defaults: the number of topics at each resolution beside
the number of classes, the agreement with the classes before and after documents join the dense
cores, and the share of texts of shuffled words, put among the others, that is left in no topic.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.corpora import LABELLED, LabelledCorpus, load_arxiv, load_labelled, load_shuffled
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics.evaluation import agreement
from embedtopics.topics import TopicModel, at_resolution, levels
from embedtopics.topics.results import TopicResult

__all__ = ["measure", "render"]

SEED = 42
QUICK = ("bbc_news",)
FACTOR = 2.0
"""How far a number of topics may be from the number of classes to count as near."""


def measure(options: Options) -> dict[str, Any]:
    """Fit every labelled corpus, with and without shuffled texts, and the arXiv abstracts."""
    found = []
    for name in QUICK if options.quick else LABELLED:
        corpus = load_labelled(name)
        found.append(_resolutions(corpus) | _shuffled(corpus))
        print(f"  {found[-1]}", file=sys.stderr)
    if not options.quick:
        found.append(_resolutions(load_arxiv()))
        print(f"  {found[-1]}", file=sys.stderr)
    return {"random_state": SEED, "corpora": found}


def _resolutions(corpus: LabelledCorpus) -> dict[str, Any]:
    result = _fit(corpus.texts, corpus.embeddings)
    n_classes = len(set(corpus.classes))
    cores = np.where(result.by_row(result.clustering.probabilities, 0.0) > 0, result.labels, -1)
    joined, alone = (agreement(corpus.classes, labels) for labels in (result.labels, cores))
    offered = [level.n_topics for level in levels(result)]
    return {
        "corpus": corpus.name,
        "n_documents": len(corpus.texts),
        "n_classes": n_classes,
        "n_topics": {
            "auto": result.n_topics,
            **{name: at_resolution(result, name).n_topics for name in ("fine", "coarse")},
        },
        "offered": offered,
        "auto_is_near": _is_near(result.n_topics, n_classes),
        "offered_is_near": any(_is_near(n, n_classes) for n in offered),
        "coverage": round(joined.coverage, 4),
        "core_coverage": round(alone.coverage, 4),
        "nmi": round(joined.nmi, 4),
        "core_nmi": round(alone.nmi, 4),
        "ami": round(joined.ami, 4),
        "core_ami": round(alone.ami, 4),
        "min_margin": result.settings["min_margin"],
    }


def _shuffled(corpus: LabelledCorpus) -> dict[str, Any]:
    """Return how many of the shuffled texts are left out, and how many of the others."""
    texts, embeddings = load_shuffled(corpus.name)
    result = _fit(corpus.texts + texts, np.concatenate([corpus.embeddings, embeddings]))
    outside = result.labels == -1
    return {
        "n_shuffled": len(texts),
        "shuffled_left_out": round(float(outside[len(corpus.texts) :].mean()), 4),
        "others_left_out": round(float(outside[: len(corpus.texts)].mean()), 4),
    }


def _fit(texts: list[str], embeddings: np.ndarray) -> TopicResult:
    model = TopicModel(random_state=SEED, show_progress=False)
    return model.fit(texts, embeddings=embeddings).result_


def _is_near(n_topics: int, n_classes: int) -> bool:
    return n_classes / FACTOR <= n_topics <= n_classes * FACTOR


def render(result: Mapping[str, Any]) -> str:
    """Return the tables of a result."""
    numbers, members = [], []
    for c in result["corpora"]:
        name = f"{c['corpus']} ({figure(c['n_documents'])} documents)"
        numbers.append(
            [name, figure(c["n_classes"])]
            + [figure(c["n_topics"][n]) for n in ("fine", "auto", "coarse")]
            + [", ".join(figure(n) for n in c["offered"])]
            + ["yes" if c[key] else "no" for key in ("auto_is_near", "offered_is_near")]
        )
        members.append(
            [name]
            + [figure(c[key], 3) for key in ("core_coverage", "coverage", "core_nmi", "nmi")]
            + [figure(c[key], 3) for key in ("core_ami", "ami")]
            + [figure(c.get(key), 3) for key in ("shuffled_left_out", "others_left_out")]
        )
    first = [
        "corpus", "classes", "fine", "auto", "coarse", "levels offered",
        "auto within a factor of 2", "a level within a factor of 2",
    ]  # fmt: skip
    second = [
        "corpus", "coverage of cores", "coverage", "NMI of cores", "NMI", "AMI of cores", "AMI",
        "shuffled texts left out", "other texts left out then",
    ]  # fmt: skip
    return markdown_table(first, numbers) + "\n\n" + markdown_table(second, members)
