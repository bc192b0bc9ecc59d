"""The k-nearest-neighbour graph of sparse rows, such as those of TF-IDF."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embedtopics.neighbors.comparing import no_neighbors
from embedtopics.results import NeighborGraph

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["build_sparse_graph"]


def build_sparse_graph(rows: csr_matrix, k: int = 15) -> NeighborGraph:
    """Find the k nearest neighbours of every sparse row by cosine similarity, exactly.

    A row is compared along the columns that it fills, by an inverted index: the time grows with
    the sum, over the columns, of the square of the rows that fill them. Nothing is made dense.

    Parameters
    ----------
    rows : csr_matrix of shape (n_documents, n_columns)
        Rows of length one, or zero everywhere; not changed.
    k : int
        Neighbours of each document, itself left out; fewer where there are fewer documents.

    Returns
    -------
    NeighborGraph
        Ties are in the order of the documents, and the same for any number of threads. Where fewer
        than k documents have anything in common with one, those that have nothing, at a
        similarity of 0, fill its list in their order.
    """
    from scipy.sparse import csr_matrix

    n_documents = rows.shape[0]
    k = max(0, min(k, n_documents - 1))
    indices, similarities = no_neighbors(n_documents, k)
    if k == 0:
        return NeighborGraph(indices, similarities)
    from embedtopics.neighbors._sparse_kernels import nearest_of_sparse

    by_row = csr_matrix(rows, dtype=np.float32)
    if not by_row.has_canonical_format:
        by_row = by_row.copy()
        by_row.sum_duplicates()
    by_column = by_row.tocsc()
    nearest_of_sparse(
        by_row.indptr.astype(np.int64),
        by_row.indices.astype(np.int32),
        by_row.data,
        by_column.indptr.astype(np.int64),
        by_column.indices.astype(np.int32),
        by_column.data,
        indices,
        similarities,
    )
    return NeighborGraph(indices, np.clip(similarities, -1.0, 1.0), "exact", 1.0)
