"""Encoders on tasks with known answers: every text encoded once, every figure with an interval."""

from __future__ import annotations

import copy
import hashlib
import inspect
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._progress import progress_bar
from embedtopics.errors import InputError
from embedtopics.evaluation.encoder_tasks.reading import SPLITS, TASKS
from embedtopics.evaluation.encoder_tasks.scoring import score_set
from embedtopics.evaluation.encoder_tasks.sets import TaskSet
from embedtopics.evaluation.estimates import difference_of, mean_of_estimates
from embedtopics.evaluation.vector_pairs import checked_vectors
from embedtopics.results import Decision, EncoderScores, TaskScore

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["evaluate_encoder", "read_tasks", "score_differences"]

WARMING_TEXTS = 4
"""Texts that are encoded before the clock starts, which loads a checkpoint."""

Looked = Callable[[str, str, str], None]


def read_tasks(
    tasks: str | Sequence[str],
    data: str | os.PathLike[str],
    *,
    split: str = "test",
    seen: bool = False,
) -> list[TaskSet]:
    """Read the sets of some tasks from a folder of data sets.

    Parameters
    ----------
    tasks : str or sequence of str
        Names of tasks, or one.
    data : path
        With a folder for each data set.
    split : {"test", "dev"}
    seen : bool
        Whether pairs that are in STS-B too stay in the task sts12_14. Encoders often learned from
        STS-B, so they are left out by default; published figures are with them.

    Returns
    -------
    list of TaskSet

    Raises
    ------
    InputError
        For a task that is not known, a folder or file that is not there, or rows that are broken.
    """
    names = [tasks] if isinstance(tasks, str) else list(tasks)
    folder = Path(data).expanduser()
    if split not in SPLITS:
        raise InputError(f"expected a split among {', '.join(SPLITS)}; got {split!r}")
    if not folder.is_dir():
        raise InputError(
            f"expected a folder of data sets; {folder} is not there or is a file; check the path"
        )
    there = [name for name, (home, _) in TASKS.items() if (folder / home).is_dir()]
    if not names:
        raise InputError(f"expected tasks; {folder} has {', '.join(there) or 'none'}")
    for name in names:
        if name not in TASKS:
            raise InputError(
                f"there is no task {name!r}; {folder} has {', '.join(there) or 'none'}"
            )
        if name not in there:
            raise InputError(
                f"the task {name} needs the folder {folder / TASKS[name][0]}, which is not there; "
                f"{folder} has {', '.join(there) or 'no task'}"
            )
    return [one for name in dict.fromkeys(names) for one in TASKS[name][1](folder, split, seen)]


def evaluate_encoder(
    encoder: Any,
    tasks: str | Sequence[str] | Sequence[TaskSet],
    data: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    split: str = "test",
    seen: bool = False,
    n_resamples: int = 1000,
    seed: int = 0,
    show_progress: bool | None = None,
    looked: Looked | None = None,
) -> EncoderScores:
    """Measure an encoder on tasks with known answers.

    Each distinct text of all tasks is encoded once. Figures of two encoders from one seed are
    paired, see `score_differences`.

    Parameters
    ----------
    encoder : Encoder
        With ``encode(texts)``. One that learns from texts and has not (`is_fitted` is False)
        learns, in a copy, from those of the tasks.
    tasks : str, sequence of str, or sequence of TaskSet
        Names of tasks that are read from `data`, or sets that were read.
    data : path, optional
        Folder of data sets; see `read_tasks`.
    name : str, optional
        Of the encoder in the result; its own, if left out.
    split, seen
        See `read_tasks`.
    n_resamples : int
        For the intervals; 0 for none.
    seed : int
    show_progress : bool, optional
        By default, where stderr is a terminal.
    looked : callable, optional
        Called once with task, file and fingerprint of each set that was scored, such as to count
        how often a test set was looked at.

    Returns
    -------
    EncoderScores

    Raises
    ------
    InputError
        As `read_tasks`, or where the vectors are not one finite row a text.
    """
    sets = _sets(tasks, data, split, seen)
    texts = sorted({text for one in sets for column in one.columns for text in column})
    decisions = [decision for one in sets for decision in one.decisions]
    if hasattr(encoder, "fit") and not getattr(encoder, "is_fitted", True):
        encoder = copy.copy(encoder).fit(texts)
        message = (
            "The encoder learned from the texts of all tasks, without their answers; its figures "
            "depend on which tasks are measured together."
        )
        decisions.append(Decision("evaluation", "fitted", len(texts), message))
    vectors, seconds = _encoded(encoder, texts, show_progress)
    row_of = {text: row for row, text in enumerate(texts)}
    scores: list[TaskScore] = []
    fingerprints = {}
    with progress_bar(
        total=len(sets), unit="set", description="Scoring", show=show_progress
    ) as bar:
        for one in sets:
            rows = [np.array([row_of[text] for text in column]) for column in one.columns]
            drawn_from = _seed_of(seed, one.twin or f"{one.task} {one.file}")
            how = {"n_resamples": n_resamples, "seed": drawn_from}
            found = score_set(one, [vectors[r] for r in rows], how, decisions)
            scores += [TaskScore(one.task, one.file, metric, e) for metric, e in found.items()]
            if not one.pooled:
                fingerprints[one.task, one.file] = one.fingerprint()
            bar.update(1)
    if looked is not None:
        for (task, file), fingerprint in fingerprints.items():
            looked(task, file, fingerprint)
    given = getattr(encoder, "name", None)
    return EncoderScores(
        name=name or (given if isinstance(given, str) else type(encoder).__name__),
        scores=tuple(_with_means(scores, sets)),
        n_texts=len(texts),
        seconds=seconds,
        fingerprints=fingerprints,
        decisions=tuple(dict.fromkeys(decisions)),
        settings={"split": split, "seen": seen, "n_resamples": n_resamples, "seed": seed},
    )


