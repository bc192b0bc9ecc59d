"""From a name, folder, object or record to an encoder; and whether it fits stored vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np

from embedtopics.encoders._base import (
    MULTILINGUAL,
    MULTILINGUAL_PACKAGE,
    language_warning,
    unit_vectors,
)
from embedtopics.encoders._cache import CachedEncoder
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._foreign import as_encoder
from embedtopics.encoders._order import MIN_SHARE_IN_PLACE, dense, share_in_place
from embedtopics.encoders.results import Encoding
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import DEFAULT_MODEL
from embedtopics.encoders.sentence._running import has_gpu
from embedtopics.encoders.static._encoder import StaticEncoder, holds_static_encoder
from embedtopics.encoders.words._counts import RandomProjectionEncoder, TfidfEncoder
from embedtopics.encoders.words._vectors import FastTextEncoder
from embedtopics.errors import EmbedTopicsError, InputError, ModelLoadError, Remedy
from embedtopics.protocols import FloatArray
from embedtopics.terms._languages import detect_languages

_BY_KIND: dict[str, type[BaseEncoder]] = {
    "fasttext": FastTextEncoder,
    "random": RandomProjectionEncoder,
    "static": StaticEncoder,
    "tfidf": TfidfEncoder,
}
"""Encoders by the kind that their settings name."""

_BY_NAME: dict[str, dict[str, Any]] = {
    "fasttext": {"kind": "fasttext"},
    "lsa": {"kind": "tfidf", "n_components": 300, "words": "auto"},
    "random": {"kind": "random"},
    "tfidf": {"kind": "tfidf", "words": "auto"},
}
"""Settings of encoders that need no checkpoint. A folder of such a name is given with its path, as
in "./tfidf"."""

ALL_WORDS = ("tfidf", "lsa")
"""Encoders that can read all words, for classifiers and comparisons. Accuracy of a logistic
regression on TF-IDF of at most 1,500 texts, on as many others, without stop words, numbers and
single letters, and with all words. It was chosen on TREC questions (.620, .808), SST-2 (.701, .727)
and BANKING77 (.665, .773); others are subjectivity (.803, .865), irony (.629, .654), offensive
tweets (.772, .779), emotions of tweets (.630, .628) and BBC news (.982, .981). Spearman on STS-B:
.570 and .702."""


def resolve_encoder(
    spec: Any, *, cached: bool = False, all_words: bool = False, **options: str | None
) -> BaseEncoder:
    """Return the encoder of documents for a name, a folder or an object.

    The checkpoint's prompt for documents is put before each text. `cached` vectors are stored on
    disk if the encoder is a checkpoint given by name or folder. With `all_words`, "tfidf" and "lsa"
    read stop words, numbers and single letters too, which topics leave out. Options are those of
    `SentenceEncoder`; None stands for the default.
    """
    if all_words and isinstance(spec, str) and spec in ALL_WORDS:
        for name, value in options.items():
            if value is not None:
                expected = f"left out, because {spec} is no transformer checkpoint"
                raise InputError(name, expected, value)
        return encoder_from_settings({**_BY_NAME[spec], "all_words": True})
    return _resolve(spec, cached, options).reading("document")


class AutomaticEncoder(BaseEncoder):
    """Encodes, when it is fitted, with the encoder that suits the languages of the texts."""

    name = "auto"

    def __init__(self, cached: bool = True, **options: str | None) -> None:
        self._arguments = {"cached": cached, **options}
        self._encoder: BaseEncoder | None = None

    @property
    def is_fitted(self) -> bool:
        """Whether an encoder was chosen."""
        return self._encoder is not None

    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Choose the encoder for texts; see `fitted_to`."""
        texts = list(X)
        self._refuse_examples(texts, y)
        self._encoder = self.fitted_to(texts)
        return self

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector per text by the encoder that was chosen."""
        self._check_fitted()
        assert self._encoder is not None
        return self._encoder.encode_with_report(texts, show_progress=show_progress)

    def fitted_to(self, texts: Sequence[str]) -> BaseEncoder:
        """Return the default encoder, or the multilingual one if the default does not suit.

        Of English with other languages it takes the multilingual encoder alone: topics of four such
        corpora on which nothing was chosen had an AMI of 0.55 with the classes by each encoder and
        of 0.57 by the vectors of both, which take the time of both.
        """
        if self._encoder is not None:
            return self._encoder
        default = resolve_encoder(DEFAULT_MODEL, **self._arguments)
        is_suitable = language_warning(default, detect_languages(texts)) is None
        if is_suitable or find_spec(MULTILINGUAL_PACKAGE) is None:  # the caller warns
            return default
        return resolve_encoder(MULTILINGUAL, **self._arguments)


def _resolve(spec: Any, cached: bool, options: Mapping[str, str | None]) -> BaseEncoder:
    if not isinstance(spec, (str, os.PathLike)):
        return as_encoder(spec)
    if spec == "auto":
        return AutomaticEncoder(cached, **options)
    arguments: dict[str, Any] = {name: v for name, v in options.items() if v is not None}
    is_named = spec in _BY_NAME
    if not is_named and not holds_static_encoder(Path(spec).expanduser()):
        encoder = SentenceEncoder(spec, **arguments)
        return CachedEncoder(encoder) if cached else encoder
    for name, value in arguments.items():
        raise InputError(name, f"left out, because {spec} is no transformer checkpoint", value)
    return encoder_from_settings(_BY_NAME[str(spec)]) if is_named else StaticEncoder(spec)


def resolve_exact(spec: Any, *, cached: bool = False) -> BaseEncoder:
    """Return an encoder that computes in float32 where its precision was not set: for training.

    Training learns from vectors, and is compared with them: they keep all their digits.
    """
    encoder = _resolve(spec, False, {}).exact()
    is_named = isinstance(spec, (str, os.PathLike)) and encoder.transformer is not None
    return CachedEncoder(encoder) if cached and is_named else encoder


def encoder_from_settings(settings: Any) -> BaseEncoder:
    """Make an encoder from its recorded `settings`; an encoder that learns is not fitted yet.

    The settings are those of a saved folder, which may come from anybody: they run no code and
    reach no network. An InputError asks for the encoder where that is not enough.
    """
    from embedtopics.encoders._records import checked_arguments, must_be_given

    arguments = checked_arguments(settings)
    kind = arguments.pop("kind", None)
    if kind is None:
        return _local_checkpoint(arguments)
    if kind == "static" and not holds_static_encoder(Path(arguments["folder"]).expanduser()):
        folder = arguments["folder"][:200]
        raise must_be_given(f"the recorded folder holds no static encoder ({folder!r})")
    return _BY_KIND[kind](**arguments)


def _local_checkpoint(arguments: dict[str, Any]) -> SentenceEncoder:
    """Make the encoder of a checkpoint that is on this machine."""
    from embedtopics.encoders._records import must_be_given

    name = arguments["name"]
    if arguments.get("precision") in ("float16", "bfloat16") and not has_gpu():
        arguments["precision"] = "float32"  # what a GPU has made is read elsewhere as well
    try:
        return SentenceEncoder(**arguments, local_files_only=True)
    except ModelLoadError:
        if Path(name).is_dir():
            raise
        place = f"{name[:200]!r} is not on this machine, and a saved folder reaches no network"
        raise must_be_given(place) from None


def recorded_encoder(name: str) -> BaseEncoder:
    """Return the encoder of a recorded name, or one that asks for it once it is used."""
    try:
        return encoder_from_settings(_BY_NAME.get(name, {"name": name}))
    except EmbedTopicsError as error:
        return _AbsentEncoder(name, error)


class _AbsentEncoder(BaseEncoder):
    """An encoder that a saved folder names, and that cannot be loaded from this machine alone."""

    def __init__(self, name: str, error: EmbedTopicsError) -> None:
        self._arguments = {"name": name, "error": error}
        self.name = name
        self._error = error

    @property
    def transformer(self) -> Any:
        """Raise the error."""
        raise self._error

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Raise the error."""
        raise self._error


