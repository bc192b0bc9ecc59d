"""Writing folders whole or not at all, and telling whether a file is what was written.

A folder is written beside its place and renamed to it, by one writer at a time; its files never
change afterwards. Who reads one opens it once, all its files from there, and reads what is open:
whatever is renamed or deleted in the meantime, that is one version.
"""

import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from embedtopics.errors import CorruptFileError, InputError

MANIFEST = "manifest.json"
UNCHECKED = "unchecked"
"""Key of the files that belong to a folder, and that people may edit."""
_LONGEST_MANIFEST = 2**24
"""Bytes; with that a folder would have some 100,000 files."""
_PATIENCE = 2.0
"""Seconds to wait for another process to rename a folder, or to look for one that was set aside."""


def check_output_folder(folder: str | Path, kind: str) -> Path:
    """Make sure that a folder may be written, before hours of work go into its content."""
    with _refusing(folder):
        str(folder).encode()  # refuses names that are not UTF-8
        return _checked_folder(Path(folder).resolve(), kind)


@contextmanager
def _refusing(folder: str | Path) -> Iterator[None]:
    """Name the folder where the operating system lets nobody write."""
    try:
        yield
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        name = str(folder).encode("utf-8", "backslashreplace").decode()
        raise InputError(f"cannot write to {name}: {reason}; name another folder") from error


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
    # Some names and places are refused only when something is written there.
    os.rmdir(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".new", dir=parent))
    return folder


def _is_ours(folder: Path, kind: str) -> bool:
    """Return whether everything in a folder was written here, so that nothing else is lost."""
    try:
        manifest = _manifest_of(folder)
        known = set(manifest["files"]) | set(manifest.get(UNCHECKED, ()))
        paths = [p for p in folder.rglob("*") if p.is_symlink() or not p.is_dir()]
        found = {path.relative_to(folder).as_posix() for path in paths}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    # Folders inside have manifests of their own: those of which something is listed.
    known |= {f"{above}/{MANIFEST}" for name in known for above in PurePosixPath(name).parents}
    return found <= known | {MANIFEST} and is_kind(folder, kind)


@contextmanager
def replacing_folder(folder: str | Path, kind: str) -> Iterator[Path]:
    """Give a temporary folder to write in; on success it takes the place of `folder` by a rename.

    When anything fails, an interrupt or a full disk included, what was there before stays whole. A
    process that is killed leaves a hidden folder beside, ``.<name>.<letters>.new``, which the next
    to save there deletes; what it was about to replace is put back by the next to read or write.
    """
    folder = check_output_folder(folder, kind)
    with only_writer(folder, _PATIENCE), _blaming_the_disk(folder, "folder"):
        with fresh_folder(folder) as fresh:
            yield fresh
            _checked_folder(folder, kind)  # somebody may have put files there in the meantime
            take_the_place(fresh, folder)


@contextmanager
def fresh_folder(folder: Path) -> Iterator[Path]:
    """Give an empty folder beside another, and delete those that were left; under the lock."""
    put_back(folder)
    left = _beside(folder, "new")
    if os.path.lexists(folder):
        left += _beside(folder, "old")
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".new", dir=folder.parent))
    try:
        yield fresh
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


def find_folder(folder: str | Path) -> Path:
    """Return where a folder really is, so that two names of it have one lock.

    What a process that was killed while it replaced the folder left undone is undone.
    """
    folder = Path(os.path.realpath(folder))
    end = time.monotonic() + _PATIENCE
    while not os.path.lexists(folder) and _beside(folder, "old") and time.monotonic() < end:
        try:
            with only_writer(folder):
                put_back(folder)
        except InputError:  # another process replaces it in this moment
            time.sleep(0.002)
    return folder


def put_back(folder: Path) -> None:
    """Give the folder its name again that was set aside to be replaced; under the lock."""
    if not os.path.lexists(folder):
        for old in _beside(folder, "old")[:1]:
            old.rename(folder)


