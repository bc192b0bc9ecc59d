"""An encoder that stores its vectors on disk, and looks there first."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.display import progress_bar
from embedtopics.encoders._base import MODELS, check_texts, default_folder
from embedtopics.encoders._contract import (
    BaseEncoder,
    WrappedEncoder,
    arguments_of,
    forwarded,
)
from embedtopics.encoders._foreign import as_encoder
from embedtopics.encoders._prepared import read_about
from embedtopics.encoders.results import Encoding
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array

FORMAT = "vectors-1"
"""Subfolder of the vectors. The number is that of the format: later formats are left alone."""

TEXTS_A_WRITE = 2048
"""Number of texts encoded between two writes: the most that is lost when a process is killed."""

MOST_BYTES = 20e9
"""Size above which the least recently used vectors are deleted."""

KEYS_A_QUERY = 5_000
"""SQLite takes at most 32,766 values in a query."""

LOCK_SECONDS = 60.0
"""Time that a process waits for another one to finish writing."""

N_COUNTS = 3
"""Numbers stored before each vector: the text's tokens, those read, those unknown."""

_KEY_BYTES, _DIGEST_BYTES = 16, 8

_logger = logging.getLogger("embedtopics")

Keys = npt.NDArray[np.uint64]


def keys_of(texts: Sequence[str]) -> Keys:
    """Return a 128-bit hash of each text, shape (n_texts, 2)."""
    digests = (
        blake2b(t.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest() for t in texts
    )
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).reshape(-1, 2)


