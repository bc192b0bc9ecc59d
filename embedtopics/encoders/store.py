"""Vectors on disk, by the text that they belong to.

::

    <cache folder>/vectors-1/<fingerprint>-<dtype>/     one encoder
        encoder.json                                    its name, for people
        <time>-<random>.shard                           some texts; never changed once it is there

A shard is written beside its place and moved there when it is whole, so that a process that is
killed loses the shard it was working on, and two processes may write at the same time: the worst
that happens is that a text is kept twice. Each shard has checksums of its own; one that is damaged
is named, thrown away, and made again.
"""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from embedtopics.errors import CorruptFileError
from embedtopics.protocols import FloatArray, Int64Array

__all__ = [
    "Kept", "Store", "append", "default_folder", "find", "join_small", "keys_of", "n_texts_in",
    "shards", "trim",
]  # fmt: skip

FORMAT = "vectors-1"
"""Folder of this format; one of a later format is left alone."""

HEADER_BYTES = 512
"""Length of the header, padded with spaces: what follows is aligned."""

MOST_SMALL = 64
"""Shards that are small, from which on they are joined: each has to be opened in every search."""

SMALL_BYTES = 1_000_000

N_COUNTS = 3
"""Numbers kept for each text: its tokens, those read, those unknown."""

_logger = logging.getLogger("embedtopics")

Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Store:
    """Where the vectors of one encoder lie.

    Parameters
    ----------
    folder : Path
    dtype : {"float32", "float16"}
    """

    folder: Path
    dtype: str = "float32"

    @classmethod
    def of(cls, root: Path, fingerprint: str, dtype: str) -> Store:
        """Return the store of an encoder in a cache folder."""
        return cls(root / FORMAT / f"{fingerprint[:32]}-{dtype}", dtype)


@dataclass(frozen=True, eq=False)
class Kept:
    """What a store knows of some texts.

    Parameters
    ----------
    found : bool ndarray of shape (n_texts,)
    vectors : float32 ndarray of shape (n_texts, n_dimensions)
        Zero where nothing was found; without columns where nothing was found at all.
    counts : int64 ndarray of shape (n_texts, 3)
        Tokens of each text, those read, those unknown.
    """

    found: npt.NDArray[np.bool_]
    vectors: FloatArray
    counts: Int64Array


@dataclass(frozen=True, eq=False)
class _Shard:
    path: Path
    keys: Keys
    dimensions: int
    dtype: str
    digest: str


def default_folder() -> Path:
    """Return the folder of the cache: ``EMBEDTOPICS_CACHE``, or the system's place for such."""
    named = os.environ.get("EMBEDTOPICS_CACHE")
    if named:
        return Path(named).expanduser()
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "embedtopics"
    if os.uname().sysname == "Darwin":
        return Path.home() / "Library/Caches/embedtopics"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "embedtopics"


def keys_of(texts: Sequence[str]) -> Keys:
    """Return a 128-bit hash of each text, shape (n_texts, 2)."""
    digests = (blake2b(t.encode("utf-8", "surrogatepass"), digest_size=16).digest() for t in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).reshape(-1, 2)


def find(store: Store, keys: Keys) -> Kept:
    """Look texts up.

    Parameters
    ----------
    store : Store
    keys : uint64 ndarray of shape (n_texts, 2)

    Returns
    -------
    Kept
    """
    found = np.zeros(len(keys), dtype=np.bool_)
    counts = np.zeros((len(keys), N_COUNTS), dtype=np.int64)
    vectors: FloatArray = np.zeros((len(keys), 0), dtype=np.float32)
    order = np.argsort(keys[:, 0], kind="stable")
    ascending = keys[order, 0]
    for shard in _readable(store):
        if found.all():
            break
        begin = np.searchsorted(ascending, shard.keys[:, 0], side="left")
        end = np.searchsorted(ascending, shard.keys[:, 0], side="right")
        asked = np.flatnonzero(end > begin)
        # A text may be asked for more than once.
        repeated = np.repeat(asked, (end - begin)[asked])
        within = np.arange(len(repeated)) - np.repeat(
            np.cumsum((end - begin)[asked]) - (end - begin)[asked], (end - begin)[asked]
        )
        rows = order[begin[repeated] + within]
        new = (keys[rows, 1] == shard.keys[repeated, 1]) & ~found[rows]
        rows, places = rows[new], repeated[new]
        if not len(rows):
            continue
        try:
            of_shard, counts_of_shard = _read_vectors(shard)
        except OSError as error:
            _pass_over(shard.path, error)
            continue
        if not vectors.shape[1]:
            vectors = np.zeros((len(keys), shard.dimensions), dtype=np.float32)
        vectors[rows], counts[rows], found[rows] = of_shard[places], counts_of_shard[places], True
        _touch(shard.path)
    return Kept(found, vectors, counts)