def _beside(folder: Path, kind: str) -> list[Path]:
    """Return what was made beside a folder to take its place, or was set aside; no other's."""
    # Of a folder "a" this is not what belongs to one that is called "a.b".
    name = re.compile(rf"\.{re.escape(folder.name)}\.[a-z0-9_]{{8}}\.{kind}")
    found = sorted(os.listdir(folder.parent)) if folder.parent.is_dir() else []
    paths = [folder.with_name(one) for one in found if name.fullmatch(one)]
    return [path for path in paths if not path.is_symlink()]


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
        content = _manifest_of(folder)
        content[UNCHECKED] = sorted({*content.get(UNCHECKED, ()), *names})
    except (OSError, ValueError, TypeError, AttributeError):
        return
    with replacing_file(folder / MANIFEST) as fresh:
        fresh.write_text(json.dumps(content, indent=1), "utf-8")


def is_kind(folder: str | Path, kind: str) -> bool:
    """Return whether a folder says of itself that it is of a kind."""
    try:
        return bool(_manifest_of(Path(folder))["kind"] == kind)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def changed_files(folder: str | Path) -> set[str]:
    """Return the names of those files directly in a folder that are not as they were written."""
    folder = Path(folder)
    files = _manifest_of(folder)["files"]
    return {
        name
        for name, written in files.items()
        if "/" not in name
        and (folder / name).is_file()
        and sha256(folder / name) != written["sha256"]
    }


def parse_json(text: str | bytes) -> Any:
    """Return what JSON says: numbers that it does not know, and depths that Python does not, not.

    Raises ValueError alone, which names neither.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def open_regular(name: str | Path, directory: int | None = None) -> BinaryIO:
    """Open a file to read it; of what is no file, a pipe for instance, nothing is waited for."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(name, flags, dir_fd=directory)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{str(name)[:200]} is no file")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _manifest_of(folder: str | Path, directory: int | None = None) -> Any:
    with open_regular(os.path.join(folder, MANIFEST), directory) as stream:
        content = stream.read(_LONGEST_MANIFEST + 1)
    if len(content) > _LONGEST_MANIFEST:
        raise ValueError(f"it has more than {_LONGEST_MANIFEST:,} bytes")
    return parse_json(content)


class SavedFolder:
    """One version of a saved folder with all its files open, checked against its manifest."""

    def __init__(self, folder: Path, kind: str, newest_version: int) -> None:
        self.folder = folder
        self.streams: dict[str, BinaryIO] = {}
        self._opened = ExitStack()
        directory = None
        try:
            if os.open in os.supports_dir_fd:  # not on Windows
                directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                self._opened.callback(os.close, directory)
            self.manifest = self._read_manifest(directory, kind, newest_version)
            for name in self.manifest["files"]:
                self.streams[name] = self._open(name, directory)
            self._check()
        except BaseException:
            self._opened.close()
            raise

    def __enter__(self) -> "SavedFolder":
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def _read_manifest(self, directory: int | None, kind: str, newest: int) -> dict[str, Any]:
        folder = self.folder
        try:
            manifest = _manifest_of(folder if directory is None else "", directory)
            for about in manifest["files"].values():
                int(about["bytes"]), str(about["sha256"])
            found = manifest["kind"], int(manifest["version"])
            outside = [name for name in manifest["files"] if not is_below(name)]
            if outside:
                raise ValueError(f"it lists {outside[0][:200]!r}, which is not below it")
        except FileNotFoundError:
            raise CorruptFileError(
                f"{folder} was not saved by embedtopics: it has no {MANIFEST}; name another folder"
            ) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise CorruptFileError(
                f"{folder / MANIFEST} is damaged ({str(error)[:300]}); save again"
            ) from error
        if found[0] != kind:
            what = f"it holds {str(found[0])[:200]!r}"
            raise CorruptFileError(f"expected a saved {kind} in {folder}; {what}")
        if found[1] > newest:
            raise CorruptFileError(
                f"{folder} was saved in format {found[1]}, newer than this version reads "
                f"({newest}); upgrade embedtopics"
            )
        return dict(manifest)

    def _open(self, name: str, directory: int | None) -> BinaryIO:
        path = self.folder / name
        try:
            stream = open_regular(path if directory is None else name, directory)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            what = "missing" if isinstance(error, FileNotFoundError) else f"damaged ({why})"
            message = f"{str(path)[:500]} is {what}; save again or restore it from a copy"
            raise CorruptFileError(message) from None
        return self._opened.enter_context(stream)

    def _check(self) -> None:
        files = self.manifest["files"]
        remedy = "saved; save again or restore it from a copy"
        for name, stream in self.streams.items():
            size, found = int(files[name]["bytes"]), os.fstat(stream.fileno()).st_size
            if found != size:
                raise CorruptFileError(
                    f"{self.folder / name} is damaged: it has {found:,} bytes, not the {size:,} "
                    f"that were {remedy}"
                )
        with ThreadPoolExecutor(4) as threads:
            digests = list(threads.map(_digest, self.streams.values()))
        for (name, stream), digest in zip(self.streams.items(), digests, strict=True):
            if digest != files[name]["sha256"]:
                raise CorruptFileError(
                    f"{self.folder / name} is damaged: its checksum differs from the one recorded "
                    f"when it was {remedy}"
                )
            stream.seek(0)


