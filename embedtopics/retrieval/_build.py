"""Building an index, adding to it, compacting it: all that makes segments."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.display import spell_count
from embedtopics._utils.folders import find_folder, only_writer
from embedtopics.corpus._corpus import Corpus, require_text
from embedtopics.corpus._languages import detect_languages, main_languages
from embedtopics.corpus._texts import TEXT, is_missing
from embedtopics.corpus._windows import split_into_passages
from embedtopics.decisions import Decision
from embedtopics.encoders._base import language_warning
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders._space import describe_encoder
from embedtopics.errors import InputError, Remedy
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.retrieval._bm25 import LexicalSettings, build_lexical, lexical_settings
from embedtopics.retrieval._reader import (
    IndexReader,
    encode_texts,
    given_vectors,
    stored_vectors,
    write_sum,
)
from embedtopics.retrieval.dense._build import build_dense
from embedtopics.retrieval.dense._segment import DenseSettings, open_dense
from embedtopics.retrieval.storage._checks import check_target
from embedtopics.retrieval.storage._collection import Collection
from embedtopics.retrieval.storage._metadata import read_frame
from embedtopics.retrieval.storage._segments import MakeSegment, Sources
from embedtopics.terms._rules import choose_rules

if TYPE_CHECKING:
    import pandas as pd

DOCUMENTS_AT_ONCE = 10_000
LOOKED_AT = 20
"""Documents by which ids that were made of texts are distinguished from ids that were named."""


@dataclass(frozen=True)
class BuildOptions:
    """Options of a new index; see `SearchIndex.build`."""

    passages: bool
    dense: DenseSettings
    languages: tuple[str, ...] | None
    stop_words: tuple[str, ...] | None
    stems: bool
    words: Any
    columns: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Built:
    """A new collection, and what made it."""

    collection: Collection
    encoder: BaseEncoder | None
    decisions: tuple[Decision, ...]


def as_list(values: Iterable[Any], what: str) -> list[Any]:
    """Return values as a list, or refuse one string or number."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(what, "a list", values)
    return list(values)


ROLES = ("text", "id", "time")


JOINT = "\n\n"
"""Between the text fields of a document."""


def read_documents(data: Any, columns: Mapping[str, Any], encoding: str = "utf-8") -> Corpus:
    """Return a corpus of whatever holds texts; of several columns of texts one below the other."""
    named: dict[str, Any] = {role: name for role, name in columns.items() if name is not None}
    if isinstance(data, Corpus):
        for role, name in named.items():
            raise InputError(role, "left out for a corpus, which knows its columns", name)
        return data
    fields = named.get("text")
    if fields is None or isinstance(fields, str):
        return Corpus(data, **named, encoding=encoding)
    fields = as_list(fields, "text")
    if not fields or len({*map(str, fields)}) < len(fields):
        raise InputError("text", "a column or several different ones", fields)
    # All fields but the last stay in the metadata, which tells where in the text each begins.
    corpus = Corpus(data, **{**named, "text": fields[-1]}, encoding=encoding)
    metadata, columns_of = corpus.metadata.copy(), []
    for name in fields[:-1]:
        if name not in metadata or name in (named.get("id"), named.get("time")):
            raise InputError("text", "columns of the table that have no other role", name)
        given = metadata[name].astype(object).tolist()
        columns_of.append([None if is_missing(value) else str(value) for value in given])
        metadata[name] = columns_of[-1]
    parts = zip(*columns_of, corpus.texts, strict=True)
    joined = [JOINT.join(part for part in own if part and part.strip()) for own in parts]
    made = Corpus(joined, ids=corpus.ids if named.get("id") else None, metadata=metadata)
    # Which columns they were is recorded from here, whoever read the file.
    vars(made).update(
        source=corpus.source, notes=corpus.notes, time_column=corpus.time_column, text_column=fields
    )
    return made


