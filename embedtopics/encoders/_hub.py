"""The Hugging Face hub: its cache on this machine, and the one announced download."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

logger = logging.getLogger(__name__)

_TIMEOUT = 5.0
"""Seconds that the hub has to answer; its client would go on asking for half a minute."""

_FILES = (
    "*.json",
    "*.txt",
    "*.model",
    "model.safetensors",
    "*/model.safetensors",
    "model-*.safetensors",
    "*/model-*.safetensors",
)
_OTHER_RUNTIMES = ("onnx/", "openvino/", "coreml/")


@dataclass(frozen=True)
class Miss:
    """A place where the model was looked for in vain."""

    reason: str
    final: bool = False


def cached_snapshot(repository: str, revision: str | None) -> Path | Miss:
    """Return the folder of a repository in the local hub cache; no network.

    A cached ``config.json`` alone does not prove that the repository has no ``modules.json``,
    and without that file a model would be pooled in a way it was not made for. Such a folder
    counts only where the cache has noted that the file does not exist.
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
    return Miss(f"{place}: incomplete, modules.json was never asked for)")


def download_snapshot(repository: str, revision: str | None, *, with_code: bool) -> Path | Miss:
    """Fetch a repository from the hub into its cache, after saying so."""
    from huggingface_hub import HfApi, is_offline_mode, snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError

    place = f"hub ({repository}"
    if is_offline_mode():
        return Miss(f"{place}: HF_HUB_OFFLINE is set)", final=True)
    # The exceptions of a failed request belong to the HTTP library that the hub's client was
    # built on, which has changed before; whatever it is, it ends up in our one-line message.
    try:
        info = HfApi().model_info(
            repository, revision=revision, timeout=_TIMEOUT, files_metadata=True
        )
    except RepositoryNotFoundError:
        return Miss(f"{place}: no such public repository)")
    except Exception as error:
        return Miss(f"{place}: {one_line(error)})", final=True)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    files = _needed(sizes, with_code)
    if not any(name.endswith(".safetensors") for name in files):
        return Miss(
            f"{place}: has no safetensors weights, and pickled ones are never loaded)", final=True
        )
    _announce(repository, str(info.sha), sum(sizes[name] for name in files))
    try:
        folder = snapshot_download(
            repository, revision=revision, allow_patterns=files, etag_timeout=_TIMEOUT
        )
        _note_missing_modules(repository, str(info.sha), sizes)
    except Exception as error:
        return Miss(f"{place}: the download failed: {one_line(error)})", final=True)
    return Path(folder)


def _needed(names: Iterable[str], with_code: bool) -> list[str]:
    """Return the files to fetch, without the weights of other runtimes."""
    patterns = (*_FILES, "*.py") if with_code else _FILES
    return [
        name
        for name in names
        if any(fnmatchcase(name, pattern) for pattern in patterns)
        and not name.startswith(_OTHER_RUNTIMES)
    ]


def _announce(repository: str, revision: str, size: int) -> None:
    message = (
        f"downloading {repository} at revision {revision} (about {size / 1e6:.0f} MB) from the "
        "Hugging Face hub into its cache, once"
    )
    logger.info(message)
    sys.stderr.write(f"embedtopics: {message}\n")


def _note_missing_modules(repository: str, revision: str, sizes: dict[str, int]) -> None:
    """Let the cache remember that a plain checkpoint has no modules.json."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    if "modules.json" in sizes:
        return
    try:
        hf_hub_download(repository, "modules.json", revision=revision, etag_timeout=_TIMEOUT)
    except EntryNotFoundError:
        logger.debug("%s is a plain checkpoint", repository)


def one_line(error: BaseException) -> str:
    """Return an error's message on one short line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 160 else text[:157] + "..."
