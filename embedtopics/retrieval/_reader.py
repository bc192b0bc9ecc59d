"""An index as a search sees it: the newest version with its files open, and the encoder."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count
from embedtopics._utils.machine import computed_once
from embedtopics.corpus.results import Encoding
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._registry import encoder_from_settings, resolve_encoder
from embedtopics.encoders._space import N_COMPARED, StoredVectors, check_encoder
from embedtopics.errors import CorruptFileError, InputError, Remedy
from embedtopics.neighbors._graph import unit_rows
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.retrieval._bm25 import (
    LexicalSearcher,
    LexicalSegment,
    LexicalSettings,
    open_lexical,
)
from embedtopics.retrieval.dense._exact import Mask, Nearest, merge_nearest
from embedtopics.retrieval.dense._segment import DenseSegment, open_dense
from embedtopics.retrieval.storage._collection import Collection
from embedtopics.retrieval.storage._segments import SegmentView, Snapshot, damage

SUM = "sum.npy"
N_STRINGS = 32
"""Random strings whose cosines show what chance gives."""
Segment = TypeVar("Segment", DenseSegment, LexicalSegment)


class _Parts(NamedTuple):
    """The open files of a segment, and the sum of its vectors, float64 (n_dimensions,)."""

    dense: DenseSegment
    postings: LexicalSegment
    total: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class IndexVersion:
    """An unchanging version of an index; `findable` passages have text, None for all."""

    snapshot: Snapshot
    parts: tuple[_Parts, ...]
    lexical: LexicalSearcher
    findable: tuple[Mask | None, ...]

    @computed_once
    def mean_vector(self) -> npt.NDArray[np.float64]:
        """Mean of the vectors of all passages that can be found; not of unit length."""
        total, n = np.zeros(self.n_dimensions), 0
        for part, mask in zip(self.parts, self.findable, strict=True):
            total += part.total
            n += len(part.dense)
            gone = np.flatnonzero(~mask) if mask is not None else np.empty(0, np.int64)
            total -= stored_vectors(part.dense.vectors, gone).sum(axis=0, dtype=np.float64)
            n -= len(gone)
        return total / max(n, 1)

    @property
    def words_only(self) -> bool:
        """Whether documents have no vectors."""
        return bool(self.snapshot.settings.get("words_only"))

    @property
    def segments(self) -> tuple[SegmentView, ...]:
        """As in the snapshot."""
        return self.snapshot.segments

    @property
    def dense(self) -> tuple[DenseSegment, ...]:
        """The dense index of each segment."""
        return tuple(part.dense for part in self.parts)

    @property
    def n_dimensions(self) -> int:
        """Dimensions of the vectors."""
        return int(self.snapshot.settings["n_dimensions"])

    def documents_at(self, segments: Int64Array, rows: Int64Array) -> Int64Array:
        """Return the documents of given passages, (n,)."""
        documents = np.empty(len(rows), dtype=np.int64)
        for number, view in enumerate(self.segments):
            here = segments == number
            documents[here] = view.documents[rows[here]]
        return documents

    def vectors_at(self, segments: Int64Array, rows: Int64Array) -> FloatArray:
        """Return the vectors of given passages, float32 (n, n_dimensions)."""
        vectors = np.empty((len(rows), self.n_dimensions), dtype=np.float32)
        for number in np.unique(segments).tolist():
            here = np.flatnonzero(segments == number)
            vectors[here] = stored_vectors(self.parts[number].dense.vectors, rows[here])
        return vectors


class Allowed(NamedTuple):
    """The passages that a search may return: a mask for each segment, None for all, and a count."""

    masks: tuple[Mask | None, ...]
    n: int


class IndexReader:
    """Gives the newest version of a collection, and the encoder; several threads may ask."""

    def __init__(self, collection: Collection, encoder: BaseEncoder | None, mmap: bool) -> None:
        self.collection = collection
        self.given_encoder = encoder
        self.mmap = mmap
        self._encoder = encoder
        self._newest: IndexVersion | None = None
        self._chance: tuple[tuple[str, bool], float] | None = None
        self._lock = threading.RLock()

    @property
    def encoder(self) -> BaseEncoder:
        """The encoder of documents and queries, loaded when it is first needed."""
        with self._lock:
            if self._encoder is None:
                self._encoder = stored_encoder(self.collection)
            return self._encoder

    def chance(self, version: IndexVersion, is_encoded: bool) -> float:
        """Return the highest cosine that random strings have with any passage, at most 1.

        Where queries are not encoded here, random directions stand for the strings.
        """
        with self._lock:
            key = version.snapshot.stamp, is_encoded
            if self._chance is None or self._chance[0] != key:
                rng = np.random.default_rng(0)
                letters = rng.choice(list("abcdefghijklmnopqrstuvwxyz     "), (N_STRINGS, 40))
                strings = ["".join(row[: 5 + place]) for place, row in enumerate(letters)]
                if is_encoded:
                    encoder = self.encoder.uncached
                    vectors = encode_texts(encoder, strings, "query", show_progress=False)[0]
                else:
                    drawn = rng.normal(size=(N_STRINGS, version.n_dimensions))
                    vectors = given_vectors(drawn, N_STRINGS, "vectors")
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
                    is_checked = self.collection.is_checked
                    self._newest = _open_version(snapshot, self.mmap, before, is_checked)
                    return self._newest
                except OSError:  # damaged, or compacted by another process in the meantime
                    if self.collection.stamp() == snapshot.stamp:
                        raise


def _open_version(
    snapshot: Snapshot, mmap: bool, before: IndexVersion | None, is_checked: bool
) -> IndexVersion:
    """Open the segments of a version; those that an earlier version had are open already."""
    # By content, not by name: another collection may have taken the folder's place.
    known: dict[str, _Parts] = {}
    if before is not None:
        known = {v.content: own for v, own in zip(before.segments, before.parts, strict=True)}
    parts = tuple(
        known.get(view.content) or _open_parts(view, mmap, is_checked) for view in snapshot.segments
    )
    findable: list[Mask | None] = []
    for view in snapshot.segments:
        mask: Mask = view.alive & (view.spans[:, 1] > view.spans[:, 0])
        findable.append(None if mask.all() else mask)
    try:
        settings = LexicalSettings.from_json(snapshot.settings["lexical"])
        width = checked_count(snapshot.settings["n_dimensions"], "n_dimensions", 0)
        if any(part.dense.vectors.shape[1] != width for part in parts):
            raise ValueError(f"not all vectors have {width} dimensions")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptFileError(
            f"the settings of the index do not fit its segments ({error}); restore the folder from "
            "a copy, or build the index again"
        ) from error
    # What has no text counts nowhere.
    lexical = LexicalSearcher.of(tuple(part.postings for part in parts), findable, settings)
    return IndexVersion(snapshot, parts, lexical, tuple(findable))


def _open_parts(view: SegmentView, mmap: bool, is_checked: bool) -> _Parts:
    try:
        if is_checked:
            view.check()
    except OSError as error:
        if isinstance(error, CorruptFileError):
            raise
        raise damage(view.folder, str(error)) from error
    dense = open_dense(view.folder)
    postings = open_lexical(view.folder / "lexical")
    try:
        if len(dense) != len(view.documents):
            raise ValueError(f"{len(dense):,} vectors of {len(view.documents):,} passages")
        if is_checked:
            postings.check(len(view.documents))
    except ValueError as error:
        raise damage(view.folder, str(error)) from error
    if not mmap:
        dense, postings = _in_memory(dense), _in_memory(postings)
    path = view.folder / SUM
    try:
        # Opened here, because NumPy leaves a file open that it finds damaged.
        with path.open("rb") as file:
            total = np.asarray(np.load(file, allow_pickle=False))
        width = dense.vectors.shape[1]
        if total.shape != (width,) or total.dtype != np.float64 or not np.isfinite(total).all():
            raise ValueError(f"{total.dtype} of shape {total.shape}")
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise damage(path, str(error)) from error
    return _Parts(dense, postings, total)


def _in_memory(segment: Segment) -> Segment:
    arrays: dict[str, Any] = {
        name: np.array(value)
        for name, value in vars(segment).items()
        if isinstance(value, np.ndarray)
    }
    return replace(segment, **arrays)


def write_sum(folder: Path, vectors: FloatArray) -> None:
    """Keep the sum of a segment's vectors, so that their mean costs no pass over them."""
    total = np.zeros(vectors.shape[1])
    for start in range(0, len(vectors), 65_536):
        total += vectors[start : start + 65_536].sum(axis=0, dtype=np.float64)
    np.save(folder / SUM, total)


