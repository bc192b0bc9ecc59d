"""The neighbour graph."""

from __future__ import annotations

from dataclasses import dataclass

from embedtopics.protocols import FloatArray, Int32Array


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """The k nearest neighbours of every document, nearest first, itself left out.

    Parameters
    ----------
    indices : int32 ndarray of shape (n_documents, k)
    similarities : float32 ndarray of shape (n_documents, k)
        Cosine similarities, descending along each row.
    method : {"exact", "ivf", "extended"}
        How the neighbours were searched: all pairs, or an inverted file; "extended" where documents
        were added later, which those before do not have among their neighbours.
    recall : float
        Share of the true neighbours found, measured on a sample (1.0 when exact).
    """

    indices: Int32Array
    similarities: FloatArray
    method: str = "exact"
    recall: float = 1.0

    @property
    def k(self) -> int:
        """Number of neighbours of each document."""
        return int(self.indices.shape[1])

    def __len__(self) -> int:
        """Return the number of documents."""
        return int(self.indices.shape[0])
