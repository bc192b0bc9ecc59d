"""Training and test examples: columns of texts with labels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.display import html_table
from embedtopics.corpus._texts import normalize_text
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision

_SIDES = "sentence1 sentence_1 sentence_a text1 text_1 text_a question1".split()
_OTHERS = "sentence2 sentence_2 sentence_b text2 text_2 text_b question2".split()
_ANCHORS = ["anchor", "query", "question", *_SIDES]
_POSITIVES = ["positive", "pos", "answer", "paraphrase", *_OTHERS]


class KindColumns(NamedTuple):
    """Columns of a kind of examples, and their usual names."""

    roles: tuple[str, ...]
    columns: tuple[list[str], ...]
    labels: tuple[str, ...] = ()
    more_columns: bool = False


COLUMNS_OF_KIND = {
    "nli": KindColumns(
        ("premise", "hypothesis"),
        (["premise", "premises", *_SIDES], ["hypothesis", *_OTHERS]),
        ("label", "gold_label", "labels", "entailment_judgment"),
    ),
    "graded": KindColumns(
        ("first text", "second text"),
        (_SIDES, _OTHERS),
        ("score", "similarity", "similarity_score", "relatedness", "relatedness_score", "label"),
    ),
    "classed": KindColumns(
        ("first text", "second text"),
        (_SIDES, _OTHERS),
        ("label", "is_duplicate", "is_pair", "score", "class"),
    ),
    "pairs": KindColumns(("anchor", "positive"), (_ANCHORS, _POSITIVES)),
    "triplets": KindColumns(
        ("anchor", "positive", "negative"),
        (_ANCHORS, _POSITIVES, ["negative", "neg", "negative_1"]),
        more_columns=True,
    ),
    "texts": KindColumns(("text",), (["text", "sentence", "texts", "body", "content"],)),
    "labelled": KindColumns(("text",), (), ("labels",)),
}
KINDS = tuple(COLUMNS_OF_KIND)


@dataclass(frozen=True, eq=False)
class Examples:
    """Examples for training or evaluation.

    Parameters
    ----------
    kind : str
        "nli": premise and hypothesis with a class; "graded": two texts with a score; "classed": two
        texts that belong together (1) or not (0); "pairs": two texts that belong together;
        "triplets": anchor, positive and one or more negatives;
        "texts": texts alone; "labelled": a text with a vector of labels, for classifiers.
    columns : tuple of tuple of str
        Texts, each column of length n.
    labels : ndarray or None
        int64 of shape (n,) for "nli" (index into `names`) and "classed" (0 or 1);
        float64 of shape (n,) from 0 to 1 for "graded"; float32 of shape (n, n_classes) for
        "labelled"; else None.
    names : tuple of str
        Names of the classes; empty if there are none.
    rows : int64 ndarray of shape (n,)
        Row of the source that each example comes from, from 0.
    source : str
        Where the examples come from, such as a file name.
    decisions : tuple of Decision
        Rows that were left out, and other findings.

    Examples
    --------
    >>> import embedtopics as et
    >>> examples = et.training.read_examples([("a car", "a bus"), ("a cat", "a dog")], "pairs")
    >>> examples
    Examples(2 pairs, source='list')
    >>> examples.to_frame()
        anchor positive
    row
    0    a car    a bus
    1    a cat    a dog
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
            raise InputError("kind", f"one of {', '.join(KINDS)}", self.kind)
        lengths = {len(column) for column in self.columns} | {len(self.rows)}
        if self.labels is not None:
            lengths.add(len(self.labels))
        if not self.columns or len(lengths) != 1:
            got = f"lengths {', '.join(map(str, sorted(lengths)))}"
            raise InputError("columns", "as long as labels and rows", found=got)
        kind = COLUMNS_OF_KIND[self.kind]
        fewest = len(kind.roles)
        if len(self.columns) < fewest or (len(self.columns) > fewest and not kind.more_columns):
            expected = f"{'at least ' * kind.more_columns}{fewest} columns for {self.kind!r}"
            raise InputError("columns", expected, found=f"{len(self.columns)} columns")
        self._check_labels()

    def _check_labels(self) -> None:
        """Refuse labels that training would accept and misunderstand."""
        labels, kind = self.labels, self.kind
        if (labels is None) == bool(COLUMNS_OF_KIND[kind].labels):
            raise InputError("labels", f"{'given' if labels is None else 'None'} for {kind!r}")
        if labels is None:
            return
        if kind == "labelled":
            is_right = labels.ndim == 2 and labels.dtype.kind == "f" and np.isfinite(labels).all()
            expected = "finite vectors, an array of shape (n, n_classes)"
        else:
            # Without names, classes of inference are taken for the usual three.
            highest = 1 if kind in ("graded", "classed") else (len(self.names) or 3) - 1
            kinds = "fiu" if kind == "graded" else "iu"
            is_right = labels.ndim == 1 and labels.dtype.kind in kinds
            is_right = is_right and bool(((labels >= 0) & (labels <= highest)).all())
            expected = f"{'numbers' if kind == 'graded' else 'integers'} from 0 to {highest}"
        if not is_right:
            raise InputError("labels", f"{expected} for {kind!r}", remedy="use read_examples")

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Examples({len(self):,} {self.kind}, source={self.source!r})"

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each example, indexed by its row of the source.

        The columns have the names that `read_examples` finds: premise, hypothesis and label (the
        class); sentence1, sentence2 and score, or label (0 or 1); anchor, positive, negative,
        negative_2, ...; text. Examples "labelled" have a column of numbers for each class.
        """
        kind = COLUMNS_OF_KIND[self.kind]
        frame = dict(zip(names_of_columns(kind, len(self.columns)), self.columns, strict=True))
        table = pd.DataFrame(frame, index=pd.Index(self.rows, name="row"))
        labels = self.labels
        if labels is None:
            return table

        if labels.ndim == 2:
            names = self.names or [f"label_{place}" for place in range(labels.shape[1])]
            of_classes = pd.DataFrame(labels, index=table.index, columns=list(names))
            return pd.concat([table, of_classes], axis=1)
        table[kind.labels[0]] = np.array(self.names)[labels] if self.names else labels
        return table

    def _repr_html_(self) -> str:
        return html_table(self.to_frame(), repr(self))

    def take(self, rows: Sequence[int] | npt.NDArray[np.integer[Any]]) -> Examples:
        """Return some of the examples, by their place, in the order given."""
        places = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            columns=tuple(tuple(column[place] for place in places) for column in self.columns),
            labels=None if self.labels is None else self.labels[places],
            rows=self.rows[places],
        )

    def _noting(self, *decisions: Decision) -> Examples:
        """Return the examples with further decisions."""
        return replace(self, decisions=(*self.decisions, *decisions))

    @property
    def fingerprint(self) -> str:
        """SHA-256 over kind, texts and labels; the order of the examples does not matter."""
        labels = [None] * len(self) if self.labels is None else self.labels.tolist()
        rows = sorted(
            hashlib.sha256(repr(row).encode("utf-8", "surrogatepass")).digest()
            for row in zip(*self.columns, labels, strict=True)
        )
        return hashlib.sha256(repr((self.kind, self.names)).encode() + b"".join(rows)).hexdigest()


def names_of_columns(kind: KindColumns, n_columns: int) -> list[str]:
    """Return the usual name of each column of texts; further columns are negatives."""
    if not kind.columns:
        return ["text"]
    names = [usual[0] for usual in kind.columns]
    return names + [f"negative_{number}" for number in range(2, 2 + n_columns - len(names))]


def text_key(text: str) -> str:
    """Return a text without regard to white space and case."""
    return normalize_text(text).casefold()
