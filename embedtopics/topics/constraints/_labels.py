"""Constraints from labels of rows, and from pairs of rows that cannot be linked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embedtopics._utils.checks import is_number, is_whole
from embedtopics._utils.display import spell_count
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._texts import replace_surrogates
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.topics.constraints._protocol import FitContext, first_of, note
from embedtopics.topics.results import TopicConstraints

UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class GivenLabels:
    """Labels of rows: ascending `classes`, and `codes` (n_rows,) into them, -1 for none."""

    classes: tuple[Any, ...]
    codes: Int64Array

    @property
    def names(self) -> tuple[str, ...]:
        """The labels as text."""
        return tuple(str(value) for value in self.classes)

    def __str__(self) -> str:
        n_known = int((self.codes >= 0).sum())
        return f"{len(self.classes)} classes on {n_known} of {len(self.codes)} rows"

    def describe(self, kind: str) -> dict[str, Any]:
        n_labeled = int((self.codes >= 0).sum())
        return {"kind": kind, "classes": list(self.classes), "n_labeled": n_labeled}

    def of_documents(self, documents: DistinctDocuments) -> tuple[Int32Array, list[Decision]]:
        """Return the most frequent class of each document's rows, and decisions."""
        of_row, codes = documents.of_row, self.codes
        if len(codes) != len(of_row):
            expected = f"one for each of the {len(of_row):,} rows"
            remedy = "use -1 or None for rows without a label"
            raise InputError("labels", expected, remedy=remedy, found=f"{len(codes):,}")
        has_label = (of_row >= 0) & (codes >= 0)
        if not has_label.any():
            raise InputError("labels", "known for at least one row with text", found="none")
        pairs, votes = np.unique(
            np.column_stack([of_row[has_label], codes[has_label]]), axis=0, return_counts=True
        )
        order = np.lexsort((pairs[:, 1], -votes, pairs[:, 0]))
        labelled, first, n_labels = np.unique(
            pairs[order, 0], return_index=True, return_counts=True
        )
        classes = np.full(len(documents), UNKNOWN, dtype=np.int32)
        classes[labelled] = pairs[order][first, 1]
        notes = []
        if n_conflicts := int((n_labels > 1).sum()):
            message = spell_count(n_conflicts, "repeated text has", "repeated texts have")
            message += " different labels; the most frequent label applies to all its rows."
            notes.append(note("conflicting_labels", n_conflicts, message))
        if n_filled := int(((codes < 0) & (of_row >= 0) & np.isin(of_row, labelled)).sum()):
            message = spell_count(n_filled, "unlabelled row repeats", "unlabelled rows repeat")
            message += " the text of a labelled row and got its label."
            notes.append(note("shared_labels", n_filled, message))
        return classes, notes


def checked_labels(labels: Any) -> GivenLabels:
    """Return the labels of rows, or raise InputError."""
    if getattr(labels, "ndim", 1) != 1:
        raise InputError("labels", "one per row", found=f"an array of shape {labels.shape}")
    values = [_read(value, row) for row, value in enumerate(labels)]
    distinct = {value for value in values if value is not None}
    if len({type(value) for value in distinct}) > 1:
        some = (next(value for value in values if isinstance(value, kind)) for kind in (str, int))
        raise InputError("labels", "all strings or all integers", tuple(some), "make them strings")
    classes = tuple(sorted(distinct))
    position: dict[str | int | None, int] = {value: code for code, value in enumerate(classes)}
    position[None] = UNKNOWN
    return GivenLabels(classes, np.array([position[value] for value in values], dtype=np.int64))


