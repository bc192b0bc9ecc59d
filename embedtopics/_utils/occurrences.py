"""Positions of terms of one or several words in streams of words."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from embedtopics.protocols import BoolArray, Int32Array, Int64Array


@dataclass(frozen=True, eq=False)
class TermIndex:
    """Terms as a trie of word ids; `is_first` and `is_edge` have shape (n_words,)."""

    n_words: int
    is_first: BoolArray
    is_edge: BoolArray
    term_of: list[Int32Array]
    keys: list[Int64Array]


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Occurrences of terms in documents.

    Shapes: `offsets` (n_documents + 1,), `tokens` (n_places,), `first` (n_places + 1,), `terms`
    (n_occurrences,), `ends` (n_occurrences,).
    """

    offsets: Int64Array
    tokens: Int64Array
    first: Int64Array
    terms: Int32Array
    ends: Int64Array


def index_terms(terms: Sequence[str], words: Sequence[str]) -> TermIndex:
    """Index terms by the ids of their words."""
    n_words = len(words)
    id_of = dict(zip(words, range(n_words), strict=True))
    lengths = np.fromiter((term.count(" ") + 1 for term in terms), np.int64, len(terms))
    # All terms are split at once: splitting each would take most of the time.
    parts = " ".join(terms).split(" ") if len(lengths) else []
    ids = np.fromiter(map(id_of.get, parts, repeat(-1)), np.int64, len(parts))
    longest = int(lengths.max(initial=1))
    step = np.full((len(lengths), longest), -1, dtype=np.int64)
    inside = np.arange(longest) < lengths[:, None]
    step[inside] = ids
    # Terms with a word outside the vocabulary cannot occur.
    column_of = np.flatnonzero(((step >= 0) | ~inside).all(axis=1)).astype(np.int32)
    step, lengths = step[column_of], lengths[column_of]
    longest = int(lengths.max(initial=1))
    is_first = np.zeros(n_words, dtype=bool)
    is_first[step[:, 0]] = True
    is_edge = is_first.copy()
    is_edge[step[np.arange(len(step)), lengths - 1]] = True
    single = np.full(n_words, -1, dtype=np.int32)
    single[step[lengths == 1, 0]] = column_of[lengths == 1]
    term_of, keys = [single], [np.empty(0, dtype=np.int64)]
    number = step[:, 0].copy()
    for n in range(2, longest + 1):
        has = np.flatnonzero(lengths >= n)
        different, number[has] = np.unique(
            number[has] * n_words + step[has, n - 1], return_inverse=True
        )
        of_number = np.full(len(different), -1, dtype=np.int32)
        complete = lengths == n
        of_number[number[complete]] = column_of[complete]
        term_of.append(of_number)
        keys.append(different)
    return TermIndex(n_words, is_first, is_edge, term_of, keys)


def find_occurrences(
    index: TermIndex, ids: Int32Array, offsets: Int64Array, *, edges_only: bool
) -> Occurrences:
    """Find the terms in a stream of words: `ids` (n_tokens,), `offsets` (n_documents + 1,)."""
    n_tokens = len(ids)
    in_index = ids >= 0
    document = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    begins, stops, terms = [], [], []
    starts = np.flatnonzero(
        in_index & index.is_first[np.maximum(ids, 0)] if index.n_words else in_index
    )
    number = ids[starts].astype(np.int64)
    for n, (term_of, keys) in enumerate(zip(index.term_of, index.keys, strict=True), 1):
        if n > 1:
            last = starts + n - 1
            fits = last < n_tokens
            starts, number, last = starts[fits], number[fits], last[fits]
            fits = in_index[last] & (document[last] == document[starts])
            starts, number, last = starts[fits], number[fits], last[fits]
            key = number * index.n_words + ids[last]
            number = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            fits = keys[number] == key
            starts, number = starts[fits], number[fits]
        is_term = term_of[number] >= 0
        begins.append(starts[is_term])
        stops.append(starts[is_term] + n)
        terms.append(term_of[number[is_term]])
    has_place = np.ones(n_tokens, dtype=bool)
    if edges_only:
        has_place = in_index & index.is_edge[np.maximum(ids, 0)] if index.n_words else in_index
    place = np.concatenate([[0], np.cumsum(has_place)])
    begin = np.concatenate(begins)
    order = np.argsort(begin, kind="stable")  # at one position, the shortest first
    begin = place[begin[order]]
    return Occurrences(
        offsets=place[offsets],
        tokens=np.flatnonzero(has_place),
        first=np.searchsorted(begin, np.arange(place[-1] + 1)),
        terms=np.concatenate(terms)[order],
        ends=place[np.concatenate(stops)[order]],
    )