def allow(version: IndexVersion, documents: Int64Array | None) -> Allowed:
    """Return the passages of documents, or all that can be found."""
    masks, n = [], 0
    for view, mask in zip(version.segments, version.findable, strict=True):
        if documents is not None:
            own = np.isin(view.documents, documents)
            mask = own if mask is None else own & mask
        masks.append(mask)
        n += len(view.documents) if mask is None else int(mask.sum())
    return Allowed(tuple(masks), n)


def nearest_passages(
    version: IndexVersion, queries: FloatArray, k: int, allowed: Allowed
) -> Nearest:
    """Return the nearest passages of all segments to each query."""
    found = [
        segment.search(queries, k, mask)
        for segment, mask in zip(version.dense, allowed.masks, strict=True)
    ]
    if not found:
        none = np.full((len(queries), k), -1, dtype=np.int64)
        return Nearest(np.full((len(queries), k), -np.inf, dtype=np.float32), none, none.copy())
    return merge_nearest(found, k)


def stored_vectors(stored: npt.NDArray[Any], rows: npt.NDArray[Any]) -> FloatArray:
    """Return rows of a segment's vectors as float32, however they are stored."""
    chosen = stored[rows]
    if chosen.dtype == np.uint16:  # the bits of float16
        chosen = chosen.view(np.float16)
    return np.asarray(chosen, dtype=np.float32)


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
    return given_vectors(report.embeddings, len(texts), "the encoder's vectors"), report


