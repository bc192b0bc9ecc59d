"""Prediction of known classes from vectors: votes of neighbors, a linear probe, silhouettes.

All functions return one value per document, so that the values of two encoders can be paired.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.evaluation._pairs import row_dots
from embedtopics.protocols import Float64Array, FloatArray, Int32Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


NONE = -1
"""Class of a document that has none."""

INVERSE_PENALTY = 3.0
"""Weight of the data against the penalty, for vectors of total variance 1. Of 0.3, 1, 3, 10, 30 and
100 the best, for a transformer and for TF-IDF, on samples of 6,000 texts from news groups and of
titles of papers."""

MOST_STEPS = 100
ENTRIES_AT_ONCE = 20_000_000
"""Entries of the class sums that are held at a time."""


def neighbor_votes(
    indices: npt.ArrayLike, similarities: npt.ArrayLike, classes: npt.ArrayLike
) -> Int32Array:
    """Predict the class of each document by its neighbors' votes, weighted by similarity (kNN).

    The lowest class wins a tie; -1 if no neighbor has a class and a similarity above 0. Shapes:
    (n_documents, k) twice, (n_documents,).
    """
    near, weights = np.asarray(indices), np.asarray(similarities, dtype=np.float64)
    class_of = np.asarray(classes, dtype=np.int64)
    voted = class_of[near]
    weights = np.where((voted >= 0) & (weights > 0), weights, 0.0)
    n_classes = int(class_of.max(initial=0)) + 1
    elected = np.full(len(near), NONE, dtype=np.int32)
    for begin in range(0, len(near), 4096):
        part = slice(begin, begin + 4096)
        n = len(near[part])
        cells = np.arange(n)[:, None] * n_classes + np.maximum(voted[part], 0)
        votes = np.bincount(cells.ravel(), weights[part].ravel(), minlength=n * n_classes)
        votes = votes.reshape(n, n_classes)
        best = votes.argmax(axis=1)
        elected[part] = np.where(votes[np.arange(n), best] > 0, best, NONE)
    return elected


def probe_classes(
    vectors: FloatArray | csr_matrix, classes: npt.ArrayLike, *, n_folds: int = 5, seed: int = 0
) -> tuple[Int32Array, bool]:
    """Predict the class of each document by a cross-validated linear probe, and if it converged.

    The vectors are divided by one number, so that their total variance is 1 and the penalty means
    the same for encoders of any scale and dimension. Documents of class -1 are left out.
    Shapes: `vectors` (n_documents, n_dimensions), `classes` (n_documents,).
    """
    class_of = np.asarray(classes, dtype=np.int64)
    rows = np.flatnonzero(class_of >= 0)
    folds = stratified_folds(class_of[rows], n_folds, seed)
    predicted = np.full(len(class_of), NONE, dtype=np.int32)
    converged = True
    for fold in np.unique(folds).tolist():  # fewer than n_folds where documents are fewer
        train, test = rows[folds != fold], rows[folds == fold]
        predicted[test], settled = fit_and_predict(vectors[train], class_of[train], vectors[test])
        converged &= settled
    return predicted, bool(converged)


def fit_and_predict(train: Any, classes: npt.NDArray[Any], test: Any) -> tuple[Any, bool]:
    """Return the classes that a linear model predicts for other vectors, and if it converged."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # part of what is returned
        train, test = _scaled_together(train, test)
        # By Newton's method: L-BFGS ends a little before the optimum, and a twentieth of its
        # answers depend on where, and with sparse vectors it takes three times as long.
        model = LogisticRegression(C=INVERSE_PENALTY, solver="newton-cg", max_iter=MOST_STEPS)
        model.fit(train, classes)
        return model.predict(test), int(np.max(model.n_iter_)) < MOST_STEPS


def stratified_folds(classes: npt.ArrayLike, n_folds: int, seed: int = 0) -> Int32Array:
    """Split documents into folds, (n_documents,), those of each class evenly."""
    class_of = np.asarray(classes)
    shuffled = np.random.default_rng(seed).permutation(len(class_of))
    by_class = shuffled[np.argsort(class_of[shuffled], kind="stable")]
    folds = np.empty(len(class_of), dtype=np.int32)
    folds[by_class] = np.arange(len(class_of)) % n_folds
    return folds


def silhouettes(vectors: FloatArray | csr_matrix, classes: npt.ArrayLike) -> Float64Array:
    """Return the silhouette of each document by cosine distance, (n_documents,).

    With a the mean distance to the other documents of its class and b that to the nearest other
    class, (b - a) / max(a, b) (Rousseeuw, 1987, "Silhouettes: a graphical aid to the interpretation
    and validation of cluster analysis"); 0 in a class of one document, NaN for class -1. By sums of
    vectors, 65 times as fast as scikit-learn's ``silhouette_samples``, which compares all pairs.
    """
    class_of = np.asarray(classes, dtype=np.int64)
    rows = np.flatnonzero(class_of >= 0)
    names, numbered = np.unique(class_of[rows], return_inverse=True)
    members: Any = vectors[rows]
    sums = _class_similarities(members, numbered, len(names))
    widths = np.full(len(class_of), np.nan)
    widths[rows] = widths_of(sums, row_dots(members, members), numbered)
    return widths


def widths_of(sums: Float64Array, alone: Float64Array, numbered: npt.NDArray[Any]) -> Float64Array:
    """Return silhouettes by the similarity to all of each class, (n, n_classes), and to itself."""
    class_index = np.arange(len(sums)), numbered
    sizes = np.bincount(numbered).astype(np.float64)
    others = sizes[numbered] - 1
    within = 1 - (sums[class_index] - alone) / np.maximum(others, 1)
    between = 1 - sums / sizes
    between[class_index] = np.inf
    nearest = between.min(axis=1)
    widths = np.zeros(len(sums))
    largest = np.maximum(within, nearest)
    np.divide(nearest - within, largest, out=widths, where=(largest > 0) & (others > 0))
    return widths


def _class_similarities(members: Any, numbered: npt.NDArray[Any], n_classes: int) -> Float64Array:
    """Return the summed similarity of each document to each class, shape (n, n_classes)."""
    from scipy.sparse import csr_matrix
    from threadpoolctl import threadpool_limits

    n, n_dimensions = members.shape
    belongs = csr_matrix((np.ones(n), (numbered, np.arange(n))), shape=(n_classes, n))
    sums = np.empty((n, n_classes))
    at_once = max(1, ENTRIES_AT_ONCE // n_dimensions)
    with threadpool_limits(limits=1, user_api="blas"):
        for begin in range(0, n_classes, at_once):
            part = slice(begin, begin + at_once)
            middle = belongs[part] @ members
            dense = middle if isinstance(middle, np.ndarray) else middle.toarray()
            sums[:, part] = members @ np.ascontiguousarray(dense.T)
    return sums


def _scaled_together(train: Any, test: Any) -> tuple[Any, Any]:
    """Return both parts divided by what makes the total variance of the first 1."""
    mean = np.asarray(train.mean(axis=0, dtype=np.float64)).ravel()
    variance = float(row_dots(train, train).mean() - mean @ mean)
    factor = np.float32(1.0 / np.sqrt(variance)) if variance > 1e-12 else np.float32(1.0)
    if isinstance(train, np.ndarray):
        middle = mean.astype(train.dtype)
        return (train - middle) * factor, (test - middle) * factor
    return train * factor, test * factor
