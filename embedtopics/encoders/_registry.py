"""From what a user names to an encoder; and encoders that learn from the corpus first."""

import copy
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from embedtopics.corpus._languages import detect_languages, main_languages
from embedtopics.decisions import Decision
from embedtopics.encoders._base import (
    MULTILINGUAL,
    MULTILINGUAL_PACKAGE,
    BaseEncoder,
    language_warning,
)
from embedtopics.encoders._cache import CachedEncoder
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import DEFAULT_MODEL
from embedtopics.encoders.sentence._running import has_gpu
from embedtopics.encoders.static._encoder import StaticEncoder
from embedtopics.encoders.static._files import holds_static_encoder
from embedtopics.errors import InputError
from embedtopics.protocols import Encoder

_BY_KIND: dict[str, tuple[str, str]] = {
    "across languages": ("embedtopics.encoders._languages", "AcrossLanguagesEncoder"),
    # What learns by `training` is named here alone, and loaded where it is asked for.
    "cascade": ("embedtopics.training._cascade", "CascadeEncoder"),
    "fasttext": ("embedtopics.encoders.words._fasttext", "FastTextEncoder"),
    "joined": ("embedtopics.encoders._languages", "JoinedEncoder"),
    "random": ("embedtopics.encoders.words._tfidf", "RandomProjectionEncoder"),
    "static": ("embedtopics.encoders.static._encoder", "StaticEncoder"),
    "tfidf": ("embedtopics.encoders.words._tfidf", "TfidfEncoder"),
    "word vectors": ("embedtopics.encoders.words._vectors", "WordVectorEncoder"),
}
"""Module and class of the encoders whose settings name a kind."""

_BY_NAME: dict[str, dict[str, Any]] = {
    "fasttext": {"kind": "fasttext"},
    "lsa": {"kind": "tfidf", "n_components": 300, "words": "auto"},
    "random": {"kind": "random"},
    "tfidf": {"kind": "tfidf", "words": "auto"},
}
"""Settings of encoders that need no checkpoint. A folder of such a name is given with its path, as
in "./tfidf"."""

CASCADE_FROM, CASCADE_CHARACTERS = 100_000, 100_000_000
"""Texts, and characters in all, from which on "auto" lets a static student encode the texts that it
is sure about. Of 226,000 titles it halves the time to encode, but neighbours take longer to find
(benchmarks, student_topics): nothing is gained where texts are short."""

AGAIN_TEXTS, AGAIN_SHARE = 50_000, 0.05
"""Texts that the encoder reads after the student at most, or their share where that is more."""

AKIN = 0.95
"""Least cosine, in the median, of vectors that one checkpoint makes in other numbers: those of
all-MiniLM-L6-v2 in int8 and float32 have 0.997, and 0.979 at the lowest, on four corpora."""


def resolve_encoder(spec: Any, *, cached: bool = False, **options: str | None) -> Encoder:
    """Return an encoder of documents for a name, a folder, or an object; options of a checkpoint.

    It puts the checkpoint's prompt for documents before a text, where there is one.
    """
    found = _resolved(spec, cached, options)
    return found.reading("document") if isinstance(found, BaseEncoder) else found


class AutomaticEncoder(BaseEncoder):
    """Becomes the encoder that suits the languages of the texts that it is fitted to."""

    name = "auto"

    def __init__(self, cached: bool = True, **options: str | None) -> None:
        self._arguments = {"cached": cached, **options}

    @property
    def is_fitted(self) -> bool:
        """Whether an encoder is chosen: its fit returns another."""
        return False

    def fit(self, X: Iterable[str], y: Any = None) -> Any:
        """Return the default encoder, one of many languages where it does not suit, or both.

        Both are joined where a main language is the default's, and others are not. A large
        collection that the default suits gets it with a static student.
        """
        texts = list(X)
        usual: Any = resolve_encoder(DEFAULT_MODEL, **self._arguments)
        shares = detect_languages(texts)
        suits = language_warning(usual, shares) is None
        if suits and cascade_pays(len(texts), sum(map(len, texts))):
            return _class_of("cascade")(reads_on(usual, texts)).fit(texts)
        if suits or find_spec(MULTILINGUAL_PACKAGE) is None:  # then whoever encodes warns
            return usual
        other = resolve_encoder(MULTILINGUAL, **self._arguments)
        if not set(usual.languages) & set(main_languages(shares)):
            return other
        from embedtopics.encoders._languages import JoinedEncoder

        return JoinedEncoder([reads_on(one, texts) for one in (usual, other)])


