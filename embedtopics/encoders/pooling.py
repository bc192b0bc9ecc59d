"""From one vector a token to one vector a text, inside the transformer's own framework.

The same module runs on torch and is what ONNX Runtime gets, so that there is one definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["POOLINGS", "pool", "pooled_model"]

POOLINGS = ("mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


def pool(hidden_states: Tensor, mask: Tensor, pooling: str) -> Tensor:
    """Pool the hidden states of a batch.

    Parameters
    ----------
    hidden_states : Tensor of shape (n_texts, n_tokens, n_dimensions)
    mask : Tensor of shape (n_texts, n_tokens)
        1 for tokens to pool, 0 for padding at the end of a row, and for those of a prompt that is
        left out at its beginning.
    pooling : {"mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"}
        Average of the tokens, the first token, or the largest value of each dimension (Reimers
        and Gurevych, 2019, "Sentence-BERT", section 3); the sum by the root of the number of
        tokens; the average weighted by position (Muennighoff, 2022, "SGPT", equation 1); the
        last token.

    Returns
    -------
    Tensor of shape (n_texts, n_dimensions)
    """
    import torch

    if pooling in ("cls", "lasttoken"):
        # Where the ones begin, or end: the running sum of a row of ones counts up to both.
        counted = mask.cumsum(dim=1) * mask
        is_wanted = counted == (1 if pooling == "cls" else mask.sum(dim=1, keepdim=True))
        return (hidden_states * (is_wanted * mask).unsqueeze(-1).to(hidden_states.dtype)).sum(dim=1)
    weights = mask.unsqueeze(-1).to(hidden_states.dtype)
    if pooling == "max":
        largest = hidden_states.masked_fill(weights == 0, float("-inf")).amax(dim=1)
        return largest.masked_fill(mask.sum(dim=1, keepdim=True) == 0, 0.0)  # nothing to pool
    if pooling == "weightedmean":
        positions = torch.ones_like(mask).cumsum(dim=1)
        weights = weights * positions.unsqueeze(-1).to(hidden_states.dtype)
    total = weights.sum(dim=1).clamp_min(1e-9)
    if pooling == "mean_sqrt_len_tokens":
        total = total.sqrt()
    return (hidden_states * weights).sum(dim=1) / total


def pooled_model(model: Any, pooling: tuple[str, ...], layers: int | tuple[float, ...]) -> Any:
    """Return a module from token ids to pooled vectors.

    Parameters
    ----------
    model : transformers.PreTrainedModel
    pooling : tuple of str
        With several, the vectors are joined.
    layers : int or tuple of float
        Mean of so many last layers, or a weight for each, that of the embeddings first.

    Returns
    -------
    torch.nn.Module
        Takes ``input_ids``, ``attention_mask`` and ``pooled_mask``, each of shape (n_texts,
        n_tokens).
    """
    import torch

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Tensor, attention_mask: Tensor, pooled_mask: Tensor) -> Tensor:
            inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
            if layers == 1:
                states = self.model(**inputs).last_hidden_state
            else:
                every = self.model(**inputs, output_hidden_states=True).hidden_states
                states = _combine(every, layers)
            # Sums over many tokens need more digits than half precision has.
            states = states.to(torch.float32)
            return torch.cat([pool(states, pooled_mask, mode) for mode in pooling], dim=-1)

    return Pooled().eval()


def _combine(every: tuple[Tensor, ...], layers: int | tuple[float, ...]) -> Tensor:
    """Return the weighted mean of the layers' hidden states."""
    import torch

    if isinstance(layers, int):
        return torch.stack(every[-layers:]).mean(dim=0)
    weighted = [state * weight for state, weight in zip(every, layers, strict=True) if weight]
    return torch.stack(weighted).sum(dim=0)
