"""The token sequences of texts, and the unit that each of their tokens belongs to."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.progress import progress_bar
from embedtopics.corpus._windows import Span, sentence_starts
from embedtopics.encoders._base import readable, slabs
from embedtopics.errors import InputError
from embedtopics.probing.results import ProbeTask
from embedtopics.protocols import Int32Array, Int64Array

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


def align(
    spans: npt.NDArray[np.integer],
    offsets: npt.NDArray[np.integer],
    stretches: Sequence[int | None],
) -> Int64Array:
    """Return the word of each token, -1 for one between words.

    A token belongs to the word with most of its characters, of equal ones the first. One without
    characters of a word, such as a mark for the space before it, belongs to the word of the next
    token, else of the previous one, within the stretch of text that the tokenizer split off as one
    piece; where there is none, as for empty lines, it is between words.
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


def cut_into_windows(n_tokens: int, size: int) -> Int64Array:
    """Return where windows of `size` tokens begin that share at least a quarter with the next.

    They lie at equal distances, the last at the end, so that all are full.
    """
    if n_tokens <= size:
        return np.zeros(1, dtype=np.int64)
    step = max(1, size - size // 4)
    n_windows = 1 + -(-(n_tokens - size) // step)
    return np.round(np.linspace(0, n_tokens - size, n_windows)).astype(np.int64)


def window_of_each_token(n_tokens: int, starts: Int64Array, size: int) -> Int32Array:
    """Return the window of each token in which its shorter side of context is longest.

    Shapes: `starts` (n_windows,) -> (n_tokens,).
    """
    best = np.full(n_tokens, -1, dtype=np.int64)
    window = np.zeros(n_tokens, dtype=np.int32)
    for number, start in enumerate(starts.tolist()):
        end = min(start + size, n_tokens)
        tokens = np.arange(start, end)
        context = np.minimum(tokens - start, end - 1 - tokens)
        better = tokens[context > best[tokens]]
        best[better] = context[better - start]
        window[better] = number
    return window


# Texts and the words in them: found by a rule, or given already split.

_SKIN_TONES = "\U0001f3fb-\U0001f3ff"
_TAGS = "\U000e0020-\U000e007f"
"""Characters that spell out which region a flag stands for."""


@dataclass(frozen=True, eq=False)
class Reading:
    """Texts, the spans of their words, (n_words, 2), and whether each text is one sentence."""

    texts: tuple[str, ...]
    spans: tuple[Int32Array, ...]
    one_sentence: bool

    def digest(self) -> str:
        """Return the SHA-256 over all of it."""
        digest = hashlib.sha256(json.dumps([self.texts, self.one_sentence]).encode())
        for spans in self.spans:
            digest.update(spans.astype("<i4").tobytes() + b"/")
        return digest.hexdigest()


def read_texts(texts: Any) -> Reading:
    """Read whole texts, whose words are found, or texts that are split into words."""
    is_task = isinstance(texts, ProbeTask)
    if is_task:
        texts = texts.texts
    # The keys of a dict and the columns of a table can be iterated, but are no texts.
    is_other = isinstance(texts, (str, bytes, Mapping, Set)) or hasattr(texts, "columns")
    if is_other or not hasattr(texts, "__iter__"):
        raise InputError("texts", "a list of texts", found=f"a {type(texts).__name__}")
    rows = list(texts)
    if not rows:
        raise InputError("texts", "at least one text", found="none")
    if isinstance(rows[0], str):
        for row, text in enumerate(rows):
            if not isinstance(text, str):
                raise InputError("texts", "all strings, or all lists of words", text, row=row)
        found = [np.array(word_spans(text), dtype=np.int32).reshape(-1, 2) for text in rows]
        return Reading(tuple(rows), tuple(found), is_task)
    split = []
    for row, words in enumerate(rows):
        if isinstance(words, (str, bytes, dict, set)) or not hasattr(words, "__iter__"):
            raise InputError("texts", "all strings, or all lists of words", words, row=row)
        split.append(list(words))
        for word in split[-1]:
            if not isinstance(word, str):
                raise InputError("texts", "words that are strings", word, row=row)
    joined = tuple(" ".join(words) for words in split)
    return Reading(joined, tuple(_spans_of_split(words) for words in split), True)


def _spans_of_split(words: Sequence[str]) -> Int32Array:
    lengths = np.array([len(word) for word in words], dtype=np.int64)
    ends = np.cumsum(lengths + 1) - 1
    return np.stack([ends - lengths, ends], axis=1).astype(np.int32).reshape(-1, 2)


def word_spans(text: str) -> list[Span]:
    """Find the words of a text; every character but white space is in exactly one."""
    return [match.span() for match in _pattern().finditer(text)]


@cache
def _pattern() -> re.Pattern[str]:
    marks = _marks()
    # What joins letters of Persian and Indian scripts, and emoji, is no letter itself.
    letters = rf"[\w{marks}\u200c\u200d]"
    other = r"[^\w\s]"
    return re.compile(
        rf"""
          (?:\b(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)['\u2019](?=\w\w))
        | {letters}+ (?: (?:['\u2019](?=[^\W\d]) | (?<=\d)[.,](?=\d)) {letters}+ )*
        | [\U0001f1e6-\U0001f1ff]{{2}}
        | ([-.!?*=~\u2026])\1+
        | {other} (?: [{marks}{_SKIN_TONES}{_TAGS}] | \u200d{other} )*
        """,
        re.VERBOSE | re.IGNORECASE,
    )


def _marks() -> str:
    """Return all combining marks as the inside of a character class; a word character is none."""
    codes = [c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c))[0] == "M"]
    breaks = [i for i, (a, b) in enumerate(pairwise(codes), start=1) if b != a + 1]
    runs = zip([0, *breaks], [*breaks, len(codes)], strict=True)
    return "".join(rf"\U{codes[a]:08x}-\U{codes[b - 1]:08x}" for a, b in runs)


