"""The model beside the annotators: a linear head on frozen vectors, and what it is measured by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from embedtopics.annotation._codebook import KINDS, MANY
from embedtopics.classification._heads import (
    USUAL_STRENGTH,
    LinearHead,
    fit_head,
    probabilities,
)
from embedtopics.classification._targets import read_targets
from embedtopics.protocols import Float64Array, FloatArray, Int64Array

NEVER = -30.0
"""Score of a class that no text has yet."""


@dataclass(frozen=True, eq=False)
class TextVectors:
    """Unit vectors (n_texts, n_dimensions), and the row of each text."""

    matrix: FloatArray
    row_of: dict[str, int]

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of texts: what a classifier asks of an encoder."""
        return self.matrix[self.rows(texts)]

    def rows(self, texts: Sequence[str]) -> Int64Array:
        """Return the rows of texts."""
        return np.array([self.row_of[text] for text in texts], dtype=np.int64)


def codes_of(labels: Sequence[tuple[str, ...]], names: Sequence[str], kind: str) -> Int64Array:
    """Return labels as class numbers (n,), or as 0 and 1 (n, n_classes) for several a text."""
    place = {name: number for number, name in enumerate(names)}
    if kind not in MANY:
        return np.array([place[label[0]] for label in labels], dtype=np.int64)
    codes = np.zeros((len(labels), len(names)), dtype=np.int64)
    for row, label in enumerate(labels):
        codes[row, [place[name] for name in label]] = 1
    return codes


class TaughtClassifier(BaseEstimator):
    """Logistic regression on frozen vectors that also learns from the labels of taught texts.

    It has what `classification.prevalence` asks of a classifier. Where that cross-fits it on the
    labels of the count stream, the taught ones, which are no random sample, are added to each fit.
    """

    def __init__(
        self, vectors: TextVectors, kind: str, classes: Sequence[str],
        taught: tuple[Int64Array, Int64Array],
    ) -> None:  # fmt: skip
        self.vectors, self.kind, self.classes, self.taught = vectors, kind, classes, taught

    def __sklearn_clone__(self) -> TaughtClassifier:
        """Return one that is not fitted; the vectors are shared, not copied."""
        return TaughtClassifier(self.vectors, self.kind, self.classes, self.taught)

    @property
    def head(self) -> str:
        """The kind of head, in the words of `TextClassifier`."""
        return KINDS[self.kind]

    def fit(self, X: Sequence[str], y: Any) -> Self:
        """Learn from texts of the corpus, and from the taught ones beside them."""
        codes = read_targets(y, self.head, self.classes).codes
        rows, of_taught = self.taught
        self.classes_ = np.array(self.classes)
        all_rows = np.concatenate([self.vectors.rows(X), rows])
        self._fit(
            all_rows, np.concatenate([codes.reshape(len(X), *of_taught.shape[1:]), of_taught])
        )
        return self

    def fit_taught(self) -> Self:
        """Learn from the taught texts alone."""
        self.classes_ = np.array(self.classes)
        self._fit(*self.taught)
        return self

    def _fit(self, rows: Int64Array, codes: Int64Array) -> None:
        self.constant_: int | None = None
        self.linear_: LinearHead | None = None
        if codes.ndim == 1 and len(np.unique(codes)) < 2:
            self.constant_ = int(codes[0]) if len(codes) else None
        elif len(codes):
            self.linear_ = fit_head(self.head, self.vectors.matrix[rows], codes, USUAL_STRENGTH)

    def predict_proba(self, X: Sequence[str]) -> Float64Array:
        """Return the probability of each class, (n_texts, n_classes)."""
        return self.of_rows(self.vectors.rows(X))

    def of_rows(self, rows: npt.NDArray[Any] | slice) -> Float64Array:
        """Return the probability of each class for rows of the vectors, (n_rows, n_classes)."""
        vectors = self.vectors.matrix[rows]
        n_classes = len(self.classes)
        if self.linear_ is None:
            found = np.full((len(vectors), n_classes), 1.0 / n_classes)
            if self.constant_ is not None:
                found[:] = np.eye(n_classes)[self.constant_]
            return found
        # In single precision, which takes a third of the time for all texts of a corpus.
        weights = self.linear_.weights.T.astype(np.float32)
        scores = np.asarray(vectors @ weights, dtype=np.float64) + self.linear_.bias
        n_outputs = n_classes - (self.head == "ordinal")
        missing = np.full((len(vectors), n_outputs - scores.shape[1]), NEVER)
        return probabilities(self.head, np.hstack([scores, missing]))
