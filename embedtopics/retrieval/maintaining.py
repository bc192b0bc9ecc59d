"""Building, adding, compacting, exporting: all that writes."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._locking import only_writer
from embedtopics.corpus.corpus import require_text
from embedtopics.corpus.languages import detect_languages, main_languages
from embedtopics.encoders import (
    describe_encoder,
    fitted,
    language_warning,
    resolve_encoder,
)
from embedtopics.errors import InputError
from embedtopics.protocols import Encoder, FloatArray, Int32Array, Int64Array
from embedtopics.results import Decision
from embedtopics.retrieval.building import Prepared, prepare, segment_maker
from embedtopics.retrieval.collection import Collection
from embedtopics.retrieval.collection.copying import check_target, find_folder
from embedtopics.retrieval.collection.metadata import read_frame
from embedtopics.retrieval.collection.segments import Sources
from embedtopics.retrieval.dense import DenseSettings
from embedtopics.retrieval.lexical import LexicalSettings, lexical_settings
from embedtopics.retrieval.opened import Opened, stored_vectors

if TYPE_CHECKING:
    from embedtopics.corpus import Corpus
    from embedtopics.retrieval.stores import VectorStore
    from embedtopics.retrieval.stores.parquet import Exportable

__all__ = ["BuildWish", "Built", "add", "build", "compact", "export", "listed"]

PASSAGES_AT_ONCE = 10_000


@dataclass(frozen=True)
class BuildWish:
    """What is wanted of a new index; see `SearchIndex.build`."""

    passages: bool
    kind: str
    recall: float
    memory_limit: int | None
    languages: tuple[str, ...] | None
    stop_words: tuple[str, ...] | None
    stems: bool
    random_state: int


@dataclass(frozen=True, eq=False)
class Built:
    """A new collection, and what made it."""

    collection: Collection
    encoder: Encoder | None
    decisions: tuple[Decision, ...]


def listed(values: Iterable[Any], what: str) -> list[Any]:
    """Return values as a list; one string or number is none, and is refused."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"{what} must be a list, got {values!r}; put it in a list")
    return list(values)


def build(
    corpus: Corpus,
    out: Path | None,
    encoder: Any,
    embeddings: npt.ArrayLike | None,
    wish: BuildWish,
    overwrite: bool,
    show_progress: bool | None,
) -> Built:
    """Make a collection of a corpus; at `out` it appears when it is whole."""
    dense = DenseSettings(
        kind=wish.kind, recall=wish.recall, memory_limit=wish.memory_limit, seed=wish.random_state
    )
    target = None if out is None else find_folder(out)
    if target is None:
        parent = Path(tempfile.mkdtemp(prefix="embedtopics-index-"))
        try:
            return _build_in(
                parent / "index", corpus, encoder, embeddings, wish, dense, show_progress
            )
        except BaseException:  # an interrupt too
            shutil.rmtree(parent, ignore_errors=True)
            raise
    check_target(target, overwrite)  # before hours are spent on what is to go there
    # What a killed build leaves beside the target is found by its name, and swept by the next.
    beside = target.with_name(f".{target.name}.building")
    with only_writer(target.with_name(f"{target.name}.building")):
        shutil.rmtree(beside, ignore_errors=True)
        try:
            made = _build_in(beside, corpus, encoder, embeddings, wish, dense, show_progress)
            copied = made.collection.copy_to(target, overwrite=overwrite)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return Built(copied, made.encoder, made.decisions)


def _build_in(
    folder: Path,
    corpus: Corpus,
    encoder: Any,
    embeddings: npt.ArrayLike | None,
    wish: BuildWish,
    dense: DenseSettings,
    show_progress: bool | None,
) -> Built:
    notes: list[Decision] = []
    read_frame(corpus.metadata, [])  # what cannot be stored is refused before hours of encoding
    resolved = _encoder_for(corpus, encoder, embeddings)
    languages = wish.languages
    if languages is None:
        shares = detect_languages(corpus.texts)
        languages = main_languages(shares)
        warning = None if resolved is None else language_warning(resolved, shares)
        notes += [] if warning is None else [warning]
    lexical = lexical_settings(languages, stop_words=wish.stop_words, stems=wish.stems)
    prepared = prepare(
        corpus, resolved, passages=wish.passages, embeddings=embeddings,
        show_progress=show_progress,
    )  # fmt: skip
    about = {"encoder": None, "encoder_fingerprint": None, "encoder_settings": None}
    settings = {
        **(about if resolved is None else describe_encoder(resolved)),
        "n_dimensions": int(prepared.vectors.shape[1]),
        "passages": wish.passages and embeddings is None,
        "languages": list(languages),
        "dense": asdict(dense),
        "lexical": lexical.to_json(),
    }
    collection = Collection.create(folder, settings)
    notes += _write(collection, prepared, dense, lexical, update=False)
    return Built(collection, resolved, (*prepared.decisions, *notes))


