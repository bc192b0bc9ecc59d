"""The contract of encoders: what users implement, and what the package gets from any of them.

Users implement `embedtopics.protocols.Encoder`: `encode(texts)`, nothing else. `as_encoder` gives
any such object, any transformer of scikit-learn and any `SentenceTransformer` the interface of
`BaseEncoder`, which the rest of the package works with.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self

import numpy as np

from embedtopics._utils.checks import checked_choice, optional_count, require
from embedtopics._utils.habits import Habits
from embedtopics.corpus._windows import Span
from embedtopics.corpus.results import Encoding
from embedtopics.encoders._base import check_texts, require_torch, unit_vectors
from embedtopics.encoders._similarity import pairwise_similarity, similarity
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray


@dataclass(frozen=True)
class EncoderInfo:
    """Description of an encoder.

    Parameters
    ----------
    name : str
        Name of the model, or of the class if the model has none.
    dimensions : int, optional
        Length of a vector.
    fingerprint : str, optional
        Hash of everything that a vector depends on. Encoders with equal fingerprints return equal
        vectors. None if it is not known.
    space : str, optional
        Hash of everything but the numerical precision. Vectors of encoders with equal spaces can
        be compared.
    languages : tuple of str, optional
        ISO 639-1 codes, ``("multilingual",)``, or None if no language is preferred.
    prompts : mapping of str to str
        Prompts of the checkpoint by their purpose.
    max_length : int, optional
        Maximum number of tokens that the encoder reads of a text. None for no limit.
    settings : mapping, optional
        Arguments from which the package can make the encoder again, before it is fitted.
    """

    name: str
    dimensions: int | None = None
    fingerprint: str | None = None
    space: str | None = None
    languages: tuple[str, ...] | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    max_length: int | None = None
    settings: Mapping[str, Any] | None = None


class _Default:
    """An attribute that has a value until a subclass or an encoder sets another one."""

    def __init__(self, value: Any, document: str) -> None:
        self.value, self.__doc__ = value, document

    def __get__(self, encoder: Any, owner: type) -> Any:
        return self if encoder is None else self.value


def _default(value: Any, document: str) -> Any:
    return _Default(value, document)


@dataclass(frozen=True)
class EncodeOptions:
    """Options of `encode` by their names in sentence-transformers."""

    normalize_embeddings: bool = False
    truncate_dim: int | None = None
    precision: str | None = None
    convert_to_tensor: bool = False
    convert_to_numpy: bool = True
    output_value: str = "sentence_embedding"
    show_progress_bar: bool | None = None

    def __post_init__(self) -> None:
        outputs = ("sentence_embedding", "token_embeddings")
        checked_choice(self.output_value, "output_value", outputs)
        precisions = (None, "float32", "int8", "uint8", "binary", "ubinary")
        checked_choice(self.precision, "precision", precisions)
        optional_count(self.truncate_dim, "truncate_dim")

    def vectors(self, vectors: Any) -> Any:
        """Cut, scale and round vectors (n_texts, n_dimensions)."""
        if self.truncate_dim is not None:
            vectors = vectors[:, : self.truncate_dim]
        if self.normalize_embeddings:
            vectors = unit_vectors(vectors)
        if self.precision in (None, "float32"):
            return vectors
        library = require("sentence_transformers", f"precision={self.precision!r}", "torch")
        return library.quantize_embeddings(vectors, precision=self.precision)


class BaseEncoder(Habits):
    """Base of the encoders; a subclass defines `encode_with_report` and sets `_arguments`.

    The class is also a transformer in scikit-learn's sense, for pipelines and grid searches.
    """

    _kind = "encoder"

    _arguments: dict[str, Any]

    name = _default("", "Name of the model.")
    dimensions = _default(None, "Length of a vector.")
    fingerprint = _default(None, "SHA-256 of everything that a vector depends on, if known.")
    space = _default(
        None, "SHA-256 of everything but the precision; vectors can be compared in it."
    )
    languages = _default(None, 'ISO 639-1 codes, ``("multilingual",)``, or None if unknown.')
    prompts = _default({}, "Prompts of the checkpoint by their purpose.")
    max_length = _default(None, "Maximum number of tokens read of a text; None for no limit.")
    settings = _default(None, "Arguments that make this encoder again, before it is fitted.")
    decisions = _default([], "What the encoder decided on the user's behalf.")
    tokenizer_json = _default(None, "Tokenizer as JSON of the tokenizers library, if it has one.")
    transformer = _default(None, "The encoder without its cache if it runs a transformer.")
    static = _default(None, "The encoder without its cache if it looks up a table of tokens.")

    @property
    def is_fitted(self) -> bool:
        """Whether the encoder can encode without a call of `fit`."""
        return True

    @property
    def learns(self) -> bool:
        """Whether the encoder learns from the corpus, as TF-IDF and fastText do."""
        return type(self).fit is not BaseEncoder.fit

    @property
    def uncached(self) -> BaseEncoder:
        """The same encoder without a cache on disk."""
        return self

    @property
    def info(self) -> EncoderInfo:
        """Description of the encoder; may load the model to find out its precision."""
        names = ["languages", "prompts", "max_length", "settings"]
        names += ["dimensions", "fingerprint", "space"] if self.is_fitted else []
        return EncoderInfo(self.name, **{name: getattr(self, name) for name in names})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def encode(
        self,
        texts: str | Sequence[str],
        *,
        batch_size: int | None = None,
        show_progress: bool | None = None,
        **options: Any,
    ) -> Any:
        """Return one vector per text, (n_texts, n_dimensions); of one text, (n_dimensions,).

        Further options have the names of sentence-transformers: normalize_embeddings, truncate_dim,
        precision, convert_to_tensor, convert_to_numpy, output_value, show_progress_bar.
        """
        rows, how = [texts] if isinstance(texts, str) else texts, EncodeOptions(**options)
        show_progress = how.show_progress_bar if show_progress is None else show_progress
        if how.output_value == "token_embeddings":
            vectors: Any = self._token_vectors(check_texts(rows))
        else:
            vectors = how.vectors(self._encode(rows, batch_size, show_progress).embeddings)
        if how.convert_to_tensor or not how.convert_to_numpy:
            torch = require_torch("convert_to_tensor")
            one = how.convert_to_tensor and how.output_value == "sentence_embedding"
            vectors = torch.as_tensor(vectors) if one else [*map(torch.as_tensor, vectors)]
        return vectors[0] if isinstance(texts, str) else vectors

    def _token_vectors(self, texts: list[str]) -> list[FloatArray]:
        """Return vectors of the tokens of each text, (n_tokens, n_dimensions)."""
        raise InputError("output_value", '"sentence_embedding"', "token_embeddings")

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return vectors of documents as lists, for LangChain; see `encode_document`."""
        return list(self.encode_document(list(texts)).tolist())

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query as a list, for LangChain; see `encode_query`."""
        return list(self.encode_query(text).tolist())

    similarity_fn_name = _default(
        "cosine", 'Measure of `similarity`: "cosine", "dot", "euclidean" or "manhattan".'
    )

    def similarity(self, first: Any, second: Any) -> Any:
        """Compare each vector with each of others by `similarity_fn_name`, (n_first, n_second)."""
        return similarity(self.similarity_fn_name, first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """Compare each vector with its partner by `similarity_fn_name`, (n_vectors,)."""
        return pairwise_similarity(self.similarity_fn_name, first, second)

    @property
    def model_card_data(self) -> Any:
        """What evaluators of sentence-transformers read and write; nothing is stored."""
        return SimpleNamespace(base_model=self.name, set_evaluation_metrics=lambda *_: None)

    def get_sentence_embedding_dimension(self) -> int | None:
        """Return `dimensions`, by the name that sentence-transformers gives it."""
        return self.dimensions  # type: ignore[no-any-return]

    get_embedding_dimension = get_sentence_embedding_dimension

    @property
    def max_seq_length(self) -> int | None:
        """`max_length`, by the name that sentence-transformers gives it; it cannot be set."""
        return self.max_length  # type: ignore[no-any-return]

    def encode_query(self, texts: str | Sequence[str], **options: Any) -> Any:
        """Return vectors of queries, with the checkpoint's prompt for queries; see `encode`."""
        return self.reading("query").encode(texts, **options)

    def encode_document(self, texts: str | Sequence[str], **options: Any) -> Any:
        """Return vectors of documents, with the checkpoint's prompt for documents; see `encode`."""
        return self.reading("document").encode(texts, **options)

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector per text, and how much of each text was read; errors as of `encode`."""
        raise NotImplementedError

    def _encode(
        self, texts: Sequence[str], batch_size: int | None, show_progress: bool | None
    ) -> Encoding:
        """Encode; an encoder that works in batches obeys `batch_size`."""
        return self.encode_with_report(texts, show_progress=show_progress)

    def count_tokens(self, texts: Sequence[str]) -> Encoding | None:
        """Return how much of each text would be read; None if the encoder does not know."""
        return None

    def windows(self, texts: Sequence[str]) -> list[list[Span]] | None:
        """Return the spans that the encoder can read at once; None if it does not know."""
        return None

    def reading(self, kind: str) -> BaseEncoder:
        """Return the encoder with the prompt for a "query" or a "document"."""
        return self

    def reading_to_ends(self, texts: Sequence[str]) -> BaseEncoder:
        """Return an encoder that reads whole texts if truncation would lose too many tokens."""
        return self

    def reading_as(self, settings: Mapping[str, Any]) -> BaseEncoder:
        """Return an encoder with the recorded `long_texts`, unless its own was set explicitly."""
        return self

    def exact(self) -> BaseEncoder:
        """Return an encoder that computes in float32, unless its precision was set explicitly."""
        return self

    def epochs_for(self, n_words: int) -> int:
        """Return how often a fit reads texts of `n_words` words in all."""
        return 1

    def fit(self, X: Iterable[str], y: Any = None) -> Any:
        """Return the encoder itself, which learns nothing from texts.

        Raises
        ------
        InputError
            If there are labels, scores or pairs, which a training of the encoder would learn from.
        """
        self._refuse_examples(X, y)
        return self

    def _refuse_examples(self, X: Iterable[Any], y: Any) -> None:
        """Refuse what `fit` of an encoder would ignore, and name the call that learns from it."""
        remedy = "embedtopics.training.fit(encoder, examples, out=...) trains an encoder"
        if y is not None:
            expected = f"left out, because {self.name or type(self).__name__} learns nothing in fit"
            raise InputError("y", expected, remedy=remedy, found=f"a {type(y).__name__}")
        rows = [X] if isinstance(X, str) else X
        for row, text in enumerate(rows):
            if not isinstance(text, str):
                expected = "texts, because fit learns nothing"
                kind = f"a {type(text).__name__}"
                raise InputError("X", expected, remedy=remedy, found=kind, row=row)

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            from sklearn.exceptions import NotFittedError

            name = type(self).__name__
            raise NotFittedError(f"this {name} is not fitted yet; call fit(texts) first")

    def fitted_to(self, texts: Sequence[str]) -> BaseEncoder:
        """Return the encoder, or a copy fitted to the texts if it has not been fitted yet."""
        if self.is_fitted or not self.learns:
            return self
        fitted: BaseEncoder = copy.copy(self).fit(texts)
        return fitted

    def transform(self, X: Iterable[str]) -> Any:
        """Return one vector per text; see `encode`."""
        return self.encode(check_texts(X))

    def fit_transform(self, X: Iterable[str], y: Any = None) -> Any:
        """Fit, and return one vector per text.

        Pipelines of scikit-learn pass their labels on as `y`, which an encoder that learns nothing
        leaves to the next step.
        """
        texts = check_texts(X)
        fitted = self.fit(texts, y) if self.learns else self.fit(texts)
        return fitted.transform(texts)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments with which the encoder was made."""
        return dict(self._arguments)

    def set_params(self, **params: Any) -> Self:
        """Set arguments; the encoder loses its fit."""
        self.__dict__ = type(self)(**{**self._arguments, **params}).__dict__
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted

    def __sklearn_tags__(self) -> Any:
        # scikit-learn's base classes would do, but an encoder must not wait for their import.
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(one_d_array=True, two_d_array=False, string=True),
            requires_fit=False,
        )


