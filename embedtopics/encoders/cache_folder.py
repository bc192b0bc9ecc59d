"""What the cache folder holds, and making it empty."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from embedtopics.encoders.prepared import FORMAT as MODELS
from embedtopics.encoders.prepared import UNFINISHED
from embedtopics.encoders.store import FORMAT as VECTORS
from embedtopics.encoders.store import default_folder, n_texts_in

__all__ = ["NAMES", "CacheEntry", "cache_entries", "clear_cache"]

NAMES = "names-1"
"""Folder of what language models answered when they were asked for names of topics."""

KINDS = ("vectors", "model", "names")


@dataclass(frozen=True)
class CacheEntry:
    """What is kept for one encoder, or of the answers of language models.

    Parameters
    ----------
    kind : {"vectors", "model", "names"}
    encoder : str
        Its name; "language models" for names of topics.
    variant : str
        Numbers that are kept, such as "float32".
    n_texts : int
        Texts with a vector, or questions with an answer; one that was written twice is counted
        twice. 0 for a model.
    n_bytes : int
    folder : Path
    """

    kind: str
    encoder: str
    variant: str
    n_texts: int
    n_bytes: int
    folder: Path


def cache_entries(root: Path | None = None) -> list[CacheEntry]:
    """Return what the cache folder holds, the largest first.

    Parameters
    ----------
    root : Path, optional
        By default ``EMBEDTOPICS_CACHE``, or the system's folder for such files.
    """
    root = default_folder() if root is None else root
    found = []
    for kind, name, about in (
        ("vectors", VECTORS, "encoder.json"),
        ("model", MODELS, "about.json"),
    ):
        for folder in sorted((root / name).glob("[!.]*/")):
            files = [path for path in folder.rglob("*") if path.is_file()]
            n_texts = sum(n_texts_in(path) for path in files if path.suffix == ".shard")
            n_bytes = sum(map(_size_of, files))
            encoder, variant = _name_in(folder / about), folder.name.partition("-")[2]
            found.append(CacheEntry(kind, encoder, variant, n_texts, n_bytes, folder))
    answers = sorted((root / NAMES).glob("*.json"))
    if answers:
        n_bytes = sum(map(_size_of, answers))
        found.append(
            CacheEntry("names", "language models", "", len(answers), n_bytes, root / NAMES)
        )
    return sorted(found, key=lambda entry: (-entry.n_bytes, entry.folder))


def clear_cache(root: Path | None = None, kinds: Iterable[str] = KINDS) -> int:
    """Throw away what the cache folder holds; what is none of it stays.

    Parameters
    ----------
    root : Path, optional
        As in `cache_entries`.
    kinds : iterable of {"vectors", "model", "names"}

    Returns
    -------
    int
        Bytes that were freed.
    """
    wanted, freed = set(kinds), 0
    for entry in cache_entries(root):
        if entry.kind in wanted:
            shutil.rmtree(entry.folder)
            freed += entry.n_bytes
    if "model" in wanted:
        root = default_folder() if root is None else root
        for folder in (root / MODELS).glob(f"{UNFINISHED}*/"):
            freed += sum(_size_of(path) for path in folder.iterdir())
            shutil.rmtree(folder, ignore_errors=True)
    return freed


def _size_of(file: Path) -> int:
    """Return the length of a file; 0 where another process has thrown it away."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _name_in(file: Path) -> str:
    try:
        return str(json.loads(file.read_text("utf-8"))["encoder"])
    except (OSError, ValueError, KeyError, TypeError):
        return "unknown"
