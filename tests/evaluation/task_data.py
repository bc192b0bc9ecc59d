"""Small data sets in the form of the real ones, and an encoder that needs no checkpoint."""

from __future__ import annotations

import gzip
import json
import zlib

import numpy as np

__all__ = ["Words", "write_rows", "write_tasks"]

NOUNS = "dog cat bird fish horse cow sheep goat lion wolf".split()
VERBS = "runs sleeps eats sings jumps swims flies hides".split()


class Words:
    """Adds up a fixed random vector for each word."""

    def __init__(self, n_dimensions=24, seed=0):
        self.name = f"words {seed}"
        self.seed, self.n_dimensions, self.calls = seed, n_dimensions, []

    def encode(self, texts):
        self.calls.append(list(texts))
        return np.array([self._vector(text) for text in texts], dtype=np.float32)

    def _vector(self, text):
        made = np.zeros(self.n_dimensions)
        for word in text.lower().split():
            rng = np.random.default_rng([self.seed, zlib.crc32(word.encode())])
            made += rng.normal(size=self.n_dimensions)
        return made


def write_rows(path, rows):
    """Write rows as the real files are written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


def _sentence(rng):
    return f"the {rng.choice(NOUNS)} {rng.choice(VERBS)} near a {rng.choice(NOUNS)}"


def _graded(rng, n, first="sentence1", second="sentence2", score="score"):
    rows = []
    for _ in range(n):
        one, other = _sentence(rng), _sentence(rng)
        shared = len(set(one.split()) & set(other.split()))
        # Three words are in all sentences: scores go from 1 to 5.
        rows.append({first: one, second: other, score: shared - 2 + float(rng.integers(0, 3)) / 2})
    return rows


def _inferred(rng, n, premise="premise", hypothesis="hypothesis"):
    rows = []
    for label in rng.choice(["entailment", "neutral", "contradiction"], n).tolist():
        one = _sentence(rng)
        other = {"entailment": one, "neutral": _sentence(rng), "contradiction": "not " + one}
        rows.append({premise: one, hypothesis: other[label], "label": label})
    return rows


def write_tasks(folder):
    """Write stsb, sts12_14, sick, rte, mpe, xnli, scifact, cranfield, multi30k and titles."""
    rng = np.random.default_rng(0)
    same = _graded(rng, 40)
    for language in ("en", "fr", "de"):
        for split in ("dev", "test"):
            write_rows(folder / "stsb" / f"{language}_{split}.jsonl.gz", same)
    sets = [(2012, "A", "test"), (2013, "B", "test"), (2013, "C", "test"), (2012, "A", "train")]
    write_rows(
        folder / "sts12_14" / "sts12_14.jsonl.gz",
        [
            {"year": year, "set": name, "split": split, **row, "in_stsb": place % 4 == 0}
            for year, name, split in sets
            for place, row in enumerate(_graded(rng, 20))
        ],
    )
    write_rows(
        folder / "sick" / "sick.jsonl.gz",
        [
            {**row, **answer, "split": split}
            for split, n in (("train", 60), ("trial", 10), ("test", 30))
            for row, answer in zip(
                _inferred(rng, n, "sentence_a", "sentence_b"),
                _graded(rng, n, "x", "y", "relatedness"), strict=True,
            )
        ],
    )  # fmt: skip
    for name, n in (("train", 60), ("dev", 20), ("test", 20)):
        rows = _inferred(rng, n)
        write_rows(folder / "snli_counterfactual" / f"{name}.jsonl.gz", rows)
        several = [{**row, "premises": [row["premise"], _sentence(rng)]} for row in rows]
        write_rows(folder / "mpe" / f"{name}.jsonl.gz", several)
        if name != "test":
            two = [row for row in rows if row["label"] != "neutral"]
            for row in two:
                row["label"] = row["label"].replace("contradiction", "not_entailment")
            write_rows(folder / "rte" / f"{name}.jsonl.gz", two)
    for name in ("validation", "test"):
        write_rows(folder / "xnli" / f"en_{name}.jsonl.gz", _inferred(rng, 40))
    documents = [f"{_sentence(rng)} document {row}" for row in range(12)]
    for task in ("scifact", "cranfield"):
        corpus = [{"doc_id": str(r), "title": "", "text": t} for r, t in enumerate(documents)]
        write_rows(folder / task / "corpus.jsonl.gz", corpus)
        queries = [
            {"query_id": str(r), "split": ("test", "train")[r % 2], "text": documents[r]}
            for r in range(8)
        ]
        write_rows(folder / task / "queries.jsonl.gz", queries)
        judged = [
            {"query_id": str(r), "doc_id": str(r), "split": ("test", "train")[r % 2],
             "relevance": 1, "code": -1 if r == 7 else 2}
            for r in range(8)
        ]  # fmt: skip
        write_rows(folder / task / "qrels.jsonl.gz", judged)
    captions = [_sentence(rng) + f" {row}" for row in range(15)]
    for name in ("test_2016_flickr", "val"):
        rows = [{"en": c, "fr": "le " + c, "de": "x" if r == 3 else c}
                for r, c in enumerate(captions)]  # fmt: skip
        write_rows(folder / "multi30k" / f"translations_{name}.jsonl.gz", rows)
    titles = [{"text": _sentence(rng) + f" {name} {name}", "label": name}
              for name in ("linq", "bash") for _ in range(30)]  # fmt: skip
    write_rows(folder / "stackoverflow_titles" / "stackoverflow_titles.jsonl.gz", titles)
    return folder
