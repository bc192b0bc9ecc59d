"""Which token sequences are to be run for texts, and which unit each of their tokens goes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embedtopics._progress import progress_bar
from embedtopics.encoders.tokenizing import readable, slabs
from embedtopics.errors import InputError
from embedtopics.probing.aligning import align, cut_into_windows, window_of_each_token
from embedtopics.probing.reading import Reading
from embedtopics.protocols import Int32Array, Int64Array

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

__all__ = ["Block", "Plan", "Run", "cut_into_blocks", "make_plan"]


@dataclass(frozen=True, eq=False)
class Run:
    """A sequence of tokens for the model: a text, or a window of it.

    Parameters
    ----------
    ids : bytes
        Token ids with the special tokens, int32.
    places : int32 ndarray of shape (n_kept,)
        Which of them are kept.
    rows : int64 ndarray of shape (n_kept,)
        Unit that each of these goes to.
    """

    ids: bytes
    places: Int32Array
    rows: Int64Array


@dataclass(frozen=True, eq=False)
class Plan:
    """All sequences to be run, and all units.

    Parameters
    ----------
    runs : list of Run
        In the order of the texts.
    of_text, n_pieces : int32 ndarray of shape (n_units,)
    spans : int32 ndarray of shape (n_units, 2)
    n_between : int
        Tokens that belong to no word.
    n_long : int
        Texts in several windows.
    """

    runs: list[Run]
    of_text: Int32Array
    spans: Int32Array
    n_pieces: Int32Array
    n_between: int
    n_long: int


@dataclass(frozen=True)
class Block:
    """What is run, pooled and written together.

    Parameters
    ----------
    first_run, end_run : int
    first_unit, end_unit : int
    """

    first_run: int
    end_run: int
    first_unit: int
    end_unit: int


@dataclass(frozen=True, eq=False)
class _Units:
    """The units of one text, and the unit of each token, -1 where it has none."""

    spans: Int32Array
    of_token: Int64Array


def make_plan(
    reading: Reading,
    tokenizer: Tokenizer,
    *,
    words: bool,
    pooling: str,
    max_length: int,
    show_progress: bool | None,
) -> Plan:
    """Tokenise texts, align their tokens with their words, and cut long ones into windows.

    Parameters
    ----------
    reading : Reading
    tokenizer : tokenizers.Tokenizer
        With neither truncation nor padding.
    words : bool
        Whether words are the units, or tokens.
    pooling : str
        "first" and "last" keep one token a unit.
    max_length : int
        Tokens of a window, special tokens included.
    show_progress : bool or None

    Raises
    ------
    InputError
        If the special tokens leave no room.
    """
    runs: list[Run] = []
    spans, pieces, sizes = [], [], []
    n_units = n_between = n_long = row = 0
    with progress_bar(
        total=len(reading.texts), unit="text", description="Tokenising", show=show_progress
    ) as bar:
        for slab in slabs(reading.texts):
            for encoding in tokenizer.encode_batch([readable(text) for text in slab]):
                units = _units_of(encoding, reading.spans[row] if words else None)
                kept = units.of_token >= 0
                pieces.append(np.bincount(units.of_token[kept], minlength=len(units.spans)))
                made = _runs_of(encoding, units.of_token, n_units, pooling, max_length)
                runs += made
                n_long += len(made) > 1
                n_between += int((~kept).sum())
                n_units += len(units.spans)
                spans.append(units.spans)
                sizes.append(len(units.spans))
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


def _units_of(encoding: Encoding, spans: Int32Array | None) -> _Units:
    real = _real_places(encoding)
    offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)[real]
    if spans is None:
        return _Units(offsets, np.arange(len(offsets)))
    numbers = encoding.word_ids
    return _Units(spans, align(spans, offsets, [numbers[place] for place in real.tolist()]))


def _real_places(encoding: Encoding) -> Int64Array:
    """Return the tokens of the text; what opens and closes a sequence is none of them."""
    return np.flatnonzero(np.array(encoding.special_tokens_mask, dtype=np.int64) == 0)


def _runs_of(
    encoding: Encoding, of_token: Int64Array, n_before: int, pooling: str, max_length: int
) -> list[Run]:
    """Return the sequences of one text, without those that nothing is kept of."""
    ids, real = np.array(encoding.ids, dtype=np.int32), _real_places(encoding)
    if not len(real):
        return []
    opening, closing = ids[: real[0]], ids[real[-1] + 1 :]
    room = max_length - len(opening) - len(closing)
    if room < 1:
        raise InputError(
            f"expected max_length to leave room beside the {len(opening) + len(closing)} special "
            f"tokens, got {max_length}"
        )
    ids = ids[real[0] : real[-1] + 1]
    starts = cut_into_windows(len(ids), room)
    window = window_of_each_token(len(ids), starts, room)
    kept = _kept_tokens(of_token, pooling)
    made = []
    for number, start in enumerate(starts.tolist()):
        own = kept[window[kept] == number]
        sequence = np.concatenate([opening, ids[start : start + room], closing])
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
    """Cut the work into blocks of consecutive sequences, each with all tokens of its units.

    Parameters
    ----------
    plan : Plan
    most_tokens : int
        A block ends behind the sequence that brings it there, unless a unit goes on in the next.
    """
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