def score_differences(scores: Sequence[EncoderScores]) -> pd.DataFrame:
    """Tabulate by how much encoders differ from the first, with paired intervals.

    Parameters
    ----------
    scores : sequence of EncoderScores
        Of the same tasks, from one seed.

    Returns
    -------
    DataFrame
        Columns task, file, metric, encoder, against, difference, low, high (a 95 % interval) and
        n. An interval that holds 0 shows no difference.

    Raises
    ------
    InputError
        Where the examples, the seed or the number of resamples differ.

    References
    ----------
    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", section 13.3.
    """
    import pandas as pd

    rows = []
    for other in scores[1:]:
        first = scores[0]
        same = ("seed", "n_resamples")
        if first.fingerprints != other.fingerprints or any(
            first.settings.get(key) != other.settings.get(key) for key in same
        ):
            raise InputError(
                f"expected scores of the same examples and seed; those of {first.name} and "
                f"{other.name} differ; evaluate both on the same tasks"
            )
        for before, after in zip(first.scores, other.scores, strict=True):
            apart = difference_of(after.estimate, before.estimate)
            rows.append(
                (before.task, before.file, before.metric, other.name, first.name, apart.value,
                 apart.low, apart.high, apart.n)
            )  # fmt: skip
    columns = ["task", "file", "metric", "encoder", "against", "difference", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns)


def _sets(tasks: Any, data: Any, split: str, seen: bool) -> list[TaskSet]:
    if not isinstance(tasks, str) and tasks and all(isinstance(t, TaskSet) for t in tasks):
        return list(tasks)
    if data is None:
        raise InputError(
            "expected the folder of data sets that the tasks are read from; give it as data="
        )
    return read_tasks(tasks, data, split=split, seen=seen)


def _encoded(encoder: Any, texts: list[str], show: bool | None) -> tuple[Any, float]:
    """Return a vector for each text, and the seconds that took."""
    options = {}
    if "show_progress" in inspect.signature(encoder.encode).parameters:
        options["show_progress"] = show
    encoder.encode(texts[:WARMING_TEXTS])
    began = time.perf_counter()
    vectors = checked_vectors(encoder.encode(texts, **options), "text")
    seconds = time.perf_counter() - began
    if vectors.shape[0] != len(texts):
        raise InputError(
            f"expected a vector for each of {len(texts):,} texts; the encoder returned "
            f"{vectors.shape[0]:,}"
        )
    return vectors, seconds


def _seed_of(seed: int, name: str) -> int:
    """Return a seed of its own for a set: sets in one order must not be drawn alike."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "big")


def _with_means(scores: list[TaskScore], sets: list[TaskSet]) -> list[TaskScore]:
    """Add to each task of several sets the mean of its sets, and of its years where it has them."""
    of = {(one.task, one.file): one for one in sets}
    made: list[TaskScore] = []
    for task in dict.fromkeys(score.task for score in scores):
        own = [score for score in scores if score.task == task]
        made += own
        means: dict[str, list[TaskScore]] = {
            "mean of sets": [s for s in own if not of[task, s.file].pooled]
        }
        pooled = [s for s in own if of[task, s.file].pooled]
        if pooled:
            covered = {of[task, s.file].pool for s in pooled}
            alone = [s for s in means["mean of sets"] if of[task, s.file].pool not in covered]
            means["mean of years"] = [*alone, *pooled]
        for name, parts in means.items():
            for metric in dict.fromkeys(score.metric for score in own):
                of_metric = [score.estimate for score in parts if score.metric == metric]
                if len(of_metric) > 1:
                    made.append(TaskScore(task, name, metric, mean_of_estimates(of_metric)))
    return made
