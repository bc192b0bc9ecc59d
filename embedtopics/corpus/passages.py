"""A corpus of long texts as a corpus of passages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._windows import Span, windows
from embedtopics.corpus.hashing import TEXT
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.corpus.corpus import Corpus

__all__ = ["PASSAGE_COLUMNS", "split_into_passages"]

PASSAGE_COLUMNS = ("passage_of", "passage", "passage_start", "passage_stop")
WORDS_A_PASSAGE = 180
"""A passage of so many words fits into the 256 tokens that small encoders read."""

_WORD = re.compile(r"\w+|[^\w\s]")


def split_into_passages(
    corpus: Corpus, encoder: Any = None, *, most: int | None = None, overlap: int | None = None
) -> tuple[list[str], list[int], list[Span]]:
    """Return the passages of all rows, the row of each, and where it lies.

    A row without text, or one that is short enough, is one passage.
    """
    if encoder is not None and not callable(getattr(encoder, "windows", None)):
        raise InputError(
            "expected an encoder that knows how much it reads, with `windows(texts)`, got "
            f"{encoder!r}; leave it out to count words"
        )
    if encoder is not None and (most is not None or overlap is not None):
        raise InputError("expected either an encoder or most= and overlap=, got both")
    rows = np.flatnonzero(np.asarray(corpus.status) == TEXT).tolist()
    texts = [corpus.texts[row] for row in rows]
    if encoder is not None:
        found: Sequence[Sequence[Span]] = encoder.windows(texts)
    else:
        found = _by_words(texts, most, overlap)
    spans_of: dict[int, Sequence[Span]] = dict(zip(rows, found, strict=True))
    passages, of_row, places = [], [], []
    for row, text in enumerate(corpus.texts):
        for start, stop in spans_of.get(row, [(0, len(text))]):
            passages.append(text[start:stop])
            of_row.append(row)
            places.append((start, stop))
    return passages, of_row, places


def _by_words(texts: Sequence[str], most: int | None, overlap: int | None) -> list[list[Span]]:
    most = WORDS_A_PASSAGE if most is None else most
    overlap = most // 8 if overlap is None else overlap
    if most < 1 or not 0 <= overlap < most:
        raise InputError(
            "expected at least one word a passage, and an overlap of fewer; got "
            f"most={most} and overlap={overlap}"
        )
    made = []
    for text in texts:
        starts = [match.start() for match in _WORD.finditer(text)]
        made.append(windows(text, starts, most, overlap) if starts else [(0, len(text))])
    return made
