"""The groups in which documents are coloured and scored: given labels, or topics found here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.clustering import DensityClusterer, cluster
from embedtopics.comparison._log import Log
from embedtopics.comparison.maps import narrow
from embedtopics.comparison.vectors import Vectors
from embedtopics.corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array
from embedtopics.reduction import layout, principal_start, springs_of
from embedtopics.results import NOISE, DistinctDocuments, TokenStream
from embedtopics.terms import (
    ClassTfidf,
    count_by_topic,
    count_terms,
    function_words,
    keywords,
    make_labels,
    stop_words_for,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["Groups", "dense_groups", "find_topics", "given_groups", "scored_classes"]

N_COMPONENTS = 5
"""Dimensions in which documents are clustered, as by the topic model."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of documents.

    Parameters
    ----------
    of_document : int32 ndarray of shape (n_documents,)
        A place in `names`; -1 where there is none.
    names : tuple of str
        The largest group first, ties by name.
    grouped_by : str
        Where they come from, for people.
    """

    of_document: Int32Array
    names: tuple[str, ...]
    grouped_by: str


def given_groups(log: Log, labels: Any, corpus: Corpus) -> Groups:
    """Read the labels of the rows, one for each document.

    Rows that share a text share the label that most of them have, of equals the first in the
    alphabet.

    Parameters
    ----------
    log : Log
    labels : str or array_like of shape (n_rows,)
        A column of the corpus, or a label a row; None, NaN and empty strings are none.
    corpus : Corpus

    Returns
    -------
    Groups

    Raises
    ------
    InputError
        Where there is no such column, the length is wrong, or fewer than two labels are there.
    """
    if isinstance(labels, str):
        columns = list(corpus.metadata.columns)
        if labels not in columns:
            shown = ", ".join(repr(column) for column in columns[:30]) or "none"
            raise InputError(
                f"{corpus.source}: expected a column of labels {labels!r}; got the columns {shown}"
            )
        values, grouped_by = corpus.metadata[labels].to_numpy(dtype=object), f'label "{labels}"'
    else:
        values, grouped_by = np.asarray(labels, dtype=object), "labels given"
        if values.shape != (len(corpus),):
            raise InputError(
                f"labels must be a column's name, or one label for each of the {len(corpus):,} "
                f"rows; got shape {values.shape}"
            )
    documents = corpus.distinct()
    of_document, n_conflicts = _labels_of_documents([_spell(v) for v in values], documents)
    if n_conflicts:
        log.note("comparison", "conflicting_labels", n_conflicts,
                 f"{n_conflicts:,} texts that repeat have rows of different labels; the most "
                 "frequent was taken.")  # fmt: skip
    sizes = Counter(label for label in of_document if label is not None)
    if len(sizes) < 2:
        raise InputError(
            f"a comparison by {grouped_by} needs at least two different labels; got "
            f"{len(sizes)} among {len(documents):,} texts; leave the labels out to compare without"
        )
    n_missing = of_document.count(None)
    if n_missing:
        log.note("comparison", "unlabelled", n_missing,
                 f"{n_missing:,} of {len(documents):,} texts have no label; they are on the maps, "
                 "and in no score by label.")  # fmt: skip
    names = tuple(sorted(sizes, key=lambda label: (-sizes[label], label)))
    place: dict[str | None, int] = {name: i for i, name in enumerate(names)}
    place[None] = NOISE
    return Groups(np.array([place[v] for v in of_document], dtype=np.int32), names, grouped_by)


def _spell(value: Any) -> str | None:
    """Return a label as a string; None where it is missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    if isinstance(value, (float, np.floating)) and value.is_integer():
        value = int(value)  # a column of whole numbers with gaps comes as 1.0, 2.0
    return " ".join(str(value).split()) or None


