"""Encoders on published data sets: similarity, inference, search, translation, classes of titles.

    python -m benchmarks.encoder_tasks all-MiniLM-L6-v2 tfidf --on stsb,sts12_14,sick

The data sets lie in the folder that EMBEDTOPICS_DATA names.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack, issparse

from benchmarks.corpora import DATA
from benchmarks.task_sets import (
    GradedPairs,
    SearchSet,
    TaskSet,
    evaluate_encoder,
    score_differences,
)
from embedtopics.evaluation._bootstrap import mean_of_values
from embedtopics.evaluation._labels import fit_and_predict, neighbor_votes
from embedtopics.evaluation._pairs import pair_class_scores, pair_similarities
from embedtopics.evaluation._retrieval import rank_documents
from embedtopics.results import Decision

__all__ = ["TASKS", "InferencePairs", "LabelledTexts", "Translations", "main", "read_tasks"]

MOST_TRAINED = 10_000
"""Training pairs for the classifier of a task of inference; more hardly change its accuracy."""

MOST_TITLES = 5_000
VOTERS = 10
Rows = list[dict[str, Any]]


@dataclass(frozen=True, eq=False, kw_only=True)
class InferencePairs(TaskSet):
    """Premises and hypotheses to train on, then those of the test: four columns."""

    train_labels: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]

    def examples(self) -> Iterator[Any]:
        """Yield premise, hypothesis and class of each test pair."""
        named = [self.names[label] for label in self.labels.tolist()]
        return zip(*self.columns[2:], named, strict=True)

    def score(self, vectors: Sequence[Any], seed: int) -> dict[str, Any]:
        """Fit a linear model to (u, v, |u - v|); and measure the cosines alone, without training.

        Reimers and Gurevych (2019), "Sentence-BERT", section 3, without training of the encoder.
        """
        train, test = _features(*vectors[:2]), _features(*vectors[2:])
        # In an order of the features themselves, so that sums do not depend on that of the rows.
        sums = np.asarray(train.sum(axis=1, dtype=np.float64)).ravel()
        order = np.lexsort((self.train_labels, sums))
        predicted, _ = fit_and_predict(train[order], self.train_labels[order], test)
        right = (predicted == self.labels).astype(np.float64)
        found = {"head_accuracy": mean_of_values(right, seed)}
        others = {"contradiction", "not_entailment"} & set(self.names)
        if "entailment" in self.names and others:
            entailed, other = map(self.names.index, ("entailment", min(others)))
            rows = np.flatnonzero(np.isin(self.labels, (entailed, other)))
            is_entailed = self.labels[rows] == entailed
            if 0 < is_entailed.sum() < len(rows):
                near = pair_similarities(vectors[2][rows], vectors[3][rows])
                scores = pair_class_scores(near, is_entailed, seed)
                found["entailment_auc"] = scores["area_under_curve"]
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Translations(TaskSet):
    """Texts and their translations, row by row: a column for each language."""

    def examples(self) -> Iterator[Any]:
        """Yield each text with its translation."""
        return zip(*self.columns, strict=True)

    def score(self, vectors: Sequence[Any], seed: int) -> dict[str, Any]:
        """Return in both directions how often the nearest text is the translation, or equal."""
        found = {}
        for name, asked, among in (("accuracy_forward", 0, 1), ("accuracy_backward", 1, 0)):
            texts = self.columns[among]
            order = np.empty(len(texts), dtype=np.int64)
            order[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
            ranked, _ = rank_documents(vectors[asked], vectors[among], 1, tie_order=order)
            right = [texts[row] == text for row, text in zip(ranked[:, 0], texts, strict=True)]
            found[name] = mean_of_values(np.array(right, float), seed)
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledTexts(TaskSet):
    """Texts with a class each: one column."""

    labels: np.ndarray
    names: tuple[str, ...]

    def examples(self) -> Iterator[Any]:
        """Yield each text with its class."""
        named = [self.names[label] for label in self.labels.tolist()]
        return zip(*self.columns, named, strict=True)

    def score(self, vectors: Sequence[Any], seed: int) -> dict[str, Any]:
        """Predict the class of each text by the votes of the nearest others."""
        ranked, near = rank_documents(vectors[0], vectors[0], VOTERS + 1)
        itself = ranked == np.arange(len(ranked))[:, None]
        # Where many texts are equal, a text may not be among its nearest: the last is left out.
        itself[~itself.any(axis=1), -1] = True
        shape = (len(ranked), ranked.shape[1] - 1)
        others = ranked[~itself].reshape(shape), near[~itself].reshape(shape)
        votes = neighbor_votes(*others, self.labels)
        right = (votes == self.labels).astype(np.float64)
        return {"knn_accuracy": mean_of_values(right, seed)}


def _features(premises: Any, hypotheses: Any) -> Any:
    one, other = premises.astype(np.float32), hypotheses.astype(np.float32)
    parts = [one, other, abs(one - other)]
    return csr_matrix(hstack(parts)) if issparse(one) else np.concatenate(parts, axis=1)


def read_tasks(
    tasks: str | Sequence[str], folder: Path = DATA, *, split: str = "test", seen: bool = False
) -> list[TaskSet]:
    """Return the sets of tasks.

    Parameters
    ----------
    tasks : str or sequence of str
        Names in `TASKS`.
    folder : Path
        With a folder for each data set.
    split : {"test", "dev"}
    seen : bool
        Whether pairs that are in STS-B too stay in sts12_14. Encoders were often trained on
        STS-B, so they are left out by default; published figures are with them.
    """
    names = [tasks] if isinstance(tasks, str) else list(dict.fromkeys(tasks))
    unknown = [name for name in names if name not in TASKS]
    if unknown:
        raise SystemExit(f"there is no task {unknown[0]!r}; there are {', '.join(TASKS)}")
    return [one for name in names for one in TASKS[name](Path(folder), split, seen)]


def _read(path: Path) -> Rows:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def _texts(rows: Rows, column: str) -> tuple[str, ...]:
    """Return a column; several premises of one pair follow one another."""
    cells = (row[column] for row in rows)
    return tuple(" ".join(cell) if isinstance(cell, list) else cell for cell in cells)


def _graded(
    task: str, file: str, rows: Rows, names: tuple[str, str, str], **options: Any
) -> GradedPairs:
    return GradedPairs(
        task=task, file=file, columns=(_texts(rows, names[0]), _texts(rows, names[1])),
        scores=np.array([float(row[names[2]]) for row in rows]), **options,
    )  # fmt: skip


STS = ("sentence1", "sentence2", "score")


def _stsb(language: str, folder: Path, split: str, seen: bool) -> list[TaskSet]:
    task = "stsb" if language == "en" else f"stsb_{language}"
    return [_graded(task, split, _read(folder / "stsb" / f"{language}_{split}.jsonl.gz"), STS)]


def _sts12_14(folder: Path, split: str, seen: bool) -> list[TaskSet]:
    """Read each set alone, and those of a year together, which is what is published of a year."""
    wanted = "test" if split == "test" else "train"
    rows = [r for r in _read(folder / "sts12_14/sts12_14.jsonl.gz") if r["split"] == wanted]
    kept = [row for row in rows if seen or not row["in_stsb"]]
    left_out = len(rows) - len(kept)
    message = f"sts12_14: {left_out:,} of {len(rows):,} pairs are in STS-B, and were left out."
    options = {}
    if left_out:
        options["decisions"] = (Decision("evaluation", "in_stsb", left_out, message),)
    made: list[TaskSet] = []
    pooled: list[TaskSet] = []
    for year in sorted({row["year"] for row in kept}):
        of_year = [row for row in kept if row["year"] == year]
        for name in sorted({row["set"] for row in of_year}):
            of_set = [row for row in of_year if row["set"] == name]
            made.append(_graded("sts12_14", f"{year} {name}", of_set, STS, **options))
        pooled.append(_graded("sts12_14 pooled", str(year), of_year, STS))
    return made + pooled


def _sick(folder: Path, split: str, seen: bool) -> list[TaskSet]:
    wanted = {"test": "test", "dev": "trial"}[split]
    rows = [row for row in _read(folder / "sick/sick.jsonl.gz") if row["split"] == wanted]
    return [_graded("sick", split, rows, ("sentence_a", "sentence_b", "relatedness"))]


def _sick_nli(folder: Path, split: str, seen: bool) -> list[TaskSet]:
    rows = _read(folder / "sick/sick.jsonl.gz")
    wanted = {"test": "test", "dev": "trial"}[split]
    parts = ([row for row in rows if row["split"] == one] for one in ("train", wanted))
    return [_inference("sick_nli", split, *parts, ("sentence_a", "sentence_b"))]


def _nli(task: str, files: dict[str, str], folder: Path, split: str, seen: bool) -> list[TaskSet]:
    """Read a task of inference; `files` names that of each split which it has."""
    home = {"xnli_fr": "xnli", "xnli_de": "xnli"}.get(task, task)
    file = files.get(split) or files["dev"]
    train, test = (_read(folder / home / f"{name}.jsonl.gz") for name in (files["train"], file))
    premise = "premises" if task == "mpe" else "premise"
    return [_inference(task, file, train, test, (premise, "hypothesis"))]


def _inference(
    task: str, file: str, train: Rows, test: Rows, names: tuple[str, str]
) -> InferencePairs:
    train = _by_hash(train, (*names, "label"), MOST_TRAINED)
    known = sorted({row["label"] for row in train})
    places = {name: place for place, name in enumerate(known)}
    return InferencePairs(
        task=task, file=file, names=tuple(known),
        columns=tuple(_texts(rows, name) for rows in (train, test) for name in names),
        train_labels=np.array([places[row["label"]] for row in train]),
        labels=np.array([places[row["label"]] for row in test]),
    )  # fmt: skip


def _by_hash(rows: Rows, columns: Sequence[str], most: int) -> Rows:
    """Choose some rows by the hash of their texts, which no order of the rows changes."""
    if len(rows) <= most:
        return rows
    keys = [
        hashlib.sha256(repr(row).encode("utf-8", "surrogatepass")).digest()
        for row in zip(*(_texts(rows, column) for column in columns), strict=True)
    ]
    return [rows[place] for place in sorted(range(len(rows)), key=keys.__getitem__)[:most]]


def _search(task: str, folder: Path, split: str, seen: bool) -> list[TaskSet]:
    """Read Cranfield, without splits and relevant where its code is above 0, or SciFact."""
    queries, corpus, judged = (
        _read(folder / task / f"{name}.jsonl.gz") for name in ("queries", "corpus", "qrels")
    )
    file = "all"
    if task == "scifact":
        file = "test" if split == "test" else "train"
        queries = [row for row in queries if row["split"] == file]
        judged = [row for row in judged if row["split"] == file]
    else:
        judged = [row for row in judged if row["code"] > 0]
    of_query = {row["query_id"]: place for place, row in enumerate(queries)}
    of_document = {row["doc_id"]: place for place, row in enumerate(corpus)}
    pairs = sorted({(of_query[row["query_id"]], of_document[row["doc_id"]]) for row in judged})
    rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    ids = [str(row["doc_id"]) for row in corpus]
    order = np.empty(len(ids), dtype=np.int64)
    order[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    titles = [row["title"] if task == "scifact" else "" for row in corpus]
    texts = tuple(f"{t} {row['text']}".strip() for t, row in zip(titles, corpus, strict=True))
    shape = (len(queries), len(corpus))
    relevance = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
    columns_of = (_texts(queries, "text"), texts)
    return [
        SearchSet(task=task, file=file, columns=columns_of, relevance=relevance, tie_order=order)
    ]


def _multi30k(folder: Path, split: str, seen: bool) -> list[TaskSet]:
    name = {"test": "test_2016_flickr", "dev": "val"}[split]
    rows = _read(folder / "multi30k" / f"translations_{name}.jsonl.gz")
    return [
        Translations(task="multi30k", file=f"en-{code}", columns=tuple(_texts(rows, c) for c in
                     ("en", code)))
        for code in ("fr", "de")
    ]  # fmt: skip


def _titles(folder: Path, split: str, seen: bool) -> list[TaskSet]:
    task = "stackoverflow_titles"
    rows = _by_hash(_read(folder / task / f"{task}.jsonl.gz"), ("text", "label"), MOST_TITLES)
    names = sorted({row["label"] for row in rows})
    labels = np.array([names.index(row["label"]) for row in rows])
    columns = (_texts(rows, "text"),)
    return [
        LabelledTexts(task=task, file="all", columns=columns, labels=labels, names=tuple(names))
    ]


_HELD_OUT = {"train": "train", "dev": "dev", "test": "test"}
_XNLI = {
    code: {"train": f"{code}_validation", "test": f"{code}_test", "dev": f"{code}_test"}
    for code in ("en", "fr", "de")
}

TASKS: dict[str, Callable[[Path, str, bool], list[TaskSet]]] = {
    "stsb": partial(_stsb, "en"),
    "stsb_fr": partial(_stsb, "fr"),
    "stsb_de": partial(_stsb, "de"),
    "sts12_14": _sts12_14,
    "sick": _sick,
    "sick_nli": _sick_nli,
    "lingnli": partial(_nli, "lingnli", {"train": "train", "dev": "val"}),
    "multinli_sample": partial(_nli, "multinli_sample", {"train": "train", "dev": "dev"}),
    "snli_counterfactual": partial(_nli, "snli_counterfactual", _HELD_OUT),
    "rte": partial(_nli, "rte", {"train": "train", "dev": "dev"}),
    "mpe": partial(_nli, "mpe", _HELD_OUT),
    "xnli": partial(_nli, "xnli", _XNLI["en"]),
    "xnli_fr": partial(_nli, "xnli_fr", _XNLI["fr"]),
    "xnli_de": partial(_nli, "xnli_de", _XNLI["de"]),
    "scifact": partial(_search, "scifact"),
    "cranfield": partial(_search, "cranfield"),
    "multi30k": _multi30k,
    "stackoverflow_titles": _titles,
}


def main() -> None:
    """Print the scores of encoders, and the differences from the first."""
    from embedtopics.encoders._registry import resolve_encoder

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("encoder", nargs="+")
    parser.add_argument("--on", required=True, help="tasks, with commas")
    parser.add_argument("--split", choices=("test", "dev"), default="test")
    parser.add_argument("--seen", action="store_true", help="keep the pairs that are in STS-B too")
    asked = parser.parse_args()
    sets = read_tasks(asked.on.split(","), split=asked.split, seen=asked.seen)
    made = [evaluate_encoder(resolve_encoder(name), sets, name=name) for name in asked.encoder]
    for scores in made:
        print(scores, scores.to_frame().to_string(index=False), sep="\n")
    if len(made) > 1:
        print(score_differences(made).to_string(index=False))


if __name__ == "__main__":
    main()
