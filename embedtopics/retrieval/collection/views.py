"""What a reader sees of a collection: one version, whole, whatever a writer does meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int32Array, Int64Array

__all__ = ["SegmentView", "Snapshot"]


@dataclass(frozen=True, eq=False)
class SegmentView:
    """One immutable part of a collection.

    Parameters
    ----------
    name : str
        Such as "000012"; no two segments that were ever written have the same.
    folder : Path
        Holds vectors, and what `dense` and `lexical` wrote.
    documents : int64 ndarray of shape (n_passages,)
        Number of each passage's document in the collection, ascending; the passages of a document
        stand together and in the order of its text.
    spans : int32 ndarray of shape (n_passages, 2)
        First character of each passage in its document's text, and the one behind its last.
    alive : bool ndarray of shape (n_passages,)
        False where the document was removed since.
    content : str
        Checksums of all files: two segments with the same hold the same, one of the same name in
        another folder, or in one that was replaced, may not.
    """

    name: str
    folder: Path
    documents: Int64Array
    spans: Int32Array
    alive: npt.NDArray[np.bool_]
    content: str


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One version of a collection.

    Parameters
    ----------
    version : int
        Goes up with every write.
    stamp : str
        Names the content of this version, in whatever folder.
    settings : mapping
        What the collection was made with: encoder, kind of index, languages; as JSON gave it.
    segments : tuple of SegmentView
        In the order in which they were written.
    n_documents : int
        Those that are there, removed ones not counted.
    """

    version: int
    stamp: str
    settings: Mapping[str, Any]
    segments: tuple[SegmentView, ...]
    n_documents: int

    @property
    def n_passages(self) -> int:
        """Passages of the documents that are there."""
        return sum(int(segment.alive.sum()) for segment in self.segments)
