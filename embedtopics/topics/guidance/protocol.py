"""What a guidance is given and what it must return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from embedtopics.corpus import Corpus
from embedtopics.protocols import FloatArray, Int32Array
from embedtopics.results import Decision, DistinctDocuments, Guide, NeighborGraph, TokenStream

__all__ = ["Guidance", "Material", "note", "unguided"]


@dataclass(frozen=True, eq=False)
class Material:
    """What is known of the documents before they are laid out.

    Parameters
    ----------
    corpus : Corpus
    documents : DistinctDocuments
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
        Unit vectors.
    graph : NeighborGraph
    tokens : callable
        Returns the `TokenStream` of the documents, waiting for it where it is not ready.
    encode : callable
        Turns texts into unit vectors, as the documents were encoded; raises `InputError` where
        nobody can.
    """

    corpus: Corpus
    documents: DistinctDocuments
    embeddings: FloatArray
    graph: NeighborGraph
    tokens: Callable[[], TokenStream]
    encode: Callable[[Sequence[str]], FloatArray]

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.documents)


@runtime_checkable
class Guidance(Protocol):
    """Says beforehand what the topics are to be like; `TopicModel` takes any object that can.

    It is asked once in a fit, after the neighbours are found and before anything is laid out.
    What it answers is a value, which later stages and later cuts of the hierarchy obey.
    """

    def prepare(self, material: Material) -> tuple[Guide, Sequence[Decision]]:
        """Return what is asked of the documents, and what was decided to get there."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return what is to be written down of the guidance, as JSON holds it."""
        ...


def note(name: str, value: Any, message: str) -> Decision:
    """Return a decision of the stage at which guidance takes place."""
    return Decision("clustering", name, value, message)


def unguided(n_documents: int) -> tuple[Int32Array, FloatArray]:
    """Return groups and strengths of documents of which nothing is known."""
    return np.full(n_documents, -1, dtype=np.int32), np.zeros(n_documents, dtype=np.float32)
