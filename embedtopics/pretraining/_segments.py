"""Pairs of segments: those that follow one another in a text, and as many that do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from embedtopics.pretraining._masking import Tokens
from embedtopics.protocols import Int64Array

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from embedtopics.pretraining._blocks import Blocks

FEWEST_OF_PAIR = 8
"""Tokens of a block, special ones not counted, below which it is not made into two segments."""

NEGATIVES = 0.5
"""Share of the pairs whose second segment is not the next (Devlin et al. 2019, section 3.1)."""


class Paired(NamedTuple):
    """Pairs as the model reads them."""

    tokens: list[Tokens]
    begins: list[int]  # where the second segment begins
    labels: list[int]  # 0 for segments that follow one another, as in transformers, else 1


@dataclass(frozen=True)
class Segments:
    """Makes two segments of each block, drawn anew each time."""

    kind: str  # "nsp": the next segment or one of another text; "sop": the two in either order
    separator: tuple[int, ...]  # ids that stand between segments
    max_length: int

    @classmethod
    def of(cls, objective: str, tokenizer: Tokenizer, max_length: int) -> Segments | None:
        """Return those of an objective, with the tokens that stand between two texts."""
        _, _, kind = objective.partition("+")
        if not kind:
            return None
        tokenizer.no_truncation()
        found = tokenizer.encode("a", "a")
        last = max(place for place, one in enumerate(found.sequence_ids) if one == 0)
        inner = found.ids[last + 1 : found.sequence_ids.index(1)]
        return cls(kind, tuple(inner or found.ids[-1:]), max_length)

    def usable(self, blocks: Blocks) -> Blocks:
        """Return the blocks that two segments can be made of."""
        sizes = np.array([int((one.words >= 0).sum()) for one in blocks.tokens])
        return blocks.take(np.flatnonzero((sizes >= FEWEST_OF_PAIR) & (blocks.middles > 0)))

    def draw(self, chosen: Blocks, pool: Blocks, rngs: Sequence[np.random.Generator]) -> Paired:
        """Make pairs of blocks; other segments come from texts of the pool."""
        made = Paired([], [], [])
        for place, rng in enumerate(rngs):
            first, second = _halves(chosen, place)
            others = np.flatnonzero(pool.text_of != chosen.text_of[place])
            is_negative = bool(rng.random() < NEGATIVES) and (self.kind == "sop" or len(others) > 0)
            if is_negative and self.kind == "sop":
                first, second = second, first
            elif is_negative:
                second = _halves(pool, int(rng.choice(others)))[1]
            tokens, begin = self._joined(chosen.tokens[place], first, second)
            made.tokens.append(tokens)
            made.begins.append(begin)
            made.labels.append(int(is_negative))
        return made

    def _joined(self, block: Tokens, first: Tokens, second: Tokens) -> tuple[Tokens, int]:
        """Put segments between the special tokens of a block; the second is cut if too long."""
        inside = np.flatnonzero(block.words >= 0)
        lead, trail = block.part(0, int(inside[0])), block.part(int(inside[-1]) + 1, len(block))
        between = np.array(self.separator, dtype=np.int64)
        separator = Tokens(between, np.full(len(between), -1), ("",) * len(between))
        begin = len(lead) + len(first) + len(separator)
        second = second.part(0, max(1, self.max_length - begin - len(trail)))
        # Words keep ascending numbers, of which the second segment's follow those of the first.
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
    """Return where the second segment begins: at a sentence within the middle half, or a word."""
    is_new = (words[1:] != words[:-1]) & (words[1:] >= 0) & (words[:-1] >= 0)
    begins, n = np.flatnonzero(is_new) + 1, len(words)
    at_sentence = begins[np.asarray(ends_sentence, dtype=np.bool_)[begins - 1]]
    near = at_sentence[np.abs(at_sentence - n / 2) <= n / 4]
    options = near if len(near) else begins
    return int(options[np.argmin(np.abs(options - n / 2))]) if len(options) else -1
