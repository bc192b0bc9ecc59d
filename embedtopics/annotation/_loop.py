"""Which text comes next, and the model that picks it: two streams and one queue."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from embedtopics.annotation._codebook import MANY, StudyDesign, count_order, permanent_numbers
from embedtopics.annotation._learner import TaughtClassifier, TextVectors, codes_of
from embedtopics.annotation._records import Records
from embedtopics.annotation._strategies import CoreSet, Pool, RandomSampling, Strategy
from embedtopics.annotation.results import TextToLabel
from embedtopics.corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Float64Array, Int64Array

STREAMS = ("teach", "count")
N_STARTS = 10
"""Texts from which a study starts where no topics are given."""

LONGEST_HELD = 1800.0
"""Seconds after which a text that was shown and not answered is given to others: a closed tab."""


class TeachingLoop:
    """The part of a study that is in memory: texts that wait, texts that were given out, a model.

    `keys` are the hashes of the texts, and `_row` their rows in `_documents` and `_vectors`.
    """

    keys: list[str]
    strategy: Strategy
    _row: dict[str, int]
    _documents: Corpus
    _vectors: TextVectors
    _records: Records
    _starts: Int64Array | None

    def _start_loop(self) -> None:
        seed = self._seed
        self._count_order = count_order(self.keys, seed, self._strata(self.design))
        in_overlap = permanent_numbers(self.keys, seed, "overlap") < self.design.overlap
        self._overlap = {key for key, is_in in zip(self.keys, in_overlap, strict=True) if is_in}
        self._held: dict[str, tuple[str, str, float]] = {}
        self._model: TaughtClassifier | None = None
        self._probabilities: Float64Array | None = None
        self._queue: list[str] = []
        self._asked: list[str] = []
        self._learned_version = -1
        self._wake: threading.Event | None = None
        self._lock = threading.RLock()

    @property
    def kind(self) -> str:
        """The kind of labels: "single", "several", "ordinal" or "spans"."""
        return self._records.kind

    @property
    def has_many(self) -> bool:
        """Whether a text may have any number of labels."""
        return self.kind in MANY

    @property
    def design(self) -> StudyDesign:
        """What was fixed when the study began."""
        return self._records.design

    @property
    def _seed(self) -> int:
        return int(self.design.random_state or 0)

    def _strata(self, design: StudyDesign) -> list[Any] | None:
        """Return the stratum of each text."""
        if design.strata is None:
            return None
        if design.strata not in self._documents.metadata:
            raise InputError("strata", "a column of the corpus", design.strata)
        return list(self._documents.metadata[design.strata])

    def release(self, holder: str) -> None:
        """Let others have the texts that a holder was given and did not answer."""
        with self._lock:
            oldest = time.monotonic() - LONGEST_HELD
            self._held = {
                key: held for key, held in self._held.items()
                if held[0] != holder and held[2] > oldest
            }  # fmt: skip

    def _hold(self, key: str, holder: str, stream: str) -> None:
        self._held[key] = (holder, stream, time.monotonic())

    def _shown(self, key: str, stream: str) -> TextToLabel:
        row = self._row[key]
        return TextToLabel(key, self._documents.ids[row], self._documents.texts[row], stream)

    def _next(self, by: str) -> tuple[str, str] | None:
        stacks = self._records.stacks
        for key in self._asked:
            if key not in self._held:
                return key, self._records.first_streams.get(key, "teach")
        for key in self._overlap & stacks.keys():
            if by not in stacks[key] and key in self._row and key not in self._held:
                return key, self._records.stream_of(key)
        n_teach, n_count = (
            self._records.streams[name] + sum(held[1] == name for held in self._held.values())
            for name in STREAMS
        )
        order = list(STREAMS)
        if n_teach >= self.design.teach * (n_teach + n_count + 1):
            order.reverse()
        for stream in order:
            if stream == "teach" and self.design.teach == 0:
                continue
            found = self._next_taught() if stream == "teach" else self._next_counted()
            if found is not None:
                return found, stream
        for key in [key for key in stacks if key in self._row and key not in self._held]:
            given = self._records.answers(key).values()
            if all(one.labels is None for one in given):
                n_skips = len(stacks[key].get(by, ()))
                if n_skips < 2:
                    return key, self._records.stream_of(key)
        return None

    def _next_counted(self) -> str | None:
        for row in self._count_order:
            if self.keys[row] not in self._records.stacks and self.keys[row] not in self._held:
                return self.keys[row]
        return None

    def _next_taught(self) -> str | None:
        for _ in range(2):
            for key in self._queue:
                if key not in self._records.stacks and key not in self._held:
                    return key
            self._queue = self._picked(self._pool())
        return None

    def _labelled(self) -> tuple[list[str], list[tuple[str, ...]]]:
        """Return the texts with a label that are in the corpus, and their labels."""
        known = [(key, self._records.label_of(key)) for key in self._records.stacks]
        kept = [(key, label) for key, label in known if label is not None and key in self._row]
        return [key for key, _ in kept], [label for _, label in kept]

    def _taught(self, but: set[str] | frozenset[str]) -> tuple[Int64Array, Int64Array]:
        """Return rows and codes of the labelled texts, but some."""
        keys, labels = self._labelled()
        kept = [place for place, key in enumerate(keys) if key not in but]
        rows = np.array([self._row[keys[place]] for place in kept], dtype=np.int64)
        codes = codes_of([labels[place] for place in kept], self._records.names, self.kind)
        return rows, codes

    def _classifier(self, but: set[str] | frozenset[str]) -> TaughtClassifier:
        return TaughtClassifier(self._vectors, self.kind, self._records.names, self._taught(but))

    def learn(self) -> None:
        """Fit the model to all labels but those of the test part, if there are new ones."""
        with self._lock:
            version = self._records.version
            if version == self._learned_version:
                return
            model = self._classifier(self._records.test)
        codes = model.taught[1]
        n_seen = len(np.unique(codes)) if codes.ndim == 1 else int(codes.any(axis=0).sum())
        probabilities = None
        if n_seen >= 1 + (codes.ndim == 1):  # for less there is nothing to learn
            probabilities = model.fit_taught().of_rows(slice(None))
        with self._lock:
            if self._records.names != tuple(model.classes):
                return  # the codebook was edited in the meantime
            self._model, self._probabilities = model, probabilities
            self._learned_version = version
            pool = self._pool()
        queue = self._picked(pool)
        with self._lock:
            self._queue = queue

    def _pool(self) -> Pool:
        is_open = self._is_open()
        rows, codes = self._taught(self._records.test)
        return Pool(self._vectors.matrix, np.flatnonzero(is_open), rows, codes,
                    self._probabilities, self._seed)  # fmt: skip

    def _is_open(self) -> BoolArray:
        """Return which texts may be picked to teach, (n_texts,)."""
        is_open = np.ones(len(self.keys), dtype=np.bool_)
        closed = [*self._records.stacks, *self._held, *self._records.test]
        is_open[[self._row[key] for key in closed if key in self._row]] = False
        return is_open

    def _picked(self, pool: Pool) -> list[str]:
        n_taught = self._records.streams["teach"]
        if self._starts is not None and n_taught < len(self._starts):
            is_open = np.zeros(len(self.keys), dtype=np.bool_)
            is_open[pool.candidates] = True
            rows = self._starts[is_open[self._starts]]
        elif isinstance(self.strategy, RandomSampling):  # which needs no start
            rows = self.strategy.pick(pool, N_STARTS)
        elif pool.probabilities is None or (self._starts is None and n_taught < N_STARTS):
            rows = CoreSet().pick(pool, N_STARTS)
        else:
            rows = self.strategy.pick(pool, N_STARTS)
        return [self.keys[row] for row in rows.tolist()]

    def learn_in_background(self) -> None:
        """Fit the model in a thread of its own from now on; `next` never waits for it."""
        if self._wake is not None:
            return
        self._closing = False
        self._wake = wake = threading.Event()

        def work() -> None:
            while True:
                wake.wait()
                wake.clear()
                if self._closing:
                    return
                self.learn()

        self._thread = threading.Thread(target=work, name="learn", daemon=True)
        self._thread.start()
        wake.set()

    def counted(self) -> tuple[list[str], int]:
        """Return the keys of the count texts, a simple random sample, and how many have no label.

        These are the texts with the smallest permanent random numbers up to the first that nobody
        has answered; those that were taught before are among them. Some were skipped, or
        annotators differ about them.
        """
        with self._lock:
            sample, n_missing = [], 0
            for row in self._count_order:
                key = self.keys[row]
                if key not in self._records.stacks:
                    break
                if self._records.label_of(key) is None:
                    n_missing += 1
                else:
                    sample.append(key)
            return sample, n_missing
