"""Passages: overlapping windows of whole sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, is_count
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.corpus._corpus import Corpus


Span: TypeAlias = tuple[int, int]
"""Characters of a part of a text: the first, and the one after the last."""

# F1 of boundaries: English EWT .810 and GUM .921, French GSD .966 and Sequoia .878; with the rules
# for French .960 and .871 there; pysbd .792, .915, .969 and .877, in a hundred times as long.
_RULES = "en"

_CHARACTERS = 20_000
"""Characters split at a time: time grows with the square of the length of an unclosed quotation."""


def sentence_starts(text: str) -> list[int]:
    """Return the first character of each sentence."""
    from sentencex import get_sentence_boundaries

    whole = text.encode("utf-8", "replace").decode()  # without lone surrogates
    starts, begin = [], 0
    while begin < len(whole):
        read = get_sentence_boundaries(_RULES, whole[begin : begin + _CHARACTERS])
        batch = [begin + one["start_index"] for one in read if not one["text"].isspace()]
        starts += [start for start in batch if start > begin]
        # The last sentence may continue in the next part.
        is_last = begin + _CHARACTERS >= len(whole)
        begin = begin + _CHARACTERS if is_last or batch[-1:] <= [begin] else batch[-1]
    if starts and whole[: starts[0]].isspace():
        starts = starts[1:]
    return [0, *starts]


def windows(text: str, token_starts: npt.ArrayLike, most: int, overlap: int) -> list[Span]:
    """Cut a text into overlapping windows of whole sentences; `token_starts` (n_tokens,)."""
    starts = np.asarray(token_starts, dtype=np.int64)
    bounds = _bounds(text, starts, most, max(1, overlap) if overlap else most)
    costs = np.diff(np.searchsorted(starts, bounds)).tolist()
    spans: list[Span] = []
    first = 0
    while True:
        last, total = first, 0
        while last < len(costs) and (last == first or total + costs[last] <= most):
            total += costs[last]
            last += 1
        spans.append((bounds[first], bounds[last]))
        if last == len(costs):
            break
        begin, first, shared = first, last, 0
        # The overlap leaves space for a new sentence.
        space = min(overlap, most - costs[last])
        while first - 1 > begin and shared + costs[first - 1] <= space:
            first -= 1
            shared += costs[first]
    trimmed = []
    for begin, end in spans:
        part = text[begin:end]
        start = begin + len(part) - len(part.lstrip())
        trimmed.append((start, max(start, begin + len(part.rstrip()))))
    return trimmed


def _bounds(text: str, starts: npt.NDArray[np.int64], most: int, piece: int) -> list[int]:
    """Return the first character of each unit of a window, and the end of the text."""
    sentences = [*sentence_starts(text), len(text)]
    tokens = np.searchsorted(starts, sentences).tolist()
    bounds = []
    for begin, token, next_token in zip(sentences[:-1], tokens[:-1], tokens[1:], strict=True):
        bounds.append(begin)
        is_long, step = next_token - token > most, min(piece, most)
        while is_long and next_token - token > step:
            cut = next(
                (k for k in range(token + step, token, -1) if text[starts[k] - 1].isspace()),
                token + step,
            )
            token = cut
            if starts[cut] > bounds[-1]:
                bounds.append(int(starts[cut]))
    return [*bounds, len(text)]


PASSAGE_COLUMNS = ("passage_of", "passage", "passage_start", "passage_stop")
WORDS_A_PASSAGE = 180
"""A passage of 180 words fits into the 256 tokens that small encoders read."""

_WORD = re.compile(r"\w+|[^\w\s]")


def split_into_passages(
    corpus: Corpus,
    encoder: Any = None,
    *,
    max_words: int = WORDS_A_PASSAGE,
    max_overlap: int | None = None,
) -> tuple[list[str], list[int], list[Span]]:
    """Return the passages of all rows, their rows and their characters."""
    if encoder is not None:
        for name, value, default in (
            ("max_words", max_words, WORDS_A_PASSAGE),
            ("max_overlap", max_overlap, None),
        ):
            if value != default:
                expected = "left out with an encoder, which cuts at the length that it reads"
                raise InputError(name, expected, value)
    from embedtopics.corpus._texts import TEXT  # which imports pandas

    rows = np.flatnonzero(np.asarray(corpus.status) == TEXT).tolist()
    texts = [corpus.texts[row] for row in rows]
    if encoder is not None:
        spans_of_text = None if isinstance(encoder, str) else encoder.windows(texts)
        if spans_of_text is None:
            expected = "an encoder that cuts texts into windows, as SentenceEncoder(name) does"
            raise InputError("encoder", expected, encoder, "leave it out to count words")
    else:
        max_words = checked_count(max_words, "max_words")
        overlap = max_words // 8 if max_overlap is None else max_overlap
        if not is_count(overlap, 0) or overlap >= max_words:
            raise InputError("max_overlap", f"an integer from 0 to {max_words - 1}", max_overlap)
        starts = [[match.start() for match in _WORD.finditer(text)] for text in texts]
        spans_of_text = [
            windows(text, words, max_words, overlap) if words else [(0, len(text))]
            for text, words in zip(texts, starts, strict=True)
        ]
    spans_of: dict[int, Sequence[Span]] = dict(zip(rows, spans_of_text, strict=True))
    passages, of_row, places = [], [], []
    for row, text in enumerate(corpus.texts):
        for start, stop in spans_of.get(row, [(0, len(text))]):
            passages.append(text[start:stop])
            of_row.append(row)
            places.append((start, stop))
    return passages, of_row, places