N_COMPARED = 16
"""Number of texts that are encoded again to compare their vectors."""

SAME_VECTOR_COSINE = 1 - 1e-4
"""Minimum cosine of two vectors that count as the same: other processors, and other versions of
libraries, round differently."""

MIN_SPACE_COSINE = 0.95
"""Minimum median cosine of vectors that one checkpoint makes in two precisions: those of
all-MiniLM-L6-v2 in int8 and float32 have 0.997, and 0.979 at the lowest, on four corpora."""

MIN_GIVEN_COSINE = 0.5
"""Minimum median cosine of given vectors and those that an encoder makes of the texts. From another
encoder they are near 0; a title before the text leaves them near 1."""

GIVEN = "given"
"""Recorded name of the encoder of vectors that the caller gave."""


def describe_encoder(encoder: BaseEncoder) -> dict[str, Any]:
    """Return the record by which an encoder is recognized and made again."""
    info = encoder.info
    return {
        "encoder": info.name,
        "encoder_fingerprint": info.fingerprint,
        "encoder_space": info.space,
        "encoder_settings": info.settings,
    }


def check_encoder(
    encoder: BaseEncoder,
    settings: Mapping[str, Any],
    sample: Callable[[int], tuple[Sequence[str], FloatArray]],
    *,
    owner: str,
    redo: str,
) -> None:
    """Make sure that an encoder's vectors can be compared with stored ones.

    Where the fingerprint is not that of `settings`, at most n texts of the `sample` are encoded
    again and compared with their unit vectors, (n_texts, n_dimensions). Messages name the `owner`
    of the vectors, and how to `redo` them.
    """
    expected, fingerprint = settings.get("encoder_fingerprint"), encoder.fingerprint
    name = settings.get("encoder")
    if expected == fingerprint and (expected is not None or name != GIVEN):
        return  # without a fingerprint, an object of the user's own
    texts, vectors = sample(N_COMPARED)
    if expected is None or fingerprint is None:
        check_space(encoder, texts, vectors, "give the one that made them")
        return
    if encoder.learns:
        cosines, is_empty = _cosines(encoder, texts, vectors)
        matches = bool((is_empty | (cosines >= SAME_VECTOR_COSINE)).all())
    else:
        space = settings.get("encoder_space") or expected
        is_one_space = space == encoder.space
        matches = is_one_space and _median_cosine(encoder, texts, vectors) >= MIN_SPACE_COSINE
    if not matches:
        expectation = f"the encoder of {owner} ({name}, fingerprint {expected[:12]})"
        described = f"{encoder.name} (fingerprint {fingerprint[:12]})"
        remedy = Remedy("encoder", None, f"give the encoder of {owner}, or {redo}")
        raise InputError("encoder", expectation, found=described, remedy=remedy)


