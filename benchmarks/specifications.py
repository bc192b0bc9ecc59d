"""Conclusions over many specifications: false positives, power, and seconds.

Groups are drawn at random for the texts of labelled corpora: without any effect, or with more texts
of one class in one group. Every specification estimates the difference of the share of each topic
of the main study (the first specification) between the groups, with its 95 % interval.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

import embedtopics as et
from benchmarks.corpora import load_labelled, sample_rows
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics.corpus._texts import normalize_text
from embedtopics.topics._specifications import Match, specifications

__all__ = ["measure", "render"]

CORPORA = ("bbc_news", "20newsgroups")
N_TEXTS, DRAWS = 2_000, 500
ENCODERS, NUMBERS = ["tfidf", "lsa"], ["auto", 10, 20, 30]
"""Beside all-MiniLM-L6-v2, whose vectors are stored."""
PLANTED = (0.55, 0.6, 0.7)
"""Probability of the first group for texts of the class with an effect; 0.5 for all others."""

RULES = ("main study", "best specification", "holds in 90 %", "holds in 50 %")
SIZES = (2_000, 10_000)


class _Stored:
    """An encoder that knows the vectors of some texts."""

    name = "all-MiniLM-L6-v2"

    def __init__(self, texts: list[str], vectors: Any) -> None:
        self._place = {normalize_text(text): i for i, text in enumerate(texts)}
        self._vectors = vectors

    def encode(self, texts: Any) -> Any:
        return self._vectors[[self._place[text] for text in texts]]


def measure(options: Options) -> dict[str, Any]:
    """Fit the specifications of every corpus once, and draw the groups many times."""
    draws = DRAWS // 10 if options.quick else DRAWS
    rows = [row for name in CORPORA for row in _simulated(name, draws)]
    sizes = SIZES[:1] if options.quick else SIZES
    return {"draws": draws, "rows": rows, "seconds": [_timed(n) for n in sizes]}


def _simulated(name: str, draws: int) -> list[dict[str, Any]]:
    """Return the share of topics with a conclusion by each rule, in all draws of a corpus."""
    labelled = load_labelled(name)
    rows = sample_rows(len(labelled.texts), N_TEXTS)
    corpus = et.Corpus([labelled.texts[row] for row in rows])
    classes = np.unique([labelled.classes[row] for row in rows], return_inverse=True)[1]
    results: list[Any] = []

    def stored(result: Any) -> float:
        results.append(result)
        return 0.0

    encoder = _Stored(list(corpus.texts), labelled.embeddings[rows])
    specifications(corpus, [encoder, *ENCODERS], NUMBERS, question=stored)
    main, n = results[0], len(results) - 1  # the last is the main study again
    of_main = [Match.of(main, one) for one in results[:n]]
    labels = [
        np.where(one.distinct.of_row >= 0, match.topic[one.labels], -1)
        for one, match in zip(results[:n], of_main, strict=True)
    ]
    # In a topic of the class if most of its texts are of the class.
    table = np.zeros((main.n_topics, classes.max() + 1))
    inside = main.labels >= 0
    np.add.at(table, (main.labels[inside], classes[inside]), 1)
    home = np.where(table.max(axis=1) > table.sum(axis=1) / 2, table.argmax(axis=1), -1)
    answers = []
    for probability in (0.5, *PLANTED):
        rng, hits = np.random.default_rng(0), np.zeros((len(RULES), 2))
        for _ in range(draws):
            cause = int(rng.choice(np.unique(home[home >= 0])))
            share = np.where(classes == cause, probability, 0.5)
            group = rng.random(len(classes)) < share
            signs = np.array([_signs(one, group, main.n_topics) for one in labels])
            tested = home == cause if probability != 0.5 else np.ones(main.n_topics, dtype=bool)
            right = signs[:, tested] if probability == 0.5 else np.maximum(signs[:, tested], 0)
            agreeing = ((right == right[0]) & (right[0] != 0)).mean(axis=0)
            said = right[0] != 0, (right != 0).any(axis=0), agreeing >= 0.9, agreeing >= 0.5
            hits[:, 0] += [one.sum() for one in said]
            hits[:, 1] += tested.sum()
        rates = dict(zip(RULES, (hits[:, 0] / hits[:, 1]).tolist(), strict=True))
        about = {"corpus": name, "specifications": n, "topics": main.n_topics}
        answers.append({**about, "probability": probability, **rates})
    return answers


def _signs(labels: Any, group: Any, n_topics: int) -> Any:
    """Return 1 or -1 for topics whose difference between the groups has an interval beside 0."""
    sizes = np.array([(~group).sum(), group.sum()])
    table = np.zeros((n_topics, 2))
    np.add.at(table, (labels[labels >= 0], group[labels >= 0].astype(int)), 1)
    shares = table / sizes
    smooth = (table + 1) / (sizes + 2)  # Agresti and Caffo (2000)
    width = 1.96 * np.sqrt((smooth * (1 - smooth) / (sizes + 2)).sum(axis=1))
    change = shares[:, 1] - shares[:, 0]
    return np.where(np.abs(change) > width, np.sign(change), 0) * (table.sum(axis=1) > 0)


def _timed(n: int) -> dict[str, Any]:
    """Return the seconds of a hundred specifications of `n` newsgroup texts, with effects."""
    labelled = load_labelled("20newsgroups")
    rows = sample_rows(len(labelled.texts), n)
    texts = [labelled.texts[row] for row in rows]
    group = ["computer" if labelled.classes[row].startswith("comp") else "other" for row in rows]
    corpus = et.Corpus({"text": texts, "group": group}, text="text", group="group")
    encoder = _Stored(list(corpus.texts), labelled.embeddings[rows])
    begin, cpu = time.perf_counter(), time.process_time()
    answers = specifications(
        corpus, [encoder, "lsa"], ["auto", *range(6, 54, 2)], words=["auto", "lemmas"],
        question="effects(group)", topics=[0, 1, 2, 3, 4],
    )  # fmt: skip
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    timed = {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1)}
    return {"texts": n, "specifications": len(answers.choices), **timed}


def render(result: Mapping[str, Any]) -> str:
    """Return the table of rules, and that of seconds."""
    rules = [
        [
            row["corpus"],
            "none" if row["probability"] == 0.5 else figure(row["probability"], 2),
            *(figure(row[rule], 3) for rule in RULES),
        ]
        for row in result["rows"]
    ]
    seconds = [
        [figure(row[name]) for name in ("texts", "specifications", "seconds", "cpu_seconds")]
        for row in result["seconds"]
    ]
    return "\n\n".join(
        [
            markdown_table(["corpus", "effect", *RULES], rules),
            markdown_table(["texts", "specifications", "seconds", "CPU seconds"], seconds),
        ]
    )
