"""An index as a search reads it: the newest version with its files open, and the encoder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from embedtopics._utils.machine import computed_once
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._registry import check_encoder, encoder_from_settings, resolve_encoder
from embedtopics.encoders.results import Encoding
from embedtopics.encoders.words._storage import load_words
from embedtopics.errors import CorruptFileError, InputError, Remedy
from embedtopics.neighbors._graph import unit_rows
from embedtopics.protocols import BoolArray, Float64Array, FloatArray, Int64Array
from embedtopics.retrieval._bm25 import (
    LEXICAL_FILES,
    LexicalSearcher,
    LexicalSegment,
    LexicalSettings,
    open_lexical,
)
from embedtopics.retrieval._records import check_settings
from embedtopics.retrieval.dense._exact import Nearest, merge_nearest
from embedtopics.retrieval.dense._segment import ABOUT, VECTORS, DenseSegment, open_dense
from embedtopics.retrieval.storage._catalog import CATALOG, ENCODER, damage
from embedtopics.retrieval.storage._collection import Collection
from embedtopics.retrieval.storage._segments import SegmentView, Snapshot

SUM = "sum.npy"
FILES = {SUM, ABOUT, VECTORS, *(f"lexical/{name}" for name in LEXICAL_FILES)}
"""Files of every segment that a search reads."""
N_STRINGS = 32
"""Random strings whose cosines show what chance gives."""
ATTEMPTS = 5
"""Maximum restarts of a search because another process removed a document of its answer."""

T = TypeVar("T")


class DocumentRemoved(Exception):
    """Another process has removed a document since it was found."""


class SegmentData(NamedTuple):
    """The open files of a segment, and the sum of its vectors, float64 (n_dimensions,)."""

    dense: DenseSegment
    lexical: LexicalSegment
    vector_sum: Float64Array


@dataclass(frozen=True, eq=False)
class IndexVersion:
    """An unchanging version of an index; `findable` marks passages with text, None for all."""

    snapshot: Snapshot
    data: tuple[SegmentData, ...]
    lexical: LexicalSearcher
    findable: tuple[BoolArray | None, ...]

    @computed_once
    def mean_vector(self) -> Float64Array:
        """Mean of the vectors of all findable passages; not of unit length."""
        total, n = np.zeros(self.n_dimensions), 0
        for segment, mask in zip(self.data, self.findable, strict=True):
            total += segment.vector_sum
            n += len(segment.dense)
            gone = np.flatnonzero(~mask) if mask is not None else np.empty(0, np.int64)
            total -= segment.dense.vectors[gone].sum(axis=0, dtype=np.float64)
            n -= len(gone)
        return total / max(n, 1)

    @property
    def words_only(self) -> bool:
        """Whether documents have no vectors."""
        return bool(self.snapshot.settings.get("words_only"))

    @property
    def segments(self) -> tuple[SegmentView, ...]:
        """Segments of the snapshot."""
        return self.snapshot.segments

    @property
    def dense(self) -> tuple[DenseSegment, ...]:
        """The dense index of each segment."""
        return tuple(segment.dense for segment in self.data)

    @property
    def n_dimensions(self) -> int:
        """Dimensions of the vectors."""
        return int(self.snapshot.settings["n_dimensions"])

    def documents_at(self, segments: Int64Array, rows: Int64Array) -> Int64Array:
        """Return the documents of passages, (n,)."""
        documents = np.empty(len(rows), dtype=np.int64)
        for number, view in enumerate(self.segments):
            positions = segments == number
            documents[positions] = view.documents[rows[positions]]
        return documents

    def vectors_at(self, segments: Int64Array, rows: Int64Array) -> FloatArray:
        """Return the vectors of passages, float32 (n, n_dimensions)."""
        vectors = np.empty((len(rows), self.n_dimensions), dtype=np.float32)
        for number in np.unique(segments).tolist():
            positions = np.flatnonzero(segments == number)
            stored = self.data[number].dense.vectors
            vectors[positions] = stored[rows[positions]]
        return vectors


class Allowed(NamedTuple):
    """The passages that a search may return: a mask for each segment, None for all; their count."""

    masks: tuple[BoolArray | None, ...]
    n: int


class IndexReader:
    """Gives threads the newest version of a collection, and its encoder."""

    def __init__(self, collection: Collection, encoder: BaseEncoder | None) -> None:
        self.collection = collection
        self.given_encoder = encoder
        self._encoder = encoder
        self._newest: IndexVersion | None = None
        self._chance: tuple[tuple[str, bool], float] | None = None
        self._lock = threading.RLock()

    @property
    def encoder(self) -> BaseEncoder:
        """The encoder of documents and queries, loaded at the first use."""
        with self._lock:
            if self._encoder is None:
                self._encoder = stored_encoder(self.collection)
            return self._encoder

    def chance(self, version: IndexVersion, is_encoded: bool) -> float:
        """Return the highest cosine that random strings have with any passage, at most 1.

        Where the caller gives vectors of queries, random directions replace the strings.
        """
        with self._lock:
            key = version.snapshot.stamp, is_encoded
            if self._chance is None or self._chance[0] != key:
                rng = np.random.default_rng(0)
                letters = rng.choice(list("abcdefghijklmnopqrstuvwxyz     "), (N_STRINGS, 40))
                strings = ["".join(row[: 5 + length]) for length, row in enumerate(letters)]
                if is_encoded:
                    encoder = self.encoder.uncached
                    vectors = encode_texts(encoder, strings, "query", show_progress=False)[0]
                else:
                    directions = rng.normal(size=(N_STRINGS, version.n_dimensions))
                    vectors = checked_vectors(directions, N_STRINGS, "vectors")
                near = nearest_passages(version, vectors, 1, allow(version, None)).similarities
                self._chance = key, float(np.clip(near.max(initial=0.0), 0.0, 1.0))
            return self._chance[1]

    def newest(self) -> IndexVersion:
        """Return the newest version, with its files open."""
        with self._lock:
            before = self._newest
            if before is not None and before.snapshot.stamp == self.collection.stamp():
                return before
            while True:
                snapshot = self.collection.snapshot()
                try:
                    self._newest = _open_version(snapshot, before, self.collection.is_checked)
                    return self._newest
                except OSError:  # damaged, or compacted by another process in the meantime
                    if self.collection.stamp() == snapshot.stamp:
                        raise

    def answer(self, question: Callable[[IndexVersion], T]) -> T:
        """Answer a question from the newest version, whose documents another process may remove."""
        for _ in range(ATTEMPTS):
            version = self.newest()
            try:
                return question(version)
            except DocumentRemoved:
                if self.collection.stamp() == version.snapshot.stamp:
                    raise damage(CATALOG, "a document of its passages is missing") from None
        raise InputError("Another process keeps removing the documents found; search again.")


def _open_version(
    snapshot: Snapshot, before: IndexVersion | None, is_checked: bool
) -> IndexVersion:
    """Open the segments of a version; reuse those that an earlier version opened."""
    check_settings(snapshot.settings)
    n_dimensions = int(snapshot.settings["n_dimensions"])
    # By content, not by name: another collection may have taken the place of the folder.
    opened: dict[str, SegmentData] = {}
    if before is not None:
        views = zip(before.segments, before.data, strict=True)
        opened = {view.content: data for view, data in views}

    data = tuple(
        opened.get(view.content) or _open_segment(view, n_dimensions, is_checked)
        for view in snapshot.segments
    )
    masks = [view.findable for view in snapshot.segments]
    findable = tuple(None if mask.all() else mask for mask in masks)

    settings = LexicalSettings.from_json(snapshot.settings["lexical"])
    lexical = LexicalSearcher.of(tuple(segment.lexical for segment in data), findable, settings)
    return IndexVersion(snapshot, data, lexical, findable)


def _open_segment(view: SegmentView, n_dimensions: int, is_checked: bool) -> SegmentData:
    try:
        missing = FILES - {file.path for file in view.files}
        if missing:  # the sizes of those that the catalog names were checked
            raise ValueError(f"the catalog does not name {min(missing)}")
        if is_checked:
            view.check()

        dense = open_dense(view.folder)
        lexical = open_lexical(view.folder / "lexical")
        n_passages = len(view.documents)
        if dense.vectors.shape != (n_passages, n_dimensions):
            shape = dense.vectors.shape
            raise ValueError(f"vectors of shape {shape} instead of {(n_passages, n_dimensions)}")
        if len(lexical) != n_passages:
            raise ValueError(f"postings of {len(lexical):,} passages instead of {n_passages:,}")

        # Opened here, because NumPy leaves a damaged file open.
        with (view.folder / SUM).open("rb") as file:
            vector_sum = np.asarray(np.load(file, allow_pickle=False))
        if vector_sum.dtype != np.float64 or vector_sum.shape != (n_dimensions,):
            raise ValueError(f"{SUM} holds {vector_sum.dtype} of shape {vector_sum.shape}")
        if not np.isfinite(vector_sum).all():
            raise ValueError(f"{SUM} holds values that are no numbers")
    except CorruptFileError:
        raise
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise damage(view.folder, error) from error
    return SegmentData(dense, lexical, vector_sum)


def write_sum(folder: Path, vectors: FloatArray) -> None:
    """Store the sum of the vectors of a segment, so that their mean needs no pass over them."""
    total = np.zeros(vectors.shape[1])
    for start in range(0, len(vectors), 65_536):
        total += vectors[start : start + 65_536].sum(axis=0, dtype=np.float64)
    np.save(folder / SUM, total)


def allow(version: IndexVersion, documents: Int64Array | None) -> Allowed:
    """Return the findable passages of documents, or all findable passages."""
    masks, n = [], 0
    for view, mask in zip(version.segments, version.findable, strict=True):
        if documents is not None:
            is_allowed = np.isin(view.documents, documents)
            mask = is_allowed if mask is None else is_allowed & mask
        masks.append(mask)
        n += len(view.documents) if mask is None else int(mask.sum())
    return Allowed(tuple(masks), n)


def nearest_passages(
    version: IndexVersion, queries: FloatArray, k: int, allowed: Allowed
) -> Nearest:
    """Return the nearest passages of all segments to each query."""
    nearest = [
        segment.search(queries, k, mask)
        for segment, mask in zip(version.dense, allowed.masks, strict=True)
    ]
    if not nearest:
        none = np.full((len(queries), k), -1, dtype=np.int64)
        return Nearest(np.full((len(queries), k), -np.inf, dtype=np.float32), none, none.copy())
    return merge_nearest(nearest, k)


def encode_texts(
    encoder: BaseEncoder,
    texts: Sequence[str],
    kind: str = "document",
    *,
    show_progress: bool | None = None,
) -> tuple[FloatArray, Encoding]:
    """Return unit vectors (n_texts, n_dimensions), and the encoder's report."""
    report = encoder.reading(kind).encode_with_report(texts, show_progress=show_progress)
    if hasattr(report.embeddings, "toarray"):
        raise InputError(
            "encoder", "an encoder of dense vectors", found=f"{encoder.name}, which "
            "makes sparse ones", remedy=Remedy("mode", "lexical", "build with the encoder lsa"),
        )  # fmt: skip
    return checked_vectors(report.embeddings, len(texts), "the encoder's vectors"), report


