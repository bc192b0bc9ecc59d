"""Vectors in memory, compared one by one: what other stores are held against."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics.errors import InputError
from embedtopics.evaluation import rank_documents
from embedtopics.protocols import FloatArray
from embedtopics.retrieval.filters import parse_filter, passes
from embedtopics.retrieval.filters.checking import check_columns
from embedtopics.retrieval.stores.checking import (
    checked_ids,
    checked_payload,
    checked_vectors,
    id_kind,
)
from embedtopics.retrieval.stores.protocol import Found, Where

__all__ = ["MemoryStore"]


class MemoryStore:
    """Hold vectors in memory and search them exactly; a `VectorStore`.

    Equally near vectors come in the order in which they were added.

    Parameters
    ----------
    n_dimensions : int
    columns : mapping of str to {"text", "integer", "real", "boolean", "date"}, optional
        Metadata that documents may have.
    similarity : {"cosine", "dot"}

    Examples
    --------
    >>> store = MemoryStore(2, columns={"year": "integer"})
    >>> store.upsert(["a", "b"], [[1, 0], [1, 1]], [{"year": 2020}, {"year": 2021}])
    >>> store.search([[1, 0]], 1, where="year > 2020")[0][0]
    ('b',)
    """

    def __init__(
        self,
        n_dimensions: int,
        *,
        columns: Mapping[str, str] | None = None,
        similarity: str = "cosine",
    ) -> None:
        if similarity not in ("cosine", "dot"):
            raise InputError(f"vectors are compared by cosine or dot; got {similarity!r}")
        self.n_dimensions = checked_count(n_dimensions, "n_dimensions")
        self.columns = dict(columns or {})
        check_columns(self.columns)
        self.similarity = similarity
        self._held: dict[tuple[str, Hashable], tuple[FloatArray, dict[str, Any]]] = {}

    def upsert(
        self,
        ids: Sequence[Hashable],
        vectors: npt.ArrayLike,
        payloads: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Add vectors with metadata; an id that is there is replaced, and keeps its place.

        Raises
        ------
        InputError
            Where lengths, dimensions or types do not fit; then nothing is added.
        """
        names = checked_ids(ids)
        rows = checked_vectors(vectors, self.n_dimensions, len(names))
        given = [{}] * len(names) if payloads is None else list(payloads)
        if len(given) != len(names):
            raise InputError(f"expected metadata of {len(names)} documents; got {len(given)}")
        kept = [
            checked_payload(payload, self.columns, name)
            for payload, name in zip(given, names, strict=True)
        ]
        for name, row, payload in zip(names, rows, kept, strict=True):
            self._held[(id_kind(name), name)] = (row.copy(), payload)

    def remove(self, ids: Sequence[Hashable]) -> None:
        """Take out what has one of these ids."""
        for name in checked_ids(ids, distinct=False):
            self._held.pop((id_kind(name), name), None)

    def search(self, vectors: npt.ArrayLike, k: int, where: Where = None) -> list[Found]:
        """Return the nearest of each query among the documents that pass a filter.

        Raises
        ------
        InputError
            For queries of another dimension, k below 1, or a filter that makes no sense.
        """
        queries = checked_vectors(vectors, self.n_dimensions)
        checked_count(k, "k")
        held = list(self._held.items())
        if where is not None:
            wanted = parse_filter(where, self.columns)
            held = [one for one in held if passes(wanted, one[1][1])]
        if not held or not len(queries):
            return [((), np.empty(0, dtype=np.float32)) for _ in queries]
        names = [name for (_, name), _ in held]
        rows = np.stack([row for _, (row, _) in held])
        ranked, near = rank_documents(queries, rows, k, similarity=self.similarity)
        return [
            (tuple(names[place] for place in places), values.astype(np.float32))
            for places, values in zip(ranked.tolist(), near, strict=True)
        ]

    def count(self) -> int:
        """Return how many vectors are held."""
        return len(self._held)

    def close(self) -> None:
        """Forget all."""
        self._held.clear()
