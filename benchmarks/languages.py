"""What encoders make of other languages than English, and what topics of two languages hold.

News in French by their classes: 10 nearest neighbours (cosine, ten folds) and the
topics of a fit with all defaults. Pairs of translations, English and French: whether both are in
one topic, how much topics say of the language, and whether a query finds its translation. News in
English and French together by their classes. BERTopic gets the same vectors.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.corpora import _read_rows
from benchmarks.jobs import BERTOPIC, System, fit, write_inputs
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table

__all__ = ["measure", "render"]

DEFAULT, MULTILINGUAL = "all-MiniLM-L6-v2", "multilingual-e5-small"
ENCODERS = ("tfidf", "fasttext", DEFAULT, MULTILINGUAL)
MAX_LENGTH = 256
"""Tokens read of a text by both transformers: all that all-MiniLM-L6-v2 can."""
N_FOLDS, K = 10, 10


class _Texts(NamedTuple):
    """Texts with their languages; of pairs, the first half and its translations; or of news."""

    texts: list[str]
    languages: list[str]
    classes: list[str] | None = None


def measure(options: Options) -> dict[str, Any]:
    """Encode each set with each encoder once, and fit topics with one seed."""
    names = ENCODERS[:2] if options.quick else ENCODERS
    news, across, mates = [_of_news("fra", name) for name in names], [], []
    for name in () if options.quick else ("multi30k", "xnli", "masakhanews"):
        across += _of_languages(name, MULTILINGUAL, options.systems)
        if name != "masakhanews":
            mates += [_of_mates(name, encoder) for encoder in (DEFAULT, MULTILINGUAL)]
    return {"news": news, "across": across, "mates": mates}


@cache
def _encoder(name: str) -> Any:
    from embedtopics import SentenceEncoder
    from embedtopics.encoders import CachedEncoder
    from embedtopics.encoders._registry import resolve_encoder

    if name in ENCODERS[:2]:
        return resolve_encoder(name)
    made = SentenceEncoder(name, max_seq_length=MAX_LENGTH, long_texts="truncate")
    return CachedEncoder(made.reading("document"))


def _of_news(language: str, name: str) -> dict[str, Any]:
    from sklearn.model_selection import cross_val_predict
    from sklearn.neighbors import KNeighborsClassifier

    from embedtopics import TopicModel
    from embedtopics.evaluation import evaluate_clustering
    from embedtopics.evaluation._bootstrap import mean_of_values

    texts, classes = _read_news(language)
    labels = np.array(classes)
    encoder = _encoder(name).fitted_to(texts)
    found = cross_val_predict(
        KNeighborsClassifier(K, metric="cosine"), encoder.encode(texts), labels, cv=N_FOLDS
    )
    right = mean_of_values((found == labels).astype(float))
    result = TopicModel(encoder).fit(texts).result_
    scores = evaluate_clustering(labels, result.labels, n_resamples=200)
    return _noted({
        "set": f"masakhanews_{language}", "encoder": name, "n": len(texts),
        "knn": [right.value, right.low, right.high], "ami": [scores.ami, *scores.intervals["ami"]],
        "n_topics": result.n_topics, "coverage": result.coverage,
    })  # fmt: skip


def _of_languages(name: str, encoder: str, systems: Sequence[System]) -> list[dict[str, Any]]:
    """Return the figures of topics of two languages."""
    from embedtopics import TopicModel

    known, rows = _read(name), []
    vectors = _encoder(encoder).encode(known.texts)
    for system in systems:
        if system is BERTOPIC:
            with tempfile.TemporaryDirectory() as folder:
                write_inputs(Path(folder), known.texts, vectors)
                labels = fit(system, Path(folder), random_state=0).labels
        else:
            labels = TopicModel(random_state=0).fit(known.texts, embeddings=vectors).labels_
        row = {"set": name, "encoder": encoder, "system": system.name}
        rows.append(_noted({**row, **_scored(known, np.asarray(labels))}))
    return rows


def _scored(known: _Texts, labels: np.ndarray) -> dict[str, Any]:
    from embedtopics.evaluation import evaluate_clustering
    from embedtopics.topics._describe import language_information

    placed = labels >= 0
    codes = np.array(known.languages)
    language = language_information(labels[placed].astype(np.int32), codes[placed].tolist())
    sizes, n = np.bincount(labels[placed]), len(labels) // 2
    found = {
        "n": len(labels), "n_topics": len(sizes), "coverage": float(placed.mean()),
        "language": language,
    }  # fmt: skip
    if known.classes is not None:
        scores = evaluate_clustering(known.classes, labels, n_resamples=200)
        return {**found, "ami": [scores.ami, *scores.intervals["ami"]]}
    together = (labels[:n] == labels[n:]) & placed[:n]
    by_chance = float(((sizes / sizes.sum()) ** 2).sum() * placed.mean() ** 2)
    return {**found, "together": float(together.mean()), "by_chance": by_chance}


def _of_mates(name: str, encoder: str) -> dict[str, Any]:
    """Return how well a search finds the translation of a text, among all of its language."""
    from embedtopics.evaluation._bootstrap import mean_of_values

    texts = _read(name).texts
    n, made = len(texts) // 2, _encoder(encoder)
    documents, queries = (_unit(made.reading(kind).encode(texts)) for kind in ("document", "query"))
    row = {"set": name, "encoder": encoder, "n": n}
    for way, asked, held in (
        ("en_fr", slice(n), slice(n, None)),
        ("fr_en", slice(n, None), slice(n)),
    ):
        cosines = queries[asked] @ documents[held].T
        ranks = (cosines > np.diag(cosines)[:, None]).sum(axis=1) + 1
        found = mean_of_values(np.where(ranks <= 10, 1 / ranks, 0.0))
        row[way] = [found.value, found.low, found.high]
    return _noted(row)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _noted(row: dict[str, Any]) -> dict[str, Any]:
    print(f"  {row}", file=sys.stderr, flush=True)
    return row


def _read_news(language: str) -> tuple[list[str], list[str]]:
    parts = (_read_rows(f"masakhanews_{language}/{part}.jsonl.gz") for part in ("dev", "test"))
    rows = [row for part in parts for row in part]
    return [f"{row['headline']}. {row['text']}" for row in rows], [row["label"] for row in rows]


@cache
def _read(name: str) -> _Texts:
    if name == "masakhanews":
        parts = [(code, _read_news(by)) for code, by in (("en", "eng"), ("fr", "fra"))]
        rows = [(t, code, c) for code, (texts, labels) in parts
                for t, c in zip(texts, labels, strict=True)]  # fmt: skip
        texts, codes, classes = (list(column) for column in zip(*rows, strict=True))
        return _Texts(texts, codes, classes)
    if name == "multi30k":
        pairs = _read_rows("multi30k/translations_test_2016_flickr.jsonl.gz")
        sides = [[row[code] for row in pairs] for code in ("en", "fr")]
    else:
        sides = [
            list(
                dict.fromkeys(row["premise"] for row in _read_rows(f"xnli/{c}_validation.jsonl.gz"))
            )
            for c in ("en", "fr")
        ]
    return _Texts([*sides[0], *sides[1]], ["en"] * len(sides[0]) + ["fr"] * len(sides[1]))


def _spelled(values: Sequence[float], form: str = ".3f") -> str:
    value, low, high = (format(value, form) for value in values)
    return f"{value} ({low} to {high})"


def render(result: Mapping[str, Any]) -> str:
    """Return the three tables."""
    news = [
        [row["set"], row["encoder"], figure(row["n"]), _spelled(row["knn"]), _spelled(row["ami"]),
         figure(row["n_topics"]), f"{row['coverage']:.0%}"]
        for row in result["news"]
    ]  # fmt: skip
    across = [
        [row["set"], row["encoder"], row["system"],
         figure(row["n_topics"]), f"{row['coverage']:.0%}",
         f"{row['together']:.0%} ({row['by_chance']:.0%})" if "together" in row else "",
         _spelled(row["ami"]) if "ami" in row else "", _spelled(row["language"], ".0%")]
        for row in result["across"]
    ]  # fmt: skip
    mates = [
        [row["set"], row["encoder"], figure(row["n"]), _spelled(row["en_fr"]),
         _spelled(row["fr_en"])]
        for row in result["mates"]
    ]  # fmt: skip
    return "\n\n".join([
        markdown_table(
            ["classes", "encoder", "texts", f"{K}-NN accuracy", "AMI of topics", "topics",
             "coverage"], news),
        markdown_table(
            ["English and French", "vectors", "topics by", "topics",
             "coverage", "pairs in one topic (by chance)", "AMI with the classes",
             "language known by the topic"], across),
        markdown_table(
            ["search for translations", "encoder", "pairs", "MRR@10, English to French",
             "MRR@10, French to English"], mates),
    ])  # fmt: skip