def forwarded(name: str) -> Any:
    """Return a property whose value is that of the wrapped encoder, `_encoder`."""
    return property(
        lambda self: getattr(self._encoder, name), doc=getattr(BaseEncoder, name).__doc__
    )


class WrappedEncoder(BaseEncoder):
    """Base of encoders that forward to another; a subclass sets `_encoder`."""

    _encoder: BaseEncoder
    name = forwarded("name")
    languages = forwarded("languages")
    max_length = forwarded("max_length")
    prompts = forwarded("prompts")
    decisions = forwarded("decisions")
    similarity_fn_name = forwarded("similarity_fn_name")


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
    max_length = _adopted("max_length", "max_seq_length")
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
        self._encoder = encoder
        self._is_transformer = not callable(getattr(encoder, "encode", None))
        self._method = method or ("transform" if self._is_transformer else "encode")

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

    def fit(self, X: Iterable[str], y: Any = None) -> Any:
        """Fit the object, and return the adapter of what its `fit` returns.

        An object that learns nothing from texts, such as a SentenceTransformer, is refused labels
        and pairs, as in the other encoders.
        """
        if not self.learns:
            return super().fit(X, y)
        fitted = self._encoder.fit(X) if y is None else self._encoder.fit(X, y)
        return as_encoder(fitted)

    def fitted_to(self, texts: Sequence[str]) -> BaseEncoder:
        """Return the encoder, or the adapter of a copy of the object, fitted to the texts."""
        if self.is_fitted or not self.learns:
            return self
        return as_encoder(copy.copy(self._encoder).fit(texts))

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
        raise InputError("encoder", expected, encoder)
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


def arguments_of(scope: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a constructor from its ``locals()``."""
    return {k: v for k, v in scope.items() if k not in ("self", "__class__")}
