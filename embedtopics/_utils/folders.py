"""Folders that are written atomically and verified by checksum.

One writer at a time writes a folder under a temporary name and renames it into place; its files
never change afterwards. A reader opens all files of a folder once and reads from the open files, so
it sees one version even if the folder is renamed or deleted in the meantime.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from embedtopics.errors import CorruptFileError, InputError

if TYPE_CHECKING:
    from embedtopics._utils.manifest import FolderManifest

MANIFEST = "manifest.json"
_PATIENCE = 2.0
"""Seconds to wait while another process renames a folder."""


def check_output_folder(folder: str | Path, kind: str) -> Path:
    """Check that a folder can be written, before hours of work go into its content."""
    with _naming(folder, RuntimeError, ValueError):  # of links in a circle, and of names
        str(folder).encode()
        folder = Path(folder).resolve()
        if folder.exists() and not folder.is_dir():
            raise InputError(
                f"the output must be a folder; {folder} is a file; choose another path"
            )
        if os.path.ismount(folder):
            raise InputError(f"{folder} is a mount point; choose a folder below it")
        if folder.is_dir() and any(folder.iterdir()) and not _is_ours(folder, kind):
            raise InputError(
                f"the output must be an empty or new folder; {folder} holds other files; "
                "choose another folder or empty this one"
            )
        parent = folder.parent
        while not parent.exists():
            parent = parent.parent
        # Permissions, names and file systems are refused only on writing.
        os.rmdir(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".embedtopics-new", dir=parent))
        return folder


@contextmanager
def _naming(path: str | Path, *others: type[Exception]) -> Iterator[None]:
    """Turn an error of writing, such as a full disk, into one that names the path."""
    from safetensors import SafetensorError

    errors: tuple[type[Exception], ...] = (OSError, SafetensorError, *others)
    try:
        yield
    except (CorruptFileError, InputError):
        raise
    except errors as error:
        name = str(path).encode("utf-8", "backslashreplace").decode()
        raise InputError(
            f"could not write {name}: {getattr(error, 'strerror', None) or error}; any previous "
            "content is intact; free disk space or choose another path"
        ) from error


def _is_ours(folder: Path, kind: str) -> bool:
    """Return whether embedtopics wrote every file of a folder: replacing it loses nothing."""
    try:
        manifest = manifest_of(folder)
        listed = {*manifest.files, *manifest.unchecked}
        paths = [p for p in folder.rglob("*") if p.is_symlink() or not p.is_dir()]
        present = {path.relative_to(folder).as_posix() for path in paths}
    except (OSError, ValueError):
        return False
    # Subfolders whose files are listed have manifests of their own.
    listed |= {f"{above}/{MANIFEST}" for name in listed for above in PurePosixPath(name).parents}
    return present <= listed | {MANIFEST} and manifest.kind == kind


@contextmanager
def replacing_folder(folder: str | Path, kind: str) -> Iterator[Path]:
    """Yield a temporary folder that replaces `folder` by a rename when the block succeeds.

    After any failure, an interrupt or a full disk included, any previous content is intact. What a
    killed process leaves, the next writer deletes; the folder that the process was about to replace
    is restored by the next reader or writer.
    """
    folder = check_output_folder(folder, kind)
    with only_writer(folder, _PATIENCE), _naming(folder):
        with fresh_folder(folder) as fresh:
            yield fresh
            check_output_folder(folder, kind)  # files may have been put there in the meantime
            take_the_place(fresh, folder)


@contextmanager
def fresh_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder next to another, and delete leftover ones; call it under the lock."""
    put_back(folder)
    fresh = _beside(folder, "new")
    for left in (fresh, _beside(folder, "old")):
        shutil.rmtree(left, ignore_errors=True)
    fresh.mkdir()
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def replacing_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` when the block succeeds."""
    path = Path(path).resolve()
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder; choose another file")
    beside = partial(tempfile.TemporaryDirectory, dir=path.parent, ignore_cleanup_errors=True)
    with _naming(path), beside(prefix=".writing-") as folder:
        fresh = Path(folder, path.name)
        yield fresh
        os.replace(fresh, path)


def take_the_place(fresh: Path, folder: Path) -> None:
    """Rename `fresh` to `folder`; delete the previous folder only after that."""
    flush_folder(fresh)
    old = _beside(folder, "old")
    try:
        if folder.exists():
            folder.rename(old)
        fresh.rename(folder)
    finally:  # after an interrupt too
        put_back(folder)
    flush_folder(folder.parent)
    if old.exists():
        # Renamed first: a half-deleted folder is never taken for a saved one.
        shutil.rmtree(old.rename(fresh), ignore_errors=True)


def find_folder(folder: str | Path) -> Path:
    """Return the real path of a folder, so that its aliases share one lock.

    If a process was killed while it replaced the folder, the previous folder is restored.
    """
    folder = Path(os.path.realpath(folder))
    if not os.path.lexists(folder) and os.path.exists(_beside(folder, "old")):
        # Another process may be replacing it right now.
        with suppress(InputError), only_writer(folder, _PATIENCE):
            put_back(folder)
    return folder


def put_back(folder: Path) -> None:
    """Restore a folder that was set aside to be replaced; call it under the lock."""
    old = _beside(folder, "old")
    if os.path.exists(old) and not os.path.lexists(folder):
        old.rename(folder)


def _beside(folder: Path, version: str) -> Path:
    """Return the path of the new or old version of a folder while it is replaced."""
    return folder.with_name(f".{folder.name}.embedtopics-{version}")


def flush_file(path: Path) -> None:
    """Flush a file's content to disk."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Flush a folder's list of files to disk; Windows does this by itself."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_manifest(folder: Path, kind: str, version: int) -> None:
    """Record the size and SHA-256 of every file below a folder."""
    paths = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != MANIFEST]
    files = {
        str(path.relative_to(folder).as_posix()): {"bytes": path.stat().st_size, "sha256": digest}
        for path, digest in zip(paths, sha256_of(paths), strict=True)
    }
    content: dict[str, Any] = {"kind": kind, "version": version, "files": files}
    (folder / MANIFEST).write_text(json.dumps(content, indent=1), "utf-8")
    flush_file(folder / MANIFEST)


def is_kind(folder: str | Path, kind: str) -> bool:
    """Return whether the manifest of a folder names a kind."""
    try:
        return manifest_of(folder).kind == kind
    except (OSError, ValueError):
        return False


def changed_files(folder: str | Path) -> set[str]:
    """Return the names of the files directly in a folder whose content has changed."""
    written = {Path(folder, name): file for name, file in manifest_of(folder).files.items()}
    present = [path for path in written if path.parent == Path(folder) and path.is_file()]
    return {path.name for path in present if sha256(path) != written[path].sha256}


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; reject excessive nesting by ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; a pipe would be waited for."""
    if path.exists() and not path.is_file():
        raise OSError(f"{str(path)[:200]} is not a regular file")
    return path.open("rb")


def read_regular(path: str | Path) -> bytes:
    """Read a regular file whole."""
    with open_regular(Path(path)) as stream:
        return stream.read()


def manifest_of(folder: str | Path) -> FolderManifest:
    """Read the manifest of a folder; a ValueError says what is wrong with it."""
    from embedtopics._utils.manifest import FolderManifest
    from embedtopics._utils.records import parse_record

    return parse_record(FolderManifest, read_regular(Path(folder, MANIFEST)))


@dataclass(frozen=True)
class SavedFolder:
    """One version of a saved folder: its manifest, and its files, open and checked against it."""

    folder: Path
    manifest: FolderManifest
    streams: dict[str, BinaryIO]


@contextmanager
def open_saved(folder: str | Path, kind: str, newest_version: int) -> Iterator[SavedFolder]:
    """Open one version of a saved folder."""
    path, end = Path(folder), time.monotonic() + 10 * _PATIENCE
    with ExitStack() as stack:
        while True:
            find_folder(path)
            identity = _identity_of(path)
            try:
                saved = _opened(path, kind, newest_version, stack)
                break
            except (CorruptFileError, InputError):
                # A new version may have replaced this one, and its files been deleted: try again.
                if _identity_of(path) == identity or time.monotonic() > end:
                    raise
                stack.close()
        yield saved


def _identity_of(folder: Path) -> tuple[int, ...] | None:
    """Return numbers that differ between any two versions of a folder; None if it is missing."""
    with suppress(OSError, ValueError):
        status = folder.stat()
        return status.st_dev, status.st_ino, status.st_ctime_ns
    return None


def _opened(folder: Path, kind: str, newest: int, stack: ExitStack) -> SavedFolder:
    """Open the files of a folder; a file of another version has another checksum."""
    if not os.path.isdir(folder):
        raise InputError(f"expected a saved folder; {folder} does not exist or is a file")
    manifest = _checked_manifest(folder, kind, newest)

    streams = {}
    for name, recorded in manifest.files.items():
        path = folder / name
        try:
            if not stays_inside(path, folder):
                raise ValueError("it is a link to a file outside of the folder")
            streams[name] = stack.enter_context(open_regular(path))
            if os.fstat(streams[name].fileno()).st_size != recorded.bytes:
                raise ValueError("its checksum and size differ from the recorded ones")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            state = "missing" if isinstance(error, FileNotFoundError) else f"damaged ({reason})"
            message = f"{str(path)[:500]} is {state}; save again or restore it from a copy"
            raise CorruptFileError(message) from None

    with ThreadPoolExecutor(4) as threads:
        digests = list(threads.map(_digest, streams.values()))

    for (name, stream), digest in zip(streams.items(), digests, strict=True):
        if digest != manifest.files[name].sha256:
            raise CorruptFileError(
                f"{folder / name} is damaged: its checksum differs from the recorded one; "
                "save again or restore it from a copy"
            )
        stream.seek(0)
    return SavedFolder(folder, manifest, streams)


def _checked_manifest(folder: Path, kind: str, newest: int) -> FolderManifest:
    """Read the manifest of a folder of a kind, in a format that is known."""
    from embedtopics._utils.manifest import FolderManifest, ManifestHead
    from embedtopics._utils.records import read_record

    path = folder / MANIFEST
    try:
        content = read_regular(path)
    except FileNotFoundError:
        message = f"{folder} was not saved by embedtopics: it has no {MANIFEST}"
        raise CorruptFileError(f"{message}; choose another one") from None
    except OSError as error:
        message = f"{path} is damaged ({str(error)[:300]}); save again"
        raise CorruptFileError(message) from error

    # A newer format may have other fields.
    head = read_record(ManifestHead, content, path)
    if head.kind != kind:
        message = f"{folder} must hold a saved {kind}; it holds {head.kind[:200]!r}"
        raise CorruptFileError(message)
    if head.version > newest:
        raise CorruptFileError(
            f"{folder} was saved in format {head.version}; this version reads formats up to "
            f"{newest}; upgrade embedtopics"
        )
    return read_record(FolderManifest, content, path)


def read_manifest(folder: str | Path, kind: str, newest_version: int) -> FolderManifest:
    """Read a folder's manifest and check every file against it."""
    with open_saved(folder, kind, newest_version) as saved:
        return saved.manifest


def is_below(name: str) -> bool:
    """Return whether a name from an untrusted manifest stays inside the folder."""
    path = PurePosixPath(name)
    return not path.is_absolute() and not {"..", "\\", ":"} & {*path.parts, *name}


def stays_inside(path: Path, folder: Path) -> bool:
    """Return whether a file of a folder is below it once its links are followed.

    In the cache of the hub, ``models--x/snapshots/<commit>`` consists of links to files in
    ``models--x/blobs``; they belong to the folder.
    """
    real = Path(os.path.realpath(path))
    root = Path(os.path.realpath(folder))
    if real.is_relative_to(root):
        return True
    snapshots = [above for above in (root, *root.parents) if above.parent.name == "snapshots"]
    return any(real.parent == above.parent.parent / "blobs" for above in snapshots)


def sha256_of(paths: Iterable[Path]) -> list[str]:
    """Hash files in parallel; hashing releases the interpreter lock."""
    with ThreadPoolExecutor(4) as threads:
        return list(threads.map(sha256, paths))


def sha256(path: Path) -> str:
    """Return the checksum of a file, read in pieces."""
    with open_regular(path) as stream:
        return _digest(stream)


def _digest(stream: BinaryIO) -> str:
    return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


@contextmanager
def only_writer(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock ``.<name>.lock`` next to a folder; wait for it up to `patience` seconds.

    The operating system releases the lock when the process ends, however it ends.
    """
    from filelock import FileLock, Timeout

    path = folder.with_name(f".{folder.name}.lock")
    lock = FileLock(path, timeout=patience, poll_interval=0.01, thread_local=False)
    with _naming(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout:
            raise InputError(
                f"another process is writing {folder}; wait until it is done, or choose another "
                "folder"
            ) from None
    try:
        yield
    finally:
        with suppress(OSError):  # Windows does not delete an open file
            path.unlink()
        lock.release()


def demo_path() -> Path:
    """Return the path of the demo corpus, a CSV file: in an installed package or the repository."""
    package = Path(__file__).parents[1]
    for path in (package / "data" / "demo.csv", package.parent / "data" / "demo.csv"):
        if path.is_file():
            return path
    raise InputError("the demo corpus is missing from this installation; install the package again")
