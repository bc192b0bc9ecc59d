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

from embedtopics._utils.display import progress_bar
from embedtopics.corpus._windows import Span, sentence_starts
from embedtopics.encoders._base import readable, slabs
from embedtopics.encoders.sentence._running import align
from embedtopics.errors import InputError
from embedtopics.probing.results import ProbeTask
from embedtopics.protocols import Int32Array, Int64Array

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def cut_into_windows(n_tokens: int, size: int) -> Int64Array:
    """Return where full windows begin that share at least a quarter with the next."""
    if n_tokens <= size:
        return np.zeros(1, dtype=np.int64)
    step = max(1, size - size // 4)
    n_windows = 1 + -(-(n_tokens - size) // step)
    return np.round(np.linspace(0, n_tokens - size, n_windows)).astype(np.int64)


def window_of_each_token(n_tokens: int, starts: Int64Array, size: int) -> Int64Array:
    """Return the window of each token in which its shorter side of context is longest."""
    # Windows have one size, so that it is the one whose middle is nearest.
    borders = (starts[:-1] + starts[1:] + size - 1) / 2
    return np.searchsorted(borders, np.arange(n_tokens))


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
    texts = texts.texts if is_task else texts
    # The keys of a dict and the columns of a table can be iterated, but are no texts.
    is_other = isinstance(texts, (str, bytes, Mapping, Set)) or hasattr(texts, "columns")
    if is_other or not hasattr(texts, "__iter__"):
        raise InputError("texts", "a list of texts", found=f"a {type(texts).__name__}")
    if not (rows := list(texts)):
        raise InputError("texts", "at least one text", found="none")
    is_whole = isinstance(rows[0], str)
    for row, text in enumerate(rows):
        words = [text] if is_whole else text
        if isinstance(words, (str, Mapping, Set)) or not all(isinstance(w, str) for w in words):
            raise InputError("texts", "all strings, or all lists of words", text, row=row)
    if is_whole:
        word_ranges = [np.array(word_spans(text), dtype=np.int32).reshape(-1, 2) for text in rows]
        return Reading(tuple(rows), tuple(word_ranges), is_task)
    joined, spans = [], []
    for words in rows:
        joined.append(" ".join(words))
        lengths = np.array([len(word) for word in words], dtype=np.int64)
        ends = np.cumsum(lengths + 1) - 1
        spans.append(np.stack([ends - lengths, ends], axis=1).astype(np.int32).reshape(-1, 2))
    return Reading(tuple(joined), tuple(spans), True)


def word_spans(text: str) -> list[Span]:
    """Find the words of a text; every character but white space is in exactly one."""
    return [match.span() for match in _pattern().finditer(text)]


@cache
def _pattern() -> re.Pattern[str]:
    # All combining marks, as the inside of a character class: a word character is none.
    codes = [c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c))[0] == "M"]
    breaks = [i for i, (a, b) in enumerate(pairwise(codes), start=1) if b != a + 1]
    runs = zip([0, *breaks], [*breaks, len(codes)], strict=True)
    marks = "".join(rf"\U{codes[a]:08x}-\U{codes[b - 1]:08x}" for a, b in runs)
    skin_tones, tags_of_flags = "\U0001f3fb-\U0001f3ff", "\U000e0020-\U000e007f"
    # What joins letters of Persian and Indian scripts, and emoji, is no letter itself.
    letters = rf"[\w{marks}\u200c\u200d]"
    other = r"[^\w\s]"
    return re.compile(
        rf"""
          (?:\b(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)['\u2019](?=\w\w))
        | {letters}+ (?: (?:['\u2019](?=[^\W\d]) | (?<=\d)[.,](?=\d)) {letters}+ )*
        | [\U0001f1e6-\U0001f1ff]{{2}}
        | ([-.!?*=~\u2026])\1+
        | {other} (?: [{marks}{skin_tones}{tags_of_flags}] | \u200d{other} )*
        """,
        re.VERBOSE | re.IGNORECASE,
    )


def number_sentences(reading: Reading, of_text: Int32Array, begins: Int32Array) -> Int32Array:
    """Return the sentence of each unit, by its first character, numbered through all texts."""
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
class TokenSequence:
    """A text's tokens, or a window's, for the model."""

    ids: bytes  # of int32
    places: Int32Array  # (n_kept,), tokens that are kept
    rows: Int64Array  # (n_kept,), their units

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.ids) // 4


