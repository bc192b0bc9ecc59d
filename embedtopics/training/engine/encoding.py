"""The texts of a batch through the encoder: in groups of like length, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.protocols import Int64Array

if TYPE_CHECKING:
    import torch

__all__ = ["BatchEncoder", "bytes_a_token", "groups_of_like_length"]

TOKENS_WORTH_A_PASS = 96
"""Tokens below which a group is not cut further: a pass through the layers has a price of its
own, which the padding saved must outweigh."""

GROUPS_OF_A_STEP = 1024
"""Seeds that lie between two steps: each group of a step has its own."""


def groups_of_like_length(lengths: Sequence[int], tokens_at_once: int) -> list[Int64Array]:
    """Cut the texts of a batch into groups that need little padding.

    Texts are sorted by length, and groups are cut so that the tokens read, padding included, and
    a fixed price a group add up to least (by dynamic programming over the sorted texts).

    Parameters
    ----------
    lengths : sequence of int
    tokens_at_once : int
        Most tokens of a group, padding included; a text that is longer has a group of its own.

    Returns
    -------
    list of int64 ndarray
        Places of the texts, the shortest group first.
    """
    order = np.argsort(np.asarray(lengths), kind="stable")
    sizes = np.asarray(lengths, dtype=np.int64)[order]
    # Only where the length changes is it worth cutting.
    ends = [*np.flatnonzero(np.diff(sizes)) + 1, len(sizes)] if len(sizes) else []
    cost = [0.0]
    cut_from = [0]
    starts = [0, *ends]
    for j, end in enumerate(ends, start=1):
        options = [
            cost[i] + (end - starts[i]) * float(sizes[end - 1]) + TOKENS_WORTH_A_PASS
            for i in range(j)
        ]
        best = int(np.argmin(options))
        cost.append(options[best])
        cut_from.append(best)
    groups: list[Int64Array] = []
    place = len(ends)
    while place:
        begin, end = starts[cut_from[place]], starts[place]
        room = max(1, int(tokens_at_once // max(1, sizes[end - 1])))
        pieces = [order[i : min(i + room, end)] for i in range(int(begin), int(end), room)]
        groups.extend(reversed(pieces))
        place = cut_from[place]
    return [np.sort(group) for group in reversed(groups)]


def bytes_a_token(n_layers: int, width: int) -> int:
    """Estimate the memory that learning from a token holds: about 40 numbers a unit and layer."""
    return max(1, n_layers) * max(1, width) * 4 * 40


class BatchEncoder:
    """Encodes the columns of a batch so that gradients can flow back.

    Groups of like length are encoded one after the other and put back in order: the same vectors
    as from one padded batch, with less padding. Where the batch holds more than `tokens_at_once`
    tokens, no group's intermediate values are kept: the loss is computed from the vectors, and
    each group is encoded once more, with the same dropout, to carry the gradients on (Gao et al.
    2021, "Scaling deep contrastive learning batch size under memory limited setup").

    Parameters
    ----------
    forward : callable
        ``forward(list of token id lists)`` returns a tensor (n_texts, n_dimensions).
    tokens_at_once : int
    """

    def __init__(self, forward: Callable[[list[list[int]]], Any], tokens_at_once: int) -> None:
        self._forward = forward
        self.tokens_at_once = tokens_at_once

    def learn(
        self,
        columns: Sequence[list[list[int]]],
        loss_of: Callable[[list[torch.Tensor]], torch.Tensor],
        backward: Callable[[torch.Tensor], None],
        seed: int,
    ) -> torch.Tensor:
        """Compute a loss of the vectors of all columns, and add its gradients to the weights.

        Parameters
        ----------
        columns : sequence of list of list of int
            Token ids, column by column; all columns hold as many texts.
        loss_of : callable
            From one tensor a column to the loss.
        backward : callable
            Runs backward on a scalar tensor.
        seed : int
            Of the dropout.

        Returns
        -------
        torch.Tensor
            The loss, detached.
        """
        import torch

        texts = [ids for column in columns for ids in column]
        lengths = [len(ids) for ids in texts]
        groups = groups_of_like_length(lengths, self.tokens_at_once)
        held = sum(len(group) * max(lengths[i] for i in group) for group in groups)
        keeps_all = held <= self.tokens_at_once
        with torch.set_grad_enabled(keeps_all):
            parts = [self._seeded([texts[i] for i in g], seed, n) for n, g in enumerate(groups)]
        vectors = _in_order(parts, groups)
        if not keeps_all:
            vectors = vectors.detach().requires_grad_()
        loss = loss_of(list(torch.split(vectors, len(columns[0]))))
        backward(loss)
        if not keeps_all:
            assert vectors.grad is not None
            for n, group in enumerate(groups):
                again = self._seeded([texts[i] for i in group], seed, n)
                again.backward(vectors.grad[torch.as_tensor(group, device=again.device)])
        return loss.detach()

    def encode(self, texts: Sequence[list[int]]) -> torch.Tensor:
        """Return the vectors of texts, without gradients, shape (n_texts, n_dimensions)."""
        import torch

        order = np.argsort([len(ids) for ids in texts], kind="stable")
        groups: list[Int64Array] = []
        begin, budget = 0, max(1, min(self.tokens_at_once, 1024))
        for end in range(1, len(order) + 1):
            is_last = end == len(order)
            longest = len(texts[order[min(end, len(order) - 1)]])
            if is_last or (end + 1 - begin) * longest > budget:
                groups.append(order[begin:end])
                begin = end
        with torch.no_grad():
            parts = [self._forward([texts[i] for i in group]) for group in groups]
        return _in_order(parts, groups)

    def _seeded(self, texts: list[list[int]], seed: int, group: int) -> Any:
        import torch

        torch.manual_seed(seed * GROUPS_OF_A_STEP + group)
        return self._forward(texts)


def _in_order(parts: Sequence[torch.Tensor], groups: Sequence[Int64Array]) -> torch.Tensor:
    import torch

    vectors = torch.cat(list(parts))
    back = torch.empty(len(vectors), dtype=torch.long, device=vectors.device)
    places = torch.as_tensor(np.concatenate(groups), device=vectors.device)
    back[places] = torch.arange(len(vectors), device=vectors.device)
    return vectors[back]
