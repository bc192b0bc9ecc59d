"""What encoders make of other languages than English, and what topics across languages hold.

News in French by their classes: 10 nearest neighbours (cosine, ten folds) and the
topics of a fit with all defaults. Then pairs of translations, English and French: whether both are
in one topic, and how much topics say of the language.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.corpora import _read_rows
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table

__all__ = ["measure", "render"]

ENCODERS = ("tfidf", "fasttext", "all-MiniLM-L6-v2", "multilingual-e5-small")
MAX_LENGTH = 256
"""Tokens read of a text by both transformers: all that all-MiniLM-L6-v2 can."""
N_FOLDS, K = 10, 10


def measure(options: Options) -> dict[str, Any]:
    """Encode each set with each encoder once, and fit topics with one seed."""
    names = ENCODERS[:2] if options.quick else ENCODERS
    news = [_of_news("fra", name) for name in names]
    pairs = [] if options.quick else [
        _of_pairs(file, name, across)
        for file in ("multi30k", "xnli") for name in ENCODERS[2:] for across in (False, True)
    ]  # fmt: skip
    return {"news": news, "pairs": pairs}


def _encoder(name: str) -> Any:
    from embedtopics.encoders import CachedEncoder, SentenceEncoder
    from embedtopics.encoders._registry import resolve_encoder

    if name in ENCODERS[:2]:
        return resolve_encoder(name)
    made = SentenceEncoder(name, max_length=MAX_LENGTH, long_texts="truncate")
    return CachedEncoder(made.reading("document"))


def _of_news(language: str, name: str) -> dict[str, Any]:
    from sklearn.model_selection import cross_val_predict
    from sklearn.neighbors import KNeighborsClassifier

    from embedtopics.encoders._registry import fitted
    from embedtopics.evaluation import agreement
    from embedtopics.evaluation._bootstrap import mean_of_values
    from embedtopics.topics import TopicModel

    rows = [
        row
        for part in ("dev", "test")
        for row in _read_rows(f"masakhanews_{language}/{part}.jsonl.gz")
    ]
    texts = [f"{row['headline']}. {row['text']}" for row in rows]
    classes = np.array([row["label"] for row in rows])
    encoder = fitted(_encoder(name), texts)
    found = cross_val_predict(
        KNeighborsClassifier(K, metric="cosine"), encoder.encode(texts), classes, cv=N_FOLDS
    )
    right = mean_of_values((found == classes).astype(float))
    result = TopicModel(encoder).fit(texts).result_
    scores = agreement(classes, result.labels, n_resamples=200)
    row = {
        "set": f"masakhanews_{language}", "encoder": name, "n": len(texts),
        "knn": [right.value, right.low, right.high], "ami": [scores.ami, *scores.intervals["ami"]],
        "n_topics": result.n_topics, "coverage": result.coverage,
    }  # fmt: skip
    print(f"  {row}", file=sys.stderr)
    return row


def _of_pairs(file: str, name: str, across: bool) -> dict[str, Any]:
    from embedtopics.encoders import CachedEncoder, SentenceEncoder
    from embedtopics.topics import TopicModel

    sides = _read_pairs(file)
    n = len(sides[0])
    encoder = CachedEncoder(SentenceEncoder(name).reading("document"))
    result = TopicModel(encoder, across_languages=across).fit([*sides[0], *sides[1]]).result_
    first, second = result.labels[:n], result.labels[n:]
    language = next((d.value for d in result.decisions if d.name == "language_information"), None)
    shares = np.bincount(result.labels[result.labels >= 0])
    row = {
        "set": file, "encoder": name, "across": across, "n": n, "n_topics": result.n_topics,
        "coverage": result.coverage, "language": language,
        "together": float(np.mean((first == second) & (first >= 0))),
        "by_chance": float(((shares / shares.sum()) ** 2).sum() * result.coverage**2),
    }  # fmt: skip
    print(f"  {row}", file=sys.stderr)
    return row


def _read_pairs(file: str) -> tuple[list[str], list[str]]:
    if file == "multi30k":
        rows = _read_rows("multi30k/translations_test_2016_flickr.jsonl.gz")
        return [row["en"] for row in rows], [row["fr"] for row in rows]
    sides = []
    for language in ("en", "fr"):
        rows = _read_rows(f"xnli/{language}_validation.jsonl.gz")
        sides.append(list(dict.fromkeys(row["premise"] for row in rows)))
    return sides[0], sides[1]


def render(result: Mapping[str, Any]) -> str:
    """Return both tables."""
    news = [
        [row["set"], row["encoder"], figure(row["n"]),
         "{:.3f} ({:.3f} to {:.3f})".format(*row["knn"]),
         "{:.3f} ({:.3f} to {:.3f})".format(*row["ami"]),
         figure(row["n_topics"]), f"{row['coverage']:.0%}"]
        for row in result["news"]
    ]  # fmt: skip
    pairs = [
        [row["set"], row["encoder"], "yes" if row["across"] else "no", figure(row["n_topics"]),
         f"{row['coverage']:.0%}", f"{row['together']:.0%}", f"{row['by_chance']:.0%}",
         "{share:.0%} ({low:.0%} to {high:.0%})".format(**row["language"])
         if row["language"] else "n/a"]
        for row in result["pairs"]
    ]  # fmt: skip
    return "\n\n".join([
        markdown_table(
            ["classes", "encoder", "texts", f"{K}-NN accuracy", "AMI of topics", "topics",
             "coverage"], news),
        markdown_table(
            ["translations", "encoder", "across languages", "topics", "coverage",
             "pairs in one topic", "by chance", "language known by the topic"], pairs),
    ])  # fmt: skip
