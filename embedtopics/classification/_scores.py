"""Scores of predictions from tables of true and predicted classes."""

from __future__ import annotations

import numpy as np

from embedtopics.protocols import Float64Array, Int64Array


def confusion_of(truth: Int64Array, guess: Int64Array, n_classes: int) -> Float64Array:
    """Return how often a class (row) was given another (column), (n_classes, n_classes)."""
    cells = np.bincount(truth * n_classes + guess, minlength=n_classes**2)
    return cells.reshape(n_classes, n_classes).astype(np.float64)


def rates(hits: Float64Array, true: Float64Array, given: Float64Array) -> dict[str, Float64Array]:
    """Return precision, recall and F1 of counts (..., n_classes); 0 where nothing was given."""

    def share(above: Float64Array, below: Float64Array) -> Float64Array:
        return np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0)

    return {"precision": share(hits, given), "recall": share(hits, true),
            "f1": share(2 * hits, given + true)}  # fmt: skip


def kappa(confusion: Float64Array) -> Float64Array:
    """Return the quadratically weighted kappa of tables (..., n, n) (Cohen 1968)."""
    n = confusion.shape[-1]
    places = np.arange(n)
    weights = np.square(places[:, None] - places) / max(1, n - 1) ** 2
    total = confusion.sum(axis=(-2, -1))
    true, given = confusion.sum(axis=-1), confusion.sum(axis=-2)
    observed = (confusion * weights).sum(axis=(-2, -1))
    expected = np.einsum("...i,ij,...j->...", true, weights, given) / np.maximum(total, 1)
    return np.where(expected > 0, 1 - observed / np.where(expected > 0, expected, 1.0), 0.0)


def macro_f1_of(truth: Int64Array, guess: Int64Array) -> float:
    """Return the mean F1 of labels that are 0 and 1, (n, n_classes)."""
    hits = (truth & guess).sum(axis=0).astype(np.float64)
    found = rates(hits, truth.sum(axis=0).astype(np.float64), guess.sum(axis=0).astype(np.float64))
    return float(found["f1"].mean())


def kappa_of(truth: Int64Array, guess: Int64Array, n_classes: int) -> float:
    """Return the quadratically weighted kappa of labels."""
    return float(kappa(confusion_of(truth, guess, n_classes)))
