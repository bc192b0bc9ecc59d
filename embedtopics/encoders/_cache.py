"""An encoder that keeps what it has encoded on disk, and looks there first."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.folders import open_regular
from embedtopics._utils.progress import progress_bar
from embedtopics.corpus._windows import Span
from embedtopics.corpus.results import Encoding
from embedtopics.encoders._base import check_texts
from embedtopics.encoders._contract import BaseEncoder, WrappedEncoder, arguments_of, as_encoder
from embedtopics.encoders._folders import MODELS, UNFINISHED, default_folder
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import FloatArray, Int64Array

if TYPE_CHECKING:
    from embedtopics.encoders.sentence._encoder import SentenceEncoder
    from embedtopics.encoders.static._encoder import StaticEncoder

# <cache folder>/vectors-1/<fingerprint>-float32/ holds encoder.json, with the encoder's name for
# people, and shards of some texts, <time>-<random>.shard, that never change once they are there.
# A shard is written beside its place and moved there when it is whole, so that a process that is
# killed loses the shard it was working on, and two processes may write at the same time: the worst
# that happens is that a text is kept twice. A damaged shard is named, thrown away, and made again.

FORMAT = "vectors-1"
"""Folder of this format; one of a later format is left alone."""

HEADER_BYTES = 512
"""Length of the header, padded with spaces: what follows is aligned."""

MOST_SMALL = 64
"""Shards that are small, from which on they are joined: each has to be opened in every search."""

SMALL_BYTES = 1_000_000

N_COUNTS = 3
"""Numbers kept for each text: its tokens, those read, those unknown."""

Keys = npt.NDArray[np.uint64]


class Kept(NamedTuple):
    """What is kept of some texts: `found` (n_texts,), `vectors`, `counts` (n_texts, 3)."""

    found: npt.NDArray[np.bool_]
    vectors: FloatArray
    counts: Int64Array


class _Shard(NamedTuple):
    """What the header of a shard says."""

    path: Path
    keys: Keys
    dimensions: int
    digest: str


def keys_of(texts: Sequence[str]) -> Keys:
    """Return a 128-bit hash of each text, shape (n_texts, 2)."""
    digests = (blake2b(t.encode("utf-8", "surrogatepass"), digest_size=16).digest() for t in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).reshape(-1, 2)


def find(folder: Path, keys: Keys, rows: Int64Array) -> Kept:
    """Look up texts of keys (n_texts, 2), at rows (n_distinct,) whose keys ascend."""
    found = np.zeros(len(keys), dtype=np.bool_)
    counts = np.zeros((len(keys), N_COUNTS), dtype=np.int64)
    vectors: FloatArray = np.zeros((len(keys), 0), dtype=np.float32)
    ascending = keys[rows]
    for shard in _readable(folder):
        if found[rows].all():
            break
        at = np.minimum(np.searchsorted(ascending[:, 0], shard.keys[:, 0]), len(rows) - 1)
        is_wanted = (ascending[at] == shard.keys).all(axis=1) & ~found[rows[at]]
        places = np.flatnonzero(is_wanted)
        wanted = rows[at[places]]
        if not len(wanted):
            continue
        try:
            of_shard, counts_of_shard = _read_vectors(shard)
        except OSError as error:
            _pass_over(shard.path, error)
            continue
        if not vectors.shape[1]:
            vectors = np.zeros((len(keys), shard.dimensions), dtype=np.float32)
        vectors[wanted], counts[wanted] = of_shard[places], counts_of_shard[places]
        found[wanted] = True
        with suppress(OSError):
            os.utime(shard.path)
    return Kept(found, vectors, counts)


def append(folder: Path, name: str, keys: Keys, vectors: FloatArray, counts: Int64Array) -> Path:
    """Write a shard: `keys` (n, 2), `vectors` (n, n_dimensions), `counts` (n, 3)."""
    folder.mkdir(parents=True, exist_ok=True)
    about = folder / "encoder.json"
    if not about.exists():
        _write(about, [json.dumps({"encoder": name}).encode()])
    parts = [
        np.ascontiguousarray(keys, dtype="<u8").tobytes(),
        np.ascontiguousarray(counts, dtype="<i8").tobytes(),
        np.ascontiguousarray(vectors, dtype="<f4").tobytes(),
    ]
    header = {
        "n": len(keys), "dimensions": vectors.shape[1], "dtype": "float32",
        "keys": _digest(parts[:1]), "rest": _digest(parts[1:]),
    }  # fmt: skip
    path = folder / f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.shard"
    _write(path, [json.dumps(header).encode().ljust(HEADER_BYTES), *parts])
    return path


def join_small(folder: Path, name: str) -> None:
    """Join small shards into one where there are many; it is there before they go."""
    paths = [p for p in sorted(folder.glob("*.shard")) if 0 < _size_of(p) < SMALL_BYTES]
    if len(paths) < MOST_SMALL:
        return
    parts, joined = [], []
    for path in paths:
        with suppress(OSError):  # the next search finds out
            with open_regular(path) as file:
                shard = _read_keys(path, file)
            parts.append((shard.keys, *_read_vectors(shard)))
            joined.append(path)
    if len(parts) < 2:
        return
    keys, vectors, counts = (np.concatenate([part[at] for part in parts]) for at in range(3))
    append(folder, name, keys, vectors, counts)
    for path in joined:
        path.unlink(missing_ok=True)


def trim(root: Path, most_bytes: float) -> None:
    """Throw the least recently used shards away until the cache is small enough."""
    found = []
    for path in (root / FORMAT).glob("*/*.shard"):
        with suppress(OSError):  # another process threw it away
            found.append((path.stat().st_mtime_ns, path, path.stat().st_size))
    too_much = sum(size for _, _, size in found) - most_bytes
    for _, path, size in sorted(found):
        if too_much <= 0:
            break
        path.unlink(missing_ok=True)
        too_much -= size


def _readable(folder: Path) -> Iterator[_Shard]:
    """Yield the shards whose keys are as they were written, the newest first."""
    for path in sorted(folder.glob("*.shard"), reverse=True):
        try:
            with open_regular(path) as file:
                yield _read_keys(path, file)
        except OSError as error:
            _pass_over(path, error)


def _read_keys(path: Path, file: BinaryIO) -> _Shard:
    try:
        header: dict[str, Any] = json.loads(file.read(HEADER_BYTES))
        n, dimensions = int(header["n"]), int(header["dimensions"])
        expected, digest = str(header["keys"]), str(header["rest"])
        known = header["dtype"] == "float32"
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError("its header cannot be read") from error
    data = file.read(16 * n)
    if not known or len(data) != 16 * n or _digest([data]) != expected:
        raise CorruptFileError("its keys are not those that were written")
    keys = np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(n, 2)
    return _Shard(path, keys, dimensions, digest)


def _read_vectors(shard: _Shard) -> tuple[FloatArray, Int64Array]:
    n = len(shard.keys)
    with open_regular(shard.path) as file:
        file.seek(HEADER_BYTES + 16 * n)
        data = file.read()
    of_counts = 8 * N_COUNTS * n
    whole = of_counts + 4 * n * shard.dimensions
    if len(data) != whole or _digest([data]) != shard.digest:
        raise CorruptFileError("its vectors are not those that were written")
    counts = np.frombuffer(data, dtype="<i8", count=N_COUNTS * n).reshape(n, N_COUNTS)
    vectors = np.frombuffer(data, dtype="<f4", offset=of_counts).reshape(n, shard.dimensions)
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
    """Go on without a shard, and throw it away where it is damaged, not if unreadable just now."""
    if isinstance(error, FileNotFoundError):  # another process threw it away
        return
    if not isinstance(error, CorruptFileError):
        _logger.warning("The cached vectors in %s cannot be read (%s).", path, error)
        return
    _logger.warning("The cached vectors in %s are damaged (%s); they are made again.", path, error)
    with suppress(OSError):
        path.unlink(missing_ok=True)


TEXTS_A_SHARD = 2048
"""Texts that are encoded between two writes: what is lost at most when a process is killed."""

MOST_BYTES = 20e9
"""Size from which on the least recently used vectors are thrown away."""

_logger = logging.getLogger("embedtopics")


class CachedEncoder(WrappedEncoder):
    """Looks texts up on disk, and encodes only those that are not there.

    Vectors are stored under the encoder's fingerprint (its weights, and all settings that a vector
    depends on) and a hash of the text. So a second run on the same corpus encodes nothing, and
    a run with some more texts encodes only these. Where the disk is full or read-only, encoding
    goes on without the cache, after one warning.

    Parameters
    ----------
    encoder : SentenceEncoder or other encoder with a fingerprint
    folder : path, optional
        By default ``EMBEDTOPICS_CACHE``, or the system's folder for caches.

    Raises
    ------
    InputError
        If the encoder has no fingerprint.

    Examples
    --------
    >>> encoder = CachedEncoder(SentenceEncoder())  # doctest: +SKIP
    >>> encoder.encode(["a sentence"]).shape  # doctest: +SKIP
    (1, 384)
    """

    def __init__(self, encoder: Any, *, folder: str | os.PathLike[str] | None = None) -> None:
        self._arguments = arguments_of(locals())
        self._encoder = as_encoder(encoder)
        fingerprint = self._encoder.fingerprint if self._encoder.is_fitted else None
        if fingerprint is None:
            raise InputError("encoder", "a fitted encoder with a `fingerprint`", encoder)
        self._folder = default_folder() if folder is None else Path(folder)
        self._own = self._folder / FORMAT / f"{fingerprint[:32]}-float32"
        self._writes = True

    def __repr__(self) -> str:
        return f"CachedEncoder({self._encoder!r})"

    @property
    def dimensions(self) -> int | None:
        """Length of a vector."""
        return self._encoder.dimensions

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint of the wrapped encoder."""
        return self._encoder.fingerprint

    @property
    def space(self) -> str | None:
        """Space of the wrapped encoder."""
        return self._encoder.space

    @property
    def settings(self) -> dict[str, Any] | None:
        """Settings of the wrapped encoder; the cache is not part of them."""
        return self._encoder.settings

    @property
    def tokenizer_json(self) -> str | None:
        """Tokenizer of the wrapped encoder."""
        return self._encoder.tokenizer_json

    @property
    def transformer(self) -> SentenceEncoder | None:
        """The wrapped encoder where it runs a transformer."""
        return self._encoder.transformer

    @property
    def static(self) -> StaticEncoder | None:
        """The wrapped encoder where it looks up a table of tokens."""
        return self._encoder.static

    @property
    def learns(self) -> bool:
        """Whether the wrapped encoder has learned from texts."""
        return self._encoder.learns

    @property
    def folder(self) -> Path:
        """Folder of the cache."""
        return self._folder

    @property
    def uncached(self) -> BaseEncoder:
        """The wrapped encoder."""
        return self._encoder.uncached

    def count_tokens(self, texts: Sequence[str]) -> Encoding | None:
        """Return how much of each text the wrapped encoder would read."""
        return self._encoder.count_tokens(texts)

    def windows(self, texts: Sequence[str]) -> list[list[Span]] | None:
        """Return the spans that the wrapped encoder can read at once."""
        return self._encoder.windows(texts)

    def reading(self, kind: str) -> CachedEncoder:
        """Return the encoder with the prompt for a "query" or a "document", cached as well."""
        return self._caching(self._encoder.reading(kind))

    def reading_to_ends(self, texts: Sequence[str]) -> CachedEncoder:
        """Return an encoder that reads whole texts where a sample shows the need for it."""
        return self._caching(self._encoder.reading_to_ends(texts))

    def reading_as(self, settings: Mapping[str, Any]) -> CachedEncoder:
        """Return an encoder that reads long texts as a recorded one does, unless told otherwise."""
        return self._caching(self._encoder.reading_as(settings))

    def exact(self) -> CachedEncoder:
        """Return an encoder that computes in float32, unless its precision was set explicitly."""
        return self._caching(self._encoder.exact())

    def _caching(self, encoder: BaseEncoder) -> CachedEncoder:
        if encoder is self._encoder:
            return self
        return CachedEncoder(encoder, folder=self._arguments["folder"])

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector a text, and how much of each text was read.

        Returns
        -------
        Encoding
        """
        texts = check_texts(texts)
        keys = keys_of(texts)
        # By key, so that it does not depend on the order of the texts which are encoded together.
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        is_new = np.ones(len(keys), dtype=np.bool_)
        is_new[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
        first = order[is_new]
        found, vectors, counts = find(self._own, keys, first)
        missing = first[~found[first]]
        with progress_bar(
            total=len(missing), unit="text", description="Encoding", show=show_progress
        ) as bar:
            for begin in range(0, len(missing), TEXTS_A_SHARD):
                rows = missing[begin : begin + TEXTS_A_SHARD]
                report = self._encoder.encode_with_report(
                    [texts[row] for row in rows.tolist()], show_progress=False
                )
                if hasattr(report.embeddings, "toarray"):
                    raise InputError(
                        f"a cache keeps arrays, and {self._encoder!r} makes sparse vectors; use it "
                        "without a cache, for it is as fast, or set n_components"
                    )
                if vectors.shape[1] != report.embeddings.shape[1]:
                    vectors = np.zeros((len(texts), report.embeddings.shape[1]), np.float32)
                vectors[rows] = report.embeddings
                counts[rows] = np.column_stack([report.n_tokens, report.n_seen, report.n_unknown])
                self._write(keys[rows], vectors[rows], counts[rows])
                bar.update(len(rows))
        same = np.empty_like(order)
        same[order] = first[np.cumsum(is_new) - 1]
        repeats = order[~is_new]
        vectors[repeats], counts[repeats] = vectors[same[repeats]], counts[same[repeats]]
        if not len(texts):
            vectors = np.asarray(self._encoder.encode(texts), dtype=np.float32)
        n_tokens, n_seen, n_unknown = (np.ascontiguousarray(column) for column in counts.T)
        return Encoding(vectors, n_tokens, n_seen, n_unknown, int(found[same].sum()))

    def _write(self, keys: npt.NDArray[np.uint64], vectors: FloatArray, counts: Int64Array) -> None:
        if not self._writes:
            return
        try:
            name = str(self._encoder.name)
            append(self._own, name, keys, vectors, counts)
            if len(keys) < TEXTS_A_SHARD:
                join_small(self._own, name)
            trim(self._folder, MOST_BYTES)
        except OSError as error:
            self._writes = False
            _logger.warning(
                "Vectors cannot be kept in %s (%s); the work goes on without.", self._folder, error
            )


NAMES = "names-1"
"""Folder of what language models answered when they were asked for names of topics."""


@dataclass(frozen=True)
class CacheEntry:
    """What is kept for one encoder, or of the answers of language models."""

    kind: str
    encoder: str
    variant: str
    n_texts: int
    n_bytes: int
    folder: Path


def cache_entries() -> list[CacheEntry]:
    """Return what the cache folder holds, the largest first."""
    root, found = default_folder(), []
    for kind, name, about in (("vectors", FORMAT, "encoder.json"), ("model", MODELS, "about.json")):
        for folder in sorted((root / name).glob("[!.]*/")):
            files = [path for path in folder.rglob("*") if path.is_file()]
            shards = [path for path in files if path.suffix == ".shard"]
            n_texts = sum(int(_read_entry(path, "n", 0, HEADER_BYTES)) for path in shards)
            n_bytes = sum(map(_size_of, files))
            encoder = str(_read_entry(folder / about, "encoder", "unknown"))
            variant = folder.name.partition("-")[2]
            found.append(CacheEntry(kind, encoder, variant, n_texts, n_bytes, folder))
    answers = sorted((root / NAMES).glob("*.json"))
    if answers:
        n_bytes, of = sum(map(_size_of, answers)), "language models"
        found.append(CacheEntry("names", of, "", len(answers), n_bytes, root / NAMES))
    return sorted(found, key=lambda entry: (-entry.n_bytes, entry.folder))


def clear_cache() -> int:
    """Throw away what the cache folder holds; what is none of it stays."""
    freed = 0
    for entry in cache_entries():
        shutil.rmtree(entry.folder)
        freed += entry.n_bytes
    for folder in (default_folder() / MODELS).glob(f"{UNFINISHED}*/"):
        freed += sum(_size_of(path) for path in folder.iterdir())
        shutil.rmtree(folder, ignore_errors=True)
    return freed


def _size_of(file: Path) -> int:
    """Return the length of a file; 0 where another process has thrown it away."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _read_entry(file: Path, key: str, default: Any, n_bytes: int = -1) -> Any:
    """Return an entry of the JSON that a file begins with; a default where it cannot be read."""
    try:
        with file.open("rb") as opened:
            return json.loads(opened.read(n_bytes))[key]
    except (OSError, ValueError, KeyError, TypeError):
        return default
