"""The two kinds of probe: a linear one, and one with a hidden layer.

Slopes are written out: the probes of one layer share their input, so that a step is two products
of matrices, and nothing has to be recorded for a machine to differentiate.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch

__all__ = ["Architecture", "Linear", "Perceptron"]


class Architecture(Protocol):
    """How many probes with one input compute, and how their slopes follow from their errors."""

    def start(
        self, width: int, n_probes: int, n_classes: int, generator: torch.Generator
    ) -> list[torch.Tensor]:
        """Return first weights."""
        ...

    def forward(
        self, weights: list[torch.Tensor], x: torch.Tensor, n_probes: int
    ) -> tuple[torch.Tensor, Any]:
        """Return logits of shape (n, n_probes, n_classes), and what `backward` needs again."""
        ...

    def backward(
        self, weights: list[torch.Tensor], x: torch.Tensor, kept: Any, error: torch.Tensor
    ) -> list[torch.Tensor]:
        """Return the slope of each of the weights, from those of the logits."""
        ...

    def spread(self, penalties: torch.Tensor, n_classes: int) -> list[torch.Tensor | None]:
        """Return the penalties in a shape that multiplies each of the weights; None for offsets."""
        ...

    def keep(
        self, best: list[torch.Tensor], weights: list[torch.Tensor], better: torch.Tensor
    ) -> None:
        """Copy the weights of some probes."""
        ...

    def only(self, weights: list[torch.Tensor], probe: int, n_probes: int) -> list[torch.Tensor]:
        """Return the weights of one probe."""
        ...


class Linear:
    """Multinomial logistic regression; all weights begin at 0."""

    def start(
        self, width: int, n_probes: int, n_classes: int, generator: torch.Generator
    ) -> list[torch.Tensor]:
        """Return a matrix of shape (width, n_probes * n_classes) and its offsets."""
        return [torch.zeros(width, n_probes * n_classes), torch.zeros(n_probes * n_classes)]

    def forward(
        self, weights: list[torch.Tensor], x: torch.Tensor, n_probes: int
    ) -> tuple[torch.Tensor, Any]:
        """Return logits of shape (n, n_probes, n_classes)."""
        matrix, offset = weights
        return torch.addmm(offset, x, matrix).view(len(x), n_probes, -1), None

    def backward(
        self, weights: list[torch.Tensor], x: torch.Tensor, kept: Any, error: torch.Tensor
    ) -> list[torch.Tensor]:
        """Return the slopes of the matrix and of the offsets."""
        flat = error.view(len(x), -1)
        return [x.T @ flat, flat.sum(dim=0)]

    def spread(self, penalties: torch.Tensor, n_classes: int) -> list[torch.Tensor | None]:
        """Return the penalty of each column."""
        return [penalties.repeat_interleave(n_classes)[None, :], None]

    def keep(
        self, best: list[torch.Tensor], weights: list[torch.Tensor], better: torch.Tensor
    ) -> None:
        """Copy the columns of some probes."""
        for old, new in zip(best, weights, strict=True):
            columns = better.repeat_interleave(new.shape[-1] // len(better))
            old[..., columns] = new[..., columns]

    def only(self, weights: list[torch.Tensor], probe: int, n_probes: int) -> list[torch.Tensor]:
        """Return the columns of one probe."""
        size = weights[0].shape[1] // n_probes
        return [one[..., probe * size : (probe + 1) * size].clone() for one in weights]


class Perceptron:
    """One hidden layer of rectified units (Hewitt and Liang 2019, section 3.2).

    Parameters
    ----------
    n_hidden : int
    """

    def __init__(self, n_hidden: int = 64) -> None:
        self.n_hidden = n_hidden

    def start(
        self, width: int, n_probes: int, n_classes: int, generator: torch.Generator
    ) -> list[torch.Tensor]:
        """Return matrices and offsets of both layers, every probe with the same first weights."""
        inner = torch.randn(width, self.n_hidden, generator=generator) * (2 / width) ** 0.5
        outer = torch.randn(self.n_hidden, n_classes, generator=generator)
        outer *= (1 / self.n_hidden) ** 0.5
        return [
            inner.repeat(1, n_probes),
            torch.zeros(n_probes * self.n_hidden),
            outer.repeat(n_probes, 1, 1),
            torch.zeros(n_probes, 1, n_classes),
        ]

    def forward(
        self, weights: list[torch.Tensor], x: torch.Tensor, n_probes: int
    ) -> tuple[torch.Tensor, Any]:
        """Return logits of shape (n, n_probes, n_classes), and the hidden units."""
        inner, inner_offset, outer, outer_offset = weights
        hidden = torch.addmm(inner_offset, x, inner).relu_()
        by_probe = hidden.view(len(x), n_probes, -1).transpose(0, 1)
        logits = torch.baddbmm(outer_offset, by_probe, outer)
        return logits.transpose(0, 1).contiguous(), by_probe

    def backward(
        self, weights: list[torch.Tensor], x: torch.Tensor, kept: Any, error: torch.Tensor
    ) -> list[torch.Tensor]:
        """Return the slopes of both matrices and offsets."""
        by_probe = error.transpose(0, 1)
        at_hidden = by_probe @ weights[2].transpose(1, 2)
        at_hidden.mul_(kept > 0)
        flat = at_hidden.transpose(0, 1).reshape(len(x), -1)
        return [
            x.T @ flat,
            flat.sum(dim=0),
            kept.transpose(1, 2) @ by_probe,
            by_probe.sum(dim=1, keepdim=True),
        ]

    def spread(self, penalties: torch.Tensor, n_classes: int) -> list[torch.Tensor | None]:
        """Return the penalty of each column of the inner, and of each outer matrix."""
        inner = penalties.repeat_interleave(self.n_hidden)[None, :]
        return [inner, None, penalties[:, None, None], None]

    def keep(
        self, best: list[torch.Tensor], weights: list[torch.Tensor], better: torch.Tensor
    ) -> None:
        """Copy the weights of some probes."""
        columns = better.repeat_interleave(self.n_hidden)
        for old, new in zip(best[:2], weights[:2], strict=True):
            old[..., columns] = new[..., columns]
        for old, new in zip(best[2:], weights[2:], strict=True):
            old[better] = new[better]

    def only(self, weights: list[torch.Tensor], probe: int, n_probes: int) -> list[torch.Tensor]:
        """Return the weights of one probe."""
        columns = slice(probe * self.n_hidden, (probe + 1) * self.n_hidden)
        inner = [one[..., columns].clone() for one in weights[:2]]
        return [*inner, *(one[probe : probe + 1].clone() for one in weights[2:])]
