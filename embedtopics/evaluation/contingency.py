"""Measures of agreement from tables of classes and labels, many tables of one shape at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int64Array

__all__ = ["Contingency", "Information"]

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Information:
    """Entropies and mutual information, in nats, one for each table.

    Parameters
    ----------
    mutual, of_classes, of_labels : float64 ndarray of shape (n_tables,)
        NaN for a table without documents.
    """

    mutual: Float64Array
    of_classes: Float64Array
    of_labels: Float64Array

    def homogeneity(self) -> Float64Array:
        """Return what the labels tell of the classes; 1 where there is one class."""
        return _ratio(self.mutual, self.of_classes)

    def completeness(self) -> Float64Array:
        """Return what the classes tell of the labels; 1 where there is one label."""
        return _ratio(self.mutual, self.of_labels)

    def normalized(self) -> Float64Array:
        """Return the mutual information over the mean entropy; 1 where there is nothing to tell."""
        return _ratio(self.mutual, (self.of_classes + self.of_labels) / 2)

    def adjusted(self, expected: float) -> Float64Array:
        """Return how much of the mutual information beyond the expected one there is."""
        adjusted = _ratio(self.mutual - expected, (self.of_classes + self.of_labels) / 2 - expected)
        single = (self.of_classes == 0).astype(int) + (self.of_labels == 0)
        return np.where(single == 2, 1.0, np.where(single == 1, 0.0, adjusted))


@dataclass(frozen=True, eq=False)
class Contingency:
    """How many documents have each class and label that occur together.

    Parameters
    ----------
    counts : float64 ndarray of shape (n_cells,)
        Documents in each cell, by label and then by class.
    classes, labels : int64 ndarray of shape (n_cells,)
        Class and label of each cell.
    cell_of : int64 ndarray of shape (n_documents,)
        Cell of each document.
    cells : int64 ndarray of shape (n_cells,)
        Place of each cell in the table that this one was cut from.
    """

    counts: Float64Array
    classes: Int64Array
    labels: Int64Array
    cell_of: Int64Array
    cells: Int64Array

    @classmethod
    def of(cls, classes: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Self:
        """Count documents by class and label."""
        pairs = np.column_stack([labels, classes]).astype(np.int64)
        cells, cell_of, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
        return cls(
            counts.astype(np.float64),
            cells[:, 1],
            cells[:, 0],
            cell_of.ravel(),
            np.arange(len(cells)),
        )

    def without(self, label: int) -> Self:
        """Return the table without one label."""
        kept = np.flatnonzero(self.labels != label)
        number = np.full(len(self.counts), -1)
        number[kept] = np.arange(len(kept))
        cell_of = number[self.cell_of]
        return type(self)(
            self.counts[kept], self.classes[kept], self.labels[kept], cell_of[cell_of >= 0], kept
        )

    def information(self, counts: Float64Array) -> Information:
        """Return entropies and mutual information of tables with other counts.

        Parameters
        ----------
        counts : float64 ndarray of shape (n_tables, n_cells)
        """
        total = counts.sum(axis=1)
        inner, of_classes, of_labels = (
            np.log(np.maximum(total, 1.0)) - _ratio(_entropic(sums), total, empty=np.nan)
            for sums in (counts, self._sums(counts, self.classes), self._sums(counts, self.labels))
        )
        # Rounding would tell a little where there is nothing to tell.
        of_classes, of_labels = (
            np.where((sums > 0).sum(axis=1) == 1, 0.0, entropy)
            for sums, entropy in (
                (self._sums(counts, self.classes), of_classes),
                (self._sums(counts, self.labels), of_labels),
            )
        )
        mutual = np.maximum(of_classes + of_labels - inner, 0.0)
        mutual = np.where((of_classes == 0) | (of_labels == 0), 0.0, mutual)
        return Information(mutual, of_classes, of_labels)

    def expected_information(self) -> float:
        """Return the mutual information to be expected of labels dealt at random."""
        from scipy.sparse import csr_matrix
        from sklearn.metrics.cluster import expected_mutual_information

        if not len(self.counts):
            return float("nan")
        rows = np.unique(self.classes, return_inverse=True)[1]
        columns = np.unique(self.labels, return_inverse=True)[1]
        table = csr_matrix((self.counts.astype(np.int64), (rows, columns)))
        return float(expected_mutual_information(table, int(self.counts.sum())))

    def adjusted_rand(self, counts: Float64Array) -> Float64Array:
        """Return the adjusted Rand index of tables with other counts (Hubert and Arabie 1985)."""
        both = _pairs(counts)
        by_class = _pairs(self._sums(counts, self.classes))
        by_label = _pairs(self._sums(counts, self.labels))
        total = counts.sum(axis=1)
        expected = _ratio(by_class * by_label, total * (total - 1) / 2, empty=0.0)
        most = (by_class + by_label) / 2
        alike = (both == by_class) & (both == by_label)
        index = np.where(alike, 1.0, _ratio(both - expected, most - expected))
        return np.where(total > 0, index, np.nan)

    def largest_by_label(self, counts: Float64Array) -> Float64Array:
        """Return the share of the documents in the largest class of their label."""
        return self._largest(counts, self.labels)

    def largest_by_class(self, counts: Float64Array) -> Float64Array:
        """Return the share of the documents in the largest label of their class."""
        return self._largest(counts, self.classes)

    def _largest(self, counts: Float64Array, groups: Int64Array) -> Float64Array:
        if not len(groups):
            return np.full(len(counts), np.nan)
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=groups[order][0] - 1))
        largest = np.maximum.reduceat(counts[:, order], starts, axis=1).sum(axis=1)
        return _ratio(largest, counts.sum(axis=1), empty=np.nan)

    def _sums(self, counts: Float64Array, groups: Int64Array) -> Float64Array:
        """Add up the cells of each group, shape (n_tables, n_groups)."""
        if not len(groups):
            return np.zeros((len(counts), 0))
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=groups[order][0] - 1))
        return np.asarray(np.add.reduceat(counts[:, order], starts, axis=1))


def _entropic(sums: Float64Array) -> Float64Array:
    """Return the sum of n log n over the groups of each table."""
    return np.asarray((sums * np.log(np.where(sums > 0, sums, 1.0))).sum(axis=1))


def _pairs(sums: Float64Array) -> Float64Array:
    return np.asarray((sums * (sums - 1) / 2).sum(axis=1))


def _ratio(above: Float64Array, below: Float64Array, empty: float = 1.0) -> Float64Array:
    """Divide; where there is nothing below, the answer is `empty`, or NaN of NaN."""
    ratio = np.full(np.shape(above), empty)
    np.divide(above, below, out=ratio, where=below != 0)
    return ratio