def _labels_of_documents(
    rows: Sequence[str | None], documents: DistinctDocuments
) -> tuple[list[str | None], int]:
    """Return the label of each document, and of how many the rows differ."""
    found: list[str | None] = [rows[row] for row in documents.first_rows.tolist()]
    votes: dict[int, Counter[str]] = {}
    repeated = documents.weights[documents.of_row] > 1
    for row in np.flatnonzero(repeated & (documents.of_row >= 0)).tolist():
        label = rows[row]
        counter = votes.setdefault(int(documents.of_row[row]), Counter())
        if label is not None:
            counter[label] += 1
    for document, counter in votes.items():
        found[document] = min(counter, key=lambda label: (-counter[label], label), default=None)
    return found, sum(len(counter) > 1 for counter in votes.values())


def scored_classes(log: Log, groups: Groups) -> Int32Array:
    """Return the class of each document for the scores: those of one document have none.

    Raises
    ------
    InputError
        Where fewer than two classes have two documents.
    """
    sizes = np.bincount(groups.of_document[groups.of_document >= 0], minlength=len(groups.names))
    single = np.flatnonzero(sizes == 1)
    if np.count_nonzero(sizes >= 2) < 2:
        raise InputError(
            f"scores by {groups.grouped_by} need at least two labels with two texts each; got "
            f"{np.count_nonzero(sizes >= 2)}; leave the labels out to compare without"
        )
    if len(single):
        shown = ", ".join(groups.names[i] for i in single[:5]) + (
            ", ..." if len(single) > 5 else ""
        )
        log.note("comparison", "single_labels", [groups.names[i] for i in single.tolist()],
                 f"{len(single):,} labels have one text each ({shown}): they are coloured, and in "
                 "no score.")  # fmt: skip
    return np.where(np.isin(groups.of_document, single), NOISE, groups.of_document).astype(np.int32)


def find_topics(
    vectors: Vectors,
    edges: csr_matrix,
    documents: DistinctDocuments,
    tokens: TokenStream,
    languages: Sequence[str],
    seed: int,
) -> Groups:
    """Find the dense groups of one encoder's documents, named by their words.

    This is the simple way through the topic model: no document outside the dense cores joins.

    Parameters
    ----------
    vectors : Vectors
    edges : csr_matrix of shape (n_documents, n_documents)
    documents : DistinctDocuments
    tokens : TokenStream
    languages : sequence of str
    seed : int

    Returns
    -------
    Groups
    """
    labels = dense_groups(vectors, edges, documents.weights, seed)
    dense = narrow(vectors.rows, seed)
    names = _topic_names(labels, dense, documents.weights, tokens, languages)
    return Groups(labels, names, f"topics by {vectors.name}")


def dense_groups(
    vectors: Vectors, edges: csr_matrix, weights: npt.NDArray[np.int64], seed: int
) -> Int32Array:
    """Find the dense groups of one encoder's documents.

    Parameters
    ----------
    vectors : Vectors
    edges : csr_matrix of shape (n_documents, n_documents)
    weights : int64 ndarray of shape (n_documents,)
        Rows that hold each document.
    seed : int

    Returns
    -------
    int32 ndarray of shape (n_documents,)
        -1 for documents in no group.
    """
    start = principal_start(narrow(vectors.rows, seed), N_COMPONENTS)
    coordinates = layout(springs_of(edges, seed=seed), start)
    labels = cluster(DensityClusterer(), coordinates, weights).labels
    return np.where(vectors.has_vector, labels, NOISE).astype(np.int32)


def _topic_names(
    labels: Int32Array,
    dense: npt.NDArray[np.float32],
    weights: npt.NDArray[np.int64],
    tokens: TokenStream,
    languages: Sequence[str],
) -> tuple[str, ...]:
    from scipy.sparse import csr_matrix

    n_topics = int(labels.max(initial=NOISE)) + 1
    if not n_topics:
        return ()
    counts = count_terms(
        tokens, stop_words=stop_words_for(languages), function_words=function_words(tokens, labels)
    )
    by_topic = count_by_topic(counts.counts, labels, n_topics, weights)
    if not by_topic.nnz:
        return tuple(make_labels([[]] * n_topics))
    weighted = csr_matrix(ClassTfidf().fit_transform(by_topic), dtype=np.float64)
    chosen = keywords(weighted, counts, dense, n=5, languages=tuple(languages))
    return tuple(make_labels([[term for term, _ in row] for row in chosen]))