def cascade_pays(n_texts: int, n_characters: int) -> bool:
    """Return whether a collection is large enough for a static student beside its teacher."""
    return n_texts >= CASCADE_FROM and n_characters >= CASCADE_CHARACTERS


def most_read_again(n_texts: int) -> float:
    """Return the share of texts that the encoder reads after a static student at most."""
    return max(AGAIN_SHARE, AGAIN_TEXTS / max(1, n_texts))


def _resolved(
    spec: Any, cached: bool = False, options: Mapping[str, str | None] | None = None
) -> Encoder:
    if isinstance(spec, str) and spec == "auto":
        return AutomaticEncoder(cached, **(options or {}))
    asked: dict[str, Any] = {
        name: value for name, value in (options or {}).items() if value is not None
    }
    if isinstance(spec, (str, os.PathLike)):
        is_named = isinstance(spec, str) and spec in _BY_NAME
        if not is_named and not holds_static_encoder(Path(spec).expanduser()):
            encoder = SentenceEncoder(spec, **asked)
            return CachedEncoder(encoder) if cached else encoder
        if asked:
            expected = f"left out, because {spec} is no transformer checkpoint"
            raise InputError(next(iter(asked)), expected, next(iter(asked.values())))
        return encoder_from_settings(_BY_NAME[str(spec)]) if is_named else StaticEncoder(spec)
    if isinstance(spec, type) or not callable(getattr(spec, "encode", None)):
        expected = "a hub name, the folder of a checkpoint or an object with encode(texts)"
        raise InputError("encoder", expected, spec)
    return cast(Encoder, spec)


def resolve_exact(spec: Any, *, cached: bool = False) -> Encoder:
    """Return an encoder that computes in float32 where its precision was not named: for training.

    What is learned from vectors, and what training is compared with, keeps all their digits.
    """
    found: Any = _resolved(spec)
    plain = getattr(found, "uncached", found)
    if isinstance(plain, SentenceEncoder) and plain.recipe.precision == "auto":
        found = _changed(found, precision="float32")
    is_named = isinstance(spec, (str, os.PathLike)) and isinstance(found, SentenceEncoder)
    return CachedEncoder(found) if cached and is_named else cast(Encoder, found)


def _changed(encoder: Any, **arguments: Any) -> Any:
    """Return an encoder of a checkpoint, cached or not, with other arguments."""
    if isinstance(encoder, CachedEncoder):
        plain = _changed(encoder.uncached, **arguments)
        return CachedEncoder(**{**encoder.get_params(), "encoder": plain})
    return SentenceEncoder(**{**encoder.get_params(), **arguments})


UNREAD, TEXTS_TO_COUNT = 1 / 3, 500
"""Share of all tokens behind the cuts from which on texts are read to their ends, and the texts
that tell. On news and messages of which 49 to 85 % would not be read, windows gave topics an AMI
with the classes of 0.553 in place of 0.526 (bbc_news 0.671 and 0.667, masakhanews_eng 0.580 and
0.537, masakhanews_fra 0.460 and 0.417, 4,000 of 20newsgroups 0.501 and 0.481; each whole and in
three samples of 80 %; lower in 2 of 16 fits), and of 0.609 in place of 0.584 at the number of
classes, for 1.9 to 6.7 times the tokens to encode. Only whether to read on was chosen on these
corpora."""