def number_sentences(reading: Reading, of_text: Int32Array, begins: Int32Array) -> Int32Array:
    """Return the sentence of each unit, numbered through all texts.

    Shapes: `of_text, begins` (n_units,).
    """
    if reading.one_sentence:
        return of_text.copy()
    numbers = np.empty(len(of_text), dtype=np.int32)
    bounds = np.searchsorted(of_text, np.arange(len(reading.texts) + 1))
    before = 0
    for text, (begin, end) in zip(reading.texts, pairwise(bounds.tolist()), strict=True):
        starts = sentence_starts(text)
        numbers[begin:end] = before + np.searchsorted(starts, begins[begin:end], side="right") - 1
        before += len(starts)
    return numbers


@dataclass(frozen=True, eq=False)
class Run:
    """A sequence of tokens for the model: a text, or a window of it.

    `ids` are token ids with the special tokens, as bytes of int32; `places` are those that are
    kept, and `rows` the units that they belong to, both of shape (n_kept,).
    """

    ids: bytes
    places: Int32Array
    rows: Int64Array


@dataclass(frozen=True, eq=False)
class Plan:
    """All sequences, in the order of the texts, and all units.

    `n_between` tokens belong to no word; `n_long` texts are in several windows.

    Shapes: `of_text, n_pieces` (n_units,), `spans` (n_units, 2).
    """

    runs: list[Run]
    of_text: Int32Array
    spans: Int32Array
    n_pieces: Int32Array
    n_between: int
    n_long: int


@dataclass(frozen=True)
class Block:
    """The sequences and units that are run, pooled and written together."""

    first_run: int
    end_run: int
    first_unit: int
    end_unit: int


