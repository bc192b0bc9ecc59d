"""Building an index, adding documents and compacting: everything that writes segments."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.display import spell_count
from embedtopics._utils.folders import find_folder, only_writer
from embedtopics.corpus._alignment import align_frame
from embedtopics.corpus._corpus import Corpus, require_text
from embedtopics.corpus._texts import TEXT
from embedtopics.corpus._windows import split_into_passages
from embedtopics.encoders._base import language_warning
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._order import check_order, require_cosine
from embedtopics.encoders._registry import describe_encoder, resolve_encoder
from embedtopics.encoders.words._storage import save_words
from embedtopics.errors import EmbedTopicsError, InputError, Remedy
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.results import Decision, counted
from embedtopics.retrieval._bm25 import LexicalSettings, build_lexical, lexical_settings
from embedtopics.retrieval._reader import IndexReader, checked_vectors, encode_texts, write_sum
from embedtopics.retrieval.dense._build import MIN_RECALL, build_dense
from embedtopics.retrieval.dense._segment import DenseSettings, open_dense
from embedtopics.retrieval.storage._catalog import ENCODER
from embedtopics.retrieval.storage._checks import check_target
from embedtopics.retrieval.storage._collection import Collection
from embedtopics.retrieval.storage._metadata import read_frame
from embedtopics.retrieval.storage._segments import Sources
from embedtopics.terms._languages import detect_languages, main_languages
from embedtopics.terms._rules import choose_rules


@dataclass(frozen=True)
class BuildOptions:
    """Options of a new index; see `SearchIndex.build`."""

    encoder: Any
    embeddings: npt.ArrayLike | None
    passages: bool
    dense: DenseSettings
    languages: tuple[str, ...] | None
    stop_words: tuple[str, ...] | None
    stems: bool
    words: Any
    columns: Mapping[str, Any]
    show_progress: bool | None


@dataclass(frozen=True, eq=False)
class IndexBuild:
    """A new collection, its encoder and the decisions of the build."""

    collection: Collection
    encoder: BaseEncoder | None
    decisions: tuple[Decision, ...]


def as_list(values: Iterable[Any], what: str) -> list[Any]:
    """Return values as a list, or refuse one string or number."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(what, "a list", values)
    return list(values)


ROLES = ("text", "id", "time")


def read_documents(data: Any, columns: Mapping[str, Any], encoding: str = "utf-8") -> Corpus:
    """Return a corpus of anything that holds texts."""
    roles: dict[str, Any] = {role: name for role, name in columns.items() if name is not None}
    if isinstance(data, Corpus):
        for role, name in roles.items():
            raise InputError(role, "left out for a corpus, whose columns are known", name)
        return data
    return Corpus(data, **roles, encoding=encoding)


def read_more(
    reader: IndexReader,
    data: Any,
    columns: Mapping[str, Any],
    update: bool,
    encoding: str = "utf-8",
) -> Corpus:
    """Return a corpus of documents to add; columns default to those of the build."""
    collection, recorded = reader.collection, reader.collection.settings().get("columns", {})
    kinds = collection.columns()
    if isinstance(data, Corpus):
        return _with_texts(read_documents(data, columns), kinds)
    guessed = read_documents(data, dict.fromkeys(ROLES), encoding)
    if guessed.text_column is None:  # a list of texts
        return read_documents(data, columns, encoding)
    names = [str(guessed.text_column), *map(str, guessed.metadata.columns)]
    roles = dict(columns)
    for role in ROLES:
        built = recorded.get(role)
        built_names = built if isinstance(built, list) else [built]
        if not roles[role] and {*built_names} <= {*names}:
            roles[role] = built
    if roles["text"] is None and names[0] in kinds:
        raise InputError(
            "text", "given", found=f"a table whose text column seems to be "
            f"{names[0]!r}, a column of the metadata of the index",
        )  # fmt: skip
    has_ids = "id" in map(str.casefold, names) and (update or "id" not in kinds)
    if roles["id"] is None and (has_ids or recorded.get("id")):
        remedy = "without it, ids are made from the texts, and replace no text that has changed"
        raise InputError("id", "the column of ids", remedy=remedy)
    if roles["time"] is None:
        dates = [name for name in names if kinds.get(name) == "date"]
        roles["time"] = dates[0] if dates else None
    return _with_texts(read_documents(data, roles, encoding), kinds)


