"""How good the vectors of validation examples are: one figure each, higher is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray

__all__ = [
    "average_precision",
    "cosine_with_teacher",
    "head_accuracy",
    "mean_reciprocal_rank",
    "rank_correlation",
    "share_nearer",
    "translation_accuracy",
]

Float64Array = npt.NDArray[np.float64]

_TIED = 1e-6
"""Cosines that differ by less are equal: sums in float32 are no more exact."""

_ROWS_AT_ONCE = 1024


def head_accuracy(embeddings: Sequence[FloatArray], labels: Any, loss: Any) -> float:
    """Return the share of pairs to which the softmax head of a loss gives their class."""
    import torch

    device = loss.classifier.weight.device
    features = [{"sentence_embedding": torch.from_numpy(e).to(device)} for e in embeddings]
    with torch.no_grad():
        _, scores = loss(features, None)
    return float(np.mean(scores.argmax(dim=1).cpu().numpy() == np.asarray(labels)))


def rank_correlation(embeddings: Sequence[FloatArray], labels: Any, loss: Any = None) -> float:
    """Return Spearman's correlation of the cosines of pairs with their scores.

    It is 0 where all cosines are one and the same.
    """
    from scipy.stats import rankdata

    cosines, scores = rankdata(_cosines(*embeddings)), rankdata(np.asarray(labels))
    cosines, scores = cosines - cosines.mean(), scores - scores.mean()
    spread = np.sqrt((cosines @ cosines) * (scores @ scores))
    return float(cosines @ scores / spread) if spread > 0 else 0.0


def share_nearer(embeddings: Sequence[FloatArray], labels: Any = None, loss: Any = None) -> float:
    """Return the share of anchors nearer to their positive than to each of their negatives.

    Of equally near ones half is counted.
    """
    anchor, positive, *negatives = embeddings
    near = _cosines(anchor, positive)
    far = np.max([_cosines(anchor, negative) for negative in negatives], axis=0)
    difference = near - far
    return float(np.mean((difference > _TIED) + 0.5 * (np.abs(difference) <= _TIED)))


def mean_reciprocal_rank(
    embeddings: Sequence[FloatArray], labels: Any = None, loss: Any = None, depth: int = 10
) -> float:
    """Return the mean of 1 / rank of the positive among the candidates of all anchors.

    Candidates are the positives and negatives of all examples, ranked by cosine. A rank behind
    `depth` counts as 0. Among candidates as near as the positive, it takes the middle rank: an
    encoder with the same vector for all texts gets no credit.

    Parameters
    ----------
    embeddings : sequence of float32 ndarray of shape (n_examples, n_dimensions)
        Anchors, positives, and perhaps negatives.
    depth : int
    """
    anchors = _scaled(embeddings[0])
    candidates = _scaled(np.concatenate(embeddings[1:]))
    total = 0.0
    for begin in range(0, len(anchors), _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        cosines = anchors[rows] @ candidates.T
        own = cosines[np.arange(len(cosines)), np.arange(begin, begin + len(cosines))][:, None]
        above = (cosines > own + _TIED).sum(axis=1)
        tied = (np.abs(cosines - own) <= _TIED).sum(axis=1) - 1
        rank = 1 + above + tied / 2
        total += float(np.where(rank <= depth, 1 / rank, 0.0).sum())
    return total / len(anchors)


def average_precision(embeddings: Sequence[FloatArray], labels: Any, loss: Any = None) -> float:
    """Return the average precision with which cosines tell pairs that belong together."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(np.asarray(labels), _cosines(*embeddings)))


def cosine_with_teacher(embeddings: Sequence[FloatArray], labels: Any, loss: Any) -> float:
    """Return the mean cosine of vectors and those that a loss wants, over all columns."""
    import torch

    with torch.no_grad():
        made, wanted = [], []
        for column in embeddings:
            student, teacher = loss.compared(torch.from_numpy(column), torch.as_tensor(labels))
            made.append(student.cpu().numpy())
            wanted.append(teacher.cpu().numpy())
    return float(np.mean([_cosines(*both).mean() for both in zip(made, wanted, strict=True)]))


def translation_accuracy(
    embeddings: Sequence[FloatArray], labels: Any = None, loss: Any = None
) -> float:
    """Return the share of texts that are nearest to their own translation, and the other way.

    The mean of both directions and of all columns of translations (Reimers and Gurevych, 2020,
    "Making monolingual sentence embeddings multilingual", section 4.2).
    """
    source, *translations = embeddings
    shares = [
        mean_reciprocal_rank(pair, depth=1)
        for column in translations
        for pair in ([source, column], [column, source])
    ]
    return float(np.mean(shares))


def _scaled(vectors: FloatArray) -> Float64Array:
    wide = vectors.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    scaled: Float64Array = wide / np.maximum(norms, 1e-12)[:, None]
    return scaled


def _cosines(first: FloatArray, second: FloatArray) -> Float64Array:
    products: Float64Array = np.einsum("ij,ij->i", _scaled(first), _scaled(second))
    return products
