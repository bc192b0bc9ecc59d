"""The data sets on which encoders are measured, read from one folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.evaluation.encoder_tasks.sets import (
    GradedPairs,
    InferencePairs,
    LabelledTexts,
    SearchSet,
    TaskSet,
    Translations,
)
from embedtopics.evaluation.encoder_tasks.tables import Rows, by_hash, numbered
from embedtopics.results import Decision

__all__ = ["MOST_TRAINED", "SPLITS", "TASKS"]

SPLITS = ("test", "dev")

MOST_TRAINED = 10_000
"""Training pairs for the classifier of a task of inference; more hardly change its accuracy."""

MOST_TITLES = 5_000

OF_STS, OF_SICK = (0.0, 5.0), (1.0, 5.0)
"""Lowest and highest score that people could give."""

Reader = Callable[[Path, str, bool], list[TaskSet]]


def _stsb(language: str, folder: Path, split: str, seen: bool) -> list[TaskSet]:
    rows = Rows(folder / "stsb" / f"{language}_{split}.jsonl.gz")
    task = "stsb" if language == "en" else f"stsb_{language}"
    columns = rows.texts("sentence1"), rows.texts("sentence2")
    return [
        GradedPairs(
            task=task, file=split, columns=columns, scores=rows.scores("score", OF_STS),
            twin=f"stsb {split}",
        )
    ]  # fmt: skip


def _sts12_14(folder: Path, split: str, seen: bool) -> list[TaskSet]:
    """Each set alone, and the sets of a year together, which is what is published of a year."""
    wanted = "test" if split == "test" else "train"  # only 2012 has other pairs than its test
    rows = Rows(folder / "sts12_14" / "sts12_14.jsonl.gz").where("split", wanted)
    n_all = len(rows)
    decisions: tuple[Decision, ...] = ()
    if not seen:
        rows = rows.where("in_stsb", False)
        left_out = n_all - len(rows)
        message = (
            f"sts12_14: {left_out:,} of {n_all:,} pairs are in STS-B, which encoders often learn "
            "from, and were left out."
        )
        decisions = (Decision("evaluation", "sts12_14_in_stsb", left_out, message),)
    made: list[TaskSet] = []
    for year in sorted(set(rows.cells("year"))):
        of_year = rows.where("year", year)
        names = sorted(set(of_year.cells("set")))
        for name in names:
            of_set = of_year.where("set", name)
            made.append(
                _graded("sts12_14", f"{year} {name}", of_set, pool=str(year), decisions=decisions)
            )
        if len(names) > 1:
            made.append(_graded("sts12_14", f"{year} pooled", of_year, pool=str(year), pooled=True))
    return made


def _graded(task: str, file: str, rows: Rows, **options: Any) -> GradedPairs:
    columns = rows.texts("sentence1"), rows.texts("sentence2")
    return GradedPairs(
        task=task, file=file, columns=columns, scores=rows.scores("score", OF_STS), **options
    )


_SICK_SPLITS = {"test": "test", "dev": "trial"}


def _sick(folder: Path, split: str, seen: bool) -> list[TaskSet]:
    rows = Rows(folder / "sick" / "sick.jsonl.gz").where("split", _SICK_SPLITS[split])
    columns = rows.texts("sentence_a"), rows.texts("sentence_b")
    scores = rows.scores("relatedness", OF_SICK)
    return [GradedPairs(task="sick", file=split, columns=columns, scores=scores)]


def _sick_nli(folder: Path, split: str, seen: bool) -> list[TaskSet]:
    rows = Rows(folder / "sick" / "sick.jsonl.gz")
    train = rows.where("split", "train")
    test = rows.where("split", _SICK_SPLITS[split])
    return [_inference("sick_nli", split, train, test, ("sentence_a", "sentence_b"))]


def _nli(task: str, files: dict[str, str], folder: Path, split: str, seen: bool) -> list[TaskSet]:
    """Read a task of inference; `files` names that of each split which it has."""
    file = files.get(split) or files["dev"]
    train, test = (Rows(folder / task / f"{name}.jsonl.gz") for name in (files["train"], file))
    decisions: tuple[Decision, ...] = ()
    if split not in files:
        message = f"{task}: there is no {split} split; {file} was used."
        decisions = (Decision("evaluation", f"{task}_split", file, message),)
    return [_inference(task, file, train, test, ("premise", "hypothesis"), decisions)]


def _xnli(language: str, folder: Path, split: str, seen: bool) -> list[TaskSet]:
    if split == "dev":
        raise InputError(
            "xnli has only validation pairs, which its classifier learns from, and test pairs; "
            "use the test split, or leave xnli out"
        )
    train, test = (
        Rows(folder / "xnli" / f"{language}_{name}.jsonl.gz") for name in ("validation", "test")
    )
    task = "xnli" if language == "en" else f"xnli_{language}"
    return [_inference(task, "test", train, test, ("premise", "hypothesis"), twin="xnli test")]


def _mpe(folder: Path, split: str, seen: bool) -> list[TaskSet]:
    train, test = (Rows(folder / "mpe" / f"{name}.jsonl.gz") for name in ("train", split))
    return [_inference("mpe", split, train, test, ("premises", "hypothesis"))]


def _inference(
    task: str,
    file: str,
    train: Rows,
    test: Rows,
    names: tuple[str, str],
    decisions: tuple[Decision, ...] = (),
    twin: str = "",
) -> InferencePairs:
    of_train, of_test = ([_joined(rows, names[0]), rows.texts(names[1])] for rows in (train, test))
    told = train.texts("label")
    chosen, left_out = by_hash([*of_train, told], MOST_TRAINED, "training pairs", task)
    learnt = [tuple(column[place] for place in chosen.tolist()) for column in of_train]
    known, classes = numbered([told[place] for place in chosen.tolist()])
    where = f"{task}, {test.path.name}"
    labels, _ = numbered(test.texts("label"), classes, where=where)
    return InferencePairs(
        task=task, file=file, columns=(*learnt, *of_test), train_labels=known, labels=labels,
        names=classes, decisions=(*decisions, *left_out), twin=twin,
    )  # fmt: skip


def _joined(rows: Rows, column: str) -> tuple[str, ...]:
    """Return premises; several of one pair, descriptions of one picture, follow one another."""
    if column != "premises":
        return rows.texts(column)
    return tuple(" ".join(parts) for parts in rows.lists(column))


def _scifact(folder: Path, split: str, seen: bool) -> list[TaskSet]:
    decisions: tuple[Decision, ...] = ()
    wanted = "test"
    if split == "dev":
        wanted = "train"
        message = "scifact: there is no dev split; the claims of its training split were used."
        decisions = (Decision("evaluation", "scifact_split", wanted, message),)
    at = folder / "scifact"
    queries = Rows(at / "queries.jsonl.gz").where("split", wanted)
    corpus = Rows(at / "corpus.jsonl.gz")
    texts = tuple(
        f"{title} {text}".strip()
        for title, text in zip(
            *(corpus.texts(c, some_empty=True) for c in ("title", "text")), strict=True
        )
    )
    judged = Rows(at / "qrels.jsonl.gz").where("split", wanted)
    return [_search("scifact", wanted, queries, corpus, texts, judged, decisions)]


def _cranfield(folder: Path, split: str, seen: bool) -> list[TaskSet]:
    """All queries, whatever the split; relevant or not, as the grades can be read both ways."""
    at = folder / "cranfield"
    queries, corpus, judged = (
        Rows(at / f"{name}.jsonl.gz") for name in ("queries", "corpus", "qrels")
    )
    judged = judged.at(np.flatnonzero(judged.numbers("code") > 0))
    message = "cranfield: it has no splits; all queries were used."
    decisions = (Decision("evaluation", "cranfield_split", "all", message),)
    texts = corpus.texts("text", some_empty=True)
    return [_search("cranfield", "all", queries, corpus, texts, judged, decisions)]


def _search(
    task: str,
    file: str,
    queries: Rows,
    corpus: Rows,
    texts: tuple[str, ...],
    judged: Rows,
    decisions: tuple[Decision, ...],
) -> SearchSet:
    from scipy.sparse import csr_matrix

    of_query, of_document = queries.names("query_id"), corpus.names("doc_id")
    pairs = []
    for query, document in zip(judged.cells("query_id"), judged.cells("doc_id"), strict=True):
        if query not in of_query or document not in of_document:
            raise InputError(
                f"{judged.path}: expected judgements of queries and documents that are there; got "
                f"query {query!r} and document {document!r}"
            )
        pairs.append((of_query[query], of_document[document]))
    rows, columns = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2).T
    shape = (len(queries), len(corpus))
    relevance = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
    order = np.empty(len(corpus), dtype=np.int64)
    ids = [str(name) for name in corpus.cells("doc_id")]
    order[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return SearchSet(
        task=task, file=file, columns=(queries.texts("text"), texts), relevance=relevance,
        tie_order=order, decisions=decisions,
    )  # fmt: skip


def _multi30k(folder: Path, split: str, seen: bool) -> list[TaskSet]:
    name = {"test": "test_2016_flickr", "dev": "val"}[split]
    rows = Rows(folder / "multi30k" / f"translations_{name}.jsonl.gz")
    return [
        Translations(
            task="multi30k", file=f"en-{code}", columns=(rows.texts("en"), rows.texts(code)),
            twin=f"multi30k {split}",
        )
        for code in ("fr", "de")
    ]  # fmt: skip


def _titles(folder: Path, split: str, seen: bool) -> list[TaskSet]:
    rows = Rows(folder / "stackoverflow_titles" / "stackoverflow_titles.jsonl.gz")
    task = "stackoverflow_titles"
    chosen, decisions = by_hash(
        [rows.texts("text"), rows.texts("label")], MOST_TITLES, "titles", task
    )
    rows = rows.at(chosen)
    labels, names = numbered(rows.texts("label"))
    if len(names) < 2:
        raise InputError(
            f"{rows.path.name}: expected titles of at least two classes, got {names[0]} alone"
        )
    return [
        LabelledTexts(
            task=task, file="all", columns=(rows.texts("text"),), labels=labels, names=names,
            decisions=decisions,
        )
    ]  # fmt: skip


_HELD_OUT = {"train": "train", "dev": "dev", "test": "test"}

TASKS: dict[str, tuple[str, Reader]] = {
    "stsb": ("stsb", partial(_stsb, "en")),
    "stsb_fr": ("stsb", partial(_stsb, "fr")),
    "stsb_de": ("stsb", partial(_stsb, "de")),
    "sts12_14": ("sts12_14", _sts12_14),
    "sick": ("sick", _sick),
    "sick_nli": ("sick", _sick_nli),
    "lingnli": ("lingnli", partial(_nli, "lingnli", {"train": "train", "dev": "val"})),
    "multinli_sample": (
        "multinli_sample", partial(_nli, "multinli_sample", {"train": "train", "dev": "dev"})
    ),
    "snli_counterfactual": (
        "snli_counterfactual", partial(_nli, "snli_counterfactual", _HELD_OUT)
    ),
    "rte": ("rte", partial(_nli, "rte", {"train": "train", "dev": "dev"})),
    "mpe": ("mpe", _mpe),
    "xnli": ("xnli", partial(_xnli, "en")),
    "xnli_fr": ("xnli", partial(_xnli, "fr")),
    "xnli_de": ("xnli", partial(_xnli, "de")),
    "scifact": ("scifact", _scifact),
    "cranfield": ("cranfield", _cranfield),
    "multi30k": ("multi30k", _multi30k),
    "stackoverflow_titles": ("stackoverflow_titles", _titles),
}  # fmt: skip
"""Folder of each task below that of the data, and what reads its sets."""
