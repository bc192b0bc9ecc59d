"""The state of a study: its texts, vectors, journal and answers, behind one lock; and its model."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from embedtopics._utils.display import spell_count
from embedtopics.annotation._answers import Records
from embedtopics.annotation._codebook import KINDS, MULTILABEL, count_order
from embedtopics.annotation._journal import Journal
from embedtopics.annotation.results import TextToLabel
from embedtopics.classification._heads import (
    DEFAULT_STRENGTH,
    LinearHead,
    fit_head,
    probabilities,
)
from embedtopics.classification._pairs import PairEncoder, joined_pairs, split_pairs
from embedtopics.classification._targets import read_targets
from embedtopics.corpus._corpus import Corpus
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import unit_rows
from embedtopics.protocols import Float64Array, FloatArray, Int64Array
from embedtopics.results import Decision

NEVER = -30.0
"""Score of a class without any labelled text."""


@dataclass(frozen=True, eq=False)
class TextVectors:
    """Unit vectors (n_texts, n_dimensions), and the row of each text."""

    matrix: FloatArray
    row_of: dict[str, int]

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of texts; classifiers use this object as their encoder."""
        return self.matrix[self.rows(texts)]

    def rows(self, texts: Sequence[str]) -> Int64Array:
        """Return the rows of texts."""
        return np.array([self.row_of[text] for text in texts], dtype=np.int64)


class TrainingRows(NamedTuple):
    """Rows of the vectors, and their class codes: (n,), or 0 and 1, (n, n_classes)."""

    rows: Int64Array
    codes: Int64Array


class StudyClassifier(BaseEstimator):
    """Logistic regression on frozen vectors that also learns from the labels of `taught` texts.

    `AnnotationProject.measurement` cross-fits it on the labels of the count stream. Each fit adds
    the taught texts, which are not a random sample.
    """

    def __init__(
        self, vectors: TextVectors, kind: str, classes: Sequence[str], taught: TrainingRows
    ) -> None:
        self.vectors, self.kind, self.classes, self.taught = vectors, kind, classes, taught

    def __sklearn_clone__(self) -> StudyClassifier:
        """Return an unfitted copy that shares the vectors."""
        return StudyClassifier(self.vectors, self.kind, self.classes, self.taught)

    @property
    def head(self) -> str:
        """The `head` of an equivalent `TextClassifier`."""
        return KINDS[self.kind]

    def fit(self, X: Sequence[str], y: Any) -> Self:
        """Learn from texts of the corpus and from the taught texts."""
        codes = read_targets(y, self.head, self.classes).codes
        codes = codes.reshape(len(X), *self.taught.codes.shape[1:])
        rows = np.concatenate([self.vectors.rows(X), self.taught.rows])
        return self._fit(rows, np.concatenate([codes, self.taught.codes]))

    def fit_taught(self) -> Self:
        """Learn from the taught texts alone."""
        return self._fit(*self.taught)

    def _fit(self, rows: Int64Array, codes: Int64Array) -> Self:
        self.classes_ = np.array(self.classes)
        self.constant_: int | None = None
        self.linear_: LinearHead | None = None
        if codes.ndim == 1 and len(np.unique(codes)) < 2:
            self.constant_ = int(codes[0]) if len(codes) else None
        elif len(codes):
            self.linear_ = fit_head(self.head, self.vectors.matrix[rows], codes, DEFAULT_STRENGTH)
        return self

    def predict_proba(self, X: Sequence[str]) -> Float64Array:
        """Return the probability of each class, (n_texts, n_classes)."""
        return self.of_rows(self.vectors.rows(X))

    def of_rows(self, rows: npt.NDArray[Any] | slice) -> Float64Array:
        """Return the probability of each class for some rows, (n_rows, n_classes)."""
        vectors = self.vectors.matrix[rows]
        n_classes = len(self.classes)
        if self.linear_ is None:
            constant = np.full((len(vectors), n_classes), 1.0 / n_classes)
            if self.constant_ is not None:
                constant[:] = np.eye(n_classes)[self.constant_]
            return constant
        # Single precision takes a third of the time for a whole corpus.
        weights = self.linear_.weights.T.astype(np.float32)
        scores = np.asarray(vectors @ weights, dtype=np.float64) + self.linear_.bias
        n_outputs = n_classes - (self.head == "ordinal")
        missing = np.full((len(vectors), n_outputs - scores.shape[1]), NEVER)
        return probabilities(self.head, np.hstack([scores, missing]))


