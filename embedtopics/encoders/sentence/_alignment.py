"""Which word each token of a text belongs to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int64Array


def align(
    spans: npt.NDArray[np.integer],
    offsets: npt.NDArray[np.integer],
    stretches: Sequence[int | None],
) -> Int64Array:
    """Return the word of each token, the one with most of its characters; -1 between words.

    One without characters of a word, such as a mark for the space before it, belongs to the word of
    the next token, else of the previous one, within what the tokenizer split off as one piece.
    """
    spans, offsets = spans.astype(np.int64), offsets.astype(np.int64)
    widths = spans[:, 1] - spans[:, 0]
    owners = np.repeat(np.arange(len(spans)), widths)
    inside = np.repeat(spans[:, 0] - np.cumsum(widths) + widths, widths) + np.arange(len(owners))
    first = np.searchsorted(inside, offsets[:, 0])
    behind = np.searchsorted(inside, offsets[:, 1])
    words = np.full(len(offsets), -1, dtype=np.int64)
    holds = behind > first
    words[holds] = owners[first[holds]]
    shared = np.flatnonzero(holds)[owners[first[holds]] != owners[behind[holds] - 1]]
    for token in shared.tolist():
        candidates = owners[first[token] : behind[token]]
        words[token] = candidates[0] + np.bincount(candidates - candidates[0]).argmax()
    alone = np.flatnonzero(words < 0).tolist()
    for order, step in ((reversed(alone), 1), (alone, -1)):
        for token in order:
            near = token + step
            is_inside = 0 <= near < len(words) and stretches[token] is not None
            if words[token] < 0 and is_inside and stretches[near] == stretches[token]:
                words[token] = words[near]
    return words
