"""Constraints from labels of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embedtopics._utils.display import spell_count
from embedtopics.corpus._texts import is_missing, replace_surrogates
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.topics.constraints._apply import FitContext, first_of, note
from embedtopics.topics.results import TopicConstraints

UNKNOWN = -1
LABEL_WEIGHT = 0.5
"""Weight of the labels against the embeddings, 0 to 1."""


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
    """Return the labels of rows; -1, empty strings and missing values are unknown."""
    values = [_read(value, row) for row, value in enumerate(labels)]
    classes = tuple(sorted({value for value in values if value is not None}))
    position: dict[str | int | None, int] = {value: code for code, value in enumerate(classes)}
    position[None] = UNKNOWN
    return GivenLabels(classes, np.array([position[value] for value in values], dtype=np.int64))


def _read(value: Any, row: int) -> str | int | None:
    """Return a label, or None if it is unknown."""
    if is_missing(value):
        return None
    if isinstance(value, str):
        return value.strip() or None
    if value != int(value) or value < UNKNOWN:
        expected = "strings or integers from 0 up, with -1 or None for unknown labels"
        raise InputError("labels", expected, value, row=row)
    return None if value == UNKNOWN else int(value)


class _LabelsOfRows:
    """Labels of rows as a constraint, whose `kind` the settings name."""

    kind: str

    def __init__(self, labels: Any) -> None:
        self.given = checked_labels(labels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.given})"

    def describe(self) -> dict[str, Any]:
        """Return the description for the settings of the result."""
        n_labeled = int((self.given.codes >= 0).sum())
        return {"kind": self.kind, "classes": list(self.given.classes), "n_labeled": n_labeled}


class PartialLabels(_LabelsOfRows):
    """Let the topics follow labels of some or all rows.

    The fuzzy graph behind the coordinates gets edges between labelled documents and the nearest
    others of their class, and its edges between classes are weakened. Documents without a label
    follow their neighbors. A class may hold several topics.

    Parameters
    ----------
    labels : sequence of str or int
        One label per row; -1, None, NaN or an empty string if unknown. Rows with the same text get
        their most frequent label.

    Notes
    -----
    Each document gets edges of weight 0.25 to the nearest others of its class. Then, as in
    umap-learn with a weight of 0.5, edges between two classes are multiplied by exp(-5), edges to
    unlabelled documents by exp(-1), and each document's strongest edge is scaled to 1. Of 4,000
    posts of 20 Newsgroups in 20 topics, 57% are in a topic of their newsgroup; with labels for 30%
    of them it is 69% of the others (58% without the added edges, as in umap-learn).

    References
    ----------
    McInnes, Healy and Melville (2018), "UMAP: Uniform Manifold Approximation and Projection
    for Dimension Reduction", section 6 (supervised reduction by intersection of fuzzy sets).

    Examples
    --------
    >>> PartialLabels(["sport", None, "politics"]).describe()["classes"]
    ['politics', 'sport']
    """

    kind = "labels"

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
            attraction=LABEL_WEIGHT / 2,
            separation=LABEL_WEIGHT,
        )
        return constraints, [note("labels", n_rows, message), *notes]


class ManualLabels(_LabelsOfRows):
    """Use labels as topics, without clustering.

    All later stages are the same. Topics are numbered from the largest down; the decisions of the
    result list the topic of each label.

    Parameters
    ----------
    labels : sequence of str or int
        One label per row. Strings become the names of the topics; -1, None, NaN or an empty string
        stand for no topic. Rows with the same text get their most frequent label.

    Examples
    --------
    >>> ManualLabels([3, 3, -1, 0]).describe()["classes"]
    [0, 3]
    """

    kind = "manual_labels"

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


def checked_name(name: Any) -> str:
    """Return a name with single spaces, or refuse an empty one."""
    if not name.strip():
        raise InputError("names", "strings that are not empty", name)
    return " ".join(replace_surrogates(name).split())
