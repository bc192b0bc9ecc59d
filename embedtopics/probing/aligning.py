"""Which sub-token belongs to which word, and where long texts are cut into windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int32Array, Int64Array

__all__ = ["align", "cut_into_windows", "window_of_each_token"]


def align(
    spans: npt.NDArray[np.integer],
    offsets: npt.NDArray[np.integer],
    stretches: Sequence[int | None],
) -> Int64Array:
    """Return the word of each sub-token, -1 for one between words.

    A token belongs to the word that holds most of its characters, the first of equals; so none
    belongs to two. One that holds no character of a word, such as a sign for the space before it,
    belongs to the word of the token behind it, else of that before it, within the stretch of text
    that the tokenizer cut off as one piece; where there is none there, as for empty lines, it is
    between words.

    Parameters
    ----------
    spans : int array of shape (n_words, 2)
        Characters of each word, ascending and without overlap.
    offsets : int array of shape (n_tokens, 2)
        Characters of each token. Several tokens may be parts of the same character.
    stretches : sequence of int or None
        Number of the piece that the tokenizer cut each token from; None where it does not tell.
    """
    spans, offsets = spans.astype(np.int64), offsets.astype(np.int64)
    widths = spans[:, 1] - spans[:, 0]
    owners = np.repeat(np.arange(len(spans)), widths)
    inside = np.repeat(spans[:, 0] - np.cumsum(widths) + widths, widths) + np.arange(len(owners))
    first = np.searchsorted(inside, offsets[:, 0])
    behind = np.searchsorted(inside, offsets[:, 1])
    found = np.full(len(offsets), -1, dtype=np.int64)
    holds = behind > first
    found[holds] = owners[first[holds]]
    shared = np.flatnonzero(holds)[owners[first[holds]] != owners[behind[holds] - 1]]
    for token in shared.tolist():
        held = owners[first[token] : behind[token]]
        found[token] = held[0] + np.bincount(held - held[0]).argmax()
    _join_neighbors(found, stretches)
    return found


def _join_neighbors(found: Int64Array, stretches: Sequence[int | None]) -> None:
    alone = np.flatnonzero(found < 0).tolist()
    for token in reversed(alone):
        if token + 1 < len(found) and _same(stretches, token, token + 1):
            found[token] = found[token + 1]
    for token in alone:
        if token > 0 and found[token] < 0 and _same(stretches, token - 1, token):
            found[token] = found[token - 1]


def _same(stretches: Sequence[int | None], one: int, other: int) -> bool:
    return stretches[one] is not None and stretches[one] == stretches[other]


def cut_into_windows(n_tokens: int, room: int) -> Int64Array:
    """Return where windows of `room` tokens begin that share at least a quarter with the next.

    They lie at equal distances, the last at the end, so that all are full.

    Examples
    --------
    >>> cut_into_windows(25, 10).tolist()
    [0, 8, 15]
    """
    if n_tokens <= room:
        return np.zeros(1, dtype=np.int64)
    step = max(1, room - room // 4)
    n_windows = 1 + -(-(n_tokens - room) // step)
    return np.round(np.linspace(0, n_tokens - room, n_windows)).astype(np.int64)


def window_of_each_token(n_tokens: int, starts: Int64Array, room: int) -> Int32Array:
    """Return the window where each token has most context on that side where it has less.

    Parameters
    ----------
    n_tokens, room : int
        Tokens of the text, and of a window.
    starts : int64 ndarray of shape (n_windows,)

    Returns
    -------
    int32 ndarray of shape (n_tokens,)
        The first of equals.
    """
    best = np.full(n_tokens, -1, dtype=np.int64)
    window = np.zeros(n_tokens, dtype=np.int32)
    for number, start in enumerate(starts.tolist()):
        end = min(start + room, n_tokens)
        tokens = np.arange(start, end)
        context = np.minimum(tokens - start, end - 1 - tokens)
        better = tokens[context > best[tokens]]
        best[better] = context[better - start]
        window[better] = number
    return window
