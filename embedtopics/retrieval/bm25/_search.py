"""BM25 over all segments of a collection, as if it had been indexed at once.

Score of a passage for a query (Robertson and Zaragoza 2009; the variant of Lucene as in Kamphuis,
de Vries, Boytsov and Lin 2020, which is also the default of the package bm25s)::

    sum over the words w of the query, each as often as the query has it, of
        log(1 + (N - n + 0.5) / (n + 0.5)) * f / (f + k1 * (1 - b + b * l / mean(l)))

with f how often the passage holds w, l its length in words, N the number of living passages and
n how many of these hold w. Removed passages count nowhere: neither in N, nor in n, nor in mean(l).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.retrieval.bm25._segment import (
    LexicalSegment,
    LexicalSettings,
    QueryWords,
    query_words,
    stop_form,
)

RARE_SHARE = 0.01
"""Share of the passages up to which a stop word counts as any other word."""

Mask = npt.NDArray[np.bool_]
QUERIES_KEPT = 16

FloatVector = npt.NDArray[np.float64]


class LexicalHits(NamedTuple):
    """Passages that hold a word of the query, best first; ties by segment, then row; (n_hits,)."""

    scores: FloatVector
    segments: Int64Array
    rows: Int64Array


@dataclass(frozen=True)
class _Wanted:
    """A word of the query: its number in each segment, and what one occurrence is worth."""

    numbers: tuple[int, ...]
    worth: float


@dataclass(frozen=True, eq=False)
class LexicalSearcher:
    """One version of a collection, searched by words; made by `of`.

    `alive` holds for each segment the passages that are there, None where all are; `n_passages`
    and `mean_length` (in words) are of these.
    """

    segments: tuple[LexicalSegment, ...]
    alive: tuple[Mask | None, ...]
    settings: LexicalSettings
    n_passages: int
    mean_length: float
    _known: dict[str, dict[str, _Wanted]] = field(default_factory=dict, init=False, repr=False)
    """What the last few queries ask for: each is asked several times for one search."""

    @classmethod
    def of(
        cls,
        segments: Sequence[LexicalSegment],
        alive: Sequence[Mask | None] | None = None,
        settings: LexicalSettings | None = None,
    ) -> LexicalSearcher:
        """Take stock of the segments of a collection; only their lengths are read.

        Shapes: `alive` (n_passages,).
        """
        segments = tuple(segments)
        settings = settings or (segments[0].settings if segments else LexicalSettings())
        for number, segment in enumerate(segments):
            found = segment.settings
            if (found.stop_words, found.stems) != (settings.stop_words, settings.stems):
                raise InputError(
                    f"Segment {number} was indexed with other stop words or stems than the "
                    "collection; build the index again."
                )
        masks = tuple(
            None if mask is None or mask.all() else mask
            for mask in (alive or [None] * len(segments))
        )
        lengths = [
            s.lengths if mask is None else s.lengths[mask]
            for s, mask in zip(segments, masks, strict=True)
        ]
        n_passages = sum(map(len, lengths))
        n_words = sum(int(some.sum(dtype=np.int64)) for some in lengths)
        return cls(segments, masks, settings, n_passages, n_words / max(n_passages, 1))

    def read(self, query: str) -> QueryWords:
        """Return the words that a query asks for, see `query_words`.

        Lists of stop words hold some that mean something, such as *mill* or *value*. One that
        hardly any passage holds (1 %) is looked for like any other word, and where a query has
        nothing but stop words, all of them are.
        """
        words = query_words(query, self.settings)
        held = {word: self._n_holding(stop_form(word)) for word in words.stop_words}
        most = RARE_SHARE * self.n_passages if words.written else self.n_passages
        return words.asking(word for word, n in held.items() if 0 < n <= most)

    def _n_holding(self, form: str) -> int:
        """Return how many living passages hold a form."""
        numbers = [segment.find(form) for segment in self.segments]
        return sum(self._n_living(at, number) for at, number in enumerate(numbers) if number >= 0)

    def search(self, query: str, k: int, masks: Sequence[Mask | None] | None = None) -> LexicalHits:
        """Return the passages with the highest scores.

        The work is that of reading the postings of the query's words, each once, however long the
        query is.

        Shapes: `masks` (n_passages,).
        """
        k = checked_count(k, "k")
        allowed = masks or [None] * len(self.segments)
        wanted = self._wanted(query)
        found = [
            self._best_of(number, wanted, k, allowed[number])
            for number in range(len(self.segments))
        ]
        scores = np.concatenate([np.zeros(0), *(part[0] for part in found)])
        rows = np.concatenate([np.zeros(0, np.int64), *(part[1] for part in found)])
        sizes = [len(part[0]) for part in found]
        segments = np.repeat(np.arange(len(found), dtype=np.int64), sizes)
        order = np.argsort(-scores, kind="stable")[:k]  # of segments, and rows in order
        return LexicalHits(scores[order], segments[order], rows[order])

    def scores_at(
        self, query: str, segments: npt.NDArray[Any], rows: npt.NDArray[Any]
    ) -> FloatVector:
        """Return the scores of given passages, such as those that dense search found.

        Shapes: `segments, rows` (n,) -> (n,).
        """
        scores = np.zeros(len(rows))
        for part in self.parts_at(query, segments, rows).values():
            scores += part
        return scores

    def parts_at(
        self, query: str, segments: npt.NDArray[Any], rows: npt.NDArray[Any]
    ) -> dict[str, FloatVector]:
        """Return what each word adds to the scores of given passages.

        Shapes: `segments, rows` (n,) -> (n,).
        """
        wanted = self._wanted(query)
        return {form: self._parts_at(word, segments, rows) for form, word in wanted.items()}

    def _wanted(self, query: str) -> dict[str, _Wanted]:
        """Return those forms of a query that living passages hold, in alphabetical order."""
        known = self._known.get(query)
        if known is not None:
            return known
        words = self.read(query)
        wanted: dict[str, _Wanted] = {}
        for form in words.written:
            numbers = tuple(segment.find(form) for segment in self.segments)
            n = self._n_holding(form)
            if n:
                rarity = math.log(1 + (self.n_passages - n + 0.5) / (n + 0.5))
                wanted[form] = _Wanted(numbers, words.weight(form) * rarity)
        if len(self._known) >= QUERIES_KEPT:
            self._known.clear()
        self._known[query] = wanted
        return wanted

    def _n_living(self, place: int, number: int) -> int:
        rows, _ = self.segments[place].postings(number)
        mask = self.alive[place]
        return len(rows) if mask is None else int(np.count_nonzero(mask[rows]))

    def _worth(
        self, word: _Wanted, counts: npt.NDArray[Any], lengths: npt.NDArray[Any]
    ) -> FloatVector:
        """Return a word's part of the scores of passages that hold it."""
        k1, b = self.settings.k1, self.settings.b
        times = counts.astype(np.float64)
        return np.asarray(
            word.worth * times / (k1 * (1 - b + b * lengths / self.mean_length) + times)
        )

    def _best_of(
        self, place: int, wanted: dict[str, _Wanted], k: int, allowed: Mask | None
    ) -> tuple[FloatVector, Int64Array]:
        """Return the k best scores of a segment and all that tie with the last, by row."""
        segment = self.segments[place]
        scores = np.zeros(len(segment))
        for word in wanted.values():
            rows, counts = segment.postings(word.numbers[place])
            # A word has each row once, so that nothing is lost in adding by index.
            scores[rows] += self._worth(word, counts, segment.lengths[rows])
        found = scores > 0
        for mask in (self.alive[place], allowed):
            if mask is not None:
                found &= mask
        rows_found = np.flatnonzero(found)
        best = scores[rows_found]
        if len(best) > k:
            near = best >= np.partition(best, len(best) - k)[len(best) - k]
            best, rows_found = best[near], rows_found[near]
        return best, rows_found

    def _parts_at(
        self, word: _Wanted, segments: npt.NDArray[Any], rows: npt.NDArray[Any]
    ) -> FloatVector:
        """Return a word's part of the scores of given passages, 0 where they do not hold it."""
        parts = np.zeros(len(rows))
        for place in np.unique(segments).tolist():
            here = np.flatnonzero(np.asarray(segments) == place)
            segment = self.segments[place]
            holding, counts = segment.postings(word.numbers[place])
            where = np.searchsorted(holding, rows[here])
            held = where < len(holding)
            held[held] = holding[where[held]] == rows[here[held]]
            here, where = here[held], where[held]
            parts[here] = self._worth(word, counts[where], segment.lengths[rows[here]])
        return parts