@dataclass(frozen=True)
class VectorStore:
    """The vectors of one encoder in an SQLite file: a row per text, with a checksum.

    SQLite lets several processes write at the same time, and survives a process that is killed.
    """

    path: Path

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=LOCK_SECONDS)) as connection, connection:
            # A view in place of a table may be endless.
            foreign = "SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index')"
            if connection.execute(foreign).fetchone() != (0,):
                raise sqlite3.DatabaseError("it holds views or triggers")
            yield connection

    def read(self, keys: Keys) -> Iterator[tuple[int, Int64Array, FloatArray]]:
        """Yield the position among `keys`, the counts and the vector of each stored text."""
        if not self.path.is_file():
            return
        position_of = {key: position for position, key in enumerate(_as_bytes(keys))}
        try:
            for key, content in self._select(list(position_of)):
                values = content[_DIGEST_BYTES:]
                if _checked(key, values) != content:
                    _logger.warning("A vector in %s is damaged; it is made again.", self.path)
                    continue
                counts = np.frombuffer(values, "<i8", count=N_COUNTS)
                yield position_of[key], counts, np.frombuffer(values, "<f4", offset=8 * N_COUNTS)
            os.utime(self.path)
        except (OSError, sqlite3.OperationalError) as error:
            _logger.warning("The cached vectors in %s cannot be read (%s).", self.path, error)
        except sqlite3.DatabaseError as error:
            _logger.warning("%s is damaged (%s); its vectors are made again.", self.path, error)
            with suppress(OSError):
                self.path.unlink()

    def _select(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        with self._open() as connection:
            for begin in range(0, len(keys), KEYS_A_QUERY):
                some = keys[begin : begin + KEYS_A_QUERY]
                marks = ",".join("?" * len(some))
                query = f"SELECT key, content FROM vectors WHERE key IN ({marks})"
                query += " AND typeof(content) = 'blob'"
                yield from connection.execute(query, some)

    def write(self, name: str, keys: Keys, vectors: FloatArray, counts: Int64Array) -> None:
        """Store `vectors` (n, n_dimensions) and `counts` (n, 3) of an encoder under `keys`."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [
            (key, _checked(key, count.tobytes() + vector.tobytes()))
            for key, count, vector in zip(
                _as_bytes(keys), counts.astype("<i8"), vectors.astype("<f4"), strict=True
            )
        ]
        with self._open() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS about (encoder TEXT PRIMARY KEY)")
            connection.execute("INSERT OR IGNORE INTO about VALUES (?)", (name,))
            connection.execute(
                "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, content BLOB)"
            )
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def describe(self) -> tuple[str, int]:
        """Return the name of the encoder, and the number of texts."""
        try:
            with self._open() as connection:
                (name,) = connection.execute("SELECT encoder FROM about").fetchone()
                (n_texts,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
            return str(name), int(n_texts)
        except (sqlite3.Error, TypeError):
            return "unknown", 0


def _as_bytes(keys: Keys) -> list[bytes]:
    content = np.ascontiguousarray(keys, dtype="<u8").tobytes()
    return [content[at : at + _KEY_BYTES] for at in range(0, len(content), _KEY_BYTES)]


def _checked(key: bytes, values: bytes) -> bytes:
    """Return values after a checksum of key and values."""
    return blake2b(key + values, digest_size=_DIGEST_BYTES).digest() + values


def _trim(root: Path, most_bytes: float) -> None:
    """Delete the least recently used files of vectors until the cache is small enough."""
    files = []
    for path in (root / FORMAT).glob("*.sqlite"):
        with suppress(OSError):  # another process deleted it
            status = path.stat()
            files.append((status.st_mtime_ns, path, status.st_size))
    excess = sum(size for _, _, size in files) - most_bytes
    for _, path, size in sorted(files):
        if excess <= 0:
            break
        path.unlink(missing_ok=True)
        excess -= size


def _cached_too(name: str) -> Any:
    """Return a method that caches the encoder which the wrapped encoder's method returns."""

    def method(self: CachedEncoder, *arguments: Any) -> CachedEncoder:
        encoder = getattr(self._encoder, name)(*arguments)
        if encoder is self._encoder:
            return self
        return CachedEncoder(encoder, folder=self._arguments["folder"])

    method.__doc__ = getattr(BaseEncoder, name).__doc__
    return method


class CachedEncoder(WrappedEncoder):
    """Cache the vectors of an encoder on disk, so that no text is encoded twice.

    Vectors are stored under the encoder's fingerprint (its weights, and all settings that a vector
    depends on) and a hash of the text. A second run on the same corpus encodes nothing, and a run
    with additional texts encodes only these. If the disk is full or read-only, encoding continues
    without the cache, after one warning.

    Parameters
    ----------
    encoder : SentenceEncoder or other encoder with a fingerprint
    folder : path, optional
        By default ``EMBEDTOPICS_CACHE``, or the system's folder for caches.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     encoder = et.encoders.CachedEncoder(et.SentenceEncoder(), folder=folder)
    ...     first = encoder.encode_with_report(["Cats purr."])
    ...     again = encoder.encode_with_report(["Cats purr.", "Dogs bark."])
    >>> first.n_cached, again.n_cached
    (0, 1)
    """

    dimensions = forwarded("dimensions")
    fingerprint = forwarded("fingerprint")
    space = forwarded("space")
    settings = forwarded("settings")
    tokenizer_json = forwarded("tokenizer_json")
    transformer = forwarded("transformer")
    static = forwarded("static")
    learns = forwarded("learns")
    uncached = forwarded("uncached")
    count_tokens = forwarded("count_tokens")
    windows = forwarded("windows")
    reading = _cached_too("reading")
    reading_to_ends = _cached_too("reading_to_ends")
    reading_as = _cached_too("reading_as")
    exact = _cached_too("exact")

    def __init__(self, encoder: Any, *, folder: str | os.PathLike[str] | None = None) -> None:
        self._arguments = arguments_of(locals())
        self._encoder = as_encoder(encoder)
        fingerprint = self._encoder.fingerprint if self._encoder.is_fitted else None
        if fingerprint is None:
            raise InputError("encoder", "a fitted encoder with a `fingerprint`", encoder)
        self.folder = default_folder() if folder is None else Path(folder)
        self._store = VectorStore(self.folder / FORMAT / f"{fingerprint[:32]}-float32.sqlite")
        self._writes = True

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector per text, and how much of each text was read."""
        texts = check_texts(texts)
        if not texts:
            return self._encoder.encode_with_report(texts)
        keys = keys_of(texts)
        # Sorted by key, so that batches do not depend on the order of the texts.
        _, first, document = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        vectors: FloatArray = np.empty((len(texts), 0), dtype=np.float32)
        counts = np.zeros((len(texts), N_COUNTS), dtype=np.int64)
        is_cached = np.zeros(len(texts), dtype=np.bool_)
        for position, numbers, vector in self._store.read(keys[first]):
            if vectors.shape[1] != len(vector):
                vectors = np.empty((len(texts), len(vector)), dtype=np.float32)
            row = first[position]
            vectors[row], counts[row], is_cached[row] = vector, numbers, True
        missing = first[~is_cached[first]]
        with progress_bar(
            total=len(missing), unit="text", description="Encoding", show=show_progress
        ) as bar:
            for begin in range(0, len(missing), TEXTS_A_WRITE):
                rows = missing[begin : begin + TEXTS_A_WRITE]
                report = self._encoder.encode_with_report(
                    [texts[row] for row in rows.tolist()], show_progress=False
                )
                if hasattr(report.embeddings, "toarray"):
                    remedy = "use it without a cache, or set n_components"
                    raise InputError("encoder", "one of dense vectors", self._encoder, remedy)
                if vectors.shape[1] != report.embeddings.shape[1]:
                    vectors = np.empty((len(texts), report.embeddings.shape[1]), np.float32)
                vectors[rows] = report.embeddings
                counts[rows] = np.column_stack([report.n_tokens, report.n_seen, report.n_unknown])
                self._write(keys[rows], vectors[rows], counts[rows])
                bar.update(len(rows))
        source = first[document]
        repeats = np.flatnonzero(source != np.arange(len(texts)))
        vectors[repeats] = vectors[source[repeats]]
        n_tokens, n_seen, n_unknown = np.ascontiguousarray(counts[source].T)
        return Encoding(vectors, n_tokens, n_seen, n_unknown, int(is_cached[source].sum()))

    def _write(self, keys: Keys, vectors: FloatArray, counts: Int64Array) -> None:
        if not self._writes:
            return
        try:
            self._store.write(self.name, keys, vectors, counts)
            _trim(self.folder, MOST_BYTES)
        except (OSError, sqlite3.Error) as error:
            self._writes = False
            _logger.warning(
                "Vectors cannot be stored in %s (%s); encoding continues without the cache.",
                self.folder, error,
            )  # fmt: skip


@dataclass(frozen=True)
class CacheEntry:
    """What is stored for one encoder: its vectors, or a prepared model."""

    kind: str
    encoder: str
    variant: str
    n_texts: int
    n_bytes: int
    path: Path


def cache_entries() -> list[CacheEntry]:
    """Return the contents of the cache folder, the largest first."""
    root, entries = default_folder(), []
    for path in (root / FORMAT).glob("*.sqlite"):
        name, n_texts = VectorStore(path).describe()
        variant = path.stem.partition("-")[2]
        entries.append(CacheEntry("vectors", name, variant, n_texts, path.stat().st_size, path))
    for folder in (root / MODELS).glob("[!.]*/"):
        try:
            name = read_about(folder).encoder
        except (OSError, ValueError):
            name = "unknown"
        variant = folder.name.partition("-")[2]
        entries.append(CacheEntry("model", name, variant, 0, _size_of(folder), folder))
    return sorted(entries, key=lambda entry: (-entry.n_bytes, entry.path))


def clear_cache() -> int:
    """Delete the contents of the cache folder, and nothing else in it; return the bytes freed."""
    n_bytes = 0
    for folder in (default_folder() / FORMAT, default_folder() / MODELS):
        n_bytes += _size_of(folder)
        shutil.rmtree(folder, ignore_errors=True)
    return n_bytes


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
