"""Evaluation of encoders on pairs of texts with scores or classes, and on judged queries."""

from __future__ import annotations

import copy
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from embedtopics._utils.checks import resolve_seed
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import (
    N_RESAMPLES,
    difference_of,
    estimate_of_counts,
    means_of_columns,
)
from embedtopics.evaluation._files import TableFile, read_qrels, read_queries
from embedtopics.evaluation._pairs import (
    checked_vectors,
    pair_class_scores,
    pair_similarities,
    rank_correlations,
)
from embedtopics.evaluation._retrieval import measure_rankings, rank_documents
from embedtopics.evaluation.results import EncoderScores, Estimate, TaskScore
from embedtopics.protocols import BoolArray, Float64Array, Int64Array, RandomState
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

WARMUP_TEXTS = 4
"""Texts that are encoded before timing starts: the first call may load a checkpoint."""

FEWEST_PAIRS = 3
"""Pairs that a correlation needs."""

CUTS = (10, 100)
SHOWN = ("ndcg@10", "mrr@10", "map@100", "recall@10", "recall@100", "precision@10")


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskSet:
    """Columns of texts for an encoder, with known answers."""

    task: str
    file: str
    columns: tuple[tuple[str, ...], ...]
    decisions: tuple[Decision, ...] = ()
    roles: ClassVar[tuple[str, ...]] = ()
    """Role of each column, "query" or "document"; by default all are documents."""

    def examples(self) -> Iterator[Any]:
        """Yield the texts and the answer of one example at a time."""
        raise NotImplementedError

    def score(self, vectors: Sequence[Any], seed: int) -> dict[str, Estimate]:
        """Measure the vectors of the columns."""
        raise NotImplementedError

    def fingerprint(self) -> str:
        """Return the SHA-256 of the examples, independent of their order."""
        rows = sorted(
            hashlib.sha256(repr(example).encode("utf-8", "surrogatepass")).digest()
            for example in self.examples()
        )
        return hashlib.sha256(type(self).__name__.encode() + b"".join(rows)).hexdigest()


@dataclass(frozen=True, eq=False, kw_only=True)
class GradedPairs(TaskSet):
    """Pairs of texts (two columns) with scores of people, shape (n_pairs,)."""

    scores: Float64Array

    def examples(self) -> Iterator[Any]:
        """Yield both texts and the score of each pair."""
        return zip(*self.columns, self.scores.tolist(), strict=True)

    def score(self, vectors: Sequence[Any], seed: int) -> dict[str, Estimate]:
        """Correlate the ranks of cosines and scores (Spearman 1904)."""
        measure = rank_correlations(pair_similarities(*vectors), self.scores)
        n = len(self.scores)
        correlation = estimate_of_counts(measure, n, N_RESAMPLES, seed, bounds=(-1.0, 1.0))
        return {"spearman_cosine": correlation}


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassedPairs(TaskSet):
    """Pairs of texts (two columns) that belong together or not, shape (n_pairs,)."""

    is_pair: BoolArray

    def examples(self) -> Iterator[Any]:
        """Yield both texts and the label, 0 or 1, of each pair."""
        return zip(*self.columns, self.is_pair.astype(int).tolist(), strict=True)

    def score(self, vectors: Sequence[Any], seed: int) -> dict[str, Estimate]:
        """Measure how well the cosines separate the classes."""
        return pair_class_scores(pair_similarities(*vectors), self.is_pair, seed)


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchSet(TaskSet):
    """Queries and documents (two columns) with grades of relevance, (n_queries, n_documents)."""

    relevance: csr_matrix
    tie_order: Int64Array
    roles: ClassVar[tuple[str, ...]] = ("query", "document")

    def examples(self) -> Iterator[Any]:
        """Yield each query with its documents and their grades."""
        queries, documents = self.columns
        for row, query in enumerate(queries):
            part = slice(*self.relevance.indptr[row : row + 2])
            graded = zip(self.relevance.indices[part], self.relevance.data[part], strict=True)
            yield query, sorted((documents[place], float(grade)) for place, grade in graded)

    def score(self, vectors: Sequence[Any], seed: int) -> dict[str, Estimate]:
        """Measure the ranking of the documents by cosine, over queries with relevant documents."""
        ranked, _ = rank_documents(vectors[0], vectors[1], max(CUTS), tie_order=self.tie_order)
        rows = np.repeat(np.arange(len(ranked)), ranked.shape[1])
        grades = np.asarray(self.relevance[rows, ranked.ravel()], dtype=np.float64)
        judged = np.split(self.relevance.data.astype(np.float64), self.relevance.indptr[1:-1])
        has_relevant = np.array([bool((one > 0).any()) for one in judged])
        if not has_relevant.any():
            raise InputError("relevance", "a relevant document for some query", found="none")
        measures = measure_rankings(grades.reshape(ranked.shape), judged, CUTS)
        return means_of_columns({name: measures[name][has_relevant] for name in SHOWN}, seed)