def read_more(
    reader: IndexReader,
    data: Any,
    columns: Mapping[str, Any],
    update: bool,
    encoding: str = "utf-8",
) -> Corpus:
    """Return a corpus of documents to add; columns that are not named are those of the build."""
    collection, recorded = reader.collection, reader.collection.settings().get("columns", {})
    known = collection.columns()
    if isinstance(data, Corpus):
        return _with_texts(read_documents(data, columns), known)
    first = read_documents(data, dict.fromkeys(ROLES), encoding)
    if first.text_column is None:  # no table: it has no columns
        return read_documents(data, columns, encoding)
    there = [first.text_column, *map(str, first.metadata.columns)]
    names = {role: recorded.get(role) for role in ROLES}
    roles = {
        role: columns[role] or (own if {*([own] if isinstance(own, str) else own or [None])}
                                <= {*there} else None)
        for role, own in names.items()
    }  # fmt: skip
    if roles["text"] is None and first.text_column in known:
        raise InputError(
            "text", "named", found=f"a table whose column {first.text_column!r} looks like that of "
            "the texts and is one of the metadata in the index",
        )  # fmt: skip
    old = next(collection.batches(LOOKED_AT), [])
    has_made_ids = _are_made([d.id for d in old], [d.text for d in old])
    could_be_ids = "id" in {name.casefold() for name in there}
    if roles["id"] is None and (
        (old and not has_made_ids and _are_made(first.ids, first.texts))
        or (update and could_be_ids)
    ):
        raise InputError(
            "id", "the column of ids", columns["id"],
            "documents of the index have ids of their own, and updates replace by id"
            if not has_made_ids
            else "the index was built without a column of ids, so that an update would replace no "
            "document whose text has changed; build it again with such a column",
        )  # fmt: skip
    if roles["time"] is None:
        dates = [name for name in there if known.get(name) == "date"]
        roles["time"] = dates[0] if dates else None
    return _with_texts(read_documents(data, roles, encoding), known)


def _with_texts(corpus: Corpus, known: Mapping[str, str]) -> Corpus:
    """Return numbers of a csv file as texts in columns that hold texts in the index."""
    import pandas as pd

    metadata = corpus.metadata
    texts = [
        name
        for name in metadata.columns
        if known.get(name) == "text" and pd.api.types.is_numeric_dtype(metadata[name])
    ]
    is_typed = not corpus.source.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
    if is_typed or not texts:
        return corpus
    typed = copy(corpus)
    vars(typed)["metadata"] = metadata.astype(dict.fromkeys(texts, "string"))
    return typed


