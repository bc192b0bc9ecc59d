"""Word ids -> sparse counts of terms by document and by topic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import csr_matrix

from embedtopics._utils.checks import is_number, is_whole
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Int32Array, Int64Array
from embedtopics.terms._rules import is_emoji
from embedtopics.terms._tokens import usual_letters
from embedtopics.terms.results import TermCounts, TokenStream

_BLOCK_WORDS = 1 << 22
"""Words of a stream in one block."""

_MAX_SLOT_BITS = 26
"""Bits of the table that counts n-grams before they are numbered: 64 MB."""

_NAME_TIMES, _NAME_SHARE, _NAME_LIFT = 5, 0.8, 400
"""A stop word and the next word are a name, as in *new zealand, outre mer*, at this number of joint
uses, this share of the uses of the next word, and this multiple of the joint uses expected by
chance. Function words are too frequent for this multiple."""

_FEW_WORDS = 1 << 22
"""Words up to which n-grams are numbered without compiled code, in at most two seconds."""


def checked_ngram_range(span: Any) -> list[int]:
    """Check the minimum and maximum number of words of a term, from 1 to 9."""
    ends = list(span) if hasattr(span, "__iter__") and not isinstance(span, str) else []
    if len(ends) != 2 or not all(map(is_whole, ends)) or not 1 <= ends[0] <= ends[1] <= 9:
        raise InputError("ngram_range", "(shortest, longest), whole numbers from 1 to 9", span)
    return [int(end) for end in ends]


def checked_stop_words(words: Any) -> str | list[str]:
    """Check "auto" or a list of words."""
    if isinstance(words, str) and words == "auto":
        return words
    is_list = isinstance(words, Collection) and not isinstance(words, str)
    if not is_list or not all(isinstance(word, str) for word in words):
        remedy = 'leave it out: "auto" takes the lists of the languages of the texts'
        raise InputError("stop_words", '"auto" or a list of words', words, remedy)
    return list(words)


def count_terms(
    tokens: TokenStream,
    *,
    ngram_range: tuple[int, int] = (1, 2),
    min_df: int | float | None = None,
    stop_words: Iterable[str] = (),
    extra_stop_words: Iterable[str] = (),
    function_words: Iterable[str] = (),
    phrases: Iterable[str] = (),
    every_word: bool = False,
) -> TermCounts:
    """Count the words and n-grams of every document.

    Terms do not begin or end with a stop word, function word, single letter or number. Such words
    may stand inside (``bank of england``). Some that are not in `extra_stop_words` begin a name
    (``new zealand``), see `_pairs_with_stop_words`. `phrases` of two words are terms in any case.
    With `every_word`, single letters and numbers are terms like other words.
    """
    if tokens.skipped is not None:
        places = np.flatnonzero(tokens.skipped)
        parts = np.unique(np.concatenate([tokens.parts, places, places + 1]))
        ids = np.where(tokens.skipped, np.int32(-1), tokens.ids)
        tokens = replace(tokens, ids=ids, segments=parts)

    shortest, longest = checked_ngram_range(ngram_range)
    fewest = fewest_documents(min_df, len(tokens))
    extra = set(map(_lowered, extra_stop_words))
    stops = set(map(_lowered, stop_words)) | extra
    functions = set(map(_lowered, function_words)) - stops
    lowered = list(map(_lowered, tokens.words))
    left_out = stops | functions
    holders = count_holders(tokens)

    edge, opening = np.zeros((2, len(lowered)), dtype=bool)
    for i in np.flatnonzero(holders >= fewest).tolist():
        w = lowered[i]
        if w in left_out:
            opening[i] = len(w) > 2 and w not in extra
        else:  # several letters and no number, or an emoji
            is_word = (len(w) > 1 and any(map(str.isalpha, w))) or is_emoji(w)
            edge[i] = every_word or is_word

    pairs = _pairs_with_stop_words(tokens, opening, edge)
    phrase_pairs = _pairs_of_phrases(phrases, lowered)
    opens = edge.copy()
    opens[pairs // len(edge)] = True
    opens[phrase_pairs // len(edge)] = True
    closes = edge.copy()
    closes[phrase_pairs % len(edge)] = True

    names: list[str] = []
    streams, lengths = [], []
    for n, stream, n_holders, ids in _ngrams(tokens, holders, opens, closes, longest, fewest):
        if n < shortest:
            continue
        begins = edge[ids[:, 0]]
        if n > 1:
            begins |= np.isin(ids[:, 0] * len(edge) + ids[:, 1], pairs)
        is_term = begins & edge[ids[:, -1]] & (n_holders >= fewest)
        if n == 2:
            is_phrase = np.isin(ids[:, 0] * len(edge) + ids[:, 1], phrase_pairs)
            is_term |= is_phrase & (n_holders >= fewest)
        streams.append((stream, np.where(is_term, len(names) + np.cumsum(is_term) - 1, -1)))
        names += [" ".join(tokens.words[i] for i in row) for row in ids[is_term].tolist()]
        lengths.append(np.full(int(is_term.sum()), n, dtype=np.int8))

    order = sorted(range(len(names)), key=names.__getitem__)
    place = np.full(len(names) + 1, -1, dtype=np.int32)  # the last one for -1
    place[order] = np.arange(len(order), dtype=np.int32)
    ordered = [(stream, place[number]) for stream, number in streams]
    counts = _counts_of(ordered, tokens.offsets, len(order))
    counts.sort_indices()

    return TermCounts(
        counts=counts,
        terms=tuple(names[i] for i in order),
        lengths=np.concatenate(lengths)[order],
        stop_words=tuple(compress(tokens.words, (w in stops for w in lowered))),
        function_words=tuple(compress(tokens.words, (w in functions for w in lowered))),
    )


def _lowered(word: str) -> str:
    return usual_letters(word.lower())


def _pairs_of_phrases(phrases: Iterable[str], lowered: Sequence[str]) -> Int64Array:
    """Return the pairs of words of phrases, as first * n_words + second."""
    halves = [_lowered(phrase).split(" ") for phrase in phrases]
    needed = {word for half in halves for word in half}
    ids_of: dict[str, list[int]] = {}
    for i, word in enumerate(lowered):
        if word in needed:
            ids_of.setdefault(word, []).append(i)

    pairs = [
        first * len(lowered) + second
        for left, right in halves
        for first, second in product(ids_of.get(left, ()), ids_of.get(right, ()))
    ]
    return np.array(pairs, dtype=np.int64)


def _pairs_with_stop_words(tokens: TokenStream, opening: BoolArray, edge: BoolArray) -> Int64Array:
    """Return each stop word that begins a name, and the next word, as first * n_words + second."""
    ids, n_words = tokens.ids, len(edge)
    times = np.bincount(ids[ids >= 0], minlength=n_words)
    # A more frequent word cannot precede another so much more often.
    is_first = np.append(opening & (times * _NAME_LIFT <= len(ids)), False)
    ends_part = np.zeros(len(ids) + 1, dtype=bool)
    ends_part[tokens.parts[1:] - 1] = True
    places = np.flatnonzero(is_first[ids[:-1]] & np.append(edge, False)[ids[1:]] & ~ends_part[:-2])
    codes, pairs = pd.factorize(ids[places].astype(np.int64) * n_words + ids[places + 1])
    n_together = np.bincount(codes, minlength=len(pairs))
    share = n_together / times[pairs % n_words]
    lift = share * len(ids) / times[pairs // n_words]
    is_name = (n_together >= _NAME_TIMES) & (share >= _NAME_SHARE) & (lift >= _NAME_LIFT)
    return np.asarray(pairs[is_name])


def count_by_topic(
    counts: csr_matrix,
    labels: npt.ArrayLike,
    n_topics: int | None = None,
    weights: npt.ArrayLike | None = None,
) -> csr_matrix:
    """Sum counts of documents by topic: (n_documents, n_terms) -> (n_topics, n_terms)."""
    topic = np.asarray(labels, dtype=np.int64)
    times = np.ones(len(topic)) if weights is None else np.asarray(weights, dtype=np.float64)
    n_topics = int(topic.max(initial=-1)) + 1 if n_topics is None else n_topics
    members = np.flatnonzero(topic >= 0)
    return sum_rows(counts, members, topic[members], n_topics, times[members])


def sum_rows(
    counts: csr_matrix,
    rows: npt.NDArray[Any],
    groups: npt.NDArray[Any],
    n_groups: int,
    weights: npt.NDArray[np.float64] | None = None,
) -> csr_matrix:
    """Sum the `rows` (n_members,) of counts by `groups` (n_members,): (n_groups, n_terms)."""
    order = np.argsort(groups, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=n_groups))])
    times = np.ones(len(rows)) if weights is None else weights
    members = csr_matrix((times[order], rows[order], bounds), (n_groups, counts.shape[0]))
    summed: csr_matrix = members @ counts  # adds the rows of a group in their order
    summed.sort_indices()
    return summed


def count_words(tokens: TokenStream, mask: BoolArray | None = None) -> csr_matrix:
    """Count all words, or those of a `mask` (n_words,), by document: (n_documents, n_words)."""
    n_words = len(tokens.words)
    is_counted = np.ones(n_words, dtype=bool) if mask is None else mask
    number = np.where(is_counted, np.cumsum(is_counted) - 1, -1).astype(np.int32)
    return _counts_of([(tokens.ids, number)], tokens.offsets, int(is_counted.sum()))


def count_holders(tokens: TokenStream) -> Int64Array:
    """Return the number of documents with each word, (n_words,)."""
    return _holders(tokens.ids, tokens.offsets, len(tokens.words))


def _holders(stream: Int32Array, offsets: Int64Array, n_columns: int) -> Int64Array:
    """Count the documents with each number of a stream, -1 for none: (n_columns,)."""
    holders = np.zeros(n_columns, dtype=np.int64)
    for block in _blocks(offsets):
        counts = _count_block(stream[slice(*block[[0, -1]]), None], block - block[0], n_columns)
        holders += np.bincount(counts.indices, minlength=n_columns)
    return holders


def _counts_of(
    streams: Sequence[tuple[Int32Array, Int32Array]], offsets: Int64Array, n_columns: int
) -> csr_matrix:
    """Count the columns of streams in each document.

    A stream is a number at each position and a column for each number; -1 is none in both.
    `offsets` (n_documents + 1,) separate the documents.
    """
    columns = [np.append(column, np.int32(-1)) for _, column in streams]
    data, indices, ends = [], [], [np.zeros(1, dtype=np.int64)]
    for block in _blocks(offsets):
        part = slice(*block[[0, -1]])
        numbers = [column[s[part]] for (s, _), column in zip(streams, columns, strict=True)]
        counts = _count_block(np.stack(numbers, axis=1), block - block[0], n_columns)
        data.append(counts.data)
        indices.append(counts.indices)
        ends.append(counts.indptr[1:] + ends[-1][-1])
    whole = _joined(data), _joined(indices), np.concatenate(ends)
    return csr_matrix(whole, shape=(len(offsets) - 1, n_columns))


def _blocks(offsets: Int64Array) -> Iterator[Int64Array]:
    """Yield the offsets of blocks of documents."""
    first, n_documents = 0, len(offsets) - 1
    while first < n_documents:
        last = int(np.searchsorted(offsets, offsets[first] + _BLOCK_WORDS, side="right")) - 1
        last = min(max(last, first + 1), n_documents)
        yield offsets[first : last + 1]
        first = last


def _count_block(numbers: Int32Array, offsets: Int64Array, n_columns: int) -> csr_matrix:
    """Count the numbers of each document, (n_places, n_streams), in sorted columns."""
    columns = numbers[numbers >= 0]
    n_before = np.append(0, np.cumsum((numbers >= 0).sum(axis=1)))
    ones = np.ones(len(columns), dtype=np.int32)
    counts = csr_matrix((ones, columns, n_before[offsets]), (len(offsets) - 1, n_columns))
    counts = counts.tocsc().tocsr()  # sorts the columns, in linear time
    counts.sum_duplicates()
    return counts


def _joined(parts: list[Int32Array]) -> Int32Array:
    """Concatenate arrays, and free each one at once to save memory."""
    whole = np.empty(sum(map(len, parts)), dtype=np.int32)
    end = len(whole)
    while parts:
        part = parts.pop()
        whole[end - len(part) : end] = part
        end -= len(part)
    return whole


def _ngrams(
    tokens: TokenStream,
    holders: Int64Array,
    opens: BoolArray,
    closes: BoolArray,
    longest: int,
    fewest: int,
) -> Iterator[tuple[int, Int32Array, Int64Array, npt.NDArray[Any]]]:
    """Yield n, the n-gram at each position, the number of documents with it, and its word ids.

    The shapes are (n_places,), with -1 for none, (n_grams,) and (n_grams, n). An n-gram is in at
    most as many documents as its first n - 1 words and its last word. So each length extends only
    n-grams of enough documents, and the longest length only possible terms.
    """
    n_words = len(tokens.words)
    grams = tokens.ids
    ids = np.arange(n_words).reshape(-1, 1)
    yield 1, grams, holders, ids
    is_common = holders >= fewest
    for n in range(2, longest + 1):
        begins = holders >= fewest
        ends = is_common
        if n == longest:
            begins = begins & opens[ids[:, 0]]
            ends = ends & closes

        grams, pairs = _number_ngrams(tokens, grams, begins, ends, n, fewest)
        ids = np.column_stack([ids[pairs // n_words], pairs % n_words])
        holders = _holders(grams, tokens.offsets, len(pairs))
        yield n, grams, holders, ids


def _number_ngrams(
    tokens: TokenStream, grams: Int32Array, begins: BoolArray, ends: BoolArray, n: int, fewest: int
) -> tuple[Int32Array, Int64Array]:
    """Return a number for the n-gram at each position, and the pair of each number.

    See the compiled `number_ngrams`, which is faster for many words but takes seconds to compile.
    """
    n_places = len(grams)
    if n_places > _FEW_WORDS:
        from embedtopics.terms._kernels import number_ngrams

        # Each position may have another n-gram; four slots a position avoid most collisions.
        n_slots = 1 << min(_MAX_SLOT_BITS, 2 + n_places.bit_length())
        return number_ngrams(grams, tokens.ids, tokens.parts, begins, ends, n, fewest, n_slots)
    n_left = np.repeat(tokens.parts[1:], np.diff(tokens.parts)) - np.arange(n_places)
    places = np.flatnonzero((grams >= 0) & (n_left >= n))
    places = places[begins[grams[places]] & ends[tokens.ids[places + n - 1]]]
    all_pairs = grams[places].astype(np.int64) * len(ends) + tokens.ids[places + n - 1]
    number_of, pairs = pd.factorize(all_pairs)
    is_frequent = np.bincount(number_of, minlength=len(pairs)) >= fewest
    numbers = np.full(n_places, -1, dtype=np.int32)
    numbers[places] = np.where(is_frequent, np.cumsum(is_frequent) - 1, -1)[number_of]
    return numbers, pairs[is_frequent]


def fewest_documents(min_df: int | float | None, n_documents: int) -> int:
    """Return the minimum number of documents with a term."""
    if min_df is None:
        return 1 if n_documents < 20 else 2 if n_documents <= 10_000 else 5
    is_share = isinstance(min_df, float | np.floating)
    if not is_number(min_df) or not min_df >= 0 or (is_share and min_df > 1):
        raise InputError("min_df", "a number of documents or a share from 0.0 to 1.0", min_df)
    if min_df > max(n_documents, 1):
        raise InputError("min_df", f"at most the number of texts ({n_documents:,})", min_df)
    return max(int(np.ceil(min_df * n_documents)) if is_share else int(min_df), 1)
