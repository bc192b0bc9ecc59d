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
    """A label for each row: `classes` ascending, and `codes` (n_rows,) into them, -1 for none."""

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
        """Return the class of each document, the most frequent of its rows, and decisions."""
        of_row, codes = documents.of_row, self.codes
        if len(codes) != len(of_row):
            expected = f"one for each of the {len(of_row):,} rows"
            remedy = "give -1 or None for rows without one"
            raise InputError("labels", expected, remedy=remedy, found=f"{len(codes):,}")
        known = (of_row >= 0) & (codes >= 0)
        if not known.any():
            raise InputError("labels", "known for at least one row with text", found="none")
        pairs, votes = np.unique(
            np.column_stack([of_row[known], codes[known]]), axis=0, return_counts=True
        )
        order = np.lexsort((pairs[:, 1], -votes, pairs[:, 0]))
        found, first, n_labels = np.unique(pairs[order, 0], return_index=True, return_counts=True)
        classes = np.full(len(documents), UNKNOWN, dtype=np.int32)
        classes[found] = pairs[order][first, 1]
        notes = []
        if n_conflicts := int((n_labels > 1).sum()):
            message = (
                spell_count(n_conflicts, "text that repeats has", "texts that repeat have")
                + " different labels; the most frequent was taken for all rows of a text."
            )
            notes.append(note("conflicting_labels", n_conflicts, message))
        if n_filled := int(((codes < 0) & (of_row >= 0) & np.isin(of_row, found)).sum()):
            message = (
                spell_count(n_filled, "row without a label repeats", "rows without a label repeat")
                + " the text of a labelled row, and its label was taken."
            )
            notes.append(note("shared_labels", n_filled, message))
        return classes, notes


def checked_labels(labels: Any) -> GivenLabels:
    """Read labels, or refuse them."""
    if isinstance(labels, (str, bytes, dict)) or not hasattr(labels, "__iter__"):
        raise InputError("labels", "a sequence, one a row", found=type(labels).__name__)
    if getattr(labels, "ndim", 1) != 1:
        raise InputError("labels", "one a row", found=f"an array of shape {labels.shape}")
    values = [_read(value, row) for row, value in enumerate(labels, start=1)]
    known = {value for value in values if value is not None}
    if len({type(value) for value in known}) > 1:
        some = (next(value for value in values if isinstance(value, kind)) for kind in (str, int))
        raise InputError("labels", "all strings or all integers", tuple(some), "make them strings")
    classes = tuple(sorted(known))
    position: dict[str | int | None, int] = {value: code for code, value in enumerate(classes)}
    position[None] = UNKNOWN
    return GivenLabels(classes, np.array([position[value] for value in values], dtype=np.int64))


