"""Training objectives: how batches are made, the loss and the metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Float64Array, FloatArray
from embedtopics.training._examples import Examples

if TYPE_CHECKING:
    from torch import nn


TokenColumns = tuple[list[list[int]], ...]
"""Token ids of the texts of a batch, column by column."""

Metric = Callable[[Sequence[FloatArray], npt.NDArray[Any] | None, Any, Any], float]
"""``metric(embeddings, labels, loss, keys)`` of all validation examples; higher is better.

Embeddings are one float32 array a column; keys (n_examples, n_columns) has equal numbers for equal
texts.
"""


@dataclass(frozen=True, eq=False)
class Objective:
    """One way to learn from examples of one kind."""

    name: str  # such as "nli: softmax"
    examples: Examples  # in the form that the loss takes, such as triplets of inference pairs
    make_loss: Callable[[Any, nn.Module], nn.Module]
    metric_name: str = ""  # empty for none
    metric: Metric | None = None
    _: KW_ONLY
    in_batch_negatives: bool = False
    keeps_lowest_loss: bool = False  # keep the weights of the lowest loss, not of the best metric
    # Makes the columns of a batch.
    views: Callable[[TokenColumns, np.random.Generator], TokenColumns] | None = None
    # Called with the data, the trainer's arguments and the steps of an epoch; returns an optimizer
    # and its schedule, or None for those of the trainer.
    optimizers: Callable[[Any, Any, int], Any] | None = None


def stand_in(n_dimensions: int) -> nn.Module:
    """Return a module that replaces the model in a loss, and returns the encoded vectors."""
    from torch import nn

    class _Given(nn.Module):
        def forward(self, features: dict[str, Any]) -> dict[str, Any]:
            return features

        def get_embedding_dimension(self) -> int:
            return n_dimensions

        get_sentence_embedding_dimension = get_embedding_dimension

    return _Given()


_TIED = 1e-6
"""Cosines that differ by less are equal, because of rounding in float32."""

_ROWS_AT_ONCE = 1024


def head_accuracy(
    embeddings: Sequence[FloatArray], labels: Any, loss: Any, keys: Any = None
) -> float:
    """Return the share of pairs to which the softmax head of a loss gives their class."""
    import torch

    device = loss.classifier.weight.device
    features = [{"sentence_embedding": torch.from_numpy(e).to(device)} for e in embeddings]
    with torch.no_grad():
        _, scores = loss(features, None)
    return float(np.mean(scores.argmax(dim=1).cpu().numpy() == np.asarray(labels)))


def rank_correlation(
    embeddings: Sequence[FloatArray], labels: Any, loss: Any = None, keys: Any = None
) -> float:
    """Return Spearman's correlation of cosines with scores; 0 where all cosines are the same."""
    from scipy.stats import rankdata

    cosines, scores = rankdata(_cosines(*embeddings)), rankdata(np.asarray(labels))
    cosines, scores = cosines - cosines.mean(), scores - scores.mean()
    spread = np.sqrt((cosines @ cosines) * (scores @ scores))
    return float(cosines @ scores / spread) if spread > 0 else 0.0


def share_nearer(
    embeddings: Sequence[FloatArray], labels: Any = None, loss: Any = None, keys: Any = None
) -> float:
    """Return the share of anchors nearer to the positive than to all negatives, ties half."""
    anchor, positive, *negatives = embeddings
    far = np.max([_cosines(anchor, negative) for negative in negatives], axis=0)
    difference = _cosines(anchor, positive) - far
    return float(np.mean((difference > _TIED) + 0.5 * (np.abs(difference) <= _TIED)))


def mean_reciprocal_rank(
    embeddings: Sequence[FloatArray],
    labels: Any = None,
    loss: Any = None,
    keys: npt.ArrayLike | None = None,
    depth: int = 10,
) -> float:
    """Return the mean, over distinct anchors, of 1 / rank of the nearest of their partners."""
    from scipy.sparse import csr_matrix

    n_columns, n = len(embeddings), len(embeddings[0])
    numbers = np.arange(n_columns * n).reshape(n_columns, n)
    if keys is not None:
        numbers = np.asarray(keys, dtype=np.int64).T
    queries, first_rows = np.unique(numbers[0], return_index=True)
    texts, first_places = np.unique(numbers[1:], return_index=True)
    anchors = _scaled(embeddings[0][first_rows])
    candidates = _scaled(np.concatenate(embeddings[1:])[first_places])
    # Which candidates stand in a pair with an anchor, on either side of it.
    one = np.concatenate([numbers[0], numbers[1]])
    other = np.concatenate([numbers[1], numbers[0]])
    in_both = np.isin(one, queries) & np.isin(other, texts)
    places = np.searchsorted(queries, one[in_both]), np.searchsorted(texts, other[in_both])
    are_pairs = np.ones(len(places[0]), dtype=np.bool_)
    partners = csr_matrix((are_pairs, places), shape=(len(queries), len(texts)))
    total = 0.0
    for begin in range(0, len(queries), _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        cosines = anchors[rows] @ candidates.T
        is_partner = partners[rows].toarray()
        is_other = ~is_partner & (queries[rows, None] != texts)
        nearest = np.where(is_partner, cosines, -np.inf).max(axis=1, keepdims=True)
        is_tied = np.abs(cosines - nearest) <= _TIED
        above = (is_other & (cosines > nearest + _TIED)).sum(axis=1)
        # The first of m among m + t in random order has t / (m + 1) of the others before it.
        rank = (
            1 + above + (is_other & is_tied).sum(axis=1) / (1 + (is_partner & is_tied).sum(axis=1))
        )
        total += float(np.where(rank <= depth, 1 / rank, 0.0).sum())
    return total / len(queries)


def _scaled(vectors: FloatArray) -> Float64Array:
    wide = vectors.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return np.asarray(wide / np.maximum(norms, 1e-12)[:, None])


def _cosines(first: FloatArray, second: FloatArray) -> Float64Array:
    return np.asarray(np.einsum("ij,ij->i", _scaled(first), _scaled(second)))