def _are_made(ids: Sequence[object], texts: Sequence[str]) -> bool:
    """Return whether ids are those that the texts give, where none were named."""
    made = Corpus.from_texts(list(texts[:LOOKED_AT])).ids if len(texts) else ()
    # After a hyphen stands how often the text has come before.
    pairs = zip(ids, made, strict=False)
    return any(str(id).split("-")[0] == own.split("-")[0] for id, own in pairs)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Documents that are ready to be written, and of each passage the document, span and vector.

    `positions` (n_passages,), `spans` (n_passages, 2), `vectors` (n_passages, n_dimensions).
    """

    ids: Sequence[str]
    texts: Sequence[str]
    metadata: pd.DataFrame
    positions: Int64Array
    spans: Int32Array
    vectors: FloatArray
    decisions: tuple[Decision, ...]

    @property
    def passages(self) -> list[str]:
        """The text of each passage."""
        return [
            self.texts[position][start:stop]
            for position, (start, stop) in zip(
                self.positions.tolist(), self.spans.tolist(), strict=True
            )
        ]


def prepare(
    corpus: Corpus,
    encoder: BaseEncoder | None,
    *,
    passages: bool,
    embeddings: npt.ArrayLike | None = None,
    width: int = 0,
    show_progress: bool | None = None,
) -> Prepared:
    """Cut documents into passages, and encode each once; without encoder vectors are zero."""
    decisions = list(corpus.notes)
    if passages and embeddings is None:
        can_cut = encoder is not None and encoder.windows([]) is not None
        _, rows, spans = split_into_passages(corpus, encoder if can_cut else None)
    else:
        rows = list(range(len(corpus)))
        spans = [(0, len(text)) for text in corpus.texts]
    has_text = np.asarray(corpus.status) == TEXT
    # Blanks have a length, too; by its empty span a search knows what it must not find.
    spans = [span if has_text[row] else (0, 0) for row, span in zip(rows, spans, strict=True)]
    if embeddings is None and encoder is None:
        vectors = np.zeros((len(rows), 1), dtype=np.float32)
    elif embeddings is None:
        texts = [
            corpus.texts[row][start:stop] for row, (start, stop) in zip(rows, spans, strict=True)
        ]
        vectors, notes = _vectors_of(encoder, texts, width, show_progress)
        decisions += notes
    else:
        vectors = given_vectors(embeddings, len(corpus), "embeddings")
    n_empty = int((~has_text).sum())
    if n_empty:
        decisions.append(Decision(
            "retrieval", "without text", n_empty,
            f"{n_empty:,} of {len(corpus):,} documents have no text: they are kept, and filters "
            "pass them, but no query finds them.",
        ))  # fmt: skip
    return Prepared(
        ids=corpus.ids,
        texts=corpus.texts,
        metadata=corpus.metadata.reset_index(drop=True),
        positions=np.array(rows, dtype=np.int64),
        spans=np.array(spans, dtype=np.int32).reshape(-1, 2),
        vectors=vectors,
        decisions=tuple(decisions),
    )


def _vectors_of(
    encoder: Any, texts: Sequence[str], width: int, show_progress: bool | None
) -> tuple[FloatArray, list[Decision]]:
    """Encode passages; return notes of what the encoder did not see of them, too."""
    numbers: dict[str, int] = {}
    places = np.array(
        [numbers.setdefault(text, len(numbers)) if text else -1 for text in texts], dtype=np.int64
    )
    if not numbers:
        return np.zeros((len(texts), width), dtype=np.float32), []
    vectors, report = encode_texts(encoder, list(numbers), show_progress=show_progress)
    if len(numbers) < len(texts):  # else they are in order already, and stay where they are
        vectors = vectors[places]
        vectors[places < 0] = 0.0
    notes = []
    n_cut = 0 if report is None else int((report.n_seen < report.n_tokens).sum())
    if n_cut:
        notes.append(Decision(
            "retrieval", "truncated", n_cut,
            f"Of {spell_count(n_cut, 'passage', 'passages')} the encoder reads only the beginning; "
            "dense search does not "
            "see the rest, lexical search does.",
        ))  # fmt: skip
    return vectors, notes


def segment_maker(
    vectors: Callable[[Sources | None], npt.NDArray[Any]],
    texts: Callable[[Int64Array, Int32Array], Sequence[str]],
    dense: DenseSettings,
    lexical: LexicalSettings,
    measured: list[Mapping[str, Any]],
) -> MakeSegment:
    """Return what writes a segment's vectors, dense index and postings."""

    def make(
        folder: Path, documents: Int64Array, spans: Int32Array, sources: Sources | None
    ) -> None:
        found = vectors(sources)
        measured.append(build_dense(folder, found, dense))
        write_sum(folder, found)
        (folder / "lexical").mkdir(exist_ok=True)
        build_lexical(folder / "lexical", texts(documents, spans), lexical)

    return make