def _read(value: Any, row: int) -> str | int | None:
    """Return a label, or None if it is unknown."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value.strip() or None
    # pandas' NA and NaT are missing values; NA cannot be compared.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if value.is_integer():
            value = int(value)
    if is_whole(value) and value >= UNKNOWN:
        return None if value == UNKNOWN else int(value)
    expected = "strings or integers from 0 up, with -1 or None for unknown labels"
    raise InputError("labels", expected, value, row=row)


class PartialLabels:
    """Let the topics follow labels of some or all rows.

    The fuzzy graph behind the coordinates gets edges between labelled documents and the nearest
    others of their class, and its edges between classes are weakened. Documents without a label
    follow their neighbors. A class may hold several topics.

    Parameters
    ----------
    labels : sequence of str or int
        One label per row; -1, None, NaN or an empty string if unknown. Rows with the same text get
        their most frequent label.
    weight : float
        Weight of the labels against the embeddings, above 0 up to 1; see Notes.

    Raises
    ------
    InputError
        If the labels or the weight are invalid.

    Notes
    -----
    Each document gets edges of half the weight w to the nearest others of its class. Then, as in
    umap-learn, edges between two classes are multiplied by exp(-2.5 / (1 - w)), edges to unlabelled
    documents by exp(-1), and each document's strongest edge is scaled to 1. Of 4,000 posts of 20
    Newsgroups in 20 topics, 57% are in a topic of their newsgroup; with labels for 30% of them it
    is 69% of the others (58% without the added edges, as in umap-learn).

    References
    ----------
    McInnes, Healy and Melville (2018), "UMAP: Uniform Manifold Approximation and Projection
    for Dimension Reduction", section 6 (supervised reduction by intersection of fuzzy sets).

    Examples
    --------
    >>> PartialLabels(["sport", None, "politics"]).describe()["classes"]
    ['politics', 'sport']
    """

    def __init__(self, labels: Any, *, weight: float = 0.5) -> None:
        self.given = checked_labels(labels)
        self.weight = checked_weight(weight, "weight")

    def __repr__(self) -> str:
        return f"PartialLabels({self.given}, weight={self.weight})"

    def describe(self) -> dict[str, Any]:
        """Return the description for the settings of the result."""
        return {**self.given.describe("labels"), "weight": self.weight}

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the classes of the documents."""
        classes, notes = self.given.of_documents(context.documents)
        n_rows = int(context.documents.weights[classes >= 0].sum())
        n_classes = len(self.given.classes)
        message = spell_count(n_rows, "text has", "texts have")
        message += f" one of {n_classes:,} labels, and the coordinates follow them."
        constraints = TopicConstraints(
            groups=classes,
            names=self.given.names,
            probabilities=(classes >= 0).astype(np.float32),
            attraction=self.weight / 2,
            separation=self.weight,
        )
        return constraints, [note("labels", n_rows, message), *notes]