def read_pairs(
    path: str | os.PathLike[str], columns: Sequence[str] = ("sentence1", "sentence2", "score")
) -> GradedPairs | ClassedPairs:
    """Read pairs of texts with scores or classes, for `evaluate_encoder`.

    Parameters
    ----------
    path : path
        A file that `Corpus` reads.
    columns : sequence of str
        Columns of the first text, the second text, and the score, which is higher for more similar
        texts. Scores that are all 0 or 1 are classes.

    Returns
    -------
    TaskSet

    Raises
    ------
    InputError
        If the file or a column is missing, a cell is not a text or a number, there are fewer than
        three pairs, or all scores are equal.
    """
    first, second, score = columns
    file = TableFile(Path(path).expanduser())
    texts, scores = (file.texts(first), file.texts(second)), file.numbers(score)
    name = file.path.name
    if len(scores) < FEWEST_PAIRS or (scores == scores[0]).all():
        expected = f"at least {FEWEST_PAIRS} pairs with different scores"
        raise InputError(name, expected, found=f"{len(scores)} pairs with {set(scores.tolist())}")
    if set(scores.tolist()) <= {0.0, 1.0}:
        return ClassedPairs(task="pairs", file=name, columns=texts, is_pair=scores == 1)
    return GradedPairs(task="pairs", file=name, columns=texts, scores=scores)


