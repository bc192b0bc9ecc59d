"""Texts with known answers, in the forms in which encoders are measured."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int64Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "ClassedPairs",
    "GradedPairs",
    "InferencePairs",
    "LabelledTexts",
    "SearchSet",
    "TaskSet",
    "Translations",
]


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskSet:
    """Texts of one set of a task; the answers are in the classes below.

    Parameters
    ----------
    task : str
    file : str
        File or set within the task.
    columns : tuple of tuple of str
        Texts; columns of pairs have one length.
    twin : str
        Sets of one name have the same examples row by row, such as translations of one another:
        the same rows are drawn for their intervals. By default the set is its own.
    pooled : bool
        Whether its examples are those of other sets, put together.
    pool : str
        Year, where sets are put together by year.
    decisions : tuple of Decision
    """

    task: str
    file: str
    columns: tuple[tuple[str, ...], ...]
    twin: str = ""
    pooled: bool = False
    pool: str = ""
    decisions: tuple[Decision, ...] = ()

    def examples(self) -> Iterator[Any]:
        """Yield what is asked and what is right, one example at a time."""
        raise NotImplementedError

    def fingerprint(self) -> str:
        """Return the SHA-256 of the examples, whatever their order.

        By which somebody can count how often these were looked at.
        """
        rows = sorted(
            hashlib.sha256(repr(example).encode("utf-8", "surrogatepass")).digest()
            for example in self.examples()
        )
        return hashlib.sha256(type(self).__name__.encode() + b"".join(rows)).hexdigest()


@dataclass(frozen=True, eq=False, kw_only=True)
class GradedPairs(TaskSet):
    """Pairs of texts with a score of people: columns first and second.

    Parameters
    ----------
    scores : float64 ndarray of shape (n_pairs,)
    """

    scores: npt.NDArray[np.float64]

    def examples(self) -> Iterator[Any]:
        """Yield both texts and the score of each pair."""
        return zip(*self.columns, self.scores.tolist(), strict=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassedPairs(TaskSet):
    """Pairs of texts that belong together, or do not: columns first and second.

    Parameters
    ----------
    labels : int64 ndarray of shape (n_pairs,)
        1 where they belong together, else 0.
    """

    labels: Int64Array

    def examples(self) -> Iterator[Any]:
        """Yield both texts and the label of each pair."""
        return zip(*self.columns, self.labels.tolist(), strict=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class InferencePairs(TaskSet):
    """Premises and hypotheses to learn from, and others to be told.

    The columns are premises and hypotheses of the training pairs, then those of the test pairs.

    Parameters
    ----------
    train_labels, labels : int64 ndarray of shape (n_train,), of shape (n_test,)
        Places in `names`.
    names : tuple of str
    """

    train_labels: Int64Array
    labels: Int64Array
    names: tuple[str, ...]

    def examples(self) -> Iterator[Any]:
        """Yield premise, hypothesis and class of each test pair."""
        named = [self.names[label] for label in self.labels.tolist()]
        return zip(*self.columns[2:], named, strict=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchSet(TaskSet):
    """Queries and the documents that answer them: columns queries and documents.

    Parameters
    ----------
    relevance : csr_matrix of shape (n_queries, n_documents)
    tie_order : int64 ndarray of shape (n_documents,)
        Of documents that are equally near to a query, the lowest comes first.
    """

    relevance: csr_matrix
    tie_order: Int64Array

    def examples(self) -> Iterator[Any]:
        """Yield each query with its documents and their grades."""
        queries, documents = self.columns
        for row, query in enumerate(queries):
            part = slice(*self.relevance.indptr[row : row + 2])
            places, grades = self.relevance.indices[part], self.relevance.data[part]
            yield (
                query,
                sorted(
                    (documents[place], float(grade))
                    for place, grade in zip(places.tolist(), grades.tolist(), strict=True)
                ),
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class Translations(TaskSet):
    """Texts and their translations, row by row: a column for each language."""

    def examples(self) -> Iterator[Any]:
        """Yield each text with its translation."""
        return zip(*self.columns, strict=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledTexts(TaskSet):
    """Texts with a class each: one column.

    Parameters
    ----------
    labels : int64 ndarray of shape (n_texts,)
        Places in `names`.
    names : tuple of str
    """

    labels: Int64Array
    names: tuple[str, ...]

    def examples(self) -> Iterator[Any]:
        """Yield each text with its class."""
        named = [self.names[label] for label in self.labels.tolist()]
        return zip(*self.columns, named, strict=True)
