"""Examples to learn from: columns of texts with, perhaps, a label each; checked, never changed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision

__all__ = ["KINDS", "Examples", "with_decisions"]

_N_COLUMNS = {
    "nli": (2, 2),
    "graded": (2, 2),
    "binary": (2, 2),
    "pairs": (2, 2),
    "triplets": (3, None),
    "texts": (1, 1),
    "taught": (1, None),
}
"""Fewest and most columns of texts of each kind."""

KINDS = tuple(_N_COLUMNS)
_LABELLED = ("nli", "graded", "binary")
_UNLABELLED = ("pairs", "triplets", "texts")


@dataclass(frozen=True, eq=False)
class Examples:
    """What a training run learns from, or is measured on.

    Parameters
    ----------
    kind : str
        "nli": premise and hypothesis with a class; "graded": two texts with a score; "binary":
        two texts that belong together (1) or not (0); "pairs": two texts that belong together;
        "triplets": anchor, positive and one or more negatives; "texts": texts alone; "taught": a
        text with the vector it should get (and perhaps the same text in other languages).
    columns : tuple of tuple of str
        Texts, each column of length n.
    labels : ndarray or None
        int64 of shape (n,) for "nli" (place in `names`) and "binary"; float64 of shape (n,), from
        0 to 1, for "graded"; float32 of shape (n, n_dimensions) for "taught", None until a teacher
        has given them; else None.
    names : tuple of str
        Of the classes; empty without.
    rows : int64 ndarray of shape (n,)
        Row of the source that each example comes from, from 0.
    source : str
        Where they come from, for people.
    decisions : tuple of Decision
        What was left out or changed on the way.
    """

    kind: str
    columns: tuple[tuple[str, ...], ...]
    labels: npt.NDArray[Any] | None
    rows: Int64Array
    names: tuple[str, ...] = ()
    source: str = ""
    decisions: tuple[Decision, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"expected a kind among {', '.join(KINDS)}; got {self.kind!r}")
        lengths = {len(column) for column in self.columns} | {len(self.rows)}
        if self.labels is not None:
            lengths.add(len(self.labels))
        if not self.columns or len(lengths) != 1:
            raise InputError(
                "expected columns, labels and rows of one length, got lengths "
                f"{', '.join(map(str, sorted(lengths)))}"
            )
        _check_columns(self.kind, self.columns)
        _check_labels(self.kind, self.labels, self.names)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Sequence[int] | npt.NDArray[np.integer[Any]]) -> Examples:
        """Return some of the examples, by their place, in the order given."""
        places = np.asarray(rows, dtype=np.int64)
        return Examples(
            kind=self.kind,
            columns=tuple(tuple(column[place] for place in places) for column in self.columns),
            labels=None if self.labels is None else self.labels[places],
            rows=self.rows[places],
            names=self.names,
            source=self.source,
            decisions=self.decisions,
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 over kind, texts and labels, whatever the order of the examples."""
        labels = [None] * len(self) if self.labels is None else self.labels.tolist()
        rows = sorted(
            hashlib.sha256(repr(row).encode("utf-8", "surrogatepass")).digest()
            for row in zip(*self.columns, labels, strict=True)
        )
        return hashlib.sha256(repr((self.kind, self.names)).encode() + b"".join(rows)).hexdigest()


def _check_columns(kind: str, columns: tuple[tuple[str, ...], ...]) -> None:
    fewest, most = _N_COLUMNS[kind]
    if len(columns) < fewest or (most is not None and len(columns) > most):
        wanted = f"{fewest}" if most == fewest else f"at least {fewest}"
        raise InputError(
            f"expected {wanted} columns of texts in examples of the kind {kind!r}, got "
            f"{len(columns)}"
        )
    for number, column in enumerate(columns, start=1):
        for place, text in enumerate(column):
            if not isinstance(text, str):
                raise InputError(
                    f"expected texts in column {number}, got a {type(text).__name__} in example "
                    f"{place + 1}; read examples with read_examples, which says what is wrong"
                )


def _check_labels(kind: str, labels: npt.NDArray[Any] | None, names: tuple[str, ...]) -> None:
    """Refuse labels that would be learned from without an error, and mean something else."""
    if kind in (_LABELLED if labels is None else _UNLABELLED):
        wanted = "labels" if labels is None else "no labels"
        raise InputError(f"expected {wanted} in examples of the kind {kind!r}")
    if labels is None:
        return
    if kind == "taught":
        is_right = labels.ndim == 2 and labels.dtype.kind == "f" and np.isfinite(labels).all()
        wanted = "finite vectors, an array of shape (n, n_dimensions)"
    else:
        # Without names, classes of inference are taken for the usual three.
        highest = {"graded": 1, "binary": 1}.get(kind, (len(names) or 3) - 1)
        kinds = "fiu" if kind == "graded" else "iu"
        is_right = labels.ndim == 1 and labels.dtype.kind in kinds
        is_right = is_right and bool(((labels >= 0) & (labels <= highest)).all())
        wanted = f"{'numbers' if kind == 'graded' else 'integers'} from 0 to {highest}"
    if not is_right:
        raise InputError(
            f"expected labels of the kind {kind!r} to be {wanted}; read examples with "
            "read_examples, which brings them into that form"
        )


def with_decisions(examples: Examples, *decisions: Decision) -> Examples:
    """Return the examples with more said about them."""
    return replace(examples, decisions=(*examples.decisions, *decisions))
