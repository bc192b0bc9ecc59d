"""Documents of different texts with the very same vector: laid out as one, so that they stay one.

Short texts, cut texts and texts of unknown words often share a vector. Their nearest neighbours
would be one another by a throw of the dice, and a layout would tear them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int64Array


@dataclass(frozen=True, eq=False)
class UniqueVectors:
    """The distinct vectors of documents.

    Shapes: `first` (n_places,), `of_document` (n_documents,).
    """

    first: Int64Array
    of_document: Int64Array

    @property
    def all_distinct(self) -> bool:
        """Whether every document has a place of its own."""
        return len(self.first) == len(self.of_document)

    @property
    def rows(self) -> Int64Array | None:
        """The first documents, or None where they are all."""
        return None if self.all_distinct else self.first

    def of(self, values: FloatArray) -> FloatArray:
        """Return the values of each place."""
        return values if self.all_distinct else values[self.first]

    def spread(self, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Give every document the value of its place."""
        return values if self.all_distinct else values[self.of_document]


def find_unique_vectors(vectors: FloatArray) -> UniqueVectors:
    """Find the documents that share a vector.

    Shapes: `vectors` (n_documents, n_dimensions).
    """
    n_documents = len(vectors)
    # Equal vectors have equal sums, so that only documents of equal sums need be compared.
    sums = vectors.sum(axis=1, dtype=np.float64)
    order = np.argsort(sums, kind="stable")
    repeated = np.zeros(n_documents, dtype=bool)
    equal = sums[order][1:] == sums[order][:-1]
    repeated[order[1:][equal]] = repeated[order[:-1][equal]] = True
    of_first = np.arange(n_documents)
    seen: dict[bytes, int] = {}
    for document in np.flatnonzero(repeated).tolist():
        # Adding zero turns -0.0 into 0.0, which equals it but has other bytes.
        of_first[document] = seen.setdefault((vectors[document] + 0.0).tobytes(), document)
    first, of_document = np.unique(of_first, return_inverse=True)
    return UniqueVectors(first.astype(np.int64), of_document.astype(np.int64))


def spread_graph(graph: NeighborGraph, places: UniqueVectors) -> NeighborGraph:
    """Give every document the neighbours of its place."""
    if places.all_distinct:
        return graph
    indices = places.first[graph.indices][places.of_document].astype(np.int32)
    return NeighborGraph(
        indices, graph.similarities[places.of_document], graph.method, graph.recall
    )