def build(
    corpus: Corpus,
    out: Path | None,
    encoder: Any,
    embeddings: npt.ArrayLike | None,
    options: BuildOptions,
    overwrite: bool,
    show_progress: bool | None,
) -> Built:
    """Make a collection of a corpus; at `out` it appears when it is whole."""
    target = None if out is None else find_folder(out)
    if target is None:
        parent = Path(tempfile.mkdtemp(prefix="embedtopics-index-"))
        try:
            return _build_in(parent / "index", corpus, encoder, embeddings, options, show_progress)
        except BaseException:  # an interrupt too
            shutil.rmtree(parent, ignore_errors=True)
            raise
    check_target(target, overwrite)  # before hours are spent on what is to go there
    # What a killed build leaves beside the target is found by its name, and swept by the next.
    beside = target.with_name(f".{target.name}.building")
    with only_writer(target.with_name(f"{target.name}.building")):
        shutil.rmtree(beside, ignore_errors=True)
        try:
            made = _build_in(beside, corpus, encoder, embeddings, options, show_progress)
            copied = made.collection.copy_to(target, overwrite=overwrite)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return Built(copied, made.encoder, made.decisions)


def _build_in(
    folder: Path,
    corpus: Corpus,
    encoder: Any,
    embeddings: npt.ArrayLike | None,
    options: BuildOptions,
    show_progress: bool | None,
) -> Built:
    notes: list[Decision] = []
    read_frame(corpus.metadata, [])  # what cannot be stored is refused before hours of encoding
    resolved = _encoder_for(corpus, encoder, embeddings)
    languages = options.languages
    if languages is None:
        shares = detect_languages(corpus.texts)
        languages = main_languages(shares)
        warning = None if resolved is None else language_warning(resolved, shares)
        notes += [] if warning is None else [warning]
    if not options.passages:
        resolved = None if resolved is None else resolved.reading_to_ends(corpus.texts)
    if callable(options.words):
        expected = "a name, for the files of an index keep no function"
        raise InputError("words", expected, options.words)
    rules, made = choose_rules(options.words, languages)
    notes += made
    lexical = lexical_settings(
        languages, stop_words=options.stop_words, stems=options.stems, rules=rules
    )
    prepared = prepare(
        corpus, resolved, passages=options.passages, embeddings=embeddings,
        show_progress=show_progress,
    )  # fmt: skip
    notes += [] if embeddings is not None or resolved is None else resolved.decisions
    words_only = resolved is None and embeddings is None
    dense = DenseSettings("flat") if words_only else options.dense
    names = ("encoder", "encoder_fingerprint", "encoder_space", "encoder_settings")
    settings = {
        **(dict.fromkeys(names) if resolved is None else describe_encoder(resolved)),
        "n_dimensions": int(prepared.vectors.shape[1]),
        "words_only": words_only,
        "passages": options.passages and embeddings is None,
        "languages": list(languages),
        "dense": asdict(dense),
        "lexical": lexical.to_json(),
        "columns": {
            role: name or getattr(corpus, f"{role}_column", None)
            for role, name in options.columns.items()
        },
    }
    collection = Collection.create(folder, settings)
    notes += _write(collection, prepared, dense, lexical, update=False)
    return Built(collection, resolved, (*prepared.decisions, *notes))


def _encoder_for(
    corpus: Corpus, encoder: Any, embeddings: npt.ArrayLike | None
) -> BaseEncoder | None:
    """Return the encoder, fitted to the corpus if it has to be; None where there is none."""
    if embeddings is None:
        require_text(corpus)  # of which an encoder could learn, or show how long its vectors are
        if encoder is None:
            return None
        texts = [text for text in dict.fromkeys(corpus.texts) if text.strip()]
        return resolve_encoder(encoder, cached=True).fitted_to(texts).for_search
    if encoder is None:  # it is needed for queries alone
        return None
    resolved = resolve_encoder(encoder, cached=True)
    if not resolved.is_fitted:
        raise InputError(
            "encoder", "the one that made the embeddings", encoder,
            Remedy("encoder", None, "give the fitted one"),
        )  # fmt: skip
    width, expected = np.shape(embeddings)[1:], resolved.dimensions
    if expected is not None and len(width) == 1 and width[0] != expected:
        raise InputError(
            "embeddings", f"vectors of {expected} dimensions, as {resolved.name} makes them",
            found=f"{width[0]}", remedy=Remedy("encoder", None, "give the one that made them"),
        )  # fmt: skip
    return resolved


