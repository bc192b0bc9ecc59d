"""Batches of about equal work: texts sorted by length, cut by a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["distinct_rows", "longest_first", "token_batches"]


def distinct_rows(keys: Sequence[bytes]) -> list[int]:
    """Return, for each row, the first row with the same key.

    Examples
    --------
    >>> distinct_rows([b"a", b"b", b"a"])
    [0, 1, 0]
    """
    first: dict[bytes, int] = {}
    return [first.setdefault(key, row) for row, key in enumerate(keys)]


def longest_first(keys: Sequence[bytes], rows: Sequence[int]) -> list[int]:
    """Order rows by length, longest first, and by content among equals.

    Sorting by length leaves next to no padding. Breaking ties by content instead of position
    makes the batches, and so every bit of the result, independent of the order of the input.
    The longest come first so that too little memory shows at once and not at the end.

    Examples
    --------
    >>> longest_first([b"b", b"aaa", b"a"], [0, 1, 2])
    [1, 2, 0]
    """
    return sorted(rows, key=lambda row: (-len(keys[row]), keys[row]))


def token_batches(lengths: Sequence[int], tokens_per_batch: int) -> Iterator[slice]:
    """Cut texts, longest first, into batches of at most so many tokens, padding included.

    Parameters
    ----------
    lengths : sequence of int
        Tokens of each text, descending.
    tokens_per_batch : int
        A text that is longer than this makes a batch of its own.

    Yields
    ------
    slice
        Consecutive texts.

    Examples
    --------
    >>> list(token_batches([9, 4, 4, 1], 8))
    [slice(0, 1, None), slice(1, 3, None), slice(3, 4, None)]
    """
    start = 0
    while start < len(lengths):
        stop = start + max(1, tokens_per_batch // max(1, lengths[start]))
        yield slice(start, min(stop, len(lengths)))
        start = stop
