"""What a stage of the pipeline must be able to do, and the names of the arrays.

Any object with these methods can take a stage's place; nothing has to be subclassed.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

BoolArray: TypeAlias = npt.NDArray[np.bool_]
FloatArray: TypeAlias = npt.NDArray[np.float32]
Float64Array: TypeAlias = npt.NDArray[np.float64]
Int32Array: TypeAlias = npt.NDArray[np.int32]
Int64Array: TypeAlias = npt.NDArray[np.int64]
RandomState: TypeAlias = int | np.random.Generator | None


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors."""

    def encode(self, texts: Sequence[str]) -> npt.NDArray[Any]:
        """Return one vector a text, an array of shape (n_texts, n_dimensions)."""
        ...


@runtime_checkable
class Reducer(Protocol):
    """Turns embeddings into coordinates of fewer dimensions (scikit-learn's protocol)."""

    def fit_transform(self, X: npt.NDArray[Any], y: Any = None) -> npt.NDArray[Any]:
        """Return coordinates of shape (n_documents, n_components)."""
        ...


@runtime_checkable
class Clusterer(Protocol):
    """Turns coordinates into labels (scikit-learn's protocol); noise is -1."""

    def fit_predict(self, X: npt.NDArray[Any], y: Any = None) -> npt.NDArray[Any]:
        """Return one label a document, an integer array of shape (n_documents,)."""
        ...


@runtime_checkable
class TermWeighting(Protocol):
    """Turns topic-term counts into topic-term weights (scikit-learn's protocol)."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn from counts of shape (n_topics, n_terms); may take the names as ``terms``."""
        ...

    def transform(self, X: Any) -> Any:
        """Return a sparse matrix of weights with the shape of `X`, (n_topics, n_terms)."""
        ...


@runtime_checkable
class Segmenter(Protocol):
    """Finds the words of a text, as a function does."""

    def __call__(self, text: str, /) -> list[str]:
        """Return words that stand in the text in this order; what has no letters is dropped."""
        ...