def checked_vectors(vectors: Any, n_rows: int, what: str, width: int | None = None) -> FloatArray:
    """Return vectors scaled to length one, (n_rows, n_dimensions)."""
    array = np.asarray(vectors)
    is_wide = array.ndim == 2 and width is not None and array.shape[1] != width
    if array.ndim != 2 or len(array) != n_rows or is_wide:
        raise InputError(
            what, f"vectors of shape ({n_rows}, {width or 'n_dimensions'})", found=f"{array.shape}",
            remedy="encode the texts with the encoder of the index" if is_wide else "",
        )  # fmt: skip
    return unit_rows(array, what=what, keep_zeros=True)


def _sample(collection: Collection, n: int) -> tuple[list[str], FloatArray]:
    """Return some passages with text, and their vectors."""
    for view in collection.snapshot().segments[:1]:
        rows = np.flatnonzero(view.findable)[:n]
        documents = collection.documents(view.documents[rows].tolist())
        texts = [
            "" if document is None else document.text[slice(*span)]
            for document, span in zip(documents, view.spans[rows].tolist(), strict=True)
        ]
        return texts, open_dense(view.folder).vectors[rows]
    return [], np.zeros((0, 1), dtype=np.float32)


def stored_encoder(collection: Collection, encoder: Any = None) -> BaseEncoder:
    """Return the recorded encoder of a collection, or another whose vectors are comparable."""
    settings = collection.settings()
    name = settings.get("encoder")
    recorded = settings.get("encoder_settings")
    remedy = 'load the index with encoder=, or search with mode="lexical"'

    if encoder is not None:
        resolved = resolve_encoder(encoder).reading_as(settings)
    elif name is None:
        raise InputError(f"The index has vectors, but no encoder; give vectors=, or {remedy}.")
    elif recorded is None:
        raise InputError(f"The encoder of the index ({name}) cannot be loaded by name; {remedy}.")
    else:
        resolved = load_words(collection.folder / ENCODER) or encoder_from_settings(recorded)

    if not resolved.is_fitted:
        expected = f"the fitted encoder of the index ({name}), which is not stored with it"
        raise InputError("encoder", expected, remedy=remedy)
    if settings.get("encoder_fingerprint") is not None:
        sample = partial(_sample, collection)
        check_encoder(resolved, settings, sample, owner="the index", redo="build the index again")
    return resolved
