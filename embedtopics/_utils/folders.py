"""Writing folders whole or not at all, and telling whether a file is what was written."""

import glob
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from embedtopics.errors import CorruptFileError, InputError

MANIFEST = "manifest.json"
UNCHECKED = "unchecked"
"""Key of the files that belong to a folder, and that people may edit."""


def check_output_folder(folder: str | Path, kind: str) -> Path:
    """Make sure that a folder may be written, before hours of work go into its content."""
    with _refusing(folder):
        return _checked_folder(Path(folder).resolve(), kind)


@contextmanager
def _refusing(folder: str | Path) -> Iterator[None]:
    """Name the folder where the operating system lets nobody write."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write to {folder}: {error.strerror or error}; name another folder"
        ) from error


def _checked_folder(folder: Path, kind: str) -> Path:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"expected a folder for the output; {folder} is a file; name another one")
    if os.path.ismount(folder):
        raise InputError(
            f"{folder} is a mount point and cannot be replaced as a whole; name a folder below it"
        )
    if folder.is_dir() and any(folder.iterdir()) and not _is_ours(folder, kind):
        raise InputError(
            f"expected an empty or new folder for the output; {folder} holds other files; "
            "name another one, or empty it yourself"
        )
    parent = folder.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise InputError(f"cannot make the folder {folder}: {parent} is a file; name another one")
    if not os.access(parent, os.W_OK) or (folder.is_dir() and not os.access(folder, os.W_OK)):
        raise InputError(
            f"cannot write to {folder}: no permission; name a folder that you may write to"
        )
    return folder


def _is_ours(folder: Path, kind: str) -> bool:
    """Return whether everything in a folder was written here, so that nothing else is lost."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        known = set(manifest["files"]) | set(manifest.get(UNCHECKED, ()))
        found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    ours = all(name in known or name.rsplit("/", 1)[-1] == MANIFEST for name in found)
    return ours and is_kind(folder, kind)


@contextmanager
def replacing_folder(folder: str | Path, kind: str) -> Iterator[Path]:
    """Give a temporary folder to write in; on success it takes the place of `folder` by a rename.

    When anything fails, an interrupt or a full disk included, what was there before stays whole. A
    process that is killed leaves a hidden folder beside, ``.<name>.<letters>.new``, which may be
    deleted; what it was about to replace is put back by the next to read or write there.
    """
    folder = check_output_folder(folder, kind)
    _put_back(folder)
    with _blaming_the_disk(folder, "folder"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".new", dir=folder.parent))
        try:
            yield fresh
            take_the_place(fresh, folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def replacing_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary file to write to; on success it takes the place of `path`."""
    path = Path(path).resolve()
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else "its folder does not exist"
        raise InputError(f"cannot write {path}: {what}; name another file")
    with _blaming_the_disk(path, "file"):
        folder = Path(tempfile.mkdtemp(prefix=".writing-", dir=path.parent))
        try:
            fresh = folder / path.name
            yield fresh
            os.replace(fresh, path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _blaming_the_disk(path: Path, kind: str) -> Iterator[None]:
    """Say what could not be written where the disk is at fault, a full one for example."""
    try:
        yield
    except (CorruptFileError, InputError):
        raise
    except Exception as error:
        # safetensors has an error of its own for that
        is_safetensors = type(error).__module__.startswith("safetensors")
        of_writing = is_safetensors and any(mark in str(error) for mark in ("I/O error", "IoError"))
        if not (isinstance(error, OSError) or of_writing):
            raise
        raise InputError(
            f"could not write {path}: {getattr(error, 'strerror', None) or error}; what was there "
            f"before is whole; free some space or name another {kind}"
        ) from error


def take_the_place(fresh: Path, folder: Path) -> None:
    """Rename a folder to the place of another; the other is deleted only when that is done."""
    fresh.chmod(0o777 & ~_umask())
    flush_folder(fresh)
    old = fresh.with_suffix(".old")
    if folder.exists():
        folder.rename(old)
    try:
        fresh.rename(folder)
        flush_folder(folder.parent)
    except BaseException:  # an interrupt too
        if folder.exists() and not fresh.exists():
            folder.rename(fresh)
        if old.exists() and not folder.exists():
            old.rename(folder)
        raise
    if old.exists():
        # First out of the way, so that one half deleted is never taken for what was saved.
        shutil.rmtree(old.rename(fresh), ignore_errors=True)


def _put_back(folder: Path) -> None:
    """Undo what a process that was killed between the two renames left undone."""
    folder = Path(os.path.realpath(folder))
    if os.path.lexists(folder) or not os.path.isdir(folder.parent):
        return
    name = glob.escape(folder.name)
    for old in sorted(folder.parent.glob(f".{name}.*.old")):
        if (old / MANIFEST).is_file():
            with suppress(OSError):  # another process has done it
                old.rename(folder)
            return


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def flush_file(path: Path) -> None:
    """Put a file's content on disk."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Put on disk which files a folder has; Windows does so by itself."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_manifest(folder: Path, kind: str, version: int, but: Iterable[str] = ()) -> None:
    """Record the size and SHA-256 of every file below a folder, but some names."""
    left_out = {MANIFEST, *but}
    paths = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name not in left_out]
    files = {
        str(path.relative_to(folder).as_posix()): {"bytes": path.stat().st_size, "sha256": digest}
        for path, digest in zip(paths, sha256_of(paths), strict=True)
    }
    content: dict[str, Any] = {"kind": kind, "version": version, "files": files}
    with (folder / MANIFEST).open("w", encoding="utf-8") as stream:
        json.dump(content, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())


