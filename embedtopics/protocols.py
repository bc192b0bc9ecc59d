"""Protocols of the stages of the pipeline, and aliases of array types.

Any object with these methods can replace a stage, without subclassing.
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
    """Turn texts into vectors."""

    def encode(self, texts: Sequence[str]) -> npt.NDArray[Any]:
        """Return one vector per text, an array of shape (n_texts, n_dimensions)."""
        ...


@runtime_checkable
class Reducer(Protocol):
    """Reduce the dimensions of embeddings (scikit-learn's protocol)."""

    def fit_transform(self, X: npt.NDArray[Any], y: Any = None) -> npt.NDArray[Any]:
        """Return coordinates of shape (n_documents, n_components)."""
        ...


@runtime_checkable
class Clusterer(Protocol):
    """Cluster coordinates (scikit-learn's protocol); noise is -1."""

    def fit_predict(self, X: npt.NDArray[Any], y: Any = None) -> npt.NDArray[Any]:
        """Return one label per document, an integer array of shape (n_documents,)."""
        ...


@runtime_checkable
class TermWeighting(Protocol):
    """Turn topic-term counts into topic-term weights (scikit-learn's protocol)."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit to counts of shape (n_topics, n_terms), and return the weighting."""
        ...

    def transform(self, X: Any) -> Any:
        """Return a sparse matrix of weights with the shape of `X`, (n_topics, n_terms)."""
        ...


@runtime_checkable
class Segmenter(Protocol):
    """Split a text into words; any function with this signature."""

    def __call__(self, text: str, /) -> list[str]:
        """Return words in the order of the text; words without letters are dropped later."""
        ...
