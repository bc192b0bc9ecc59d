"""Known labels of documents, and their prediction from vectors: votes, a linear probe, silhouettes.

The predictions are one value per document, so that those of two encoders can be paired.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.display import spell_count
from embedtopics._utils.machine import one_blas_thread
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._alignment import as_series
from embedtopics.corpus._classes import read_classes
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.errors import InputError
from embedtopics.evaluation._pairs import row_dots
from embedtopics.protocols import Float64Array, FloatArray, Int32Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

INVERSE_PENALTY = 3.0
"""Weight of the data against the penalty, for vectors of total variance 1. Of 0.3, 1, 3, 10, 30 and
100 the best, for a transformer and for TF-IDF, on samples of 6,000 texts from news groups and of
titles of papers."""

MOST_STEPS = 100
ENTRIES_AT_ONCE = 20_000_000
"""Entries of the class sums that are held at a time."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Labels or topics of the documents, (n_documents,), as places in `names`; -1 for none.

    The largest group comes first, ties by name; `grouped_by` names their source.
    """

    of_document: Int32Array
    names: tuple[str, ...]
    grouped_by: str


def groups_of(labels: Any, corpus: Corpus, decisions: list[Decision]) -> Groups:
    """Read the labels of the rows, (n_rows,): a text gets the most frequent one, ties by name."""
    if isinstance(labels, str):
        columns = list(corpus.metadata.columns)
        if labels not in columns:
            shown = ", ".join(repr(column) for column in columns[:30]) or "none"
            raise InputError("labels", f"a column of {corpus.source} ({shown})", labels)
        values = corpus.metadata[labels].to_numpy(dtype=object)
        grouped_by = f'label "{labels}"'
    else:
        expected = f"a column's name, or one label for each of the {len(corpus):,} rows"
        values = as_series(labels, corpus, "labels", expected).to_numpy(dtype=object)
        grouped_by = "labels given"

    column = read_classes(values)
    decisions += column.notes("comparison", grouped_by)
    names_of_rows = [None if value is None else str(value) for value in column.values]
    of_document, n_conflicts = _labels_of_documents(names_of_rows, corpus.distinct())
    if n_conflicts:
        decisions.append(
            Decision(
                "comparison",
                "conflicting_labels",
                n_conflicts,
                f"{spell_count(n_conflicts, 'repeated text has', 'repeated texts have')} "
                "different labels; the most frequent label applies.",
            )
        )

    sizes = Counter(label for label in of_document if label is not None)
    if len(sizes) < 2:
        raise InputError("labels", "of at least two kinds", found=f"{len(sizes)}")

    n_missing = of_document.count(None)
    if n_missing:
        decisions.append(
            Decision(
                "comparison",
                "unlabelled",
                n_missing,
                f"{n_missing:,} of {len(of_document):,} texts have no label. They are on the maps, "
                "but not in scores by label.",
            )
        )

    names = tuple(sorted(sizes, key=lambda label: (-sizes[label], label)))
    place: dict[str | None, int] = {name: i for i, name in enumerate(names)}
    place[None] = NOISE
    return Groups(np.array([place[v] for v in of_document], dtype=np.int32), names, grouped_by)


def _labels_of_documents(
    rows: Sequence[str | None], documents: DistinctDocuments
) -> tuple[list[str | None], int]:
    """Return the label of each document, and of how many the rows differ."""
    labels: list[str | None] = [None] * len(documents)
    pairs = zip(documents.of_row.tolist(), rows, strict=True)
    votes = Counter((document, label) for document, label in pairs if document >= 0 and label)
    by_name = sorted(votes, key=lambda vote: vote[1], reverse=True)
    for document, label in sorted(by_name, key=votes.__getitem__):  # the most frequent one is last
        labels[document] = label
    n_labels = Counter(document for document, _ in votes)
    return labels, sum(n > 1 for n in n_labels.values())


def scored_classes(groups: Groups, decisions: list[Decision]) -> Int32Array:
    """Return the class of each document for the scores: those of one document have none."""
    sizes = np.bincount(groups.of_document[groups.of_document >= 0], minlength=len(groups.names))
    single = np.flatnonzero(sizes == 1)
    if np.count_nonzero(sizes >= 2) < 2:
        raise InputError(
            "labels", "at least two with two texts each", found=f"{np.count_nonzero(sizes >= 2)}"
        )
    if len(single):
        names = [groups.names[i] for i in single.tolist()]
        shown = ", ".join([*names[:5], *["..."] * (len(names) > 5)])
        decisions.append(
            Decision(
                "comparison",
                "single_labels",
                names,
                f"{spell_count(len(single), 'label has', 'labels have')} a single text ({shown}). "
                "Such texts are on the maps, but not in scores.",
            )
        )
    return np.where(np.isin(groups.of_document, single), NOISE, groups.of_document).astype(np.int32)


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
    elected = np.full(len(near), NOISE, dtype=np.int32)
    for begin in range(0, len(near), 4096):
        part = slice(begin, begin + 4096)
        n = len(near[part])
        cells = np.arange(n)[:, None] * n_classes + np.maximum(voted[part], 0)
        votes = np.bincount(cells.ravel(), weights[part].ravel(), minlength=n * n_classes)
        votes = votes.reshape(n, n_classes)
        best = votes.argmax(axis=1)
        elected[part] = np.where(votes[np.arange(n), best] > 0, best, NOISE)
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
    predicted = np.full(len(class_of), NOISE, dtype=np.int32)
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

    with one_blas_thread(), warnings.catch_warnings():
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

    n, n_dimensions = members.shape
    belongs = csr_matrix((np.ones(n), (numbered, np.arange(n))), shape=(n_classes, n))
    sums = np.empty((n, n_classes))
    at_once = max(1, ENTRIES_AT_ONCE // n_dimensions)
    with one_blas_thread():
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