def append(store: Store, name: str, keys: Keys, vectors: FloatArray, counts: Int64Array) -> Path:
    """Write a shard.

    Parameters
    ----------
    store : Store
    name : str
        Of the encoder, for people.
    keys : uint64 ndarray of shape (n_texts, 2)
    vectors : float32 ndarray of shape (n_texts, n_dimensions)
    counts : int ndarray of shape (n_texts, 3)

    Returns
    -------
    Path

    Raises
    ------
    OSError
        Where it cannot be written.
    """
    store.folder.mkdir(parents=True, exist_ok=True)
    about = store.folder / "encoder.json"
    if not about.exists():
        _write(about, [json.dumps({"encoder": name}).encode()])
    parts = [
        np.ascontiguousarray(keys, dtype="<u8").tobytes(),
        np.ascontiguousarray(counts, dtype="<i8").tobytes(),
        np.ascontiguousarray(vectors, dtype=np.dtype(store.dtype).newbyteorder("<")).tobytes(),
    ]
    header = {
        "n": len(keys), "dimensions": vectors.shape[1], "dtype": store.dtype,
        "keys": _digest(parts[:1]), "rest": _digest(parts[1:]),
    }  # fmt: skip
    path = store.folder / f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.shard"
    _write(path, [json.dumps(header).encode().ljust(HEADER_BYTES), *parts])
    return path


def join_small(store: Store, name: str) -> int:
    """Join small shards into one where there are many; they come from many small requests.

    The joined shard is there before the small ones go, so that nothing is lost in between.

    Returns
    -------
    int
        Shards that were joined.
    """
    paths = [path for path in sorted(store.folder.glob("*.shard")) if _is_small(path)]
    if len(paths) < MOST_SMALL:
        return 0
    parts, joined = [], []
    for path in paths:
        try:
            with path.open("rb") as file:
                shard = _read_keys(path, file, store.dtype)
            parts.append((shard.keys, *_read_vectors(shard)))
            joined.append(path)
        except (CorruptFileError, OSError):  # the next search finds out
            continue
    if len(parts) < 2:
        return 0
    keys, vectors, counts = (np.concatenate([part[at] for part in parts]) for at in range(3))
    append(store, name, keys, vectors, counts)
    for path in joined:
        path.unlink(missing_ok=True)
    return len(joined)


def _is_small(path: Path) -> bool:
    try:
        return path.stat().st_size < SMALL_BYTES
    except OSError:
        return False


def shards(root: Path) -> list[Path]:
    """Return all shards of all encoders, the least recently used first."""
    found = []
    for path in (root / FORMAT).glob("*/*.shard"):
        try:
            found.append((path.stat().st_mtime_ns, path))
        except OSError:  # another process threw it away
            continue
    return [path for _, path in sorted(found)]


def trim(root: Path, most_bytes: float) -> int:
    """Throw the least recently used shards away until the cache is small enough.

    Returns
    -------
    int
        Shards thrown away.
    """
    sizes = {}
    for path in shards(root):
        try:
            sizes[path] = path.stat().st_size
        except OSError:
            continue
    too_much, n_gone = sum(sizes.values()) - most_bytes, 0
    for path, size in sizes.items():
        if too_much <= 0:
            break
        path.unlink(missing_ok=True)
        too_much -= size
        n_gone += 1
    return n_gone


def n_texts_in(path: Path) -> int:
    """Return how many texts a shard says it holds; 0 where it cannot be read."""
    try:
        with path.open("rb") as file:
            return int(json.loads(file.read(HEADER_BYTES))["n"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _readable(store: Store) -> Iterator[_Shard]:
    """Yield the shards whose keys are as they were written, the newest first."""
    for path in sorted(store.folder.glob("*.shard"), reverse=True):
        try:
            with path.open("rb") as file:
                yield _read_keys(path, file, store.dtype)
        except OSError as error:
            _pass_over(path, error)


def _read_keys(path: Path, file: BinaryIO, dtype: str) -> _Shard:
    try:
        header: dict[str, Any] = json.loads(file.read(HEADER_BYTES))
        n, dimensions = int(header["n"]), int(header["dimensions"])
        expected, digest = str(header["keys"]), str(header["rest"])
        known = header["dtype"] == dtype
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError("its header cannot be read") from error
    data = file.read(16 * n)
    if not known or len(data) != 16 * n or _digest([data]) != expected:
        raise CorruptFileError("its keys are not those that were written")
    keys = np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(n, 2)
    return _Shard(path, keys, dimensions, dtype, digest)


def _read_vectors(shard: _Shard) -> tuple[FloatArray, Int64Array]:
    n, kind = len(shard.keys), np.dtype(shard.dtype).newbyteorder("<")
    with shard.path.open("rb") as file:
        file.seek(HEADER_BYTES + 16 * n)
        data = file.read()
    of_counts = 8 * N_COUNTS * n
    whole = of_counts + kind.itemsize * n * shard.dimensions
    if len(data) != whole or _digest([data]) != shard.digest:
        raise CorruptFileError("its vectors are not those that were written")
    counts = np.frombuffer(data, dtype="<i8", count=N_COUNTS * n).reshape(n, N_COUNTS)
    vectors = np.frombuffer(data, dtype=kind, offset=of_counts).reshape(n, shard.dimensions)
    return vectors.astype(np.float32), counts.astype(np.int64)


def _digest(parts: Sequence[bytes]) -> str:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _write(path: Path, parts: Sequence[bytes]) -> None:
    """Write a file beside its place, and move it there when all of it is on the disk."""
    fresh = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with fresh.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _pass_over(path: Path, error: OSError) -> None:
    """Go on without a shard, and throw it away where it is damaged.

    One that cannot be read now, for want of rights or open files, may be whole.
    """
    if isinstance(error, FileNotFoundError):  # another process threw it away
        return
    if not isinstance(error, CorruptFileError):
        _logger.warning("The cached vectors in %s cannot be read (%s).", path, error)
        return
    _logger.warning("The cached vectors in %s are damaged (%s); they are made again.", path, error)
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:
        return
