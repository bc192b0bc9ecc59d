"""Which examples are learned from together: batches of like length, no text twice in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int64Array

__all__ = ["BatchPlan"]

BATCHES_IN_A_WINDOW = 16
"""Batches' worth of shuffled examples that are sorted by length together. More would save little
padding, and show the texts of a batch, which are one another's negatives, always beside texts of
their own length."""


class BatchPlan:
    """The batches of every epoch, the same for the same seed.

    Examples are shuffled; within windows of some batches they are sorted by their length, cut into
    batches, and the batches are shuffled. Every epoch has the same number of batches.

    It is a batch sampler as torch's data loaders take it; the engine sets `epoch`.

    Parameters
    ----------
    lengths : array_like of int, shape (n_examples,)
        Tokens of the longest text of each example.
    batch_size : int
    seed : int
    keys : sequence of sequence of int, optional
        Numbers of the texts of each example, equal for equal texts; the first two are a pair. Where
        they are given, no two examples of a batch share a text, nor has one a text that is paired
        with a text of the other in any example: as in-batch negatives they would contradict what
        is learned. An example for which no batch of an epoch has room is left out of that epoch;
        `n_left_out` counts them.
    """

    def __init__(
        self,
        lengths: npt.ArrayLike,
        batch_size: int,
        seed: int,
        keys: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self._lengths: Int64Array = np.asarray(lengths, dtype=np.int64)
        self._size = batch_size
        self._seed = seed
        self._keys = keys
        self._partners = _partners(keys or ())
        self.epoch = 0
        self._left_out: dict[int, int] = {}

    @property
    def n_left_out(self) -> int:
        """How many examples were left out of the epochs that were drawn, epoch by epoch."""
        return sum(self._left_out.values())

    def __len__(self) -> int:
        return -(-len(self._lengths) // self._size)

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.of_epoch(self.epoch))

    def of_epoch(self, epoch: int) -> list[list[int]]:
        """Return the batches of an epoch, each a list of places of examples."""
        rng = np.random.default_rng((self._seed, epoch))
        order = rng.permutation(len(self._lengths))
        window = self._size * BATCHES_IN_A_WINDOW
        parts = [order[begin : begin + window] for begin in range(0, len(order), window)]
        sorted_parts = [part[np.argsort(self._lengths[part], kind="stable")] for part in parts]
        order = np.concatenate(sorted_parts) if parts else order
        if self._keys is None:
            cuts = range(self._size, len(order), self._size)
            batches = [batch.tolist() for batch in np.split(order, list(cuts))] if parts else []
        else:
            batches, self._left_out[epoch] = self._without_doubles(order.tolist())
        return [batches[place] for place in rng.permutation(len(batches))]

    def _without_doubles(self, order: list[int]) -> tuple[list[list[int]], int]:
        """Put each example into the first batch with room and none of its texts or partners."""
        assert self._keys is not None
        batches: list[list[int]] = [[] for _ in range(len(self))]
        held: list[set[int]] = [set() for _ in range(len(self))]
        # All batches before a text's place are full or hold it: what is true once stays true.
        first_without: dict[int, int] = {}
        first_open, n_left_out = 0, 0
        for example in order:
            texts = self._keys[example]
            begin = first_open
            for text in texts:
                place = max(first_open, first_without.get(text, 0))
                while place < len(batches) and (
                    text in held[place] or len(batches[place]) == self._size
                ):
                    place += 1
                first_without[text] = place
                begin = max(begin, place)
            for place in range(begin, len(batches)):
                if len(batches[place]) < self._size and self._agree(texts, held[place]):
                    batches[place].append(example)
                    held[place].update(texts)
                    break
            else:
                n_left_out += 1
            while first_open < len(batches) and len(batches[first_open]) == self._size:
                first_open += 1
        # None is empty: it would have had room for an example that was left out, and where none
        # was, the last batch is needed.
        return batches, n_left_out

    def _agree(self, texts: Sequence[int], held: set[int]) -> bool:
        """Tell whether no text is among those of a batch, nor paired with one of them anywhere."""
        if not held.isdisjoint(texts):
            return False
        return all(held.isdisjoint(self._partners.get(text, ())) for text in texts)


def _partners(keys: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """Return the texts that each text is paired with."""
    found: dict[int, set[int]] = {}
    for first, *rest in keys:
        for other in rest[:1]:
            found.setdefault(first, set()).add(other)
            found.setdefault(other, set()).add(first)
    return found
