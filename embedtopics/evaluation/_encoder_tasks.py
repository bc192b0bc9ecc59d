"""Evaluation of encoders on pairs of texts with scores or classes, and on judged queries."""

from __future__ import annotations

import copy
import hashlib
import inspect
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.progress import progress_bar
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import difference_of, mean_of_estimates, means_of_columns
from embedtopics.evaluation._files import TableFile, read_qrels, read_queries
from embedtopics.evaluation._pairs import (
    FEWEST_PAIRS,
    checked_vectors,
    pair_class_scores,
    pair_similarities,
    pearson_correlation,
    spearman_correlation,
)
from embedtopics.evaluation._retrieval import measure_rankings, rank_documents
from embedtopics.evaluation.results import EncoderScores, Estimate, TaskScore
from embedtopics.protocols import Float64Array, Int64Array, RandomState

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

WARMUP_TEXTS = 4
"""Texts that are encoded before timing starts: the first call may load a checkpoint."""

CUTS = (10, 100)
SHOWN = ("ndcg@10", "mrr@10", "map@100", "recall@10", "recall@100", "precision@10")


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskSet:
    """Columns of texts for an encoder, with known answers."""

    task: str
    file: str
    columns: tuple[tuple[str, ...], ...]
    decisions: tuple[Decision, ...] = ()
    reads: ClassVar[tuple[str, ...]] = ()
    """Role of each column, "query" or "document"; by default all are documents."""

    def examples(self) -> Iterator[Any]:
        """Yield the texts and the answer of one example at a time."""
        raise NotImplementedError

    def score(self, vectors: Sequence[Any], **resampling: Any) -> dict[str, Estimate]:
        """Measure the vectors of the columns; `resampling` is n_resamples and seed."""
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

    def score(self, vectors: Sequence[Any], **resampling: Any) -> dict[str, Estimate]:
        """Correlate the cosines with the scores; publications report the rank correlation."""
        near = pair_similarities(*vectors)
        return {
            "spearman_cosine": spearman_correlation(near, self.scores, **resampling),
            "pearson_cosine": pearson_correlation(near, self.scores, **resampling),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassedPairs(TaskSet):
    """Pairs of texts (two columns) that belong together (1) or not (0), shape (n_pairs,)."""

    labels: Int64Array

    def examples(self) -> Iterator[Any]:
        """Yield both texts and the label of each pair."""
        return zip(*self.columns, self.labels.tolist(), strict=True)

    def score(self, vectors: Sequence[Any], **resampling: Any) -> dict[str, Estimate]:
        """Measure how well the cosines separate the classes."""
        return pair_class_scores(pair_similarities(*vectors), self.labels, **resampling)


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchSet(TaskSet):
    """Queries and documents (two columns) with grades of relevance, (n_queries, n_documents)."""

    relevance: csr_matrix
    tie_order: Int64Array
    reads: ClassVar[tuple[str, ...]] = ("query", "document")

    def examples(self) -> Iterator[Any]:
        """Yield each query with its documents and their grades."""
        queries, documents = self.columns
        for row, query in enumerate(queries):
            part = slice(*self.relevance.indptr[row : row + 2])
            graded = zip(self.relevance.indices[part], self.relevance.data[part], strict=True)
            yield query, sorted((documents[place], float(grade)) for place, grade in graded)

    def score(self, vectors: Sequence[Any], **resampling: Any) -> dict[str, Estimate]:
        """Measure the ranking of the documents by cosine."""
        ranked, _ = rank_documents(vectors[0], vectors[1], max(CUTS), tie_order=self.tie_order)
        rows = np.repeat(np.arange(len(ranked)), ranked.shape[1])
        grades = np.asarray(self.relevance[rows, ranked.ravel()], dtype=np.float64)
        judged = np.split(self.relevance.data.astype(np.float64), self.relevance.indptr[1:-1])
        has_relevant = np.array([bool((one > 0).any()) for one in judged])
        if not has_relevant.any():
            raise InputError("relevance", "a relevant document for some query", found="none")
        measures = measure_rankings(grades.reshape(ranked.shape), judged, CUTS)
        columns = {name: values[has_relevant] for name, values in measures.items() if "@" in name}
        means = means_of_columns(columns, **resampling)
        return {name: means[name] for name in SHOWN}


def read_pairs(
    path: str | os.PathLike[str], columns: Sequence[str] = ("sentence1", "sentence2", "score")
) -> GradedPairs | ClassedPairs:
    """Read pairs of texts with scores or classes, for `evaluate_encoder`.

    Parameters
    ----------
    path : path
        A file that `Corpus.from_file` reads.
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
    if len(columns) != 3 or len(set(columns)) < 3:
        raise InputError("columns", "three names, of both texts and of the score", list(columns))
    rows = TableFile(Path(path).expanduser())
    texts = rows.texts(columns[0]), rows.texts(columns[1])
    scores = rows.numbers(columns[2])
    name = rows.path.name
    if len(scores) < FEWEST_PAIRS:
        raise InputError(name, f"at least {FEWEST_PAIRS} pairs", found=f"{len(scores)}")
    if (scores == scores[0]).all():
        value = f"{scores[0]:g} in all {len(scores)} rows"
        raise InputError(name, f"different scores in the column {columns[2]!r}", found=value)
    if set(scores.tolist()) <= {0.0, 1.0}:
        return ClassedPairs(task="pairs", file=name, columns=texts, labels=scores.astype(np.int64))
    return GradedPairs(task="pairs", file=name, columns=texts, scores=scores)


def read_retrieval_set(folder: str | os.PathLike[str], *, split: str = "test") -> SearchSet:
    """Read queries, documents and judgements from a folder in the layout of BEIR.

    Parameters
    ----------
    folder : path
        With corpus.jsonl (_id, text and perhaps title), queries.jsonl (_id, text) and
        qrels/SPLIT.tsv (query-id, corpus-id, score), each possibly with .gz; or in another format
        of `Corpus.from_file` and `retrieval`, such as corpus.csv and qrels/test.txt.
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
    texts_of = read_queries(_file_of(home, "queries"))
    corpus = TableFile(_file_of(home, "corpus"))
    id_column = next((name for name in ("_id", "id", "doc_id") if name in corpus.columns), "_id")
    ids = [str(cell) for cell in corpus.cells(id_column)]
    row_of = {name: row for row, name in enumerate(ids)}
    if len(row_of) < len(ids):
        raise InputError("folder", f"with different {id_column!r} in {corpus.path.name}")
    texts = corpus.texts("text", may_be_empty=True)
    if "title" in corpus.columns:
        titles = corpus.texts("title", may_be_empty=True)
        texts = tuple(f"{one} {two}".strip() for one, two in zip(titles, texts, strict=True))
    queries = [query for query in texts_of if query in qrels]
    if not queries:
        expected = f"judgements of one of the {len(texts_of):,} queries"
        raise InputError("folder", f"with {expected}", found="none")
    cells = []
    for row, query in enumerate(queries):
        for document, grade in qrels[query].items():
            if document not in row_of:
                expected = f"with judgements of documents in {corpus.path.name}"
                raise InputError("folder", expected, found=f"{document} for query {query}")
            cells.append((row, row_of[document], grade))
    rows, places, grades = zip(*cells, strict=True)
    order = np.empty(len(ids), dtype=np.int64)
    order[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return SearchSet(
        task="retrieval",
        file=home.name,
        columns=(tuple(texts_of[q] for q in queries), texts),
        relevance=csr_matrix((np.array(grades), (rows, places)), shape=(len(queries), len(ids))),
        tie_order=order,
    )


def evaluate_encoder(
    encoder: Any,
    examples: TaskSet | Sequence[TaskSet],
    *,
    name: str | None = None,
    n_resamples: int = 1000,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
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
    n_resamples : int
        Resamples for the intervals; 0 for none.
    random_state : None, int or numpy.random.Generator
    show_progress : bool, optional
        By default, if stderr is a terminal.

    Returns
    -------
    EncoderScores

    Raises
    ------
    InputError
        If the encoder does not return one finite vector per text.

    Examples
    --------
    >>> pairs = read_pairs("scored.csv")  # doctest: +SKIP
    >>> evaluate_encoder(SentenceEncoder(), pairs).to_frame()  # doctest: +SKIP
    """
    sets = [examples] if isinstance(examples, TaskSet) else list(examples)
    if not sets or not all(isinstance(one, TaskSet) for one in sets):
        raise InputError("examples", "sets from read_pairs or read_retrieval_set", examples)
    checked_count(n_resamples, "n_resamples", 0)
    seed = resolve_seed(random_state)
    kinds = [one.reads or ("document",) * len(one.columns) for one in sets]
    sets_by_role: dict[str, set[str]] = {"document": set(), "query": set()}
    for one, roles in zip(sets, kinds, strict=True):
        for kind, column in zip(roles, one.columns, strict=True):
            sets_by_role[kind].update(column)
    texts_by_role = {kind: sorted(some) for kind, some in sets_by_role.items()}
    texts = sorted(set().union(*sets_by_role.values()))
    decisions = [decision for one in sets for decision in one.decisions]
    if hasattr(encoder, "fit") and not getattr(encoder, "is_fitted", True):
        encoder = copy.copy(encoder).fit(texts)
        message = (
            "The encoder was fitted to the texts of all examples, without their answers; its "
            "scores depend on which sets are measured together."
        )
        decisions.append(Decision("evaluation", "fitted", len(texts), message))
    vectors, seconds = _encoded(encoder, texts_by_role, show_progress)
    row_of = {
        key: row for row, key in enumerate((k, t) for k in texts_by_role for t in texts_by_role[k])
    }
    scores: list[TaskScore] = []
    with progress_bar(
        total=len(sets), unit="set", description="Scoring", show=show_progress
    ) as bar:
        for one, roles in zip(sets, kinds, strict=True):
            rows = [
                np.array([row_of[kind, text] for text in column])
                for kind, column in zip(roles, one.columns, strict=True)
            ]
            own_seed = _seed_of(seed, f"{one.task} {one.file}")
            estimates = one.score(
                [vectors[r] for r in rows], n_resamples=n_resamples, seed=own_seed
            )
            scores += [TaskScore(one.task, one.file, metric, e) for metric, e in estimates.items()]
            undefined = [metric for metric, e in estimates.items() if np.isnan(e.value)]
            if undefined:
                message = (
                    f"{one.task}, {one.file}: {', '.join(undefined)} is not defined; are all "
                    "vectors equal?"
                )
                decision_name = f"{one.task}_{one.file}_not_defined"
                decisions.append(Decision("evaluation", decision_name, True, message))
            bar.update(1)
    encoder_name = getattr(encoder, "name", None)
    return EncoderScores(
        name=name or (encoder_name if isinstance(encoder_name, str) else type(encoder).__name__),
        rows=tuple(_with_means(scores)),
        n_texts=len(texts),
        seconds=seconds,
        fingerprints={(one.task, one.file): one.fingerprint() for one in sets},
        decisions=tuple(dict.fromkeys(decisions)),
        settings={"n_resamples": n_resamples, "seed": seed},
    )


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
        If the examples, the seed or the number of resamples differ.

    References
    ----------
    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", section 13.3.
    """
    import pandas as pd

    rows = []
    first = scores[0]
    for other in scores[1:]:
        if first.fingerprints != other.fingerprints or first.settings != other.settings:
            raise InputError(
                "scores",
                "of the same examples, resamples and random_state",
                found=f"others for {first.name} and {other.name}",
            )
        for before, after in zip(first, other, strict=True):
            gain = difference_of(after.estimate, before.estimate)
            rows.append(
                (
                    before.task,
                    before.file,
                    before.metric,
                    other.name,
                    first.name,
                    gain.value,
                    gain.low,
                    gain.high,
                    gain.n,
                )
            )
    columns = ["task", "file", "metric", "encoder", "against", "difference", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns)


def _encoded(
    encoder: Any, texts_by_role: Mapping[str, list[str]], show: bool | None
) -> tuple[Any, float]:
    """Return the vectors of all texts, documents first, and the seconds of encoding."""
    options, parts, seconds = {}, [], 0.0
    is_ours = hasattr(encoder, "reading")
    if is_ours or "show_progress" in inspect.signature(encoder.encode).parameters:
        options["show_progress"] = show
    for kind, texts in texts_by_role.items():
        encode = getattr(encoder, f"encode_{kind}", encoder.encode)
        if not texts:
            continue
        encode(texts[:WARMUP_TEXTS])
        began = time.perf_counter()
        parts.append(checked_vectors(encode(texts, **options), "vectors"))
        seconds += time.perf_counter() - began
        if parts[-1].shape[0] != len(texts):
            raise InputError("vectors", f"one for each of {len(texts):,} texts", parts[-1].shape[0])
    if len(parts) == 1:
        return parts[0], seconds
    from scipy.sparse import vstack

    return vstack(parts) if hasattr(parts[0], "toarray") else np.concatenate(parts), seconds


def _seed_of(seed: int, name: str) -> int:
    """Return a seed for a set: sets of equal size must not draw the same rows."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "big")


def _with_means(scores: list[TaskScore]) -> list[TaskScore]:
    """Add to each task of several sets the mean over its sets."""
    table: list[TaskScore] = []
    for task in dict.fromkeys(score.task for score in scores):
        of_task = [score for score in scores if score.task == task]
        table += of_task
        for metric in dict.fromkeys(score.metric for score in of_task):
            figures = [score.estimate for score in of_task if score.metric == metric]
            if len(figures) > 1:
                mean = mean_of_estimates(figures)
                table.append(TaskScore(task, "mean of sets", metric, mean))
    return table


def _file_of(folder: Path, stem: str) -> Path:
    """Return the one file of a stem, whatever its format."""
    paths = sorted((folder / stem).parent.glob(f"{Path(stem).name}.*"))
    if len(paths) != 1:
        there = ", ".join(path.name for path in paths) or "none"
        raise InputError("folder", f"with one file {stem}.*, such as .jsonl or .tsv", found=there)
    return paths[0]