def _with_texts(corpus: Corpus, kinds: Mapping[str, str]) -> Corpus:
    """Convert numbers of a csv file to texts in columns that hold texts in the index."""
    import pandas as pd

    metadata = corpus.metadata
    texts = [
        name
        for name in metadata.columns
        if kinds.get(name) == "text" and pd.api.types.is_numeric_dtype(metadata[name])
    ]
    if not corpus.source.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".xlsx")):
        return corpus
    converted = copy(corpus)
    vars(converted)["metadata"] = metadata.astype(dict.fromkeys(texts, "string"))
    return converted


class Passages(NamedTuple):
    """The passages of a corpus, ready to be written."""

    positions: Int64Array  # (n_passages,), their documents
    spans: Int32Array  # (n_passages, 2), their characters
    vectors: FloatArray  # (n_passages, n_dimensions)
    decisions: list[Decision]


def prepare(
    corpus: Corpus,
    encoder: BaseEncoder | None,
    *,
    passages: bool,
    embeddings: npt.ArrayLike | None = None,
    width: int = 0,
    show_progress: bool | None = None,
) -> Passages:
    """Split documents into passages and encode them; without an encoder, vectors are zero."""
    decisions = list(corpus.decisions)
    if passages and embeddings is None:
        can_cut = encoder is not None and encoder.windows([]) is not None
        _, rows, spans = split_into_passages(corpus, encoder if can_cut else None)
    else:
        rows = list(range(len(corpus)))
        spans = [(0, len(text)) for text in corpus.texts]
    has_text = np.asarray(corpus.status) == TEXT
    # An empty span marks a passage that no search may find, such as one of blanks.
    spans = [span if has_text[row] else (0, 0) for row, span in zip(rows, spans, strict=True)]

    if embeddings is None and encoder is None:
        vectors = np.zeros((len(rows), 1), dtype=np.float32)
    elif embeddings is None:
        texts = _cut(corpus.texts, rows, spans)
        vectors, notes = _vectors_of(encoder, texts, width, show_progress)
        decisions += notes
    else:
        embeddings = align_frame(embeddings, corpus, "embeddings")
        vectors = checked_vectors(embeddings, len(corpus), "embeddings")

    message = f"of {len(corpus):,} documents have no text: no query finds them."
    decisions += counted("retrieval", "without text", int((~has_text).sum()), message)
    return Passages(
        np.array(rows, dtype=np.int64),
        np.array(spans, dtype=np.int32).reshape(-1, 2),
        vectors,
        decisions,
    )


def _cut(
    texts: Sequence[str] | Mapping[int, str], rows: Sequence[int], spans: Sequence[Sequence[int]]
) -> list[str]:
    return [texts[row][start:stop] for row, (start, stop) in zip(rows, spans, strict=True)]


def _vectors_of(
    encoder: Any, texts: Sequence[str], width: int, show_progress: bool | None
) -> tuple[FloatArray, list[Decision]]:
    """Encode each distinct passage once; report passages that the encoder truncates."""
    numbers: dict[str, int] = {}
    rows = np.array(
        [numbers.setdefault(text, len(numbers)) if text else -1 for text in texts], dtype=np.int64
    )
    if not numbers:
        return np.zeros((len(texts), width), dtype=np.float32), []
    vectors, report = encode_texts(encoder, list(numbers), show_progress=show_progress)
    if len(numbers) < len(texts):  # else the order is the same, and no copy is needed
        vectors = vectors[rows]
        vectors[rows < 0] = 0.0
    n_cut = int((report.n_seen < report.n_tokens).sum())
    message = f"The encoder reads only the beginning of {spell_count(n_cut, 'passage', 'passages')}"
    message += "; only lexical search covers the rest."
    return vectors, [Decision("retrieval", "truncated", n_cut, message)] if n_cut else []


def _write_segment(
    folder: Path,
    vectors: FloatArray,
    texts: Sequence[str],
    dense: DenseSettings,
    lexical: LexicalSettings,
) -> dict[str, Any]:
    """Write the vectors, dense index and postings of a segment; return the measurements."""
    about = build_dense(folder, vectors, dense)
    write_sum(folder, vectors)
    (folder / "lexical").mkdir(exist_ok=True)
    build_lexical(folder / "lexical", texts, lexical)
    return about