def add_unchecked(folder: Path, names: Iterable[str]) -> None:
    """Record that files written later belong to a folder, and that people may edit them."""
    try:
        content = json.loads((folder / MANIFEST).read_text("utf-8"))
        content[UNCHECKED] = sorted({*content.get(UNCHECKED, ()), *names})
    except (OSError, ValueError, TypeError, AttributeError):
        return
    with replacing_file(folder / MANIFEST) as fresh:
        fresh.write_text(json.dumps(content, indent=1), "utf-8")


def is_kind(folder: str | Path, kind: str) -> bool:
    """Return whether a folder says of itself that it is of a kind."""
    try:
        manifest = json.loads((Path(folder) / MANIFEST).read_text("utf-8"))
        return bool(manifest["kind"] == kind)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def changed_files(folder: str | Path) -> set[str]:
    """Return the names of those files directly in a folder that are not as they were written."""
    folder = Path(folder)
    files = json.loads((folder / MANIFEST).read_text("utf-8"))["files"]
    return {
        name
        for name, written in files.items()
        if "/" not in name
        and (folder / name).is_file()
        and sha256(folder / name) != written["sha256"]
    }


def read_manifest(folder: str | Path, kind: str, newest_version: int) -> dict[str, Any]:
    """Read a folder's manifest and check every file against it."""
    folder = Path(folder)
    _put_back(folder)
    if not os.path.isdir(folder):
        raise InputError(f"expected a saved folder; {folder} does not exist or is a file")
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        files = {
            folder / name: (int(about["bytes"]), str(about["sha256"]))
            for name, about in manifest["files"].items()
        }
        found = manifest["kind"], int(manifest["version"])
        outside = [name for name in manifest["files"] if not _is_below(name)]
        if outside:
            raise ValueError(f"it lists {outside[0]!r}, which is not below it")
    except FileNotFoundError:
        raise CorruptFileError(
            f"{folder} was not saved by embedtopics: it has no {MANIFEST}; name another folder"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(f"{folder / MANIFEST} is damaged ({error}); save again") from error
    if found[0] != kind:
        raise CorruptFileError(f"expected a saved {kind} in {folder}; it holds {found[0]!r}")
    if found[1] > newest_version:
        raise CorruptFileError(
            f"{folder} was saved in format {found[1]}, newer than this version reads "
            f"({newest_version}); upgrade embedtopics"
        )
    for path, (size, _) in files.items():
        if not path.is_file():
            raise CorruptFileError(f"{path} is missing; save again or restore it from a copy")
        if path.stat().st_size != size:
            raise CorruptFileError(
                f"{path} is damaged: it has {path.stat().st_size:,} bytes, not the {size:,} that "
                "were saved; save again or restore it from a copy"
            )
    for (path, (_, expected)), digest in zip(files.items(), sha256_of(files), strict=True):
        if digest != expected:
            raise CorruptFileError(
                f"{path} is damaged: its checksum differs from the one recorded when it was "
                "saved; save again or restore it from a copy"
            )
    return dict(manifest)


def _is_below(name: str) -> bool:
    """Return whether a name in a manifest, which anybody may have written, stays in its folder."""
    path = PurePosixPath(name)
    return not path.is_absolute() and not {"..", "\\", ":"} & {*path.parts, *name}


def sha256_of(paths: Iterable[Path]) -> list[str]:
    """Hash files beside one another, which releases the interpreter."""
    with ThreadPoolExecutor(4) as threads:
        return list(threads.map(sha256, paths))


def sha256(path: Path) -> str:
    """Return the checksum of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Keep all others from writing a folder, by a lock on ``.<name>.lock`` beside it.

    The operating system lets go of it when a process ends, however it ends. Where a file system
    knows no locks, none is taken.
    """
    path = folder.with_name(f".{folder.name}.lock")
    with _refusing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = _opened(path)
        except BlockingIOError:
            raise InputError(
                f"expected to be the only one that writes {folder}; another process writes it now; "
                "wait until it is done, or name another folder"
            ) from None
    try:
        yield
    finally:
        with suppress(OSError):  # Windows does not delete what is open
            path.unlink()
        os.close(file)


def _opened(path: Path) -> int:
    """Return a locked file; of one that was deleted in the meantime, the lock is worth nothing."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(file)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), path.stat()):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _lock(file: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError from error
    else:
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if isinstance(error, BlockingIOError):
                raise  # of others, this file system knows no locks
