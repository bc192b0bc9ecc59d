"""The model of a study: a linear head on frozen vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from embedtopics.annotation._codebook import KINDS, MULTILABEL
from embedtopics.classification._heads import (
    DEFAULT_STRENGTH,
    LinearHead,
    fit_head,
    probabilities,
)
from embedtopics.classification._targets import read_targets
from embedtopics.protocols import Float64Array, FloatArray, Int64Array

NEVER = -30.0
"""Score of a class without any labelled text."""


@dataclass(frozen=True, eq=False)
class TextVectors:
    """Unit vectors (n_texts, n_dimensions), and the row of each text."""

    matrix: FloatArray
    row_of: dict[str, int]

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of texts; classifiers use this object as their encoder."""
        return self.matrix[self.rows(texts)]

    def rows(self, texts: Sequence[str]) -> Int64Array:
        """Return the rows of texts."""
        return np.array([self.row_of[text] for text in texts], dtype=np.int64)


class TrainingRows(NamedTuple):
    """Rows of the vectors, and their class codes: (n,), or 0 and 1, (n, n_classes)."""

    rows: Int64Array
    codes: Int64Array


def codes_of(labels: Sequence[tuple[str, ...]], names: Sequence[str], kind: str) -> Int64Array:
    """Return labels as class codes (n,), or as 0 and 1 (n, n_classes) for multilabel kinds."""
    code_of = {name: code for code, name in enumerate(names)}
    if kind not in MULTILABEL:
        return np.array([code_of[label[0]] for label in labels], dtype=np.int64)
    codes = np.zeros((len(labels), len(names)), dtype=np.int64)
    for row, label in enumerate(labels):
        codes[row, [code_of[name] for name in label]] = 1
    return codes


class StudyClassifier(BaseEstimator):
    """Logistic regression on frozen vectors that also learns from the labels of `taught` texts.

    `classification.prevalence` cross-fits it on the labels of the count stream. Each fit adds the
    taught texts, which are not a random sample.
    """

    def __init__(
        self, vectors: TextVectors, kind: str, classes: Sequence[str], taught: TrainingRows
    ) -> None:
        self.vectors, self.kind, self.classes, self.taught = vectors, kind, classes, taught

    def __sklearn_clone__(self) -> StudyClassifier:
        """Return an unfitted copy that shares the vectors."""
        return StudyClassifier(self.vectors, self.kind, self.classes, self.taught)

    @property
    def head(self) -> str:
        """The `head` of an equivalent `TextClassifier`."""
        return KINDS[self.kind]

    def fit(self, X: Sequence[str], y: Any) -> Self:
        """Learn from texts of the corpus and from the taught texts."""
        codes = read_targets(y, self.head, self.classes).codes
        codes = codes.reshape(len(X), *self.taught.codes.shape[1:])
        rows = np.concatenate([self.vectors.rows(X), self.taught.rows])
        return self._fit(rows, np.concatenate([codes, self.taught.codes]))

    def fit_taught(self) -> Self:
        """Learn from the taught texts alone."""
        return self._fit(*self.taught)

    def _fit(self, rows: Int64Array, codes: Int64Array) -> Self:
        self.classes_ = np.array(self.classes)
        self.constant_: int | None = None
        self.linear_: LinearHead | None = None
        if codes.ndim == 1 and len(np.unique(codes)) < 2:
            self.constant_ = int(codes[0]) if len(codes) else None
        elif len(codes):
            self.linear_ = fit_head(self.head, self.vectors.matrix[rows], codes, DEFAULT_STRENGTH)
        return self

    def predict_proba(self, X: Sequence[str]) -> Float64Array:
        """Return the probability of each class, (n_texts, n_classes)."""
        return self.of_rows(self.vectors.rows(X))

    def of_rows(self, rows: npt.NDArray[Any] | slice) -> Float64Array:
        """Return the probability of each class for some rows, (n_rows, n_classes)."""
        vectors = self.vectors.matrix[rows]
        n_classes = len(self.classes)
        if self.linear_ is None:
            constant = np.full((len(vectors), n_classes), 1.0 / n_classes)
            if self.constant_ is not None:
                constant[:] = np.eye(n_classes)[self.constant_]
            return constant
        # Single precision takes a third of the time for a whole corpus.
        weights = self.linear_.weights.T.astype(np.float32)
        scores = np.asarray(vectors @ weights, dtype=np.float64) + self.linear_.bias
        n_outputs = n_classes - (self.head == "ordinal")
        missing = np.full((len(vectors), n_outputs - scores.shape[1]), NEVER)
        return probabilities(self.head, np.hstack([scores, missing]))
