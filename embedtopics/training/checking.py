"""Which rows can be learned from, and what is odd about those that can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics.corpus.hashing import TEXT, TextRows
from embedtopics.corpus.tables import Table, name_rows
from embedtopics.errors import InputError
from embedtopics.results import Decision
from embedtopics.training.labels import ReadLabels

__all__ = ["describe_repeats", "usable_rows"]


def usable_rows(
    table: Table,
    names: Sequence[str],
    sides: Sequence[TextRows],
    label_column: str | None,
    labels: ReadLabels | None,
    drop_invalid: bool,
) -> tuple[npt.NDArray[np.int64], list[Decision]]:
    """Return the rows that can be used, and what was said of the others."""
    keep = np.ones(len(table.frame), dtype=bool)
    decisions = []
    if labels is not None:
        no_gold = np.array([state == "no gold label" for state in labels.status])
        if no_gold.any():
            count = int(no_gold.sum())
            message = f"{count:,} examples without a gold label were left out."
            decisions.append(Decision("training", "no_gold_label", count, message))
        keep &= ~no_gold
    bad = {f"text in column {n!r}": s.status != TEXT for n, s in zip(names, sides, strict=True)}
    if labels is not None:
        missing = np.array([state == "missing" for state in labels.status])
        bad[f"label in column {label_column!r}"] = missing
    for what, where in bad.items():
        rows = np.flatnonzero(where & keep).tolist()
        if rows and not drop_invalid:
            raise InputError(
                f"{table.source}: expected a {what} in every row, got none in "
                f"{name_rows(rows, table.lines)}; fill them in, or leave such rows out with "
                "drop_invalid=True"
            )
        if rows:
            message = f"{len(rows):,} rows without a {what} were left out."
            decisions.append(Decision("training", "dropped_invalid", len(rows), message))
        keep &= ~where
    if not keep.any():
        raise InputError(f"{table.source}: expected examples, got no row that can be used")
    return np.flatnonzero(keep), decisions


def describe_repeats(
    hashes: Sequence[npt.NDArray[np.uint64]], labels: npt.NDArray[Any] | None, kind: str
) -> list[Decision]:
    """Count what is kept as it is and yet should be known.

    Examples that occur more than once, the same texts under different labels, and a text that is
    its own positive, or a negative of the example whose positive it is.

    Parameters
    ----------
    hashes : sequence of uint64 ndarray of shape (n_examples, 2)
        Of the normalised texts, a column each.
    labels : ndarray of shape (n_examples,) or None
    kind : str
    """
    halves = {f"{side}.{half}": h[:, half] for side, h in enumerate(hashes) for half in (0, 1)}
    texts = pd.DataFrame(halves)
    with_label = texts if labels is None else texts.assign(label=labels)
    found = []
    n_repeated = int(with_label.duplicated().sum())
    found.append(
        (n_repeated, "repeated_examples",
         f"{n_repeated:,} examples repeat an earlier one; they are kept.")
    )  # fmt: skip
    n_conflicting = len(with_label.drop_duplicates()) - len(texts.drop_duplicates())
    found.append(
        (n_conflicting, "conflicting_labels",
         f"{n_conflicting:,} examples have the texts of another and a different label; they are "
         "kept.")
    )  # fmt: skip
    if kind in ("pairs", "triplets"):
        n_same = int((hashes[0] == hashes[1]).all(axis=1).sum())
        found.append(
            (n_same, "identical_sides",
             f"{n_same:,} anchors are the same text as their positive, which teaches nothing.")
        )  # fmt: skip
    if kind == "triplets":
        wrong = [(h == hashes[1]).all(axis=1) for h in hashes[2:]]
        n_wrong = int(np.logical_or.reduce(wrong).sum())
        found.append(
            (n_wrong, "negative_is_positive",
             f"{n_wrong:,} examples have their positive as a negative too; they are kept.")
        )  # fmt: skip
    return [Decision("training", name, n, message) for n, name, message in found if n]
