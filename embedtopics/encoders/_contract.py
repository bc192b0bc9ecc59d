"""The contract of encoders: what users implement, and what the package gets from any of them.

Users implement `embedtopics.protocols.Encoder`: `encode(texts)`, nothing else. `as_encoder` (in
`_foreign`) gives any such object, any transformer of scikit-learn and any `SentenceTransformer` the
interface of `BaseEncoder`, which the rest of the package works with.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self

from embedtopics._utils.checks import checked_choice, optional_count, require
from embedtopics._utils.habits import Habits
from embedtopics._utils.keywords import names_keywords
from embedtopics.corpus._windows import Span
from embedtopics.encoders._base import check_texts, require_torch, unit_vectors
from embedtopics.encoders._similarity import pairwise_similarity, similarity
from embedtopics.encoders.results import Encoding
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
    max_seq_length : int, optional
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
    max_seq_length: int | None = None
    settings: Mapping[str, Any] | None = None


class _Default:
    """An attribute that has a value until a subclass or an encoder sets another one."""

    def __init__(self, value: Any, document: str) -> None:
        self.value, self.__doc__ = value, document

    def __get__(self, encoder: Any, owner: type) -> Any:
        return self if encoder is None else self.value


def _default(value: Any, document: str) -> Any:
    return _Default(value, document)


OUTPUTS = ("sentence_embedding", "token_embeddings")
"""What `encode` returns of each text, by the names of sentence-transformers."""


@dataclass(frozen=True)
class EncodeOptions:
    """Options of `encode` by their names in sentence-transformers."""

    normalize_embeddings: bool = False
    truncate_dim: int | None = None
    precision: str | None = None
    convert_to_tensor: bool = False
    convert_to_numpy: bool = True
    output_value: str | None = "sentence_embedding"

    def __post_init__(self) -> None:
        checked_choice(self.output_value, "output_value", (*OUTPUTS, None))
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


def _training_call(examples: str) -> str:
    """Return the remedy for examples that `fit` of an encoder does not learn from."""
    kind = "..." if examples == "examples" else f'"{examples}"'
    return f"train with et.training.fit(encoder, {examples}, kind={kind}, out=...)"


PUBLIC_MEMBERS = frozenset(
    """
    name dimensions max_seq_length languages prompts fingerprint settings decisions is_fitted
    tokenizer encode encode_query encode_document encode_with_report count_tokens similarity
    similarity_pairwise get_embedding_dimension embed_documents embed_query fit transform
    fit_transform get_params set_params save
