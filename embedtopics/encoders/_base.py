"""What all encoders share: `encode`, and the methods of a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from embedtopics.corpus.results import Encoding
from embedtopics.encoders.sentence._tokenizing import check_texts
from embedtopics.errors import InputError


class BaseEncoder:
    """Base of the encoders; a subclass has `encode_with_report` and keeps its `_arguments`."""

    _arguments: dict[str, Any]

    @property
    def is_fitted(self) -> bool:
        """Whether there is nothing left to be learned from texts."""
        return True

    @property
    def languages(self) -> tuple[str, ...] | None:
        """ISO 639-1 codes, ``("multilingual",)``, or None where no language is preferred."""
        return None

    def encode(
        self,
        texts: str | Sequence[str],
        *,
        batch_size: int | None = None,
        show_progress: bool | None = None,
        show_progress_bar: bool | None = None,
        normalize_embeddings: bool = False,
        convert_to_tensor: bool = False,
    ) -> Any:
        """Return one vector a text.

        Shape: (n_texts, n_dimensions).
        """
        if show_progress is None:
            show_progress = show_progress_bar
        rows = [texts] if isinstance(texts, str) else texts
        vectors: Any = self._encode(rows, batch_size, show_progress).embeddings
        if normalize_embeddings:
            vectors = _unit(vectors)
        if convert_to_tensor:
            import torch

            if hasattr(vectors, "toarray"):
                raise InputError("convert_to_tensor", "False for sparse vectors", True)
            vectors = torch.from_numpy(vectors)
        return vectors[0] if isinstance(texts, str) else vectors

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector a text, and how much of each text was read; errors as of `encode`."""
        raise NotImplementedError

    def _encode(
        self, texts: Sequence[str], batch_size: int | None, show_progress: bool | None
    ) -> Encoding:
        """Encode; an encoder whose work is done in batches obeys `batch_size`."""
        return self.encode_with_report(texts, show_progress=show_progress)

    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Return the encoder itself, which has nothing to learn."""
        return self

    def transform(self, X: Iterable[str]) -> Any:
        """Return one vector a text; see `encode`."""
        return self.encode(check_texts(X))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments with which the encoder was made."""
        return dict(self._arguments)

    def set_params(self, **params: Any) -> Self:
        """Make the encoder anew with other arguments; it forgets what it has learned."""
        unknown = sorted(set(params) - set(self._arguments))
        if unknown:
            raise InputError(unknown[0], f"one of the parameters {', '.join(self._arguments)}")
        if params:
            self.__init__(**{**self._arguments, **params})  # type: ignore[misc]
        return self

    def fit_transform(self, X: Iterable[str], y: Any = None) -> Any:
        """Fit, and return one vector a text."""
        texts = check_texts(X)
        return self.fit(texts).transform(texts)

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted

    def __sklearn_tags__(self) -> Any:
        # scikit-learn's base classes would do; but an encoder must not wait for their import.
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(one_d_array=True, two_d_array=False, string=True),
            requires_fit=False,
        )


def arguments_of(scope: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a constructor from its ``locals()``."""
    return {k: v for k, v in scope.items() if k not in ("self", "__class__")}


def _unit(vectors: Any) -> Any:
    if hasattr(vectors, "toarray"):
        from sklearn.preprocessing import normalize

        return normalize(vectors)
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    return (vectors / np.where(norms > 0, norms, 1.0)).astype(np.float32)
