"""Streams of words of two sets of documents as one, without reading a text again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.results import TokenStream

__all__ = ["join_tokens"]


def join_tokens(first: TokenStream, second: TokenStream, order: Int64Array) -> TokenStream:
    """Join two streams, the documents in any order.

    Parameters
    ----------
    first, second : TokenStream
    order : int64 ndarray of shape (n_documents,)
        For each document of the joint stream its number: that in the first stream, or the number of
        documents there plus that in the second. Documents may be left out.

    Returns
    -------
    TokenStream
        What `tokenize` makes of all the texts in this order; words that no document holds are
        left out.

    Examples
    --------
    >>> from embedtopics.terms import tokenize
    >>> joint = join_tokens(tokenize(["b c"]), tokenize(["a b"]), np.array([1, 0]))
    >>> joint.words, joint.ids.tolist(), joint.offsets.tolist()
    (('a', 'b', 'c'), [0, 1, 1, 2], [0, 2, 4])
    """
    words = sorted({*first.words, *second.words})
    number = {word: place for place, word in enumerate(words)}
    ids = np.concatenate([_renumbered(part.ids, part.words, number) for part in (first, second)])
    starts = np.concatenate([first.offsets[:-1], second.offsets[:-1] + len(first.ids)])
    lengths = np.concatenate([np.diff(first.offsets), np.diff(second.offsets)])[order]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    places = np.arange(offsets[-1]) + np.repeat(starts[order] - offsets[:-1], lengths)
    return _used_words(ids[places], offsets, words)


def _renumbered(ids: Int32Array, words: Sequence[str], number: dict[str, int]) -> Int32Array:
    new = np.fromiter((number[word] for word in words), dtype=np.int32, count=len(words))
    return new[ids]


def _used_words(ids: Int32Array, offsets: Int64Array, words: list[str]) -> TokenStream:
    used = np.zeros(len(words), dtype=np.bool_)
    used[ids] = True
    if used.all():
        return TokenStream(ids, offsets, tuple(words))
    number = (np.cumsum(used) - 1).astype(np.int32)
    kept = tuple(word for word, is_used in zip(words, used.tolist(), strict=True) if is_used)
    return TokenStream(number[ids], offsets, kept)