def _encoder_for(corpus: Corpus, encoder: Any, embeddings: npt.ArrayLike | None) -> Encoder | None:
    """Return the encoder, which has learnt from the corpus if it has to; None where there is none.

    Beside vectors that are given, an encoder is there for queries, and may be missing.
    """
    if embeddings is None:
        if encoder is None:
            raise InputError("expected an encoder, or embeddings; got neither")
        require_text(corpus)  # of which an encoder could learn, or show how long its vectors are
        texts = [text for text in dict.fromkeys(corpus.texts) if text.strip()]
        return fitted(resolve_encoder(encoder, cached=True), texts)
    if encoder is None:
        return None
    resolved = resolve_encoder(encoder, cached=True)
    if not getattr(resolved, "is_fitted", True):
        raise InputError(
            "expected the encoder that made the embeddings, got one that has not learnt from any "
            "texts; give the fitted one, or encoder=None"
        )
    width, found = np.shape(embeddings)[1:], getattr(resolved, "dimensions", None)
    if isinstance(found, int) and len(width) == 1 and width[0] != found:
        name = describe_encoder(resolved)["encoder"]
        raise InputError(
            f"expected embeddings of {found} dimensions, as {name} makes them, got {width[0]}; "
            "give the encoder that made them, or encoder=None"
        )
    return resolved


def _write(
    collection: Collection,
    prepared: Prepared,
    dense: DenseSettings,
    lexical: LexicalSettings,
    update: bool,
) -> list[Decision]:
    """Add documents to a collection, and say what was decided."""
    measured: list[Mapping[str, Any]] = []
    make = segment_maker(
        lambda sources: prepared.vectors,
        lambda documents, spans: prepared.passages,
        dense, lexical, measured,
    )  # fmt: skip
    with collection.writing() as writer:
        writer.add(
            prepared.ids, prepared.texts, prepared.metadata,
            (prepared.positions, prepared.spans), make, update=update,
        )  # fmt: skip
        notes = list(writer.decisions)
    return notes + [note for about in measured for note in _dense_decisions(about)]


def _dense_decisions(about: Mapping[str, Any]) -> list[Decision]:
    """Say of what kind a segment's index is, and if it does not find what was asked for."""
    notes = [Decision(
        "retrieval", "dense index", about["kind"],
        f"The dense index is {about['kind']}: {about['why']}.",
    )]  # fmt: skip
    if not about["measured"]["reached"]:
        recall = about["measured"]["recall"]
        notes.append(Decision(
            "retrieval", "recall missed", recall,
            f"The dense index finds {recall:.1%} of the ten nearest passages, less than the "
            f"{about['settings']['recall']:.1%} that were asked for; kind='flat' finds all.",
        ))  # fmt: skip
    return notes


def add(
    collection: Collection,
    corpus: Corpus,
    encoder: Encoder | None,
    embeddings: npt.ArrayLike | None,
    update: bool,
    show_progress: bool | None,
) -> tuple[Decision, ...]:
    """Add a corpus as a segment of its own."""
    settings = collection.settings()
    _check_new(collection, corpus, update)
    expected = settings["n_dimensions"]
    prepared = prepare(
        corpus, encoder, passages=settings["passages"], embeddings=embeddings, width=expected,
        show_progress=show_progress,
    )  # fmt: skip
    width = prepared.vectors.shape[1]
    if width != expected:
        raise InputError(
            f"expected vectors of {expected} dimensions, as those of the index, got {width}; give "
            "those of its encoder"
        )
    dense = DenseSettings(**settings["dense"])
    lexical = LexicalSettings.of_json(settings["lexical"])
    notes = _write(collection, prepared, dense, lexical, update)
    return (*prepared.decisions, *notes)


