"""The neighbor graph."""

from __future__ import annotations

from dataclasses import dataclass

from embedtopics.protocols import FloatArray, Int32Array


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """The k nearest neighbors of every document, nearest first, without the document.

    Parameters
    ----------
    indices : int32 ndarray of shape (n_documents, k)
    similarities : float32 ndarray of shape (n_documents, k)
        Cosine similarities, descending along each row.
    method : {"exact", "ivf", "extended"}
        Search method: all pairs, or an inverted file. "extended": documents were added later, and
        earlier documents do not have them as neighbors.
    recall : float
        Recall of the true neighbors on a sample (1.0 if exact).
    """

    indices: Int32Array
    similarities: FloatArray
    method: str = "exact"
    recall: float = 1.0

    @property
    def k(self) -> int:
        """Number of neighbors of each document."""
        return int(self.indices.shape[1])

    def __len__(self) -> int:
        """Return the number of documents."""
        return int(self.indices.shape[0])