def read_retrieval_set(folder: str | os.PathLike[str], *, split: str = "test") -> SearchSet:
    """Read queries, documents and judgements from a folder in the layout of BEIR.

    Parameters
    ----------
    folder : path
        With corpus.jsonl (_id, text and perhaps title), queries.jsonl (_id, text) and
        qrels/SPLIT.tsv (query-id, corpus-id, score), each possibly with .gz; or in another format
        of `Corpus` and `retrieval`, such as corpus.csv and qrels/test.txt.
    split : str

    Returns
    -------
    TaskSet
        The queries that have judgements.

    Raises
    ------
    InputError
        If a file is missing or cannot be read, or a judged document is not in the corpus.

    References
    ----------
    Thakur et al. (2021), "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information
    Retrieval Models".
    """
    from scipy.sparse import csr_matrix

    home = Path(folder).expanduser()
    qrels = read_qrels(_file_of(home, f"qrels/{split}"))
    queries = {q: text for q, text in read_queries(_file_of(home, "queries")).items() if q in qrels}
    corpus = TableFile(_file_of(home, "corpus"))
    ids = [str(cell) for cell in corpus.cells(corpus.first_of(["_id", "id", "doc_id"]))]
    row_of = {name: row for row, name in enumerate(ids)}
    if len(row_of) < len(ids):
        raise InputError("folder", f"with different ids in {corpus.path.name}")
    if not queries:
        raise InputError("folder", "with judgements of some of its queries", found="none")
    texts = corpus.texts("text", may_be_empty=True)
    if "title" in corpus.frame:
        titles = corpus.texts("title", may_be_empty=True)
        texts = tuple(f"{one} {two}".strip() for one, two in zip(titles, texts, strict=True))
    cells = [
        (row, row_of.get(str(document), -1), grade)
        for row, query in enumerate(queries)
        for document, grade in qrels[query].items()
    ]
    rows, places, grades = (np.array(column) for column in zip(*cells, strict=True))
    if (places < 0).any():
        expected = f"with judgements of documents in {corpus.path.name}"
        raise InputError("folder", expected, found=f"{(places < 0).sum():,} of others")
    order = np.empty(len(ids), dtype=np.int64)
    order[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return SearchSet(
        task="retrieval",
        file=home.name,
        columns=(tuple(queries.values()), texts),
        relevance=csr_matrix((grades, (rows, places)), shape=(len(queries), len(ids))),
        tie_order=order,
    )


def evaluate_encoder(
    encoder: Any,
    examples: TaskSet | Sequence[TaskSet],
    *,
    name: str | None = None,
    random_state: RandomState = 0,
) -> EncoderScores:
    """Evaluate an encoder on examples with known answers.

    Each distinct text is encoded once. Scores of two encoders with the same `random_state` are
    paired; see `score_differences`.

    Parameters
    ----------
    encoder : Encoder
        With ``encode(texts)``. An unfitted encoder (`is_fitted` is False) is copied, and the copy
        is fitted to the texts of the examples.
    examples : TaskSet or sequence of TaskSet
        From `read_pairs` or `read_retrieval_set`.
    name : str, optional
        Name of the encoder in the result; by default its own.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    EncoderScores

    Raises
    ------
    InputError
        If the encoder does not return one finite vector per text.
    """
    sets = [examples] if isinstance(examples, TaskSet) else list(examples)
    seed = resolve_seed(random_state)
    texts_by_role: dict[str, dict[str, None]] = {"document": {}, "query": {}}
    roles_of = [task_set.roles or ("document",) * len(task_set.columns) for task_set in sets]
    for task_set, roles in zip(sets, roles_of, strict=True):
        for role, column in zip(roles, task_set.columns, strict=True):
            texts_by_role[role] |= dict.fromkeys(column)

    texts = sorted(texts_by_role["document"] | texts_by_role["query"])
    decisions = [decision for task_set in sets for decision in task_set.decisions]

    if hasattr(encoder, "fit") and not getattr(encoder, "is_fitted", True):
        encoder = copy.copy(encoder).fit(texts)
        message = (
            "The encoder was fitted to the texts of all examples, without their answers; its "
            "scores depend on which sets are measured together."
        )
        decisions.append(Decision("evaluation", "fitted", len(texts), message))

    measure = getattr(encoder, "similarity_fn_name", None) or "cosine"
    if str(getattr(measure, "value", measure)) != "cosine":
        decisions += [
            decision
            for decision in getattr(encoder, "decisions", ())
            if decision.name == "similarity"
        ]

    vectors = {}
    seconds = 0.0
    for role, of_role in texts_by_role.items():
        vectors[role], taken = _encoded(encoder, role, sorted(of_role))
        seconds += taken
    row_of = {role: {t: i for i, t in enumerate(sorted(ts))} for role, ts in texts_by_role.items()}

    scores: list[TaskScore] = []
    for task_set, roles in zip(sets, roles_of, strict=True):
        columns = [
            vectors[role][[row_of[role][text] for text in column]]
            for role, column in zip(roles, task_set.columns, strict=True)
        ]
        # A seed for each set: sets of equal size must not draw the same rows.
        digest = hashlib.sha256(f"{seed} {task_set.task} {task_set.file}".encode()).digest()
        for metric, figure in task_set.score(columns, int.from_bytes(digest[:8], "big")).items():
            scores.append(TaskScore(task_set.task, task_set.file, metric, figure))
            if np.isnan(figure.value):
                set_name = f"{task_set.task}, {task_set.file}"
                message = f"{set_name}: {metric} is not defined; are all vectors equal?"
                decisions.append(Decision("evaluation", "not_defined", set_name, message))

    return EncoderScores(
        name=name or str(getattr(encoder, "name", type(encoder).__name__)),
        rows=tuple(scores),
        n_texts=len(texts),
        seconds=seconds,
        fingerprints={(task_set.task, task_set.file): task_set.fingerprint() for task_set in sets},
        decisions=tuple(dict.fromkeys(decisions)),
        seed=seed,
    )


def _encoded(encoder: Any, role: str, texts: list[str]) -> tuple[Any, float]:
    """Return the vectors of texts, and the seconds of encoding."""
    if not texts:
        return None, 0.0
    encode = getattr(encoder, f"encode_{role}", encoder.encode)
    encode(texts[:WARMUP_TEXTS])
    began = time.perf_counter()
    vectors = checked_vectors(encode(texts), "vectors")
    seconds = time.perf_counter() - began
    if vectors.shape[0] != len(texts):
        raise InputError("vectors", f"one for each of {len(texts):,} texts", vectors.shape[0])
    return vectors, seconds


def score_differences(scores: Sequence[EncoderScores]) -> pd.DataFrame:
    """Tabulate the differences of encoders from the first, with paired intervals.

    Parameters
    ----------
    scores : sequence of EncoderScores
        Scores with the same examples and the same `random_state`.

    Returns
    -------
    DataFrame
        Columns task, file, metric, encoder, against, difference, low, high (a 95 % interval) and
        n. An interval that holds 0 shows no difference.

    Raises
    ------
    InputError
        If the examples or the seed differ.
    """
    import pandas as pd

    rows = []
    first = scores[0]
    for other in scores[1:]:
        if first.fingerprints != other.fingerprints or first.seed != other.seed:
            found = f"others for {first.name} and {other.name}"
            raise InputError("scores", "of the same examples and random_state", found=found)
        for before, after in zip(first, other, strict=True):
            gain = difference_of(after.estimate, before.estimate)
            names = before.task, before.file, before.metric, other.name, first.name
            rows.append((*names, gain.value, gain.low, gain.high, gain.n))
    columns = ["task", "file", "metric", "encoder", "against", "difference", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns)


def _file_of(folder: Path, stem: str) -> Path:
    """Return the one file of a stem, whatever its format."""
    paths = sorted((folder / stem).parent.glob(f"{Path(stem).name}.*"))
    if len(paths) != 1:
        there = ", ".join(path.name for path in paths) or "none"
        raise InputError("folder", f"with one file {stem}.*, such as .jsonl or .tsv", found=there)
    return paths[0]