def _check_new(collection: Collection, corpus: Corpus, update: bool) -> None:
    """Refuse what cannot be added, before it is encoded."""
    attached = collection.settings().get("topics", {}).get("columns", ())
    own = [name for name in attached if name in corpus.metadata]
    if own:
        raise InputError(
            f"the metadata have a column {own[0]!r} of their own, which is that of attached topics "
            "in the index; rename it"
        )
    collection.check_new(corpus.ids, corpus.metadata, update=update)


def compact(collection: Collection) -> bool:
    """Write all that is there as one segment; vectors are copied, not made again."""
    settings = collection.settings()
    make = segment_maker(
        _vectors_from,
        lambda documents, spans: _texts_of(collection, documents, spans),
        DenseSettings(**settings["dense"]),
        LexicalSettings.of_json(settings["lexical"]),
        [],
    )
    with collection.writing() as writer:
        return writer.compact(make)


def _vectors_from(sources: Sources | None) -> FloatArray:
    from embedtopics.retrieval.dense import open_dense

    assert sources is not None
    parts = [open_dense(view.folder).vectors for view in sources.segments]
    vectors = np.empty((len(sources.row), parts[0].shape[1]), dtype=np.float32)
    for number, part in enumerate(parts):
        here = sources.segment == number
        vectors[here] = stored_vectors(part, sources.row[here])
    return vectors


def _texts_of(collection: Collection, documents: Int64Array, spans: Int32Array) -> list[str]:
    """Return the texts of passages; each document is read once."""
    texts: dict[int, str] = {}
    numbers = np.unique(documents).tolist()
    for start in range(0, len(numbers), PASSAGES_AT_ONCE):
        for document in collection.documents(numbers[start : start + PASSAGES_AT_ONCE]):
            assert document is not None  # the only writer asks
            texts[document.number] = document.text
    return [
        texts[number][start:stop]
        for number, (start, stop) in zip(documents.tolist(), spans.tolist(), strict=True)
    ]


def export(
    collection: Collection, opened: Opened, target: str | os.PathLike[str] | VectorStore
) -> tuple[int, tuple[Decision, ...]]:
    """Write all passages to a Parquet file or a vector store; return how many, and notes."""
    from embedtopics.retrieval.stores import export_parquet, export_to_store

    known = {name: kind for name, kind in collection.columns().items() if kind != "missing"}
    documents = _documents(collection, opened)
    if not isinstance(target, str | os.PathLike):
        if not callable(getattr(target, "upsert", None)):
            raise InputError(
                f"expected the path of a Parquet file, or a store with `upsert`, got {target!r}"
            )
        return export_to_store(documents, target, columns=known)
    settings = collection.settings()
    n = 0

    def counted() -> Iterator[Exportable]:
        nonlocal n
        for document in documents:
            n += len(document[3])
            yield document

    written = export_parquet(
        counted(), Path(target), columns=known, id_type="text", settings=settings,
        fingerprint=settings.get("encoder_fingerprint") or "",
    )  # fmt: skip
    return n, written.notes


def _documents(collection: Collection, opened: Opened) -> Iterator[Exportable]:
    """Give (id, text, metadata, spans, vectors) of every document of a version."""
    for view, dense in zip(opened.segments, opened.dense, strict=True):
        rows = np.flatnonzero(view.alive)
        starts = np.flatnonzero(np.diff(view.documents[rows], prepend=-1))
        edges = np.append(starts, len(rows))
        for begin in range(0, len(starts), PASSAGES_AT_ONCE):
            here = edges[begin : begin + PASSAGES_AT_ONCE + 1]
            found = collection.documents(view.documents[rows[here[:-1]]].tolist())
            for document, (first, last) in zip(found, pairwise(here.tolist()), strict=True):
                if document is not None:  # removed meanwhile
                    own = rows[first:last]
                    vectors = stored_vectors(dense.vectors, own)
                    known = {n: v for n, v in document.metadata.items() if v is not None}
                    yield document.id, document.text, known, view.spans[own], vectors
