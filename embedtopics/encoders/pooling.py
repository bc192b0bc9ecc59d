"""From one vector a token to one vector a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["POOLINGS", "pool", "to_unit_length"]

POOLINGS = ("mean", "cls", "max")


def pool(hidden_states: Tensor, mask: Tensor, pooling: str) -> Tensor:
    """Pool the last hidden states of a batch.

    Parameters
    ----------
    hidden_states : Tensor of shape (n_texts, n_tokens, n_dimensions)
    mask : Tensor of shape (n_texts, n_tokens)
        1 for tokens, 0 for padding at the end of a row.
    pooling : {"mean", "cls", "max"}
        Average of the tokens, the first token, or the largest value of each dimension
        (Reimers and Gurevych, 2019, "Sentence-BERT", section 3).

    Returns
    -------
    Tensor of shape (n_texts, n_dimensions)
    """
    if pooling == "cls":
        return hidden_states[:, 0]
    weights = mask.unsqueeze(-1)
    if pooling == "max":
        return hidden_states.masked_fill(weights == 0, float("-inf")).amax(dim=1)
    return (hidden_states * weights).sum(dim=1) / weights.sum(dim=1)


def to_unit_length(vectors: Tensor) -> Tensor:
    """Scale each row to length 1; a row of zeros stays one."""
    unit: Tensor = vectors / vectors.norm(dim=1, keepdim=True).clamp_min(1e-12)
    return unit