class ManualLabels:
    """Use labels as topics, without clustering.

    All later stages are the same. Topics are numbered from the largest down; the decisions of the
    result list the topic of each label.

    Parameters
    ----------
    labels : sequence of str or int
        One label per row. Strings become the names of the topics; -1, None, NaN or an empty string
        stand for no topic. Rows with the same text get their most frequent label.

    Raises
    ------
    InputError
        If the labels are invalid.

    Examples
    --------
    >>> ManualLabels([3, 3, -1, 0]).describe()["classes"]
    [0, 3]
    """

    def __init__(self, labels: Any) -> None:
        self.given = checked_labels(labels)

    def __repr__(self) -> str:
        return f"ManualLabels({self.given})"

    def describe(self) -> dict[str, Any]:
        """Return the description for the settings of the result."""
        return self.given.describe("manual_labels")

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the labels as topics."""
        classes, notes = self.given.of_documents(context.documents)
        has_label = classes >= 0
        weights = context.documents.weights[has_label]
        sizes = np.bincount(classes[has_label], weights, minlength=len(self.given.classes))
        present = np.flatnonzero(sizes)
        order = present[np.argsort(-sizes[present], kind="stable")]
        number = np.full(len(sizes) + 1, -1, dtype=np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        names = [self.given.names[code] for code in order.tolist()]
        pairs = [f"{name} -> {topic}" for topic, name in enumerate(names)]
        message = f"The topics are the given labels (label -> topic): {first_of(pairs)}."
        has_names = bool(names) and isinstance(self.given.classes[0], str)
        constraints = TopicConstraints(
            groups=number[classes],
            names=tuple(names) if has_names else ("",) * len(names),
            probabilities=has_label.astype(np.float32),
            is_fixed=True,
            is_complete=True,
        )
        return constraints, [note("manual_labels", pairs, message), *notes]


def checked_weight(value: Any, name: str) -> float:
    """Return a weight above 0 and at most 1, or raise InputError."""
    if not is_number(value) or not 0.0 < float(value) <= 1.0:
        raise InputError(name, "a number above 0, up to 1", value)
    return float(value)


class CannotLink:
    """Keep documents in different topics.

    If both documents of a pair fall into one topic, the document with fewer such pairs in it stays,
    or of equal ones the document deeper in the cluster. The other document moves to the next topic
    for which label propagation has a clear margin and that no pair excludes, or to no topic. This
    holds at every resolution. Edits after the fit, such as a merge, can put a pair into one topic;
    their decisions record that.

    Parameters
    ----------
    pairs : sequence of (int, int) or of (str, str)
        Row numbers (positions, from 0), or ids of the corpus.

    Raises
    ------
    InputError
        If there are no pairs, or a document is paired with itself.

    References
    ----------
    Wagstaff et al. (2001), "Constrained K-means Clustering with Background Knowledge".

    Examples
    --------
    >>> CannotLink([(0, 5), (2, 3)]).describe()
    {'kind': 'cannot_link', 'n_pairs': 2}
    """

    def __init__(self, pairs: Any) -> None:
        self.pairs = tuple(_checked_pair(pair) for pair in pairs)
        if not self.pairs:
            raise InputError("pairs", "pairs of rows or of ids", found="none")

    def __repr__(self) -> str:
        return f"CannotLink({len(self.pairs)} pairs)"

    def describe(self) -> dict[str, Any]:
        """Return the description for the settings of the result."""
        return {"kind": "cannot_link", "n_pairs": len(self.pairs)}

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the pairs as documents.

        Raises
        ------
        InputError
            If a row or an id does not exist, or both rows of a pair have the same text.
        """
        documents = context.documents.of_row[_rows_of(self.pairs, context.corpus)]
        has_text = (documents >= 0).all(axis=1)
        notes = []
        if n_without := int((~has_text).sum()):
            message = spell_count(n_without, "pair holds", "pairs hold")
            message += " a row without text, and such rows are in no topic."
            notes.append(note("pairs_without_text", n_without, message))
        same = np.flatnonzero(has_text & (documents[:, 0] == documents[:, 1]))
        if len(same):
            expected = "rows of different texts, because rows with the same text share a topic"
            raise InputError("pairs", expected, self.pairs[int(same[0])], "leave the pair out")
        apart = np.unique(np.sort(documents[has_text], axis=1), axis=0).astype(np.int64)
        message = spell_count(len(apart), "pair of texts", "pairs of texts")
        message += " cannot be linked and stay in different topics."
        unknown = np.full(len(context), UNKNOWN, dtype=np.int32)
        probabilities = np.zeros(len(context), dtype=np.float32)
        pairs = apart.reshape(-1, 2)
        constraints = TopicConstraints(unknown, (), probabilities, cannot_link=pairs)
        return constraints, [note("cannot_link", len(apart), message), *notes]


def _checked_pair(pair: Any) -> tuple[Any, Any]:
    ends = tuple(end.item() if isinstance(end, np.generic) else end for end in pair)
    is_pair = all(map(is_whole, ends)) or all(isinstance(end, str) for end in ends)
    if len(ends) != 2 or not is_pair or ends[0] == ends[1]:
        raise InputError("pairs", "pairs of two different row numbers or ids", pair)
    return ends


def _rows_of(pairs: Sequence[tuple[Any, Any]], corpus: Corpus) -> Int64Array:
    """Return the rows of pairs, shape (n_pairs, 2)."""
    row_of: dict[Any, int] = {row: row for row in range(len(corpus))}
    if any(isinstance(first, str) for first, _ in pairs):
        row_of |= {name: row for row, name in enumerate(corpus.ids)}
    unknown = [end for pair in pairs for end in pair if end not in row_of]
    if unknown:
        expected = f"ids of the corpus, or rows from 0 to {len(corpus) - 1}"
        raise InputError("pairs", expected, unknown[0], "see corpus.ids")
    return np.array([[row_of[end] for end in pair] for pair in pairs], dtype=np.int64)


def checked_name(name: Any) -> str:
    """Return a name with single spaces, or raise InputError."""
    if not isinstance(name, str) or not name.strip():
        raise InputError("names", "strings that are not empty", name)
    return " ".join(replace_surrogates(name).split())