def check_space(
    encoder: BaseEncoder, texts: Sequence[str], vectors: FloatArray, remedy: str
) -> None:
    """Make sure that an encoder's vectors of texts are similar to given unit vectors."""
    texts, vectors = texts[:N_COMPARED], vectors[:N_COMPARED]
    is_similar = _median_cosine(encoder, texts, vectors, otherwise=0.0) >= MIN_GIVEN_COSINE
    share = share_in_place(encoder, texts, vectors)
    if not is_similar or (share is not None and share < MIN_SHARE_IN_PLACE):
        expected = f"that of the given embeddings ({vectors.shape[1]} dimensions)"
        raise InputError("encoder", expected, encoder.name, remedy)


def _median_cosine(
    encoder: BaseEncoder, texts: Sequence[str], vectors: FloatArray, *, otherwise: float = 1.0
) -> float:
    """Return the median cosine; texts without a vector on both sides count as `otherwise`."""
    cosines, is_empty = _cosines(encoder, texts, vectors)
    return float(np.median(np.where(is_empty, otherwise, cosines))) if len(cosines) else 1.0


def _cosines(encoder: BaseEncoder, texts: Sequence[str], vectors: FloatArray) -> tuple[Any, Any]:
    """Return cosines with new vectors of the texts, and where both vectors are zero."""
    if not len(texts):
        return np.zeros(0), np.zeros(0, dtype=np.bool_)
    encoded: Any = encoder.uncached.encode_with_report(list(texts), show_progress=False).embeddings
    encoded = unit_vectors(np.asarray(dense(encoded), dtype=np.float32))
    if encoded.shape != vectors.shape:
        return np.full(len(texts), -1.0), np.zeros(len(texts), dtype=np.bool_)
    is_empty = ~encoded.any(axis=1) & ~vectors.any(axis=1)
    return np.einsum("ij,ij->i", encoded, vectors, dtype=np.float64), is_empty
