"""An encoder that keeps what it has encoded on disk, and looks there first."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._progress import progress_bar
from embedtopics.encoders.store import (
    Store,
    append,
    default_folder,
    find,
    join_small,
    keys_of,
    trim,
)
from embedtopics.encoders.tokenizing import check_texts
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results import Encoding

__all__ = ["CachedEncoder"]

TEXTS_A_SHARD = 2048
"""Texts that are encoded between two writes: what is lost at most when a process is killed."""

MOST_BYTES = 20e9
"""Size from which on the least recently used vectors are thrown away."""

_logger = logging.getLogger("embedtopics")


class CachedEncoder:
    """Looks texts up on disk, and encodes only what is not there.

    Vectors are kept by the encoder's fingerprint (its weights, and all settings that a vector
    depends on) and a hash of the text. So a second run on the same corpus encodes nothing, and
    one with some more texts only those. Where the disk is full or cannot be written, the work goes
    on without it, after one warning.

    Parameters
    ----------
    encoder : SentenceEncoder or object like it
        With ``encode_with_report(texts)``, a `fingerprint` and a `name`.
    folder : path, optional
        By default ``EMBEDTOPICS_CACHE``, or the system's folder for such files.
    dtype : {"float32", "float16"}
        How vectors are kept: half of the space, with three digits of each number.
    max_bytes : float
        Size of the whole cache, of all encoders, from which on the least recently used vectors
        are thrown away.

    Raises
    ------
    InputError
        If the encoder has no fingerprint, or a parameter is bad.

    Examples
    --------
    >>> encoder = CachedEncoder(SentenceEncoder())  # doctest: +SKIP
    >>> encoder.encode(["a sentence"]).shape  # doctest: +SKIP
    (1, 384)
    """

    def __init__(
        self,
        encoder: Any,
        *,
        folder: str | os.PathLike[str] | None = None,
        dtype: str = "float32",
        max_bytes: float = MOST_BYTES,
    ) -> None:
        fingerprint = getattr(encoder, "fingerprint", None)
        if not isinstance(fingerprint, str) or not hasattr(encoder, "encode_with_report"):
            raise InputError(
                "expected an encoder whose vectors can be told from another's, with a "
                f"`fingerprint` and `encode_with_report(texts)`; got {encoder!r}"
            )
        if dtype not in ("float32", "float16"):
            raise InputError(f'dtype must be "float32" or "float16"; got {dtype!r}')
        if not max_bytes > 0:
            raise InputError(f"max_bytes must be above 0; got {max_bytes!r}")
        self._encoder = encoder
        self._folder = default_folder() if folder is None else Path(folder)
        self._store = Store.of(self._folder, fingerprint, dtype)
        self._max_bytes = max_bytes
        self._writes = True

    def __repr__(self) -> str:
        return f"CachedEncoder({self._encoder!r})"

    def __getattr__(self, name: str) -> Any:
        """Return what the encoder itself says: its name, its settings, its dimensions."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._encoder, name)

    @property
    def folder(self) -> Path:
        """Folder of the cache."""
        return self._folder

    @property
    def uncached(self) -> Any:
        """The encoder itself."""
        return self._encoder

    def encode(self, texts: Sequence[str], *, show_progress: bool | None = None) -> FloatArray:
        """Return one vector a text; see `SentenceEncoder.encode`."""
        return self.encode_with_report(texts, show_progress=show_progress).embeddings

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
        kept = find(self._store, keys)
        vectors, counts = kept.vectors, kept.counts
        # By key, so that it does not depend on the order of the texts which are encoded together.
        missing = np.flatnonzero(~kept.found)
        missing = missing[np.lexsort((keys[missing, 1], keys[missing, 0]))]
        is_new = np.ones(len(missing), dtype=np.bool_)
        is_new[1:] = (keys[missing[1:]] != keys[missing[:-1]]).any(axis=1)
        first = missing[is_new]
        with progress_bar(
            total=len(first), unit="text", description="Encoding", show=show_progress
        ) as bar:
            for begin in range(0, len(first), TEXTS_A_SHARD):
                rows = first[begin : begin + TEXTS_A_SHARD]
                report = self._encoder.encode_with_report(
                    [texts[row] for row in rows.tolist()], show_progress=False
                )
                if vectors.shape[1] != report.embeddings.shape[1]:
                    vectors = np.zeros((len(texts), report.embeddings.shape[1]), np.float32)
                vectors[rows] = self._as_kept(report.embeddings)
                counts[rows] = np.column_stack([report.n_tokens, report.n_seen, report.n_unknown])
                self._write(keys[rows], vectors[rows], counts[rows])
                bar.update(len(rows))
        repeats = first[np.cumsum(is_new) - 1]
        vectors[missing], counts[missing] = vectors[repeats], counts[repeats]
        if not len(texts):
            vectors = np.asarray(self._encoder.encode(texts), dtype=np.float32)
        n_tokens, n_seen, n_unknown = (np.ascontiguousarray(column) for column in counts.T)
        return Encoding(vectors, n_tokens, n_seen, n_unknown, len(texts) - len(missing))

    def _as_kept(self, vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return vectors as they will be read: the first answer is that of all later ones."""
        if hasattr(vectors, "toarray"):
            raise InputError(
                f"a cache keeps arrays, and {self._encoder!r} makes sparse vectors; use it without "
                "a cache, for it is as fast, or set n_components"
            )
        return np.asarray(vectors, dtype=self._store.dtype)

    def _write(self, keys: npt.NDArray[np.uint64], vectors: FloatArray, counts: Int64Array) -> None:
        if not self._writes:
            return
        try:
            name = str(self._encoder.name)
            append(self._store, name, keys, vectors, counts)
            if len(keys) < TEXTS_A_SHARD:
                join_small(self._store, name)
            trim(self._folder, self._max_bytes)
        except OSError as error:
            self._writes = False
            _logger.warning(
                "Vectors cannot be kept in %s (%s); the work goes on without.", self._folder, error
            )
