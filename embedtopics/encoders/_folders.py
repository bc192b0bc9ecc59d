"""The folder of the cache, and folders that appear in it complete or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