def given_vectors(vectors: Any, n_rows: int, what: str, width: int | None = None) -> FloatArray:
    """Return vectors scaled to length one, (n_rows, n_dimensions)."""
    array = np.asarray(vectors)
    wrong_width = array.ndim == 2 and width is not None and array.shape[1] != width
    if array.ndim != 2 or len(array) != n_rows or wrong_width:
        shape = f"({n_rows}, {width or 'n_dimensions'})"
        raise InputError(
            what, f"vectors of shape {shape}", found=f"{array.shape}",
            remedy="encode the texts with the index's encoder" if wrong_width else "",
        )  # fmt: skip
    return unit_rows(array, what=what, keep_zeros=True)


def _sample(collection: Collection) -> tuple[list[str], FloatArray]:
    """Return some passages with text, and their vectors."""
    for view in collection.snapshot().segments[:1]:
        rows = np.flatnonzero(view.alive & (view.spans[:, 1] > view.spans[:, 0]))[:N_COMPARED]
        documents = collection.documents(view.documents[rows].tolist())
        texts = [
            "" if document is None else document.text[slice(*span)]
            for document, span in zip(documents, view.spans[rows].tolist(), strict=True)
        ]
        return texts, stored_vectors(open_dense(view.folder).vectors, rows)
    return [], np.zeros((0, 1), dtype=np.float32)


def stored_encoder(collection: Collection, given: Any = None) -> BaseEncoder:
    """Return the encoder of a collection, or the given one if its vectors can be compared."""
    settings = collection.settings()
    name, recorded = settings.get("encoder"), settings.get("encoder_settings")
    remedy = 'load the index with encoder=, or search with mode="lexical"'
    if given is not None:
        encoder = resolve_encoder(given).reading_as(settings)
        if not encoder.is_fitted:
            raise InputError(
                "encoder", f"the encoder of the index ({name})", given,
                "this one has not been fitted; give the fitted encoder that built the index",
            )  # fmt: skip
    elif name is None:
        raise InputError(
            "The index was built from embeddings alone, without an encoder; give embeddings= to "
            f"add and vectors= to search, {remedy}."
        )
    elif not isinstance(recorded, Mapping):
        raise InputError(
            f"The index was built with an encoder of your own ({name}), which cannot be loaded by "
            f"name; {remedy}."
        )
    else:
        encoder = encoder_from_settings(recorded)
        if not encoder.is_fitted:
            raise InputError(
                f"The encoder of the index ({name}) was fitted to texts and is not stored with it; "
                f"{remedy}."
            )
    if settings.get("encoder_fingerprint") is not None:
        check_encoder(
            encoder,
            StoredVectors(
                settings, "the index", lambda: _sample(collection), "build the index again"
            ),
        )
    return encoder