@dataclass(frozen=True, eq=False)
class ExtractionPlan:
    """All sequences, in the order of the texts, and all units; `n_between` tokens have no word."""

    runs: list[TokenSequence]
    of_text: Int32Array
    spans: Int32Array
    n_pieces: Int32Array
    n_between: int
    n_long: int


def make_plan(
    reading: Reading,
    tokenizer: Tokenizer,
    *,
    words: bool,
    max_length: int,
    show_progress: bool | None,
) -> ExtractionPlan:
    """Tokenise texts, align their tokens with their words, and cut long ones into windows."""
    runs: list[TokenSequence] = []
    spans, pieces = [], []
    n_units = n_between = n_long = row = 0
    with progress_bar(
        total=len(reading.texts), unit="text", description="Tokenising", show=show_progress
    ) as bar:
        for slab in slabs(reading.texts):
            for encoding in tokenizer.encode_batch([readable(text) for text in slab]):
                real = np.flatnonzero(np.array(encoding.special_tokens_mask, dtype=np.int64) == 0)
                unit_spans = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)[real]
                of_token = np.arange(len(unit_spans))
                if words:
                    stretches = encoding.word_ids
                    within = [stretches[place] for place in real.tolist()]
                    of_token = align(reading.spans[row], unit_spans, within)
                    unit_spans = reading.spans[row]
                has_unit = of_token >= 0
                pieces.append(np.bincount(of_token[has_unit], minlength=len(unit_spans)))
                new_runs = _runs_of(encoding.ids, real, of_token, n_units, max_length)
                runs += new_runs
                n_long += len(new_runs) > 1
                n_between += int((~has_unit).sum())
                n_units += len(unit_spans)
                spans.append(unit_spans)
                row += 1
            bar.update(len(slab))
    sizes = [len(unit_spans) for unit_spans in spans]
    return ExtractionPlan(
        runs=runs,
        of_text=np.repeat(np.arange(len(sizes)), sizes).astype(np.int32),
        spans=np.concatenate(spans).astype(np.int32),
        n_pieces=np.concatenate(pieces).astype(np.int32),
        n_between=n_between,
        n_long=n_long,
    )


def _runs_of(
    token_ids: Sequence[int], real: Int64Array, of_token: Int64Array, n_before: int, max_length: int
) -> list[TokenSequence]:
    """Return the sequences of one text, without those that keep no token."""
    if not len(real):
        return []
    ids = np.array(token_ids, dtype=np.int32)
    opening, closing = ids[: real[0]], ids[real[-1] + 1 :]
    n_free = max_length - len(opening) - len(closing)
    if n_free < 1:
        n_special = len(opening) + len(closing)
        raise InputError("max_length", f"more than the {n_special} special tokens", max_length)
    ids = ids[real[0] : real[-1] + 1]
    starts = cut_into_windows(len(ids), n_free)
    window = window_of_each_token(len(ids), starts, n_free)
    tokens = np.flatnonzero(of_token >= 0)
    runs = []
    for number, start in enumerate(starts.tolist()):
        in_window = tokens[window[tokens] == number]
        sequence = np.concatenate([opening, ids[start : start + n_free], closing])
        places = (in_window - start + len(opening)).astype(np.int32)
        runs.append(TokenSequence(sequence.tobytes(), places, of_token[in_window] + n_before))
    return [run for run in runs if len(run.places)]


def cut_into_blocks(plan: ExtractionPlan, most_tokens: int) -> list[tuple[slice, slice]]:
    """Cut the work into consecutive sequences and their units; a unit has all its tokens in one."""
    if not plan.runs:
        return [(slice(0, 0), slice(0, len(plan.of_text)))]
    highest = np.maximum.accumulate([run.rows.max() for run in plan.runs])
    lowest = np.minimum.accumulate([run.rows.min() for run in reversed(plan.runs)])[::-1]
    runs, units, total = [0], [0], 0
    for number, run in enumerate(plan.runs):
        if total >= most_tokens and highest[number - 1] < lowest[number]:
            runs.append(number)
            units.append(int(lowest[number]))
            total = 0
        total += len(run)
    bounds = pairwise([*runs, len(plan.runs)]), pairwise([*units, len(plan.of_text)])
    return [(slice(*of_runs), slice(*of_units)) for of_runs, of_units in zip(*bounds, strict=True)]
