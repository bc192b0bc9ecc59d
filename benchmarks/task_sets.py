"""Sets of examples with known answers, and the scores of encoders on them, set by set."""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from embedtopics.evaluation._pairs import (
    checked_vectors,
    pair_class_scores,
    pair_similarities,
    rank_correlations,
)
from embedtopics.evaluation._retrieval import measure_rankings, rank_documents
from embedtopics.evaluation.results import Estimate
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


@dataclass(frozen=True, eq=False)
class TaskScore:
    """One score of an encoder on one set of examples."""

    task: str
    file: str
    metric: str
    estimate: Estimate


@dataclass(frozen=True, eq=False)
class TaskScores:
    """The scores of an encoder, and its speed."""

    name: str
    rows: tuple[TaskScore, ...]
    n_texts: int
    seconds: float
    fingerprints: Mapping[tuple[str, str], str]
    decisions: tuple[Decision, ...]
    seed: int

    @property
    def texts_per_second(self) -> float:
        """Distinct texts encoded per second."""
        return self.n_texts / self.seconds

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each score."""
        import pandas as pd

        rows = []
        for row in self.rows:
            one = row.estimate
            rows.append((row.task, row.file, row.metric, one.value, one.low, one.high, one.n))
        columns = ["task", "file", "metric", "value", "low", "high", "n"]
        return pd.DataFrame(rows, columns=columns)

    def __repr__(self) -> str:
        speed = f"{self.texts_per_second:,.0f} texts per second"
        return f"TaskScores({self.name!r}, {len(self.rows)} scores, {speed})"


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


def evaluate_encoder(
    encoder: Any,
    examples: TaskSet | Sequence[TaskSet],
    *,
    name: str | None = None,
    random_state: RandomState = 0,
) -> TaskScores:
    """Evaluate an encoder on examples with known answers.

    Each distinct text is encoded once. Scores of two encoders with the same `random_state` are
    paired; see `score_differences`.

    Parameters
    ----------
    encoder : Encoder
        With ``encode(texts)``. An unfitted encoder (`is_fitted` is False) is copied, and the copy
        is fitted to the texts of the examples.
    examples : TaskSet or sequence of TaskSet
        Such as those of `benchmarks.encoder_tasks`.
    name : str, optional
        Name of the encoder in the result; by default its own.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    TaskScores

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

    return TaskScores(
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


def score_differences(scores: Sequence[TaskScores]) -> pd.DataFrame:
    """Tabulate the differences of encoders from the first, with paired intervals.

    Parameters
    ----------
    scores : sequence of TaskScores
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
        for before, after in zip(first.rows, other.rows, strict=True):
            gain = difference_of(after.estimate, before.estimate)
            names = before.task, before.file, before.metric, other.name, first.name
            rows.append((*names, gain.value, gain.low, gain.high, gain.n))
    columns = ["task", "file", "metric", "encoder", "against", "difference", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns)