def build(corpus: Corpus, out: Path | None, options: BuildOptions, overwrite: bool) -> IndexBuild:
    """Make a collection of a corpus; the folder `out` appears when it is complete."""
    target = None if out is None else find_folder(out)
    if target is None:
        parent = Path(tempfile.mkdtemp(prefix="embedtopics-index-"))
        try:
            return _build_in(parent / "index", corpus, options)
        except BaseException:  # an interrupt too
            shutil.rmtree(parent, ignore_errors=True)
            raise
    check_target(target, overwrite)  # before hours of encoding
    # The next build finds and deletes what a killed build left.
    beside = target.with_name(f".{target.name}.building")
    with only_writer(target.with_name(f"{target.name}.building")):
        shutil.rmtree(beside, ignore_errors=True)
        try:
            built = _build_in(beside, corpus, options)
            copied = built.collection.copy_to(target, overwrite=overwrite)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return IndexBuild(copied, built.encoder, built.decisions)


UNRECOGNIZED = (
    "Every text is too short to recognize its language, so words are compared without English "
    "endings; name the languages by languages=."
)


def _build_in(folder: Path, corpus: Corpus, options: BuildOptions) -> IndexBuild:
    notes: list[Decision] = []
    read_frame(corpus.metadata, [])  # refuse metadata before hours of encoding
    embeddings = options.embeddings
    resolved = _encoder_for(corpus, options.encoder, embeddings)

    languages = options.languages
    is_unrecognized = False
    if languages is None:
        shares = detect_languages(corpus.texts)
        languages = main_languages(shares)
        warning = None if resolved is None else language_warning(resolved, shares)
        notes += [] if warning is None else [warning]
        is_unrecognized = shares.n_sampled == 0 and options.stems

    if not options.passages:
        resolved = None if resolved is None else resolved.reading_to_ends(corpus.texts)
    if callable(options.words):
        expected = "a name, because an index stores no function"
        raise InputError("words", expected, options.words)
    rules, rule_notes = choose_rules(options.words, languages)
    notes += rule_notes
    if rules.social in ("", "split"):
        rules = replace(rules, addresses=True)
    lexical = lexical_settings(
        languages, stop_words=options.stop_words, stems=options.stems, rules=rules
    )
    if is_unrecognized:
        # Texts of a few words are mostly examples: singular and plural of English are one word.
        lexical = replace(lexical, stems=("en",))
        notes.append(Decision("retrieval", "language", "en", UNRECOGNIZED))

    prepared = prepare(
        corpus, resolved, passages=options.passages, embeddings=embeddings,
        show_progress=options.show_progress,
    )  # fmt: skip
    notes += [] if embeddings is not None or resolved is None else resolved.decisions
    notes += [] if embeddings is None else _check_order(resolved, corpus, prepared)

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
    notes += _write(collection, corpus, prepared, dense, lexical, update=False)
    if resolved is not None and resolved.learns:  # queries need what it learned from the texts
        save_words(resolved.uncached, folder / ENCODER)
    return IndexBuild(collection, resolved, (*prepared.decisions, *notes))


def _encoder_for(
    corpus: Corpus, encoder: Any, embeddings: npt.ArrayLike | None
) -> BaseEncoder | None:
    """Return the encoder, fitted to the corpus if necessary; None without one."""
    if embeddings is None:
        require_text(corpus)  # the encoder may learn from it
        if encoder is None:
            return None
        texts = [text for text in dict.fromkeys(corpus.texts) if text.strip()]
        resolved = resolve_encoder(encoder, cached=True).fitted_to(texts)
        require_cosine(resolved)
        return resolved

    if encoder is None:  # queries may come with vectors
        return None
    resolved = resolve_encoder(encoder, cached=True)
    if not resolved.is_fitted:
        raise InputError(
            "encoder", "the one that made the embeddings", encoder,
            Remedy("encoder", None, "give the fitted one"),
        )  # fmt: skip

    width = np.shape(embeddings)[1:]
    expected = resolved.dimensions
    if expected is not None and len(width) == 1 and width[0] != expected:
        raise InputError(
            "embeddings", f"vectors of {expected} dimensions, as {resolved.name} makes them",
            found=f"{width[0]}", remedy=Remedy("encoder", None, "give the one that made them"),
        )  # fmt: skip

    require_cosine(resolved)
    return resolved


