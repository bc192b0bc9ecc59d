"""The state of a study: its texts, vectors, journal and answers, behind one lock."""

from __future__ import annotations

import threading
from collections.abc import Collection
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from embedtopics.annotation._codebook import MULTILABEL, count_order
from embedtopics.annotation._journal import Journal, Records
from embedtopics.annotation._learner import StudyClassifier, TextVectors, TrainingRows, codes_of
from embedtopics.annotation.results import TextToLabel
from embedtopics.corpus import Corpus
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import unit_rows


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

    def encode(self, encoder: Any) -> TextVectors:
        """Return unit vectors of the texts, from an encoder or from vectors of all rows."""
        texts = list(self.documents.texts)
        if isinstance(encoder, np.ndarray):
            if len(encoder) != len(self.corpus):
                lengths = f"{len(encoder):,} for {len(self.corpus):,} rows"
                raise InputError("encoder", "of one vector for each row", found=lengths)
            vectors = unit_rows(encoder, what="encoder", rows=self.first_rows, keep_zeros=True)
        else:
            encoded: Any = resolve_encoder(encoder, cached=True).fitted_to(texts).encode(texts)
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
        with self.lock:
            self.records.apply(self.journal.add(event, **fields))

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
        return TrainingRows(rows, codes_of(list(labels.values()), self.records.names, self.kind))

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