def _read(value: Any, row: int) -> str | int | None:
    """Return a label, or None where it is unknown."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value.strip() or None
    # pandas' NA and NaT, like NaN, are missing; a comparison of NA has no truth value.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if value.is_integer():
            value = int(value)
    if is_whole(value) and value >= UNKNOWN:
        return None if value == UNKNOWN else int(value)
    expected = "strings or integers from 0 up, with -1 or None where unknown"
    raise InputError("labels", expected, value, row=row)


class PartialLabels:
    """Topics that follow labels of some or all rows.

    In the graph that coordinates are averaged over, labelled documents are tied to the nearest
    others of their class, and ties between classes are loosened. Documents without a label go where
    their neighbours are. A class may hold several topics.

    Parameters
    ----------
    labels : sequence of str, or of int, one a row
        -1, None, NaN or an empty string where it is not known. Rows of one text get their most
        frequent label. Never changed.
    weight : float
        Weight of the labels against the embeddings, above 0 up to 1; see Notes.

    Raises
    ------
    InputError
        Where the labels or the weight cannot be used.

    Notes
    -----
    In the fuzzy graph each document is tied, with half of the weight w, to the nearest others of
    its class. Then, as in umap-learn, ties of two classes are multiplied by exp(-2.5 / (1 - w)),
    those of documents of which one is unknown by exp(-1), and each document's strongest tie is made
    certain again. Of 4,000 posts of 20 Newsgroups in 20 topics, 57% of those in a topic are of its
    newsgroup; where 30% are labelled it is 69% of the others (58% without ties, as in umap-learn).

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
        """Return the description that the settings of the result hold."""
        return {**self.given.describe("labels"), "weight": self.weight}

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the classes of the documents."""
        classes, notes = self.given.of_documents(context.documents)
        n_rows = int(context.documents.weights[classes >= 0].sum())
        n_classes = len(self.given.classes)
        message = spell_count(n_rows, "text has", "texts have")
        message += f" one of {n_classes:,} labels, which the coordinates follow."
        constraints = TopicConstraints(
            groups=classes,
            names=self.given.names,
            probabilities=(classes >= 0).astype(np.float32),
            attraction=self.weight / 2,
            separation=self.weight,
        )
        return constraints, [note("labels", n_rows, message), *notes]


class ManualLabels:
    """Topics that are exactly the given labels; nothing is clustered.

    Everything else is made as for topics that were found. Topics are numbered from the largest
    down; the result's decisions list the topic of each label.

    Parameters
    ----------
    labels : sequence of str, or of int, one a row
        Strings become the names of the topics. -1, None, NaN or an empty string: in no topic.
        Rows of one text get their most frequent label. Never changed.

    Raises
    ------
    InputError
        Where the labels cannot be used.

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
        """Return the description that the settings of the result hold."""
        return self.given.describe("manual_labels")

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the labels as topics."""
        classes, notes = self.given.of_documents(context.documents)
        known = classes >= 0
        weights = context.documents.weights[known]
        sizes = np.bincount(classes[known], weights, minlength=len(self.given.classes))
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
            probabilities=known.astype(np.float32),
            is_fixed=True,
            is_complete=True,
        )
        return constraints, [note("manual_labels", pairs, message), *notes]


def checked_weight(value: Any, name: str) -> float:
    """Return a weight above 0 and at most 1, or refuse it."""
    if not is_number(value) or not 0.0 < float(value) <= 1.0:
        raise InputError(name, "a number above 0, up to 1", value)
    return float(value)


class CannotLink:
    """Documents that cannot be in the same topic.

    Where a topic holds both documents of a pair, the document with fewer such pairs there stays,
    or the deeper; the other moves to the next topic to which its neighbours clearly lead and from
    which no pair bars it, or to none. No pair is in one topic at any resolution. Edits after the
    fit, such as a merge, may bring one together, which their decisions record.

    Parameters
    ----------
    pairs : sequence of (int, int) or of (str, str)
        Row numbers (positions, from 0), or ids of the corpus. Never changed.

    Raises
    ------
    InputError
        Where these are no pairs, or a document is paired with itself.

    References
    ----------
    Wagstaff et al. (2001), "Constrained K-means Clustering with Background Knowledge".

    Examples
    --------
    >>> CannotLink([(0, 5), (2, 3)]).describe()
    {'kind': 'cannot_link', 'n_pairs': 2}
    """

    def __init__(self, pairs: Any) -> None:
        if isinstance(pairs, (str, bytes, dict)) or not hasattr(pairs, "__iter__"):
            raise InputError("pairs", "a sequence of pairs", found=type(pairs).__name__)
        self.pairs = tuple(_checked_pair(pair) for pair in pairs)
        if not self.pairs:
            raise InputError("pairs", "pairs of rows or of ids", found="none")

    def __repr__(self) -> str:
        return f"CannotLink({len(self.pairs)} pairs)"

    def describe(self) -> dict[str, Any]:
        """Return the description that the settings of the result hold."""
        return {"kind": "cannot_link", "n_pairs": len(self.pairs)}

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the pairs as documents.

        Raises
        ------
        InputError
            Where a row or an id does not exist, or both rows of a pair have the same text.
        """
        documents = context.documents.of_row[_rows_of(self.pairs, context.corpus)]
        has_text = (documents >= 0).all(axis=1)
        notes = []
        if n_without := int((~has_text).sum()):
            message = spell_count(n_without, "pair holds", "pairs hold")
            message += " a row without text, which is in no topic."
            notes.append(note("pairs_without_text", n_without, message))
        same = np.flatnonzero(has_text & (documents[:, 0] == documents[:, 1]))
        if len(same):
            expected = "rows of different texts, because rows of one text share a topic"
            raise InputError("pairs", expected, self.pairs[int(same[0])], "leave the pair out")
        apart = np.unique(np.sort(documents[has_text], axis=1), axis=0).astype(np.int64)
        message = spell_count(len(apart), "pair of texts", "pairs of texts")
        message += " cannot be linked: the texts stay in different topics."
        unknown = np.full(len(context), UNKNOWN, dtype=np.int32)
        probabilities = np.zeros(len(context), dtype=np.float32)
        pairs = apart.reshape(-1, 2)
        constraints = TopicConstraints(unknown, (), probabilities, cannot_link=pairs)
        return constraints, [note("cannot_link", len(apart), message), *notes]


def _checked_pair(pair: Any) -> tuple[Any, Any]:
    ends = () if isinstance(pair, (str, bytes)) or not hasattr(pair, "__iter__") else tuple(pair)
    ends = tuple(end.item() if isinstance(end, np.generic) else end for end in ends)
    is_pair = all(map(is_whole, ends)) or all(isinstance(end, str) for end in ends)
    if len(ends) != 2 or not is_pair or ends[0] == ends[1]:
        raise InputError("pairs", "pairs of two row numbers or of two ids, not the same", pair)
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
    """Return a name with single spaces, or refuse it."""
    if not isinstance(name, str) or not name.strip():
        raise InputError("names", "strings that are not empty", name)
    return " ".join(replace_surrogates(name).split())
