"""The adapter that gives any object with `encode` the interface of `BaseEncoder`."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from embedtopics.encoders._contract import BaseEncoder, EncoderInfo
from embedtopics.encoders.results import Encoding
from embedtopics.errors import InputError


def _adopted(*names: str, convert: Callable[[Any], Any] = lambda value: value) -> Any:
    """Return a property: the adapted object's first attribute that is not None, converted."""
    document = getattr(BaseEncoder, names[0]).__doc__

    def adopt(self: Any) -> Any:
        value = self._first(*names)
        return getattr(super(ForeignEncoder, self), names[0]) if value is None else convert(value)

    return property(adopt, doc=document)


class ForeignEncoder(BaseEncoder):
    """Adapter of an object with `encode`, or of a transformer of scikit-learn.

    The object may have further attributes of `EncoderInfo`, `encode_query`, `encode_document`, or
    `encode_with_report`; they are used where they exist.
    """

    fingerprint = _adopted("fingerprint")
    space = _adopted("space")
    settings = _adopted("settings")
    languages = _adopted("languages", convert=tuple)
    prompts = _adopted("prompts", convert=dict)
    max_seq_length = _adopted("max_seq_length", "max_length")
    similarity_fn_name = _adopted(
        "similarity_fn_name", convert=lambda name: str(getattr(name, "value", name))
    )
    tokenizer_json = _adopted("tokenizer_json")
    count_tokens = _adopted("count_tokens")
    windows = _adopted("windows")
    dimensions = _adopted(
        "dimensions", "get_embedding_dimension", "get_sentence_embedding_dimension",
        convert=lambda width: width() if callable(width) else width,
    )  # fmt: skip

    def __init__(self, encoder: Any, method: str = "") -> None:
        self._arguments = {"encoder": encoder, "method": method}
        self._set_encoder(encoder)
        self._method = method or ("transform" if self._is_transformer else "encode")

    def _set_encoder(self, encoder: Any) -> None:
        self._encoder = encoder
        self._is_transformer = not callable(getattr(encoder, "encode", None))

    def __repr__(self) -> str:
        return repr(self._encoder)

    def _first(self, *names: str) -> Any:
        """Return the first of the object's attributes that is there and not None."""
        values = (getattr(self._encoder, name, None) for name in names)
        return next((value for value in values if value is not None), None)

    @property
    def name(self) -> str:
        """Name that the object gives itself, else that of its class."""
        named = self._first("name") or getattr(self._first("model_card_data"), "base_model", None)
        return named if isinstance(named, str) else type(self._encoder).__name__

    @property
    def learns(self) -> bool:
        """Whether the object learns from texts: it has `fit`, and can be unfitted."""
        has_state = self._is_transformer or self._first("is_fitted") is not None
        return has_state and callable(self._first("fit"))

    @property
    def is_fitted(self) -> bool:
        """Whether the object has been fitted; True for an object that cannot be."""
        if not self._is_transformer:
            return bool(getattr(self._encoder, "is_fitted", True))
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        try:
            check_is_fitted(self._encoder)
        except NotFittedError:
            return False
        return True

    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Fit the object, and return its adapter, which encodes with what the object's fit returns.

        An object that learns nothing from texts, such as a SentenceTransformer, is refused labels
        and pairs, as in the other encoders.
        """
        if not self.learns:
            return super().fit(X, y)
        fitted = self._encoder.fit(X) if y is None else self._encoder.fit(X, y)
        if can_encode(fitted):
            self._set_encoder(fitted)
        return self

    def fitted_to(self, texts: Sequence[str]) -> BaseEncoder:
        """Return the encoder, or the adapter of a copy of the object, fitted to the texts."""
        if self.is_fitted or not self.learns:
            return self
        return ForeignEncoder(copy.copy(self._encoder)).fit(texts)

    def reading(self, kind: str) -> BaseEncoder:
        """Return the encoder of queries or documents, if the object distinguishes them."""
        method = f"encode_{kind}"
        return ForeignEncoder(self._encoder, method) if self._first(method) else self

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector per text, and the report of the object, or one without any tokens."""
        if self._method == "encode" and (with_report := self._first("encode_with_report")):
            report: Encoding = with_report(texts, show_progress=show_progress)
            return report
        vectors = getattr(self._encoder, self._method)(texts)
        if not hasattr(vectors, "toarray"):
            vectors = np.asarray(vectors)
        none = np.zeros(len(texts), dtype=np.int32)
        return Encoding(vectors, none, none, none)


def as_encoder(encoder: Any) -> BaseEncoder:
    """Return an encoder of this package, or the adapter of any object that can encode."""
    if isinstance(encoder, BaseEncoder):
        return encoder
    if not can_encode(encoder):
        expected = (
            "a hub name, the folder of a checkpoint, an object with encode(texts), or a "
            "transformer of scikit-learn"
        )
        remedy = ""
        if isinstance(encoder, str | os.PathLike):
            remedy = f"call et.SentenceEncoder({os.fspath(encoder)!r}) first"
        raise InputError("encoder", expected, encoder, remedy)
    return ForeignEncoder(encoder)


def can_encode(value: Any) -> bool:
    """Return whether a value is an encoder, or a transformer of scikit-learn."""
    if isinstance(value, type):
        return False
    if callable(getattr(value, "encode", None)):
        return not isinstance(value, str)
    return callable(getattr(value, "fit", None)) and callable(getattr(value, "transform", None))


def info_of(encoder: Any) -> EncoderInfo:
    """Return the description of any encoder.

    Parameters
    ----------
    encoder : Encoder
        Encoder of this package, object with `encode`, or transformer of scikit-learn.

    Returns
    -------
    EncoderInfo
    """
    return as_encoder(encoder).info
