"""What a step decided on the user's behalf, and the files that an export wrote."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Decision:
    """One thing that the pipeline decided, or noticed, on the user's behalf.

    Parameters
    ----------
    stage : str
        Stage or subpackage that decided, such as "corpus", "encoder", "clustering" or "training".
    name : str
        Short stable key, such as "duplicates" or "truncated".
    value : int, float, str, bool or list of str
        The figure or choice, for programs.
    message : str
        The same in one sentence, for people.

    Examples
    --------
    >>> import embedtopics as et
    >>> corpus = et.Corpus(["A text.", "Another one."])[:1]
    >>> [(decision.name, decision.message) for decision in corpus.decisions]
    [('rows_taken', '1 of 2 rows were taken.')]
    """

    stage: str
    name: str
    value: Any
    message: str


@dataclass(frozen=True)
class Exported:
    """Files that were written, and what had to be changed for their format.

    Parameters
    ----------
    paths : tuple of Path
    decisions : tuple of Decision
        One for each kind of change, with the number of cells or the columns that it concerns.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     exported = et.topics.export(model, f"{folder}/topics.csv", what="topics")
    >>> [path.name for path in exported.paths]
    ['topics.csv']
    """

    paths: tuple[Path, ...]
    decisions: tuple[Decision, ...] = ()


def counted(stage: str, name: str, n: int, message: str) -> list[Decision]:
    """Return a decision about some rows, or nothing if there are none."""
    return [Decision(stage, name, n, f"{n:,} {message}")] if n else []