def _check_order(encoder: BaseEncoder | None, corpus: Corpus, prepared: Passages) -> list[Decision]:
    """Refuse given vectors that the encoder does not make of the texts in this order."""
    if encoder is None:
        return []
    texts = [corpus.texts[position] for position in prepared.positions.tolist()]
    note = check_order(encoder.reading("document"), texts, prepared.vectors)
    return [] if note is None else [note]


def _write(
    collection: Collection,
    corpus: Corpus,
    prepared: Passages,
    dense: DenseSettings,
    lexical: LexicalSettings,
    update: bool,
) -> list[Decision]:
    measured: list[dict[str, Any]] = []

    def make(folder: Path, *_: Any) -> None:
        texts = _cut(corpus.texts, prepared.positions.tolist(), prepared.spans.tolist())
        measured.append(_write_segment(folder, prepared.vectors, texts, dense, lexical))

    with collection.writing() as writer:
        writer.add(
            corpus.ids, corpus.texts, corpus.metadata, prepared.positions, prepared.spans,
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
                f"The dense index finds {recall:.1%} of the ten nearest passages, less than "
                f"{MIN_RECALL:.0%}; kind='flat' finds all.",
            ))  # fmt: skip
    return notes


def add(
    reader: IndexReader,
    corpus: Corpus,
    embeddings: npt.ArrayLike | None,
    update: bool,
    show_progress: bool | None,
) -> tuple[Decision, ...]:
    """Add a corpus as a new segment; check it before encoding."""
    collection = reader.collection
    settings = collection.settings()
    for name in settings.get("topics", {}).get("columns", ()):
        if name in corpus.metadata:
            raise InputError(
                f"The metadata has a column {name!r}, which holds attached topics in the index; "
                "rename it."
            )
    collection.check_new(corpus.ids, corpus.metadata, update=update)
    width = settings["n_dimensions"]
    words_only = settings.get("words_only")
    if embeddings is not None and words_only:
        raise InputError("embeddings", "left out for an index without vectors")
    if embeddings is not None:
        embeddings = checked_vectors(embeddings, len(corpus), "embeddings", width)

    encoder_of_texts: BaseEncoder | None = None
    if not words_only and embeddings is None:
        encoder_of_texts = reader.encoder
    prepared = prepare(
        corpus, encoder_of_texts,
        passages=settings["passages"], embeddings=embeddings, width=width,
        show_progress=show_progress,
    )  # fmt: skip

    notes: list[Decision] = []
    if embeddings is not None:
        encoder: BaseEncoder | None = None
        with suppress(EmbedTopicsError):  # the encoder of the index is unknown, or not there
            encoder = reader.encoder
        notes = _check_order(encoder, corpus, prepared)

    dense = DenseSettings.from_json(settings["dense"])
    lexical = LexicalSettings.from_json(settings["lexical"])
    notes += _write(collection, corpus, prepared, dense, lexical, update)
    return (*prepared.decisions, *notes)


def compact(collection: Collection) -> bool:
    """Merge all segments into one; copy their vectors."""
    settings = collection.settings()
    dense = DenseSettings.from_json(settings["dense"])
    lexical = LexicalSettings.from_json(settings["lexical"])

    def make(
        folder: Path, documents: Int64Array, spans: Int32Array, sources: Sources | None
    ) -> None:
        assert sources is not None
        parts = [open_dense(view.folder).vectors for view in sources.segments]
        vectors = np.empty((len(sources.row), parts[0].shape[1]), dtype=np.float32)
        for number, part in enumerate(parts):
            positions = sources.segment == number
            vectors[positions] = part[sources.row[positions]]
        stored = collection.documents(np.unique(documents).tolist())
        text_of = {document.number: document.text for document in stored if document}
        texts = _cut(text_of, documents.tolist(), spans.tolist())
        _write_segment(folder, vectors, texts, dense, lexical)

    with collection.writing() as writer:
        return writer.compact(make)
