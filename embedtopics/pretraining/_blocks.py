"""A corpus as blocks of tokens, or as pairs of segments.

A block belongs to one text, and fits into the model. Blocks of similar length are encoded together,
which leaves little padding and works for all families of models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from embedtopics.encoders._base import readable, slabs
from embedtopics.pretraining._masking import Tokens, surface_of
from embedtopics.protocols import Int64Array

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FEWEST_TOKENS = 4
"""Fewest ordinary tokens of a block, so that there is context to predict from."""

FEWEST_OF_PAIR = 8
"""Fewest ordinary tokens of a block that is split into two segments."""

NEGATIVES = 0.5
"""Share of pairs with another second segment (Devlin et al. 2019, section 3.1)."""

_SENTENCE_END = re.compile(r"[.!?\u2026]\s|[\u3002\uff01\uff1f]")


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of tokens, as the trainer takes examples."""

    tokens: list[Tokens]
    numbers: Int64Array  # (n_blocks,), their own, by which fixed masks are drawn
    text_of: Int64Array  # (n_blocks,), which text each is of
    middles: Int64Array  # (n_blocks,), where a second segment would begin; -1 for nowhere

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def lengths(self) -> Int64Array:
        """Tokens of each block."""
        return np.array([len(one) for one in self.tokens], dtype=np.int64)

    def take(self, places: Any) -> Blocks:
        """Return some of the blocks."""
        rows = np.asarray(places, dtype=np.int64)
        tokens = [self.tokens[place] for place in rows.tolist()]
        return Blocks(tokens, self.numbers[rows], self.text_of[rows], self.middles[rows])


def cut_into_blocks(texts: Sequence[str], tokenizer: Tokenizer, max_length: int) -> Blocks:
    """Tokenize texts, and cut long texts into blocks."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    interned: dict[str, str] = {}
    blocks: list[Tokens] = []
    text_of: list[int] = []
    middles: list[int] = []
    for text_id, (text, encoding) in enumerate(_encoded(texts, tokenizer)):
        for part in [encoding, *encoding.overflowing]:
            words = np.array([-1 if w is None else w for w in part.word_ids], dtype=np.int64)
            if (words >= 0).sum() < FEWEST_TOKENS:
                continue
            spans: dict[int, tuple[int, int]] = {}
            for word, (begin, end) in zip(words.tolist(), part.offsets, strict=True):
                first, last = spans.get(word, (begin, end))
                spans[word] = min(first, begin), max(last, end)
            names = {word: surface_of(text[a:b]) for word, (a, b) in spans.items() if word >= 0}
            values = (names.get(word, "") for word in words.tolist())
            surfaces = tuple(interned.setdefault(name, name) for name in values)
            blocks.append(Tokens(np.array(part.ids, dtype=np.int64), words, surfaces))
            text_of.append(text_id)
            ends = [_SENTENCE_END.match(text, max(0, b - 1)) is not None for _, b in part.offsets]
            middles.append(middle_of(words, ends))
    places = (np.array(values, dtype=np.int64) for values in (text_of, middles))
    return Blocks(blocks, np.arange(len(blocks)), *places)


def _encoded(texts: Sequence[str], tokenizer: Tokenizer) -> Any:
    for slab in slabs(texts):
        clean = [readable(text) for text in slab]
        yield from zip(clean, tokenizer.encode_batch(clean), strict=True)


class Paired(NamedTuple):
    """Pairs of segments."""

    tokens: list[Tokens]
    begins: list[int]  # where the second segment begins
    labels: list[int]  # 0 for segments that follow one another, as in transformers, else 1


@dataclass(frozen=True)
class Segments:
    """Splits blocks into pairs of segments."""

    kind: str  # "nsp": the next segment or one of another text; "sop": the two in either order
    separator: tuple[int, ...]  # ids that stand between segments
    max_length: int

    @classmethod
    def of(cls, objective: str, tokenizer: Tokenizer, max_length: int) -> Segments | None:
        """Return the segments of an objective, with the separator of the tokenizer."""
        _, _, kind = objective.partition("+")
        if not kind:
            return None
        tokenizer.no_truncation()
        encoding = tokenizer.encode("a", "a")
        last = max(place for place, one in enumerate(encoding.sequence_ids) if one == 0)
        inner = encoding.ids[last + 1 : encoding.sequence_ids.index(1)]
        return cls(kind, tuple(inner or encoding.ids[-1:]), max_length)

    def usable(self, blocks: Blocks) -> Blocks:
        """Return the blocks that can be split."""
        sizes = np.array([int((one.words >= 0).sum()) for one in blocks.tokens])
        return blocks.take(np.flatnonzero((sizes >= FEWEST_OF_PAIR) & (blocks.middles > 0)))

    def draw(self, blocks: Blocks, pool: Blocks, rngs: Sequence[np.random.Generator]) -> Paired:
        """Make a pair of each block; negatives come from other texts of the pool."""
        pairs = Paired([], [], [])
        for place, rng in enumerate(rngs):
            first, second = _halves(blocks, place)
            others = np.flatnonzero(pool.text_of != blocks.text_of[place])
            is_negative = bool(rng.random() < NEGATIVES) and (self.kind == "sop" or len(others) > 0)
            if is_negative and self.kind == "sop":
                first, second = second, first
            elif is_negative:
                second = _halves(pool, int(rng.choice(others)))[1]
            tokens, begin = self._joined(blocks.tokens[place], first, second)
            pairs.tokens.append(tokens)
            pairs.begins.append(begin)
            pairs.labels.append(int(is_negative))
        return pairs

    def _joined(self, block: Tokens, first: Tokens, second: Tokens) -> tuple[Tokens, int]:
        """Join segments with the special tokens of a block; truncate the second if necessary."""
        inside = np.flatnonzero(block.words >= 0)
        lead, trail = block.part(0, int(inside[0])), block.part(int(inside[-1]) + 1, len(block))
        between = np.array(self.separator, dtype=np.int64)
        separator = Tokens(between, np.full(len(between), -1), ("",) * len(between))
        begin = len(lead) + len(first) + len(separator)
        second = second.part(0, max(1, self.max_length - begin - len(trail)))
        # Word numbers ascend: those of the second segment follow those of the first.
        shift = first.words[-1] + 1 - second.words[0]
        second = replace(second, words=second.words + shift)
        parts = (lead, first, separator, second, trail)
        ids, words = (np.concatenate([getattr(p, n) for p in parts]) for n in ("ids", "words"))
        return Tokens(ids, words, tuple(name for part in parts for name in part.surfaces)), begin


def _halves(blocks: Blocks, place: int) -> tuple[Tokens, Tokens]:
    """Return both segments of a block, without special tokens."""
    block, middle = blocks.tokens[place], int(blocks.middles[place])
    inside = np.flatnonzero(block.words >= 0)
    return block.part(int(inside[0]), middle), block.part(middle, int(inside[-1]) + 1)


def middle_of(words: Int64Array, ends_sentence: Sequence[bool]) -> int:
    """Return the start of the second segment: a sentence in the middle half, or a word."""
    is_new = (words[1:] != words[:-1]) & (words[1:] >= 0) & (words[:-1] >= 0)
    begins, n = np.flatnonzero(is_new) + 1, len(words)
    at_sentence = begins[np.asarray(ends_sentence, dtype=np.bool_)[begins - 1]]
    near = at_sentence[np.abs(at_sentence - n / 2) <= n / 4]
    options = near if len(near) else begins
    return int(options[np.argmin(np.abs(options - n / 2))]) if len(options) else -1
