"""One writer at a time, of all processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from embedtopics.errors import InputError

__all__ = ["only_writer"]


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Keep all others from writing a folder.

    The lock is a file beside, ``.<name>.lock``. The operating system lets go of it when a process
    ends, however it ends: what a killed one leaves keeps nobody out. Where a file system knows no
    locks, none is taken.

    Raises
    ------
    InputError
        If another writes it, or nothing can be written there.
    """
    path = folder.with_name(f".{folder.name}.lock")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        file = _opened(path)
    except BlockingIOError:
        raise InputError(
            f"expected to be the only one that writes {folder}; another process writes it now; "
            "wait until it is done, or name another folder"
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot write to {folder}: {error.strerror or error}; name another folder"
        ) from error
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
        except BlockingIOError:
            raise
        except OSError:  # no locks on this file system
            return
