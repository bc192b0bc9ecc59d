"""Labels of rows, as people have them, turned into classes of documents."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.results import Decision, DistinctDocuments
from embedtopics.topics.guidance.protocol import note

__all__ = ["GivenLabels", "checked_labels"]

UNKNOWN = -1
SHOWN = 20
"""Classes that a message names."""


@dataclass(frozen=True, eq=False)
class GivenLabels:
    """A label for each row.

    Parameters
    ----------
    classes : tuple of str or of int
        The labels that occur, ascending.
    codes : int64 ndarray of shape (n_rows,)
        Position of each row's label among them; -1 where it is not known.
    """

    classes: tuple[Any, ...]
    codes: Int64Array

    @property
    def names(self) -> tuple[str, ...]:
        """The labels as text."""
        return tuple(str(value) for value in self.classes)

    def of_documents(self, documents: DistinctDocuments) -> tuple[Int32Array, list[Decision]]:
        """Return the class of each document, and what was decided about rows that share a text.

        Rows of one text have one topic, so that the label that most of them have is taken, the
        lowest of several that as many have.

        Raises
        ------
        InputError
            Where there are not as many labels as rows, or no row with text has one.
        """
        of_row = documents.of_row
        if len(self.codes) != len(of_row):
            raise InputError(
                f"expected one label for each of the {len(of_row):,} rows; got {len(self.codes):,}"
                "; give -1 or None for rows without one"
            )
        known = (of_row >= 0) & (self.codes >= 0)
        if not known.any():
            raise InputError("expected a label for at least one row with text; got none")
        pairs, votes = np.unique(
            np.column_stack([of_row[known], self.codes[known]]), axis=0, return_counts=True
        )
        order = np.lexsort((pairs[:, 1], -votes, pairs[:, 0]))
        found, first, n_labels = np.unique(pairs[order, 0], return_index=True, return_counts=True)
        classes = np.full(len(documents), UNKNOWN, dtype=np.int32)
        classes[found] = pairs[order][first, 1]
        return classes, _notes_on_shared_texts(int((n_labels > 1).sum()), self.codes, of_row)


def _notes_on_shared_texts(
    n_conflicts: int, codes: Int64Array, of_row: Int64Array
) -> list[Decision]:
    notes = []
    if n_conflicts:
        message = (
            f"{n_conflicts:,} texts that repeat have different labels; that of most of their rows "
            "was taken for all of them."
        )
        notes.append(note("conflicting_labels", n_conflicts, message))
    has_label = np.unique(of_row[(of_row >= 0) & (codes >= 0)])
    n_filled = int(((codes < 0) & (of_row >= 0) & np.isin(of_row, has_label)).sum())
    if n_filled:
        message = (
            f"{n_filled:,} rows without a label repeat the text of a labelled row, and share its "
            "label."
        )
        notes.append(note("shared_labels", n_filled, message))
    return notes


def checked_labels(labels: Any) -> GivenLabels:
    """Read labels after making sure that they are labels.

    Parameters
    ----------
    labels : sequence of str, or of int
        One a row. -1, None, NaN and empty strings are unknown; whole floats are integers, as
        pandas makes them of integers with gaps.

    Raises
    ------
    InputError
        Where it is no sequence, a label is neither, or strings and integers are mixed.
    """
    if isinstance(labels, (str, bytes, dict)) or not hasattr(labels, "__iter__"):
        raise InputError(f"expected a sequence of labels, one a row; got {type(labels).__name__}")
    if getattr(labels, "ndim", 1) != 1:
        raise InputError(f"expected one label a row; got an array of shape {labels.shape}")
    values = [_read(value, row) for row, value in enumerate(labels, start=1)]
    known = {value for value in values if value is not None}
    if len({type(value) for value in known}) > 1:
        text = next(value for value in values if isinstance(value, str))
        number = next(value for value in values if isinstance(value, int))
        raise InputError(
            f"labels must be all strings or all integers; got {text!r} and {number!r}; "
            "turn them into strings"
        )
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
    if isinstance(value, int) and not isinstance(value, bool) and value >= UNKNOWN:
        return None if value == UNKNOWN else value
    raise InputError(
        f"labels must be strings or integers from 0 up, with -1 or None where unknown; row {row} "
        f"has {value!r}"
    )
