"""Whether the stability shown is true, and what it costs.

Measured for embedtopics alone. Beside the figures of `stability`, from replicates on the stored
graph, stand those of five cold refits: whole fits of random halves of the texts, with neighbours
searched anew, compared with the result by the same formulas. Vectors without any structure tell
what the figures are where no topic is more than an accident. The cost is counted in layouts: the
time of one layout of all documents in the space in which they are clustered.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.corpora import LABELLED, LabelledCorpus, load_arxiv, load_labelled
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics import TopicModel
from embedtopics.reduction._components import principal_start
from embedtopics.reduction._fuzzy import fuzzy_graph
from embedtopics.reduction._layout import layout
from embedtopics.topics import with_stability
from embedtopics.topics._resolution import compare
from embedtopics.topics.results import Stability, TopicResult

__all__ = ["cold_refits", "measure", "render", "structureless"]

SEED = 42
QUICK = ("bbc_news",)
N_REPLICATES = 20
N_REFITS = 5
N_STRUCTURELESS = 2_000
N_DIMENSIONS = 384


def measure(options: Options) -> dict[str, Any]:
    """Measure the labelled corpora, the arXiv abstracts, and vectors without structure."""
    names = QUICK if options.quick else LABELLED
    corpora = [load_labelled(name) for name in names]
    cases = [structureless(N_STRUCTURELESS, N_DIMENSIONS), *corpora]
    if not options.quick:
        cases.append(load_arxiv())
    found = []
    for corpus in cases:
        found.append(_case(corpus))
        print(f"  {found[-1]}", file=sys.stderr)
    return {
        "random_state": SEED,
        "n_replicates": N_REPLICATES,
        "n_refits": N_REFITS,
        "cases": found,
    }


def structureless(n_texts: int, n_dimensions: int, seed: int = 0) -> LabelledCorpus:
    """Return vectors drawn from one normal distribution, with texts that share no words.

    Without shared words it cannot be told that the topics are about nothing, and they stay.
    """
    vectors = np.random.default_rng(seed).normal(size=(n_texts, n_dimensions))
    texts = [f"text{number}" for number in range(n_texts)]
    return LabelledCorpus("no structure", texts, ["none"] * n_texts, vectors.astype(np.float32))


def _case(corpus: LabelledCorpus) -> dict[str, Any]:
    model = TopicModel(random_state=SEED, show_progress=False)
    result = model.fit(corpus.texts, embeddings=corpus.embeddings).result_
    seconds_of_layout = _time_layout(result)
    begin = time.perf_counter()
    measured = with_stability(
        result, N_REPLICATES, random_state=SEED, show_progress=False
    ).stability
    seconds = time.perf_counter() - begin
    begin = time.perf_counter()
    refits = cold_refits(result, corpus.texts, corpus.embeddings, range(N_REFITS))
    seconds_of_refit = (time.perf_counter() - begin) / N_REFITS
    cold = compare(result.clustering.labels, refits, result.distinct.weights)
    return {
        "corpus": corpus.name,
        "n_documents": len(result.distinct),
        "n_topics": result.n_topics,
        **_figures(measured),
        "cold": _figures(cold),
        "seconds": round(seconds, 2),
        "seconds_of_layout": round(seconds_of_layout, 2),
        "layouts": round(seconds / seconds_of_layout, 2),
        "seconds_of_refit": round(seconds_of_refit, 2),
    }


def _figures(measured: Stability) -> dict[str, float]:
    return {
        "recurrence": round(float(np.mean(measured.recurrence)), 4),
        "chance": round(float(np.mean(measured.chance)), 4),
        "agreement": round(float(np.nanmean(measured.agreement)), 4),
        "adjusted_rand": round(float(np.mean(measured.adjusted_rand)), 4),
    }


def _time_layout(result: TopicResult) -> float:
    """Return the seconds of one layout, with the graph's weights and the start that it needs."""
    begin = time.perf_counter()
    start = principal_start(result.embeddings, result.coordinates.shape[1])
    layout(fuzzy_graph(result.graph), start, seed=SEED)
    return time.perf_counter() - begin


def cold_refits(
    result: TopicResult, texts: Sequence[str], embeddings: np.ndarray, seeds: Sequence[int]
) -> list[np.ndarray]:
    """Fit random halves of a result's documents from nothing.

    Parameters
    ----------
    result : TopicResult
        With the number of topics left at a name.
    texts, embeddings
        Its input, row by row.
    seeds : sequence of int

    Returns
    -------
    list of int32 ndarray of shape (n_documents,)
        Topics of each refit; -2 for documents that it did not get.
    """
    documents = result.distinct
    half = len(documents) // 2
    size = max(2, round(result.settings["min_cluster_size"] / 2))
    found = []
    for seed in seeds:
        rng = np.random.default_rng([1, seed])
        held = np.zeros(len(documents) + 1, dtype=bool)  # the last is for rows without text
        held[rng.permutation(len(documents))[:half]] = True
        rows = np.flatnonzero(held[documents.of_row])
        model = TopicModel(min_cluster_size=size, random_state=seed, show_progress=False)
        model.fit([texts[row] for row in rows], embeddings=embeddings[rows])
        labels = np.full(len(documents), -2, dtype=np.int32)
        labels[documents.of_row[rows]] = model.labels_
        found.append(labels)
    return found


def render(result: Mapping[str, Any]) -> str:
    """Return the tables of a result."""
    values, costs = [], []
    for case in result["cases"]:
        name = f"{case['corpus']} ({figure(case['n_documents'])} documents)"
        cold = case["cold"]
        values.append([name, figure(case["n_topics"])])
        for key in ("recurrence", "adjusted_rand", "agreement"):
            values[-1] += [figure(case[key], 3), figure(cold[key], 3)]
        values[-1].append(figure(case["chance"], 3))
        costs.append([name, *(figure(case[key], 1) for key in ("seconds", "seconds_of_layout"))])
        costs[-1] += [figure(case["layouts"], 1), figure(case["seconds_of_refit"], 1)]
    first = [
        "corpus", "topics", "recurrence", "in cold refits", "ARI", "of cold refits",
        "agreement", "in cold refits", "recurrence by chance",
    ]  # fmt: skip
    second = [
        "corpus", f"stability of {result['n_replicates']} replicates, s", "one layout, s",
        "stability, in layouts", "one cold refit of a half, s",
    ]  # fmt: skip
    return markdown_table(first, values) + "\n\n" + markdown_table(second, costs)