def _write(
    collection: Collection,
    prepared: Prepared,
    dense: DenseSettings,
    lexical: LexicalSettings,
    update: bool,
) -> list[Decision]:
    measured: list[Mapping[str, Any]] = []
    make = segment_maker(
        lambda sources: prepared.vectors,
        lambda documents, spans: prepared.passages,
        dense, lexical, measured,
    )  # fmt: skip
    with collection.writing() as writer:
        writer.add(
            prepared.ids, prepared.texts, prepared.metadata, prepared.positions, prepared.spans,
            make, update=update,
        )  # fmt: skip
        notes = list(writer.decisions)
    words_only = collection.settings().get("words_only")
    for about in () if words_only else measured:
        message = f"The dense index is {about['kind']}: {about['why']}."
        notes.append(Decision("retrieval", "dense index", about["kind"], message))
        if not about["measured"]["reached"]:
            recall = about["measured"]["recall"]
            notes.append(Decision(
                "retrieval", "recall missed", recall,
                f"The dense index finds {recall:.1%} of the ten nearest passages, less than the "
                f"{about['settings']['recall']:.1%} that were asked for; kind='flat' finds all.",
            ))  # fmt: skip
    return notes


def add(
    reader: IndexReader,
    corpus: Corpus,
    embeddings: npt.ArrayLike | None,
    update: bool,
    show_progress: bool | None,
) -> tuple[Decision, ...]:
    """Add a corpus as a segment of its own; what cannot be added is refused before encoding."""
    collection = reader.collection
    settings = collection.settings()
    attached = settings.get("topics", {}).get("columns", ())
    own = [name for name in attached if name in corpus.metadata]
    if own:
        raise InputError(
            f"The metadata has a column {own[0]!r} of its own, which in the index is that of "
            "attached topics; rename it."
        )
    collection.check_new(corpus.ids, corpus.metadata, update=update)
    width, words_only = settings["n_dimensions"], settings.get("words_only")
    if embeddings is not None and words_only:
        raise InputError("embeddings", "left out for an index of words alone")
    if embeddings is not None:
        embeddings = given_vectors(embeddings, len(corpus), "embeddings", width)
    prepared = prepare(
        corpus, None if words_only or embeddings is not None else reader.encoder,
        passages=settings["passages"], embeddings=embeddings, width=width,
        show_progress=show_progress,
    )  # fmt: skip
    dense = DenseSettings.from_json(settings["dense"])
    lexical = LexicalSettings.from_json(settings["lexical"])
    return (*prepared.decisions, *_write(collection, prepared, dense, lexical, update))


def compact(collection: Collection) -> bool:
    """Write all that is there as one segment; vectors are copied, not made again."""
    settings = collection.settings()
    make = segment_maker(
        _vectors_from,
        lambda documents, spans: _texts_of(collection, documents, spans),
        DenseSettings.from_json(settings["dense"]),
        LexicalSettings.from_json(settings["lexical"]),
        [],
    )
    with collection.writing() as writer:
        return writer.compact(make)


def _vectors_from(sources: Sources | None) -> FloatArray:
    assert sources is not None
    parts = [open_dense(view.folder).vectors for view in sources.segments]
    vectors = np.empty((len(sources.row), parts[0].shape[1]), dtype=np.float32)
    for number, part in enumerate(parts):
        here = sources.segment == number
        vectors[here] = stored_vectors(part, sources.row[here])
    return vectors


def _texts_of(collection: Collection, documents: Int64Array, spans: Int32Array) -> list[str]:
    texts: dict[int, str] = {}
    numbers = np.unique(documents).tolist()
    for start in range(0, len(numbers), DOCUMENTS_AT_ONCE):
        for document in collection.documents(numbers[start : start + DOCUMENTS_AT_ONCE]):
            assert document is not None  # the only writer asks
            texts[document.number] = document.text
    return [
        texts[number][start:stop]
        for number, (start, stop) in zip(documents.tolist(), spans.tolist(), strict=True)
    ]
