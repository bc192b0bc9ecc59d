"""What an engine must be able to do to hold vectors for a search."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy.typing as npt

from embedtopics.protocols import FloatArray
from embedtopics.retrieval.filters import Filter

__all__ = ["Found", "VectorStore", "Where"]

Found: TypeAlias = tuple[tuple[Hashable, ...], FloatArray]
"""Ids of what is nearest to one query, the nearest first, and float32 similarities."""

Where: TypeAlias = str | Mapping[str, Any] | Filter | None


@runtime_checkable
class VectorStore(Protocol):
    """Holds vectors with ids and metadata, and finds the nearest that pass a filter.

    Ids are texts or numbers, and come back with their type: 1 and "1" are two. Filters are those
    of `embedtopics.retrieval.filters.parse_filter`, or, where an engine has no such question,
    refused with an InputError.
    """

    def upsert(
        self,
        ids: Sequence[Hashable],
        vectors: npt.ArrayLike,
        payloads: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Add vectors of shape (n, n_dimensions) with metadata; an id that is there is replaced."""
        ...

    def remove(self, ids: Sequence[Hashable]) -> None:
        """Take out what has one of these ids; others are passed over."""
        ...

    def search(self, vectors: npt.ArrayLike, k: int, where: Where = None) -> list[Found]:
        """Return up to k nearest for each query, from vectors of shape (m, n_dimensions)."""
        ...

    def count(self) -> int:
        """Return how many vectors are held."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