""".split()
)
"""Members of encoders that users may rely on; the package uses others, which may change."""


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
        names = ["languages", "prompts", "max_seq_length", "settings"]
        names += ["dimensions", "fingerprint", "space"] if self.is_fitted else []
        return EncoderInfo(self.name, **{name: getattr(self, name) for name in names})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __dir__(self) -> list[str]:
        """List the public members: what completion shows."""
        names = super().__dir__()
        return [name for name in names if name.startswith("_") or name in PUBLIC_MEMBERS]

    @names_keywords
    def encode(
        self,
        texts: str | Sequence[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        output_value: str | None = "sentence_embedding",
        precision: str | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        *,
        show_progress: bool | None = None,
    ) -> Any:
        """Return one vector per text, (n_texts, n_dimensions); of one text, (n_dimensions,).

        The parameters are those of sentence-transformers, in its order.

        Parameters
        ----------
        texts : str or sequence of str
        prompt_name : str, optional
            Name of one of the checkpoint's `prompts`, if `prompt` is left out.
        prompt : str, optional
            Prompt to put before every text of this call.
        batch_size : int, optional
            Number of texts in a batch of an encoder that works in batches; by default as many as
            suit their lengths.
        show_progress_bar, show_progress : bool, optional
            Whether to show a bar.
        output_value : {"sentence_embedding", "token_embeddings"}, optional
            One vector for each text, or for each of its tokens. None, of a `SentenceEncoder`, gives
            a dict of tensors for each text: input_ids, token_embeddings and sentence_embedding.
        precision : {"float32", "int8", "uint8", "binary", "ubinary"}, optional
            Numbers to which the vectors are rounded.
        convert_to_numpy, convert_to_tensor : bool
            An array, one tensor of torch, or with neither a list of tensors.
        device : str, optional
            Device on which a `SentenceEncoder` runs from now on.
        normalize_embeddings : bool
            Whether to scale the vectors to length 1.
        truncate_dim : int, optional
            Length to which the vectors are cut.

        Returns
        -------
        array, tensor or list

        Raises
        ------
        InputError
            If a text is no string, or the encoder has no use for a parameter.

        Examples
        --------
        >>> import embedtopics as et
        >>> encoder = et.SentenceEncoder()
        >>> encoder.encode(["Cats purr.", "Dogs bark."]).shape
        (2, 384)
        >>> encoder.encode("Cats purr.").shape
        (384,)
        >>> encoder.encode("Cats purr.", truncate_dim=64).shape
        (64,)
        """
        options = EncodeOptions(
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim,
            precision=precision,
            convert_to_tensor=convert_to_tensor,
            convert_to_numpy=convert_to_numpy,
            output_value=output_value,
        )
        show = show_progress_bar if show_progress is None else show_progress
        encoder = self._with_call(prompt_name, prompt, device)
        rows = [texts] if isinstance(texts, str) else texts
        encoded = encoder._encode_as(rows, options, batch_size, show)
        return encoded[0] if isinstance(texts, str) else encoded

    def _with_call(
        self, prompt_name: str | None, prompt: str | None, device: str | None
    ) -> BaseEncoder:
        """Return the encoder with the prompt and the device of a call of `encode`."""
        given = {"prompt_name": prompt_name, "prompt": prompt, "device": device}
        for name, value in given.items():
            if value is not None:
                expected = f"left out, because {self.name or type(self).__name__} does not use it"
                raise InputError(name, expected, value)
        return self

    def _encode_as(
        self,
        texts: Sequence[str],
        options: EncodeOptions,
        batch_size: int | None,
        show_progress: bool | None,
    ) -> Any:
        """Return vectors of texts, or of their tokens, in the form that the options ask for."""
        checked_choice(options.output_value, "output_value", OUTPUTS)
        is_one_vector = options.output_value == "sentence_embedding"
        if is_one_vector:
            report = self._encode(texts, batch_size, show_progress)
            vectors: Any = options.vectors(report.embeddings)
        else:
            vectors = self._token_vectors(check_texts(texts))

        if options.convert_to_tensor or not options.convert_to_numpy:
            torch = require_torch("convert_to_tensor")
            if options.convert_to_tensor and is_one_vector:
                return torch.as_tensor(vectors)
            return [torch.as_tensor(vector) for vector in vectors]
        return vectors

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
        """Compare each vector with each of others by the encoder's measure, (n_first, n_second).

        The measure is the cosine, or the one that the checkpoint names: "dot", "euclidean" or
        "manhattan".

        Examples
        --------
        >>> import embedtopics as et
        >>> encoder = et.SentenceEncoder()
        >>> vectors = encoder.encode(["Cats purr.", "The cat is purring.", "Stocks fell."])
        >>> encoder.similarity(vectors[:1], vectors).round(1).tolist()
        [[1.0, 0.6..., 0.2...]]
        """
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
        """Maximum number of tokens read of a text; None for no limit."""
        return None

    def encode_query(
        self,
        texts: str | Sequence[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        output_value: str | None = "sentence_embedding",
        precision: str | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        *,
        show_progress: bool | None = None,
    ) -> Any:
        """Return vectors of queries, with the checkpoint's prompt for queries; see `encode`.

        Examples
        --------
        >>> import embedtopics as et
        >>> encoder = et.SentenceEncoder()
        >>> query = encoder.encode_query("Which animals purr?")
        >>> documents = encoder.encode_document(["Stocks fell.", "Cats purr."])
        >>> int(encoder.similarity(query, documents).argmax())
        1
        """
        return self.reading("query").encode(
            texts,
            prompt_name=prompt_name,
            prompt=prompt,
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            output_value=output_value,
            precision=precision,
            convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            device=device,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim,
            show_progress=show_progress,
        )

    def encode_document(
        self,
        texts: str | Sequence[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        output_value: str | None = "sentence_embedding",
        precision: str | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        *,
        show_progress: bool | None = None,
    ) -> Any:
        """Return vectors of documents, with the checkpoint's prompt for documents; see `encode`."""
        return self.reading("document").encode(
            texts,
            prompt_name=prompt_name,
            prompt=prompt,
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            output_value=output_value,
            precision=precision,
            convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            device=device,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim,
            show_progress=show_progress,
        )

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

    @names_keywords
    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Return the encoder itself, which learns nothing from texts.

        Raises
        ------
        InputError
            If there are labels, scores or pairs, which a training of the encoder would learn from:
            ``et.training.fit(encoder, pairs, kind="pairs", out=...)``.
        """
        self._refuse_examples(X, y)
        return self

    def _refuse_examples(self, X: Iterable[Any], y: Any) -> None:
        """Refuse what `fit` of an encoder would ignore, and name the call that learns from it."""
        if y is not None:
            expected = f"left out, because {self.name or type(self).__name__} learns nothing in fit"
            remedy = _training_call("examples")
            raise InputError("y", expected, remedy=remedy, found=f"a {type(y).__name__}")
        if not isinstance(X, Iterable):
            raise InputError("X", "a sequence of strings", X)
        rows = [X] if isinstance(X, str) else X
        for row, text in enumerate(rows):
            if not isinstance(text, str):
                n_texts = len(text) if isinstance(text, tuple | list) else 0
                kind = {2: "pairs", 3: "triplets"}.get(n_texts, "examples")
                raise InputError(
                    "X",
                    "texts, because fit learns nothing",
                    remedy=_training_call(kind),
                    found=f"a {type(text).__name__}",
                    row=row,
                )

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            from sklearn.exceptions import NotFittedError

            name = type(self).__name__
            raise NotFittedError(f"this {name} is not fitted yet; call fit(texts) first")

    def fitted_to(self, texts: Sequence[str]) -> BaseEncoder:
        """Return the encoder, or a copy fitted to the texts if it has not been fitted yet."""
        if self.is_fitted or not self.learns:
            return self
        return copy.copy(self).fit(texts)

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
    max_seq_length = forwarded("max_seq_length")
    prompts = forwarded("prompts")
    decisions = forwarded("decisions")
    similarity_fn_name = forwarded("similarity_fn_name")


def arguments_of(scope: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a constructor from its ``locals()``."""
    return {k: v for k, v in scope.items() if k not in ("self", "__class__")}
