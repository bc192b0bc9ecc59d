"""Phrases of words that are everywhere, which are the subject of some topics.

In a collection of speeches on rights, *human* and *rights* are in every topic and thus name none.
*human rights* may still set one topic apart. Such a phrase is a term if its presence surely holds
more information on the topic than a function word may, and than each of its words does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import BoolArray, Float64Array, Int64Array
from embedtopics.terms._counts import count_by_topic, count_holders, count_words
from embedtopics.terms._stop_words import (
    CONFIDENCE,
    MAX_INFORMATION,
    MIN_SHARE,
    information_bound,
)
from embedtopics.terms.results import TermCounts, TokenStream

_FEWEST_DOCUMENTS = 10
"""Fewest documents with such a phrase; in fewer, the error of its information is not normal."""


def common_phrases(
    tokens: TokenStream,
    labels: npt.ArrayLike,
    function_words: Iterable[str],
    left_out: Collection[str] = (),
) -> tuple[str, ...]:
    """Find phrases of two words that are everywhere, which only some topics use.

    At least one of the words is a function word of this corpus, and the other one is, or is as
    frequent. Words that are `left_out` by a list are in no phrase.
    """
    topic = np.asarray(labels)
    members = np.flatnonzero(topic >= 0)
    topic_of_member = np.unique(topic[members], return_inverse=True)[1]
    sizes = np.bincount(topic_of_member)
    functions = {word.lower() for word in function_words}
    if len(sizes) < 2 or not functions:
        return ()

    excluded = {word.lower() for word in left_out}
    is_function = np.zeros(len(tokens.words), dtype=bool)
    is_candidate = count_holders(tokens) >= MIN_SHARE * len(members)
    for i, word in enumerate(tokens.words):
        is_function[i] = word.lower() in functions
        is_word = len(word) > 1 and any(map(str.isalpha, word))
        is_candidate[i] &= is_word and word.lower() not in excluded
    is_function &= is_candidate

    pairs, document_counts = _count_pairs(
        tokens, members, topic_of_member, is_candidate, is_function
    )
    phrase_bound = information_bound(document_counts, sizes, -CONFIDENCE)

    words = np.unique(pairs)
    presence = count_words(tokens)[members][:, words]
    presence.data[:] = 1
    word_counts = count_by_topic(presence, topic_of_member).toarray()
    word_bound = information_bound(word_counts, sizes, CONFIDENCE)
    of_words = word_bound[np.searchsorted(words, pairs)].max(axis=1, initial=MAX_INFORMATION)

    return tuple(
        f"{tokens.words[first]} {tokens.words[second]}"
        for first, second in pairs[phrase_bound > of_words].tolist()
    )


def _count_pairs(
    tokens: TokenStream,
    members: Int64Array,
    topic_of_member: npt.NDArray[Any],
    is_candidate: BoolArray,
    is_function: BoolArray,
) -> tuple[Int64Array, Float64Array]:
    """Return pairs of words that follow each other, and the documents of each topic with them.

    The shapes are (n_pairs, 2) and (n_topics, n_pairs).
    """
    n_words = len(tokens.words)
    begins_pair = is_candidate[tokens.ids[:-1]] & is_candidate[tokens.ids[1:]]
    begins_pair &= is_function[tokens.ids[:-1]] | is_function[tokens.ids[1:]]
    if tokens.skipped is not None:
        begins_pair &= ~tokens.skipped[:-1] & ~tokens.skipped[1:]
    last_of_part = tokens.parts[1:-1] - 1
    begins_pair[last_of_part[last_of_part >= 0]] = False

    positions = np.flatnonzero(begins_pair)
    documents = np.searchsorted(tokens.offsets, positions, side="right") - 1
    topic_of_document = np.full(len(tokens), -1, dtype=np.int64)
    topic_of_document[members] = topic_of_member
    in_topic = topic_of_document[documents] >= 0
    positions = positions[in_topic]
    documents = documents[in_topic]

    # Each pair once a document.
    codes = tokens.ids[positions].astype(np.int64) * n_words + tokens.ids[positions + 1]
    pair_codes, pair = np.unique(codes, return_inverse=True)
    present = np.unique(documents * max(1, len(pair_codes)) + pair)
    documents, pair = np.divmod(present, max(1, len(pair_codes)))

    n_topics = int(topic_of_member.max()) + 1
    cells = topic_of_document[documents] * len(pair_codes) + pair
    counts = np.bincount(cells, minlength=n_topics * len(pair_codes)).astype(np.float64)
    counts = counts.reshape(n_topics, len(pair_codes))
    is_frequent = counts.sum(axis=0) >= _FEWEST_DOCUMENTS
    pairs = np.stack(np.divmod(pair_codes[is_frequent], n_words), axis=1)
    return pairs, counts[:, is_frequent]


def phrases_of(counts: TermCounts) -> tuple[str, ...]:
    """Return the terms of two words that hold a function word: earlier `common_phrases`."""
    functions = set(counts.function_words)
    return tuple(
        counts.terms[i]
        for i in np.flatnonzero(counts.lengths == 2).tolist()
        if not functions.isdisjoint(counts.terms[i].split(" "))
    )
