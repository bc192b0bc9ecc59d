"""Choose the next text: strategies, the teach and count streams, and the model that learns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from embedtopics.annotation._codebook import permanent_numbers
from embedtopics.annotation._state import StudyClassifier, StudyState
from embedtopics.annotation.results import TextToLabel
from embedtopics.protocols import Float64Array, FloatArray, Int64Array

STREAMS = ("teach", "count")
N_STARTS = 10
"""Teach texts that are picked far from each other before the strategy starts."""

MAX_RESERVED_SECONDS = 1800.0
"""A text that was shown and not answered goes to other annotators after this time."""


class Pool(NamedTuple):
    """The texts that a strategy chooses from."""

    vectors: FloatArray  # (n_texts, n_dimensions), of length 1
    candidates: Int64Array  # (n_candidates,), rows of the texts that may be picked
    labelled: Int64Array  # (n_labelled,), rows of the texts that the model learns from
    is_multilabel: bool
    probabilities: Float64Array | None  # (n_texts, n_classes); None before the first fit
    seed: int = 0


def draw(pool: Pool, n: int) -> Int64Array:
    """Return the rows of `n` candidates, drawn at random."""
    rng = np.random.default_rng([pool.seed, len(pool.labelled)])
    return rng.permutation(pool.candidates)[:n]


def core_set(pool: Pool, n: int) -> Int64Array:
    """Return the rows of the candidates farthest from all labelled texts, picked greedily.

    Sener and Savarese 2018, "Active learning for convolutional neural networks: a core-set
    approach", algorithm 1, by Euclidean distance of unit vectors. The first text of a study is the
    one nearest to the mean.
    """
    vectors = pool.vectors[pool.candidates]
    closest = np.full(len(vectors), -np.inf, dtype=np.float32)
    for begin in range(0, len(pool.labelled), 256):
        part = pool.vectors[pool.labelled[begin : begin + 256]]
        closest = np.maximum(closest, (vectors @ part.T).max(axis=1))
    picked: list[int] = []
    for _ in range(min(n, len(vectors))):
        if len(pool.labelled) or picked:
            best = int(closest.argmin())
        else:
            best = int((vectors @ vectors.mean(axis=0)).argmax())
        picked.append(best)
        closest = np.maximum(closest, vectors @ vectors[best])
        closest[picked] = np.inf
    return pool.candidates[picked]


def uncertain(pool: Pool, n: int) -> Int64Array:
    """Return the rows of the candidates with the most uncertain predictions.

    These are those with the smallest difference of the two most probable classes (Scheffer et al.
    2001, "breaking ties"). With several labels per text, the label with a probability nearest to
    0.5 counts.
    """
    if pool.probabilities is None:
        return core_set(pool, n)
    probabilities = pool.probabilities[pool.candidates]
    if pool.is_multilabel:
        uncertainty = -np.abs(probabilities - 0.5).min(axis=1)
    else:
        ordered = np.sort(probabilities, axis=1)
        uncertainty = ordered[:, -2] - ordered[:, -1]
    return pool.candidates[np.argsort(-uncertainty, kind="stable")[:n]]


STRATEGIES: dict[str, Callable[[Pool, int], Int64Array]] = {
    "random": draw,
    "uncertainty": uncertain,
    "diversity": core_set,
}


class Reservation(NamedTuple):
    """A text that was given to one annotator or tab."""

    holder: str
    stream: str
    time: float


class TeachingLoop:
    """The queues, reservations and model of a running study."""

    def __init__(self, state: StudyState, strategy: str) -> None:
        self.state, self.strategy = state, strategy
        numbers = permanent_numbers(state.texts.keys, state.seed, "overlap")
        is_shared = numbers < state.records.design.overlap
        pairs = zip(state.texts.keys, is_shared, strict=True)
        self.shared = {key for key, is_in in pairs if is_in}
        self.reserved: dict[str, Reservation] = {}
        self.requested: list[str] = []
        self.picked: list[str] = []
        self.model: StudyClassifier | None = None
        self.probabilities: Float64Array | None = None
        self._learned_version = -1
        self._wake: threading.Event | None = None

    def release(self, holder: str) -> None:
        """Release the reservations of a holder, and those that expired."""
        with self.state.lock:
            oldest = time.monotonic() - MAX_RESERVED_SECONDS
            self.reserved = {
                key: one
                for key, one in self.reserved.items()
                if one.holder != holder and one.time > oldest
            }

    def reserve(self, key: str, holder: str, stream: str) -> TextToLabel:
        """Reserve a text for a holder and return it."""
        self.reserved[key] = Reservation(holder, stream, time.monotonic())
        return self.state.texts.to_label(key, stream)

    def stream_of(self, key: str) -> str:
        """Return the stream of a text that was answered or reserved; otherwise "teach"."""
        if key in self.state.records.stream_of:
            return self.state.records.stream_of[key]
        return self.reserved[key].stream if key in self.reserved else "teach"

    def answered(self, key: str) -> None:
        """Remove an answered text from the queues and start the next fit."""
        self.reserved.pop(key, None)
        if key in self.requested:
            self.requested.remove(key)
        if self._wake is not None:
            self._wake.set()

    def next(self, by: str, holder: str | None) -> TextToLabel | None:
        """Return the next text for an annotator and reserve it."""
        if self._wake is None:
            self.learn()
        if holder is None:
            self.release(by)
        with self.state.lock:
            self.release("")  # expired reservations
            choice = self._next_key(by)
            if choice is None:
                return None
            key, stream = choice
            return self.reserve(key, holder or by, stream)

    def _next_key(self, by: str) -> tuple[str, str] | None:
        """Return key and stream: requested, shared, new, and at last skipped texts."""
        records, row_of = self.state.records, self.state.texts.row_of
        for key in self.requested:
            if key not in self.reserved:
                return key, records.stream_of.get(key, "teach")
        for key in self.shared & records.answers.keys():
            if by not in records.answers[key] and key in row_of and key not in self.reserved:
                return key, records.stream_of[key]
        for stream in self._stream_order():
            new = self._next_to_teach() if stream == "teach" else self._next_to_count()
            if new is not None:
                return new, stream
        for key, of_text in records.answers.items():
            is_skipped = all(one.labels is None for one in records.current(key).values())
            is_free = key in row_of and key not in self.reserved
            if is_free and is_skipped and len(of_text.get(by, ())) < 2:
                return key, records.stream_of[key]
        return None

    def _stream_order(self) -> list[str]:
        """Return the streams, first the one below its share of the texts."""
        n_teach, n_count = (
            self.state.records.n_by_stream[stream]
            + sum(one.stream == stream for one in self.reserved.values())
            for stream in STREAMS
        )
        share = self.state.records.design.teach
        if share == 0:
            return ["count"]
        return list(STREAMS if n_teach < share * (n_teach + n_count + 1) else STREAMS[::-1])

    def _is_new(self, key: str) -> bool:
        return key not in self.state.records.answers and key not in self.reserved

    def _next_to_count(self) -> str | None:
        keys = self.state.texts.keys
        return next((keys[row] for row in self.state.count_order if self._is_new(keys[row])), None)

    def _next_to_teach(self) -> str | None:
        for _ in range(2):
            for key in self.picked:
                if self._is_new(key):
                    return key
            self.picked = self._pick(self._pool())
        return None

    def learn(self) -> None:
        """Fit the model to all labels except those of the test texts, if there are new ones."""
        state = self.state
        with state.lock:
            version = state.records.version
            if version == self._learned_version:
                return
            model = state.classifier(exclude=state.records.test)
        codes = model.taught.codes
        n_classes = len(np.unique(codes)) if codes.ndim == 1 else int(codes.any(axis=0).sum())
        probabilities = None
        if n_classes >= 1 + (codes.ndim == 1):
            probabilities = model.fit_taught().of_rows(slice(None))
        with state.lock:
            self.model, self.probabilities = model, probabilities
            self._learned_version = version
            pool = self._pool()
        picked = self._pick(pool)
        with state.lock:
            self.picked = picked

    def _pool(self) -> Pool:
        records, texts = self.state.records, self.state.texts
        is_open = np.ones(len(texts), dtype=np.bool_)
        closed = [*records.answers, *self.reserved, *records.test]
        is_open[[texts.row_of[key] for key in closed if key in texts.row_of]] = False
        return Pool(
            self.state.vectors.matrix,
            np.flatnonzero(is_open),
            self.state.training_rows(exclude=records.test).rows,
            self.state.is_multilabel,
            self.probabilities,
            self.state.seed,
        )

    def _pick(self, pool: Pool) -> list[str]:
        """Return the keys of the next teach texts."""
        is_start = self.state.records.n_by_stream["teach"] < N_STARTS
        is_random = self.strategy == "random"
        spreads = not is_random and (is_start or pool.probabilities is None)
        rows = STRATEGIES["diversity" if spreads else self.strategy](pool, N_STARTS)
        return [self.state.texts.keys[row] for row in rows.tolist()]

    def start_background(self) -> None:
        """Fit the model in a thread from now on, so that `next` never waits for it."""
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

    def close(self) -> None:
        """Stop the thread of `start_background`."""
        if self._wake is not None:
            self._closing = True
            self._wake.set()
            self._thread.join(timeout=60)
            self._wake = None
