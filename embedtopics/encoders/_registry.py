"""From the name, folder or object that a user gives to an encoder."""

import os
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from embedtopics.corpus._languages import detect_languages, main_languages
from embedtopics.encoders._base import MULTILINGUAL, MULTILINGUAL_PACKAGE, language_warning
from embedtopics.encoders._cache import CachedEncoder
from embedtopics.encoders._contract import BaseEncoder, as_encoder
from embedtopics.encoders._languages import AcrossLanguagesEncoder, JoinedEncoder
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import DEFAULT_MODEL
from embedtopics.encoders.sentence._running import has_gpu
from embedtopics.encoders.static._cascade import CascadeEncoder
from embedtopics.encoders.static._encoder import StaticEncoder
from embedtopics.encoders.static._files import holds_static_encoder
from embedtopics.encoders.words._fasttext import FastTextEncoder
from embedtopics.encoders.words._tfidf import RandomProjectionEncoder, TfidfEncoder
from embedtopics.encoders.words._vectors import WordVectorEncoder
from embedtopics.errors import InputError

_BY_KIND: dict[str, type[BaseEncoder]] = {
    "fasttext": FastTextEncoder,
    "random": RandomProjectionEncoder,
    "static": StaticEncoder,
    "tfidf": TfidfEncoder,
    "word vectors": WordVectorEncoder,
}
"""Encoders by the kind that their settings name; wrappers are listed in `encoder_from_settings`."""

_BY_NAME: dict[str, dict[str, Any]] = {
    "fasttext": {"kind": "fasttext"},
    "lsa": {"kind": "tfidf", "n_components": 300, "words": "auto"},
    "random": {"kind": "random"},
    "tfidf": {"kind": "tfidf", "words": "auto"},
}
"""Settings of encoders that need no checkpoint. A folder of such a name is given with its path, as
in "./tfidf"."""

CASCADE_FROM, CASCADE_CHARACTERS = 100_000, 100_000_000
"""Minimum number of texts, and of characters in all, for which "auto" lets a static student encode
the texts that it is sure about. On 226,000 titles it halves the time to encode, but neighbours take
longer to find (benchmarks, student_topics): nothing is gained where texts are short."""


def resolve_encoder(spec: Any, *, cached: bool = False, **options: str | None) -> BaseEncoder:
    """Return the encoder of documents for a name, a folder or an object.

    Parameters
    ----------
    spec : str, path or Encoder
        Name of an encoder or checkpoint, folder of a checkpoint or static encoder, or an object
        that can encode. The checkpoint's prompt for documents is put before each text.
    cached : bool
        Whether the vectors of a checkpoint given by name or folder are stored on disk.
    **options
        Arguments of `SentenceEncoder`; None for the default.
    """
    return _resolve(spec, cached, options).reading("document")


class AutomaticEncoder(BaseEncoder):
    """Becomes, when it is fitted, the encoder that suits the languages of the texts."""

    name = "auto"
    is_fitted = False

    def __init__(self, cached: bool = True, **options: str | None) -> None:
        self._arguments = {"cached": cached, **options}

    def fit(self, X: Iterable[str], y: Any = None) -> BaseEncoder:
        """Return the default encoder, the multilingual one, or both, by the languages of the texts.

        Both are joined if the default encoder suits one main language of the texts and not the
        others. A large collection that the default encoder suits gets it with a static student.
        """
        texts = list(X)
        default = resolve_encoder(DEFAULT_MODEL, **self._arguments)
        shares = detect_languages(texts)
        is_suitable = language_warning(default, shares) is None
        if is_suitable and cascade_pays(len(texts), sum(map(len, texts))):
            return CascadeEncoder(default.reading_to_ends(texts)).fit(texts)
        if is_suitable or find_spec(MULTILINGUAL_PACKAGE) is None:  # the caller warns
            return default
        multilingual = resolve_encoder(MULTILINGUAL, **self._arguments)
        if not set(default.languages or ()) & set(main_languages(shares)):
            return multilingual
        return JoinedEncoder([one.reading_to_ends(texts) for one in (default, multilingual)])


def cascade_pays(n_texts: int, n_characters: int) -> bool:
    """Return whether a collection is large enough for a cascade of a student and its teacher."""
    return n_texts >= CASCADE_FROM and n_characters >= CASCADE_CHARACTERS


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


def encoder_from_settings(settings: Mapping[str, Any]) -> BaseEncoder:
    """Make an encoder from its recorded `settings`; an encoder that learns is not fitted yet."""
    arguments = dict(settings)
    kind = arguments.pop("kind", None)
    if kind is None:
        if arguments.get("precision") in ("float16", "bfloat16") and not has_gpu():
            arguments["precision"] = "float32"  # what a GPU has made is read elsewhere as well
        return SentenceEncoder(**arguments)
    if kind == "across languages":
        return AcrossLanguagesEncoder(encoder_from_settings(arguments["encoder"]))
    if kind == "joined":
        return JoinedEncoder([encoder_from_settings(part) for part in arguments["encoders"]])
    if kind == "cascade":
        teacher = CachedEncoder(encoder_from_settings(arguments.pop("teacher")))
        return CascadeEncoder(teacher, **arguments)
    if kind not in _BY_KIND:
        kinds = sorted([*_BY_KIND, "across languages", "cascade", "joined"])
        expected = f"of a kind among {', '.join(kinds)}"
        raise InputError("encoder", expected, kind, "give the encoder itself")
    return _BY_KIND[kind](**arguments)
