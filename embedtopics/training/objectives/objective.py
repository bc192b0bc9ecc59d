"""What an objective is to the engine: how batches are made, what is minimised, what is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray
from embedtopics.training.examples import Examples

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Objective", "TokenColumns", "given"]

TokenColumns = tuple[list[list[int]], ...]
"""Token ids of the texts of a batch, column by column."""


@dataclass(frozen=True, eq=False)
class Objective:
    """One way to learn from examples of one kind.

    The engine tokenises the columns of `examples` once. For each batch it calls `views` on the
    token ids, encodes the columns that come back (the first `n_encoded` of them) and calls
    the loss with a feature dict a column: "sentence_embedding" of shape (n, n_dimensions) for a
    column that was encoded, "input_ids" and "attention_mask", padded, for one that was not.

    Parameters
    ----------
    name : str
        Such as "nli: softmax".
    examples : Examples
        In the form that the loss takes, such as triplets that were made of inference pairs.
    make_loss : callable
        ``make_loss(model, given)`` returns a loss of sentence-transformers, a torch module. `given`
        takes the model's place inside of it: it hands back the embeddings of the feature dict.
        `model` is the SentenceTransformer, for losses that need its sizes or a decoder. Weights of
        the loss that need gradients are trained, too.
    metric_name : str
        Empty for none.
    metric : callable or None
        ``metric(embeddings, labels, loss, keys)`` of all validation examples; embeddings is one
        float32 array a column, keys (n_examples, n_columns) has equal numbers for equal texts;
        higher is better.
    in_batch_negatives : bool
        Whether examples of a batch are negatives of one another: no text may then occur twice.
    views : callable or None
        ``views(columns, rng)`` returns other columns of token ids, drawn with a NumPy generator
        (the same for the same step); None leaves them as they are.
    n_encoded : int or None
        Columns that are encoded; None for all.
    """

    name: str
    examples: Examples
    make_loss: Callable[[Any, nn.Module], nn.Module]
    metric_name: str = ""
    metric: Callable[[Sequence[FloatArray], npt.NDArray[Any] | None, Any, Any], float] | None = None
    in_batch_negatives: bool = False
    views: Callable[[TokenColumns, np.random.Generator], TokenColumns] | None = None
    n_encoded: int | None = None


def given(n_dimensions: int) -> nn.Module:
    """Return a module that stands for the model in a loss: it hands back what was encoded."""
    from torch import nn

    class _Given(nn.Module):
        def forward(self, features: dict[str, Any]) -> dict[str, Any]:
            return features

        def get_embedding_dimension(self) -> int:
            return n_dimensions

        get_sentence_embedding_dimension = get_embedding_dimension

    return _Given()