def make_plan(
    reading: Reading,
    tokenizer: Tokenizer,
    *,
    words: bool,
    pooling: str,
    max_length: int,
    show_progress: bool | None,
) -> Plan:
    """Tokenise texts, align their tokens with their words, and cut long ones into windows."""
    runs: list[Run] = []
    spans, pieces, sizes = [], [], []
    n_units = n_between = n_long = row = 0
    with progress_bar(
        total=len(reading.texts), unit="text", description="Tokenising", show=show_progress
    ) as bar:
        for slab in slabs(reading.texts):
            for encoding in tokenizer.encode_batch([readable(text) for text in slab]):
                own, of_token = _units_of(encoding, reading.spans[row] if words else None)
                kept = of_token >= 0
                pieces.append(np.bincount(of_token[kept], minlength=len(own)))
                made = _runs_of(encoding, of_token, n_units, pooling, max_length)
                runs += made
                n_long += len(made) > 1
                n_between += int((~kept).sum())
                n_units += len(own)
                spans.append(own)
                sizes.append(len(own))
                row += 1
            bar.update(len(slab))
    return Plan(
        runs=runs,
        of_text=np.repeat(np.arange(len(sizes)), sizes).astype(np.int32),
        spans=np.concatenate(spans).astype(np.int32),
        n_pieces=np.concatenate(pieces).astype(np.int32),
        n_between=n_between,
        n_long=n_long,
    )


def _units_of(encoding: Encoding, spans: Int32Array | None) -> tuple[Int32Array, Int64Array]:
    """Return the spans of the units of one text, and the unit of each token, -1 for none."""
    real = _real_places(encoding)
    offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)[real]
    if spans is None:
        return offsets, np.arange(len(offsets))
    numbers = encoding.word_ids
    return spans, align(spans, offsets, [numbers[place] for place in real.tolist()])


def _real_places(encoding: Encoding) -> Int64Array:
    """Return the tokens of the text, without special ones."""
    return np.flatnonzero(np.array(encoding.special_tokens_mask, dtype=np.int64) == 0)


def _runs_of(
    encoding: Encoding, of_token: Int64Array, n_before: int, pooling: str, max_length: int
) -> list[Run]:
    """Return the sequences of one text, without those of which no token is kept."""
    ids, real = np.array(encoding.ids, dtype=np.int32), _real_places(encoding)
    if not len(real):
        return []
    opening, closing = ids[: real[0]], ids[real[-1] + 1 :]
    n_free = max_length - len(opening) - len(closing)
    if n_free < 1:
        n_special = len(opening) + len(closing)
        raise InputError("max_length", f"more than the {n_special} special tokens", max_length)
    ids = ids[real[0] : real[-1] + 1]
    starts = cut_into_windows(len(ids), n_free)
    window = window_of_each_token(len(ids), starts, n_free)
    kept = _kept_tokens(of_token, pooling)
    made = []
    for number, start in enumerate(starts.tolist()):
        own = kept[window[kept] == number]
        sequence = np.concatenate([opening, ids[start : start + n_free], closing])
        places = (own - start + len(opening)).astype(np.int32)
        made.append(Run(sequence.tobytes(), places, of_token[own] + n_before))
    return [run for run in made if len(run.places)]


def _kept_tokens(of_token: Int64Array, pooling: str) -> Int64Array:
    kept = np.flatnonzero(of_token >= 0)
    if pooling == "first":
        return kept[np.sort(np.unique(of_token[kept], return_index=True)[1])]
    if pooling == "last":
        backwards = kept[::-1]
        return np.sort(backwards[np.unique(of_token[backwards], return_index=True)[1]])
    return kept


def cut_into_blocks(plan: Plan, most_tokens: int) -> list[Block]:
    """Cut the work into blocks of consecutive sequences, each with all tokens of its units."""
    if not plan.runs:
        return [Block(0, 0, 0, len(plan.of_text))]
    highest = np.maximum.accumulate([run.rows.max() for run in plan.runs])
    lowest = np.minimum.accumulate([run.rows.min() for run in reversed(plan.runs)])[::-1]
    bounds, total = [0], 0
    for number, run in enumerate(plan.runs):
        if total >= most_tokens and highest[number - 1] < lowest[number]:
            bounds.append(number)
            total = 0
        total += len(run.ids) // 4
    ends = [*bounds[1:], len(plan.runs)]
    units = [0, *(int(lowest[number]) for number in bounds[1:]), len(plan.of_text)]
    return [Block(*each) for each in zip(bounds, ends, units[:-1], units[1:], strict=True)]