def open_saved(folder: str | Path, kind: str, newest_version: int) -> SavedFolder:
    """Open one version of a saved folder, to be used in a ``with``."""
    end = time.monotonic() + 10 * _PATIENCE
    while True:
        find_folder(folder)
        place = _place_of(folder)
        try:
            if place is None or not os.path.isdir(folder):
                raise InputError(f"expected a saved folder; {folder} does not exist or is a file")
            opened = SavedFolder(Path(folder), kind, newest_version)
            # By paths, where there is nothing else, files of two versions can be opened.
            if os.open in os.supports_dir_fd or _place_of(folder) == place:
                return opened
            opened.__exit__()
        except (CorruptFileError, InputError, OSError):
            # Else another version has taken its place, and this one's files were deleted.
            if _place_of(folder) == place or time.monotonic() > end:
                raise


def _place_of(folder: str | Path) -> tuple[int, ...] | None:
    """Return what no two versions of a folder have in common, None where there is none."""
    try:
        about = os.stat(folder)
    except (OSError, ValueError):
        return None
    return about.st_dev, about.st_ino, about.st_ctime_ns


def read_manifest(folder: str | Path, kind: str, newest_version: int) -> dict[str, Any]:
    """Read a folder's manifest and check every file against it."""
    with open_saved(folder, kind, newest_version) as saved:
        return saved.manifest


def is_below(name: str) -> bool:
    """Return whether a name in a manifest, which anybody may have written, stays in its folder."""
    path = PurePosixPath(name)
    return not path.is_absolute() and not {"..", "\\", ":"} & {*path.parts, *name}


def sha256_of(paths: Iterable[Path]) -> list[str]:
    """Hash files beside one another, which releases the interpreter."""
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
    """Keep all others from writing a folder, by a lock on ``.<name>.lock`` beside it.

    Another that has it is waited for, some seconds at most.

    The operating system lets go of it when a process ends, however it ends. Where a file system
    knows no locks, none is taken.
    """
    path = folder.with_name(f".{folder.name}.lock")
    with _refusing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        end = time.monotonic() + patience
        while True:
            try:
                file = _opened(path)
                break
            except BlockingIOError:
                if time.monotonic() < end:
                    time.sleep(0.01)
                    continue
                raise InputError(
                    f"expected to be the only one that writes {folder}; another process writes it "
                    "now; wait until it is done, or name another folder"
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
