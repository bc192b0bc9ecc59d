"""Candidates along a graph of neighbours (Malkov and Yashunin 2020), by FAISS.

The graph's file holds no vectors: FAISS is shown those of the segment where they lie in memory, or
on disk, mapped.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics.errors import CorruptFileError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.retrieval.dense._threads import faiss_module, one_thread
from embedtopics.retrieval.dense.files import write_faiss
from embedtopics.retrieval.dense.settings import DenseSettings

__all__ = ["GRAPH_FILES", "Graph", "build_graph_index", "open_graph"]

GRAPH_FILES = ("graph.faiss",)

NARROWEST = 27
"""Smallest breadth that is tried: ten rows, the query itself, and those that settle ties."""

WIDEST = 4096
"""Largest breadth that is tried."""


@dataclass(frozen=True, eq=False)
class Graph:
    """What is searched.

    Parameters
    ----------
    index : faiss.IndexHNSWFlat
    storage : faiss.IndexFlatIP
        Shows `vectors` to the index.
    vectors : float32 ndarray of shape (n, d)
        Held here because FAISS holds no reference.
    """

    index: Any
    storage: Any
    vectors: FloatArray

    @property
    def narrowest(self) -> int:
        """Breadth at least: FAISS returns no more rows than that."""
        return min(NARROWEST, self.widest)

    @property
    def widest(self) -> int:
        """Breadth at most."""
        return min(WIDEST, max(1, len(self.vectors)))

    def candidates(
        self, queries: FloatArray, n_wanted: int, breadth: int, allowed: Any | None
    ) -> Int64Array:
        """Return rows that may be near, -1 where there are no more; see `Codes.candidates`."""
        faiss = faiss_module()
        how = faiss.SearchParametersHNSW(efSearch=max(breadth, n_wanted), sel=allowed)
        found: Int64Array = self.index.search(queries, n_wanted, params=how)[1]
        return found


def build_graph_index(folder: Path, vectors: FloatArray, settings: DenseSettings) -> None:
    """Build the graph and write it. In the meantime FAISS holds a copy of the vectors.

    FAISS builds the same graph on any number of threads from version 1.15 on; earlier ones are
    held to one.
    """
    faiss = faiss_module()
    index = faiss.IndexHNSWFlat(vectors.shape[1], settings.M, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = settings.ef_construction
    index.hnsw.rng = faiss.RandomGenerator(settings.seed)
    if hasattr(faiss, "hnsw_add_vertices_deterministic"):
        index.add(np.ascontiguousarray(vectors))
    else:
        with one_thread():
            index.add(np.ascontiguousarray(vectors))
    write_faiss(index, folder / GRAPH_FILES[0], faiss.IO_FLAG_SKIP_STORAGE)


def open_graph(folder: Path, vectors: FloatArray, mmap: bool) -> Graph:
    """Read the graph, map it where that is wanted, and show it the vectors.

    Raises
    ------
    CorruptFileError
        If it cannot be read, or is not of these vectors.
    """
    faiss = faiss_module()
    path = folder / GRAPH_FILES[0]
    try:
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if mmap else 0)
    except Exception as error:  # FAISS raises RuntimeError, and others by way of SWIG
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise CorruptFileError(f"{path} is damaged ({said}); build again") from error
    if (
        not isinstance(index, faiss.IndexHNSWFlat)
        or (index.ntotal, index.d) != vectors.shape
        or index.metric_type != faiss.METRIC_INNER_PRODUCT
    ):
        raise CorruptFileError(
            f"{path} does not hold a graph of {len(vectors):,} vectors; build again"
        )
    storage = _shown(vectors)
    index.storage = storage
    index.own_fields = False
    return Graph(index, storage, vectors)


def _shown(vectors: FloatArray) -> Any:
    """Return a flat index over vectors that stay where they are."""
    faiss = faiss_module()
    octets = vectors.reshape(-1).view(np.uint8)
    pointer = faiss.swig_ptr(octets)
    view = faiss.MaybeOwnedVectorUInt8()
    view.is_owned = False
    view.view_data = view.c_ptr = pointer
    view.view_size = view.c_size = len(octets)
    storage = faiss.IndexFlatIP(vectors.shape[1])
    storage.codes = view
    storage.ntotal = len(vectors)
    return storage