class StudyTexts:
    """The distinct texts of a corpus, identified by the hashes of their content (`keys`)."""

    def __init__(self, corpus: Corpus) -> None:
        distinct = corpus.distinct()
        if len(distinct) < 2:
            raise InputError("corpus", "of at least 2 different texts", found=f"{len(distinct)}")
        self.corpus = corpus
        self.first_rows, self.of_row = distinct.first_rows, distinct.of_row
        self.n_repeats = int((distinct.weights - 1).sum())
        self.documents = corpus.take(distinct.first_rows)
        self.keys: list[str] = [f"{a:016x}{b:016x}" for a, b in distinct.hashes.tolist()]
        self.row_of = {key: row for row, key in enumerate(self.keys)}

    def __len__(self) -> int:
        return len(self.keys)

    def text(self, key: str) -> str:
        """Return the text of a key."""
        return str(self.documents.texts[self.row_of[key]])

    def to_label(self, key: str, stream: str) -> TextToLabel:
        """Return a text as annotators get it."""
        return TextToLabel(key, self.documents.ids[self.row_of[key]], self.text(key), stream)

    def encode(self, encoder: Any, pairs: bool) -> TextVectors:
        """Return unit vectors of the texts, from an encoder or from vectors of all rows."""
        texts = list(self.documents.texts)
        read = joined_pairs(texts, "corpus", self.first_rows.tolist()) if pairs else texts

        if isinstance(encoder, np.ndarray):
            if len(encoder) != len(self.corpus):
                lengths = f"{len(encoder):,} for {len(self.corpus):,} rows"
                raise InputError("encoder", "of one vector for each row", found=lengths)
            vectors = unit_rows(encoder, what="encoder", rows=self.first_rows, keep_zeros=True)
        else:
            of_texts = resolve_encoder(encoder, cached=True, all_words=True)
            single_texts = split_pairs(read) if pairs else read
            of_texts = of_texts.fitted_to(single_texts)
            of_rows = PairEncoder(of_texts) if pairs else of_texts
            encoded: Any = of_rows.encode(read)
            if hasattr(encoded, "tocsr"):
                remedy = 'use "lsa", which projects them'
                raise InputError("encoder", "one of dense vectors", encoder, remedy)
            vectors = unit_rows(encoded, keep_zeros=True)

        return TextVectors(vectors, {text: row for row, text in enumerate(texts)})


class CountSample(NamedTuple):
    """The labelled count texts, a simple random sample, and the number of those without a label."""

    keys: list[str]
    n_unlabelled: int


class StudyState:
    """Everything that the threads of a study share; `lock` guards the journal and the records."""

    def __init__(
        self, texts: StudyTexts, vectors: TextVectors, journal: Journal, records: Records
    ) -> None:
        self.texts, self.vectors, self.journal, self.records = texts, vectors, journal, records
        self.lock = threading.RLock()

    @property
    def kind(self) -> str:
        """The kind of labels: "single", "several", "ordinal" or "spans"."""
        return self.records.kind

    @property
    def is_multilabel(self) -> bool:
        """Whether a text may have any number of labels."""
        return self.kind in MULTILABEL

    @property
    def seed(self) -> int:
        """The seed of the study's random order."""
        return int(self.records.design.random_state or 0)

    @cached_property
    def count_order(self) -> list[int]:
        """The rows of the texts in the order of the count stream."""
        return count_order(self.texts.keys, self.seed)

    def record(self, event: str, **fields: Any) -> None:
        """Write an event to disk, then apply it."""
        self.record_all([{"event": event, **fields}])

    def record_all(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Write events to disk at once, then apply them."""
        with self.lock:
            for event in self.journal.add_all(entries):
                self.records.apply(event)

    def labelled(self) -> dict[str, tuple[str, ...]]:
        """Return the labels of each labelled text of the corpus."""
        with self.lock:
            labels = {key: self.records.label_of(key) for key in self.records.answers}
        return {
            key: label
            for key, label in labels.items()
            if label is not None and key in self.texts.row_of
        }

    def count_sample(self) -> CountSample:
        """Return the count texts up to the first unanswered one in the random order.

        Texts that the strategy picked earlier are among them. Texts without a label were skipped,
        or their annotators disagree.
        """
        with self.lock:
            keys, n_unlabelled = [], 0
            for row in self.count_order:
                key = self.texts.keys[row]
                if key not in self.records.answers:
                    break
                if self.records.label_of(key) is None:
                    n_unlabelled += 1
                else:
                    keys.append(key)
            return CountSample(keys, n_unlabelled)

    def training_rows(self, exclude: Collection[str]) -> TrainingRows:
        """Return rows and class codes of the labelled texts, without some."""
        labels = {key: label for key, label in self.labelled().items() if key not in exclude}
        rows = np.array([self.texts.row_of[key] for key in labels], dtype=np.int64)
        y = [label if self.is_multilabel else label[0] for label in labels.values()]
        return TrainingRows(rows, read_targets(y, KINDS[self.kind], self.records.names).codes)

    def classifier(self, exclude: Collection[str]) -> StudyClassifier:
        """Return an unfitted classifier that also learns from all labels, without some."""
        rows = self.training_rows(exclude)
        return StudyClassifier(self.vectors, self.kind, self.records.names, rows)

    def progress(self) -> dict[str, int]:
        """Return the numbers of texts; see `AnnotationProject.progress`."""
        with self.lock:
            sample = self.count_sample()
            return {
                "texts": len(self.texts),
                "answered": len(self.records.answers),
                "labelled": len(self.labelled()),
                "teach": self.records.n_by_stream["teach"],
                "count": self.records.n_by_stream["count"],
                "sample": len(sample.keys),
                "sample_without_label": sample.n_unlabelled,
                "test": len(self.records.test),
            }


def journal_notes(state: StudyState) -> tuple[Decision, ...]:
    """Return what a user should know about the journal and the corpus."""
    n_absent = sum(text not in state.texts.row_of for text in state.records.answers)
    repeats = spell_count(state.texts.n_repeats, "row repeats", "rows repeat")
    notes = [
        ("converted", state.journal.n_converted, f"{state.journal.n_converted:,} events were "
         "copied from journal.jsonl to journal.sqlite, which is the journal from now on."),
        ("torn", state.journal.n_torn, "A crash had cut off the last line of journal.jsonl, whose "
         "event was not confirmed. The line was left out, and the file was left as it is."),
        ("gone", n_absent, f"{n_absent:,} labelled texts are no longer in the corpus, or have "
         "changed. Their labels are stored but not used."),
        ("duplicates", state.texts.n_repeats,
         f"{repeats} the text of another row; equal texts share one label."),
    ]  # fmt: skip
    return tuple(Decision("annotation", name, n, note) for name, n, note in notes if n)
