"""How many windows, or documents, hold two words of one topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import TokenStream

__all__ = ["Places", "TopicCounts", "count_together", "n_windows_of", "refuse_strings"]

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TopicCounts:
    """In what share of the windows the words of one topic are, alone and in pairs.

    Parameters
    ----------
    together : float64 ndarray of shape (n_distinct, n_distinct)
        Share of the windows that hold both of two distinct words; the diagonal holds that of a
        word alone. Words that no document holds are left out.
    order : int64 ndarray of shape (n_words,)
        Row of each word of the topic, in its order; a topic may name a word twice.
    """

    together: Float64Array
    order: Int64Array

    @property
    def single(self) -> Float64Array:
        """Share of the windows that hold each distinct word."""
        return np.diagonal(self.together)


class _Occurrences(NamedTuple):
    """Where the words of one topic occur: word by word, ascending."""

    word: Int64Array
    position: Int64Array
    document: Int64Array


@dataclass(frozen=True, eq=False)
class Places:
    """Where the words of all topics occur.

    Parameters
    ----------
    positions : int64 ndarray of shape (n_occurrences,)
        In the stream, word by word, ascending.
    documents : int64 ndarray of shape (n_occurrences,)
    bounds : int64 ndarray of shape (n_words + 1,)
    offsets : int64 ndarray of shape (n_documents + 1,)
    """

    positions: Int64Array
    documents: Int64Array
    bounds: Int64Array
    offsets: Int64Array

    @classmethod
    def of_stream(
        cls, words: npt.NDArray[Any], positions: Int64Array, n_words: int, offsets: Int64Array
    ) -> Places:
        """Sort what occurs where by the word, given in the order of the stream."""
        if n_words <= np.iinfo(np.uint16).max:
            words = words.astype(np.uint16)  # NumPy sorts short integers in linear time
        counts = np.bincount(words, minlength=n_words)
        order = np.argsort(words, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        documents = np.searchsorted(offsets, positions, side="right") - 1
        return cls(positions[order], documents[order], bounds, offsets)

    def count(self, words: Int64Array, window: int | None) -> Float64Array:
        """Return how many windows, or documents, hold each pair of some words.

        Single words are on the diagonal.
        """
        found = self._of(words)
        if window is None:
            return _in_documents(found, len(words))
        return _in_windows(found, self.offsets, window, len(words))

    def _of(self, words: Int64Array) -> _Occurrences:
        """Return where some words occur, numbered anew from 0."""
        n_each = self.bounds[words + 1] - self.bounds[words]
        ends = np.cumsum(n_each)
        number = np.repeat(np.arange(len(words)), n_each)
        place = np.arange(len(number)) + np.repeat(self.bounds[words] - ends + n_each, n_each)
        return _Occurrences(number, self.positions[place], self.documents[place])


def count_together(
    topics: Sequence[Sequence[str]], tokens: TokenStream, window: int | None
) -> Iterator[TopicCounts]:
    """Count windows for each topic; the stream is read once for all of them.

    Only the words of one topic are held against each other, so that the work grows with the
    occurrences of the words and not with the square of their number.

    Parameters
    ----------
    topics : sequence of sequence of str
    tokens : TokenStream
    window : int or None
        Words in the sliding window, one step a word; a shorter document is one window. None takes
        whole documents.

    Yields
    ------
    TopicCounts
        One for each topic, in order.

    Raises
    ------
    InputError
        If `window` is below 1, or a topic is a single string.
    """
    n_windows = n_windows_of(tokens, window)
    known = _known_words(topics, tokens)
    word_ids = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *known]))
    places = _find(word_ids, tokens)
    for ids in known:
        distinct, order = np.unique(ids, return_inverse=True)
        counts = places.count(np.searchsorted(word_ids, distinct), window)
        yield TopicCounts(counts / max(n_windows, 1), order)


def n_windows_of(tokens: TokenStream, window: int | None) -> int:
    """Return the number of windows, or of documents where there is no window.

    Raises
    ------
    InputError
        If `window` is below 1.
    """
    if window is None:
        return len(tokens)
    if window < 1:
        raise InputError(f"window must be at least 1 word, or None for documents; got {window}")
    return int(np.maximum(np.diff(tokens.offsets) - window + 1, 1).sum())


def refuse_strings(topics: Sequence[Sequence[str]]) -> None:
    """Refuse topics that would be read letter by letter."""
    for i, topic in enumerate(topics):
        if isinstance(topic, str):
            raise InputError(
                f"each topic must be a sequence of words; topic {i} is the string {topic!r}; "
                "put its words in a list"
            )


def _known_words(topics: Sequence[Sequence[str]], tokens: TokenStream) -> list[Int64Array]:
    """Return the ids of the words of each topic, those left out that the documents lack."""
    refuse_strings(topics)
    wanted = {word for topic in topics for word in topic}
    id_of = {word: i for i, word in enumerate(tokens.words) if word in wanted}
    # A stream cut from another one may name words that none of its documents holds.
    occurs = np.zeros(len(tokens.words), dtype=bool)
    occurs[tokens.ids] = True
    return [
        np.array(
            [id_of[word] for word in topic if word in id_of and occurs[id_of[word]]],
            dtype=np.int64,
        )
        for topic in topics
    ]


def _find(word_ids: Int64Array, tokens: TokenStream) -> Places:
    """Find all occurrences of some words."""
    is_wanted = np.zeros(len(tokens.words), dtype=bool)
    is_wanted[word_ids] = True
    positions = np.flatnonzero(is_wanted[tokens.ids])
    numbers = np.searchsorted(word_ids, tokens.ids[positions])
    return Places.of_stream(numbers, positions, len(word_ids), tokens.offsets)


def _in_documents(found: _Occurrences, n_words: int) -> Float64Array:
    """Return how many documents hold each pair of words, single words on the diagonal."""
    # Occurrences of one word ascend, so that those in one document lie side by side.
    first = np.ones(len(found.word), dtype=bool)
    first[1:] = (np.diff(found.word) != 0) | (np.diff(found.document) != 0)
    held = np.flatnonzero(first)
    begin = found.document[held]
    return _shared(begin, begin + 1, found.word[held], n_words)


def _in_windows(
    found: _Occurrences, offsets: Int64Array, window: int, n_words: int
) -> Float64Array:
    """Return how many windows hold each pair of words, single words on the diagonal.

    A window is named by the position of its first token. Each word is in the windows of some
    half-open intervals that do not overlap.
    """
    begin, end, holder = _intervals(found, offsets, window)
    return _shared(begin, end, found.word[holder], n_words)


def _intervals(
    found: _Occurrences, offsets: Int64Array, window: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the intervals of windows that hold a word, and an occurrence that each belongs to."""
    word, position, document = found
    first_window = offsets[document]
    last_window = np.maximum(first_window, offsets[document + 1] - window)

    # Occurrences of one word in one document lie side by side and ascend.
    run_starts = np.ones(len(word), dtype=bool)
    run_starts[1:] = (word[1:] != word[:-1]) | (document[1:] != document[:-1])
    run = np.cumsum(run_starts) - 1
    run_ends = np.append(np.flatnonzero(run_starts)[1:], len(word))[run]

    # The window loses the word when the copy at `left` drops out, until the first copy at or
    # behind left + window comes in; it then stays until the next copy behind `left` drops out.
    # What the copies in between do not do, see the notes of `npmi`.
    span = int(offsets[-1]) + window + 1
    key = run * span + position
    next_in = np.searchsorted(key, key + window)
    back_in = np.flatnonzero(next_in < run_ends)
    begin = position[next_in[back_in]] - window + 1
    end = position[back_in + 1] + 1
    initial = np.flatnonzero(run_starts)
    begin = np.concatenate(
        [np.maximum(position[initial] - window + 1, first_window[initial]), begin]
    )
    end = np.concatenate([position[initial] + 1, end])
    holder = np.concatenate([initial, back_in])
    end = np.minimum(end, last_window[holder] + 1)
    alive = np.flatnonzero(begin < end)
    return begin[alive], end[alive], holder[alive]


def _shared(begin: Int64Array, end: Int64Array, word: Int64Array, n_words: int) -> Float64Array:
    """Return what length the intervals of two words share; of one word alone on the diagonal.

    An interval is held against those that begin behind it for as long as they begin before it
    ends, so that the work grows with the intervals that meet. Sums of whole numbers, so exact.
    """
    order = np.argsort(begin, kind="stable")
    begin, end, word = begin[order], end[order], word[order]
    together = np.zeros(n_words * n_words)
    first = np.arange(len(begin))
    for behind in range(1, len(begin)):
        first = first[: np.searchsorted(first, len(begin) - behind)]
        first = first[begin[first + behind] < end[first]]
        if not len(first):
            break
        second = first + behind
        length = np.minimum(end[first], end[second]) - begin[second]
        together += np.bincount(
            word[first] * n_words + word[second], length, minlength=n_words * n_words
        )
    pairs: Float64Array = together.reshape(n_words, n_words)
    pairs += pairs.T.copy()
    np.fill_diagonal(pairs, np.bincount(word, end - begin, minlength=n_words))
    return pairs