def reads_on(encoder: Any, texts: Sequence[str]) -> Any:
    """Return an encoder that reads texts to their ends where a sample of them needs it."""
    plain = getattr(encoder, "uncached", encoder)
    if not _is_open(plain):
        return encoder
    some = texts[:: max(1, len(texts) // TEXTS_TO_COUNT)][:TEXTS_TO_COUNT]
    if max(map(len, some), default=0) < plain.max_length:  # no token is shorter than a character
        return encoder
    counted = plain.count_tokens(some)
    return _changed(encoder, long_texts="chunk") if counted.unseen_token_share > UNREAD else encoder


def reads_as(encoder: Any, described: Mapping[str, Any]) -> Any:
    """Return an encoder that reads long texts as a recorded one, where nothing else was asked."""
    chunks = (described.get("encoder_settings") or {}).get("long_texts") == "chunk"
    is_asked = chunks and _is_open(getattr(encoder, "uncached", encoder))
    return _changed(encoder, long_texts="chunk") if is_asked else encoder


def _is_open(encoder: Any) -> bool:
    """Return whether it was left to us how an encoder reads long texts."""
    return isinstance(encoder, SentenceEncoder) and encoder.get_params()["long_texts"] == "auto"


def encoder_from_settings(settings: Mapping[str, Any]) -> Encoder:
    """Make an encoder from what its `settings` said, not yet fitted where it is one that learns."""
    arguments = dict(settings)
    kind = arguments.pop("kind", None)
    if kind is None:
        if arguments.get("precision") in ("float16", "bfloat16") and not has_gpu():
            arguments["precision"] = "float32"  # what a GPU has made is read elsewhere as well
        return SentenceEncoder(**arguments)
    if kind not in _BY_KIND:
        expected = f"of a kind among {', '.join(_BY_KIND)}"
        raise InputError("encoder", expected, kind, "give the encoder itself")
    if kind == "tfidf":
        arguments.setdefault("words", "characters")  # as it was before there was a choice
    made: Encoder = _class_of(kind)(**arguments)
    return made


def _class_of(kind: str) -> Any:
    module, name = _BY_KIND[kind]
    return getattr(import_module(module), name)


def learns(encoder: Any) -> bool:
    """Return whether an encoder learns from the texts themselves, as TF-IDF and fastText do."""
    fit = getattr(type(getattr(encoder, "uncached", encoder)), "fit", None)
    return fit is not None and fit is not BaseEncoder.fit


def fitted(encoder: Encoder, texts: Sequence[str]) -> Encoder:
    """Return an encoder that has learned from a corpus: a fitted copy where it had not yet."""
    if getattr(encoder, "is_fitted", True) or not learns(encoder):
        return encoder
    learner: Any = copy.copy(encoder)
    made: Encoder = learner.fit(texts)
    return made


def encoder_decisions(encoder: Any) -> list[Decision]:
    """Return the chosen precision and prompt, and, once it ran, why not as was wanted."""
    parts = getattr(encoder, "parts", ())
    made = [decision for part in parts for decision in encoder_decisions(part)]
    if parts:
        message = (
            f"The vectors of {' and '.join(part.name for part in parts)} are joined, because the "
            "texts are in languages of both; encoding takes the time of both. Translations share a "
            "topic with across_languages=True of the model alone."
        )
        made.append(Decision("encoder", "joined", encoder.name, message))
    made += getattr(encoder, "decisions", ())
    note = getattr(encoder, "precision_note", "")
    if note:
        made.append(Decision("encoder", "precision", encoder.precision, note))
    note = getattr(encoder, "runtime_note", "")
    if note:
        made.append(Decision("encoder", "runtime", "torch", f"{note}."))
    by = getattr(encoder, "made_from", None) or {}
    if by.get("method") == "static student":
        message = f"The vectors are those of a static student of {by['encoder']}, which learned "
        message += f"from {by['n_texts']:,} texts; on others its cosine with the vectors of "
        message += f"{by['encoder']} is {by['agreement']:.2f} on average."
        made.append(Decision("encoder", "student", by["agreement"], message))
    words = getattr(getattr(encoder, "recipe", None), "prompt", "")
    if words:
        query = encoder.reading("query").recipe.prompt
        of_queries = f", and {query!r} to queries" if query != words else ""
        message = f"The prompt {words!r} is put before each text{of_queries}."
        made.append(Decision("encoder", "prompt", words, message))
    return made


def space_of(described: Mapping[str, Any]) -> str | None:
    """Return what vectors share that can be compared; what older versions wrote was in float32."""
    found: str | None = described.get("encoder_space") or described.get("encoder_fingerprint")
    return found


def describe_encoder(encoder: Encoder) -> dict[str, Any]:
    """Return what has to be known of an encoder to tell it from others, and to load it again."""
    return {
        "encoder": getattr(encoder, "name", type(encoder).__name__),
        "encoder_fingerprint": getattr(encoder, "fingerprint", None),
        "encoder_space": getattr(encoder, "space", None),
        # Only what can be made again from a few words has settings.
        "encoder_settings": getattr(encoder, "settings", None),
    }
