"""A result as a folder: arrays in Arrow files, rows in parquet, the rest in JSON; never pickle.

::

    manifest.json     kind, format version, size and SHA-256 of every file
    result.json       topics, settings, versions, timings, decisions, history
    rows.parquet      texts, ids and the input's other columns, with the caller's index
    arrays.arrow      documents, graph, coordinates, map, hierarchy, labels, stability, token ids,
                      sparse matrices
    embeddings.npy    unit vectors, float32
    words.json        words of the token stream, terms, stop words

Formats 1 and 2 had the arrays in ``arrays.npz``, not compressed, and edits of which only a
sentence was kept; format 1 had no hierarchy, reasons, memory or stability. All are read.
"""

from __future__ import annotations

import dataclasses
import json
import mmap
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_matrix

from embedtopics._utils.checks import typed
from embedtopics._utils.folders import (
    MANIFEST,
    SavedFolder,
    open_saved,
    parse_json,
    replacing_folder,
    write_manifest,
)
from embedtopics.clustering.results import Clustering, SpanningTree
from embedtopics.corpus._corpus import Corpus, recall_hashes
from embedtopics.corpus._table_files import storable, unique_names
from embedtopics.corpus._texts import held_in_arrow, mapped_table
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.decisions import Decision
from embedtopics.errors import CorruptFileError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray
from embedtopics.terms.results import TermCounts, TokenStream, WordRules
from embedtopics.topics._saved_parts import Texts, check_parts, part_of
from embedtopics.topics.results import (
    Edit,
    Stability,
    Topic,
    TopicConstraints,
    TopicMark,
    TopicResult,
)

KIND = "embedtopics topic result"
FORMAT = 3
SPARSE = ("memberships", "counts", "topic_terms")
IN_RESULT = (
    "corpus", "graph", "topics", "decisions", "settings", "versions", "timings", "history",
)  # fmt: skip
IN_WORDS = ("words", "terms", "stop_words", "function_words")
COLUMNS = ("text_column", "time_column", "group_column")

ON_DISK = {
    "probabilities": "strengths", "cannot_link": "apart", "is_seeded": "is_anchor",
}  # fmt: skip
"""Names of fields that files keep as the first version wrote them."""
IN_CODE = {stored: name for name, stored in ON_DISK.items()}


def save_result(result: TopicResult, folder: str | Path) -> Path:
    """Save a result.

    The folder is written beside its place and then moved there: where anything fails, what
    was saved there before stays whole.

    Parameters
    ----------
    result : TopicResult
    folder : str or Path
        New, empty, or a saved result that is to be replaced.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InputError
        Where the folder holds other files or cannot be written.
    """
    with replacing_folder(folder, KIND) as fresh:
        write_result(result, fresh)
    return Path(folder)


def write_result(result: TopicResult, folder: Path) -> None:
    """Write the files of a result into an empty folder."""
    # Compressing texts and compressing arrays each keep one core busy.
    with ThreadPoolExecutor(2) as threads:
        written = [
            threads.submit(_write_rows, result.corpus, folder / "rows.parquet"),
            threads.submit(write_arrays, folder / "arrays.arrow", _arrays_of(result)),
        ]
        np.save(folder / "embeddings.npy", result.embeddings, allow_pickle=False)
        _write_texts(result, folder)
        for one in written:
            one.result()
    write_manifest(folder, KIND, FORMAT)


def _write_texts(result: TopicResult, folder: Path) -> None:
    corpus, counts, stability = result.corpus, result.term_counts, result.stability
    words = {
        "words": result.tokens.words,
        "terms": counts.terms,
        "stop_words": counts.stop_words,
        "function_words": counts.function_words,
    }
    content = {
        "corpus": {
            **{name: _saved_name(corpus, getattr(corpus, name)) for name in COLUMNS},
            "source": corpus.source,
            "notes": corpus.notes,
        },
        "graph": {"method": result.graph.method, "recall": result.graph.recall},
        **{name: getattr(result, name) for name in IN_RESULT[2:]},
        "word_rules": result.tokens.rules.to_json(),
        "peak_memory": result.peak_memory,
        "n_replicates": None if stability is None else stability.n_replicates,
        "guide": None
        if result.constraints is None
        else {
            name: value
            for name, value in _fields(result.constraints).items()
            if not isinstance(value, np.ndarray)
        },
    }
    for name, values in (("words.json", words), ("result.json", content)):
        with (folder / name).open("w", encoding="utf-8") as stream:
            stream.write(json.dumps(as_json(values), allow_nan=False))
            stream.flush()
            os.fsync(stream.fileno())


def as_json(value: Any) -> Any:
    """Turn a value into what JSON knows; NaN, which it does not, becomes null."""
    if dataclasses.is_dataclass(value):
        value = _fields(value)
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, (int, float, type(None))) else repr(value)


def _fields(part: Any) -> dict[str, Any]:
    """Return the fields of a dataclass under the names that files keep."""
    names = [item.name for item in dataclasses.fields(part)]
    return {ON_DISK.get(name, name): getattr(part, name) for name in names}


def _arrays_of(result: TopicResult) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, Any] = {
        "coordinates": result.coordinates,
        "map": result.map,
        "lengths": result.term_counts.lengths,
    }
    if result.added is not None:
        arrays["added"] = result.added
    parts = {
        "documents": result.documents,
        "graph": result.graph,
        "clustering": result.clustering,
        "tokens": result.tokens,
        "tree": result.tree,
        "stability": result.stability,
        "guide": result.constraints,
    }
    for name, part in parts.items():
        for field, value in {} if part is None else _fields(part).items():
            if isinstance(value, np.ndarray):
                arrays[f"{name}.{field}"] = value
    matrices = (result.memberships, result.term_counts.counts, result.topic_terms)
    for name, matrix in zip(SPARSE, matrices, strict=True):
        for field in ("data", "indices", "indptr"):
            arrays[f"{name}.{field}"] = getattr(matrix, field)
        arrays[f"{name}.shape"] = np.array(matrix.shape, dtype=np.int64)
    return arrays


def load_result(folder: str | Path) -> TopicResult:
    """Load a saved result; every file is checked against its recorded checksum.

    Parameters
    ----------
    folder : str or Path

    Returns
    -------
    TopicResult
        Equal to the one that was saved, bit for bit, but for columns of the input that files
        cannot hold as they are: these come back as text.

    Raises
    ------
    InputError
        Where the folder does not exist.
    CorruptFileError
        Where it is not a saved result, was damaged, or is of a newer version.
    """
    with open_saved(folder, KIND, FORMAT) as saved:
        in_arrays = "arrays.npz" if "arrays.npz" in saved.streams else "arrays.arrow"
        for name in (in_arrays, "embeddings.npy", "result.json", "rows.parquet", "words.json"):
            if name not in saved.streams:
                listed = f"{saved.folder / MANIFEST} does not list {name}"
                raise CorruptFileError(f"{listed}; save again")
        content = _read(saved, "result.json", lambda stream: _read_json(stream, IN_RESULT))
        read_all = _read_npz if in_arrays == "arrays.npz" else read_arrays
        with ThreadPoolExecutor(1) as thread:
            unpacked = thread.submit(_read, saved, in_arrays, read_all)
            words = _read(saved, "words.json", lambda stream: _read_json(stream, IN_WORDS))
            embeddings = _read(saved, "embeddings.npy", partial(np.load, allow_pickle=False))
            rows = _read(saved, "rows.parquet", partial(_read_rows, about=content["corpus"]))
            arrays = unpacked.result()
    try:
        result = _result_of(content, words, arrays, embeddings, rows)
        check_parts(result)
        return result
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise CorruptFileError(
            f"{saved.folder / 'result.json'} does not fit the arrays and words beside it "
            f"({_one_line(error)}); save the result again"
        ) from error


def _read(saved: SavedFolder, name: str, reader: Callable[[BinaryIO], Any]) -> Any:
    """Read a file of the folder; whatever a library says of a broken one, it is named."""
    try:
        return reader(saved.streams[name])
    # Its checksum is right, so that it was written so: by another program, or by hand. The errors
    # of five libraries are possible here.
    except Exception as error:
        raise CorruptFileError(
            f"{saved.folder / name} cannot be read ({_one_line(error)}); save the result again, or "
            "restore the file from a copy"
        ) from error


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _read_json(stream: BinaryIO, names: tuple[str, ...]) -> dict[str, Any]:
    content = parse_json(stream.read())
    if not isinstance(content, dict):
        raise ValueError("it holds no object")
    if missing := [name for name in names if name not in content]:
        raise ValueError(f"it lacks {', '.join(missing)}")
    return content


def _read_npz(stream: BinaryIO) -> dict[str, npt.NDArray[Any]]:
    with np.load(stream, allow_pickle=False) as stored:
        if any(item.compress_type for item in stored.zip.infolist()):
            raise ValueError("it is compressed, as no version wrote it")
        return dict(stored)


def _mapped(stream: BinaryIO) -> Any:
    """Return an open file as a buffer of Arrow."""
    return pa.py_buffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))


def _result_of(
    content: dict[str, Any],
    words: dict[str, Any],
    arrays: dict[str, npt.NDArray[Any]],
    embeddings: FloatArray,
    rows: Corpus,
) -> TopicResult:
    sparse = {name: _sparse(_part(arrays, name)) for name in SPARSE}
    documents = DistinctDocuments(**_part(arrays, "documents"))
    tree, guide = _part(arrays, "tree"), content.get("guide")
    if guide is not None:
        guide.pop("is_pure", None)  # of strict labels, which there were in version 0.1.0
    n_replicates = content.get("n_replicates")
    return TopicResult(
        corpus=recall_hashes(rows, documents),
        documents=documents,
        embeddings=embeddings,
        graph=typed(NeighborGraph(**_part(arrays, "graph"), **content["graph"])),
        coordinates=arrays["coordinates"],
        map=arrays["map"],
        clustering=Clustering(**_part(arrays, "clustering")),
        memberships=sparse["memberships"],
        tokens=TokenStream(
            **_part(arrays, "tokens"),
            words=part_of(words, "words", Texts),
            rules=WordRules.from_json(content.get("word_rules")),
        ),
        term_counts=TermCounts(
            counts=sparse["counts"],
            lengths=arrays["lengths"],
            **{name: part_of(words, name, Texts) for name in IN_WORDS[1:]},
        ),
        topic_terms=sparse["topic_terms"],
        topics=tuple(
            typed(Topic(**{**_with_tuples(topic), "persistence": _number(topic["persistence"])}))
            for topic in content["topics"]
        ),
        decisions=tuple(typed(Decision(**one)) for one in content["decisions"]),
        settings=part_of(content, "settings", Mapping[str, Any]),
        versions=part_of(content, "versions", Mapping[str, str]),
        timings=part_of(content, "timings", Mapping[str, float]),
        history=tuple(_edit(edit) for edit in content["history"]),
        tree=SpanningTree(**tree) if tree else None,
        peak_memory=_number(content.get("peak_memory")),
        stability=None
        if n_replicates is None
        else typed(Stability(**_part(arrays, "stability"), n_replicates=n_replicates)),
        constraints=None
        if guide is None
        else typed(TopicConstraints(**_part(arrays, "guide"), **_with_tuples(guide))),
        added=arrays.get("added"),
    )


def _part(arrays: dict[str, Any], name: str) -> dict[str, Any]:
    start = f"{name}."
    found = {k.removeprefix(start): value for k, value in arrays.items() if k.startswith(start)}
    return {IN_CODE.get(key, key): value for key, value in found.items()}


def _sparse(part: dict[str, Any]) -> csr_matrix:
    matrix = csr_matrix(
        (part["data"], part["indices"], part["indptr"]), shape=tuple(part["shape"].tolist())
    )
    # It takes narrower indices where they suffice; what was saved comes back as it was.
    matrix.indices, matrix.indptr = part["indices"], part["indptr"]
    return matrix


def _with_tuples(content: dict[str, Any]) -> dict[str, Any]:
    """Turn the lists of JSON back into tuples, and names on disk into those of the code."""
    return {
        IN_CODE.get(name, name): tuple(value) if isinstance(value, list) else value
        for name, value in content.items()
    }


def _number(value: float | None) -> float:
    """Turn null back into NaN."""
    return float("nan") if value is None else float(value)


def _edit(content: dict[str, Any] | str) -> Edit:
    """Read an edit; up to format 2 there was only what it said of itself."""
    if isinstance(content, str):
        return Edit("note", message=content)
    marks = tuple(typed(TopicMark(**_with_tuples(mark))) for mark in content["marks"])
    return typed(Edit(**{**_with_tuples(content), "marks": marks}))


# Arrays in one compressed file that any Arrow library reads.
#
# One row an array: its name, its type, its shape, and its bytes, the last axis the fastest. Counts
# and word ids are small numbers in wide integers, which Zstandard packs to a third within a tenth
# of a second; zlib would take longer than everything else in a save.

LEVEL = 1
"""Of Zstandard; higher ones take twice the time to save a tenth."""


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays of numbers."""
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", LEVEL))
    schema = _schema()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as file:
        # A batch for each, so that no more than one is held twice.
        for name, array in arrays.items():
            plain = np.ascontiguousarray(array)
            if plain.dtype.kind not in "biuf":
                raise TypeError(f"{name} is an array of {plain.dtype}, not of numbers")
            ordered = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
            content = [
                pa.array([name]),
                pa.array([ordered.dtype.str]),
                pa.array([list(array.shape)], type=schema.field("shape").type),
                _bytes_of(ordered),
            ]
            file.write_batch(pa.record_batch(content, schema=schema))


def read_arrays(stream: BinaryIO) -> dict[str, npt.NDArray[Any]]:
    """Read what `write_arrays` wrote: the same types, shapes and bits."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    with pa.BufferReader(_mapped(stream)) as source:
        file = pa.ipc.open_file(source)
        if file.schema != _schema():
            raise ValueError("its columns are not those of a file of arrays")
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            batch.validate(full=True)  # else what it says of its own places is believed
            name, dtype, shape, content = batch.columns
            kind = np.dtype(dtype[0].as_py())
            if kind.kind not in "biuf":
                raise ValueError(f"it holds an array of {kind}, not of numbers")
            flat = np.frombuffer(content[0].as_buffer(), dtype=kind)
            # A copy, because compiled functions take no arrays that cannot be written to.
            array = flat.reshape(shape[0].as_py()).astype(kind.newbyteorder("="), copy=True)
            arrays[name[0].as_py()] = array
    return arrays


def _schema() -> Any:
    return pa.schema([
        ("name", pa.string()), ("dtype", pa.string()), ("shape", pa.list_(pa.int64())),
        ("bytes", pa.large_binary()),
    ])  # fmt: skip


def _bytes_of(array: npt.NDArray[Any]) -> Any:
    """Return the bytes of an array as the one value of an Arrow column, without a copy."""
    offsets = np.array([0, array.nbytes], dtype=np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(array)]
    return pa.Array.from_buffers(pa.large_binary(), 1, buffers)


TEXT, ID, STATUS = "__text__", "__id__", "__status__"
ROWS_AT_ONCE = 65_536
"""Rows that are written together."""


def _write_rows(corpus: Corpus, path: Path) -> None:
    """Write the rows; columns that parquet cannot hold are written as their text."""
    frame, _ = storable(corpus.metadata)
    frame.columns = pd.Index(_saved_names(corpus))
    frame.insert(0, STATUS, corpus.status)
    others = pa.Table.from_pandas(frame)
    own = [pa.field(name, pa.large_string()) for name in (TEXT, ID)]
    schema = pa.schema([*own, *others.schema], metadata=others.schema.metadata)
    # A dictionary would have to hash all texts, to find that hardly any repeats.
    columns = [name for name in schema.names if name not in (TEXT, ID)]
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=columns) as writer:
        for begin in range(0, max(len(corpus), 1), ROWS_AT_ONCE):
            part = slice(begin, begin + ROWS_AT_ONCE)
            strings = [
                pa.array(list(some[part]), pa.large_string()) for some in (corpus.texts, corpus.ids)
            ]
            rest = others.slice(begin, ROWS_AT_ONCE).columns
            writer.write_table(pa.table([*strings, *rest], schema=schema))


def _saved_name(corpus: Corpus, column: Any) -> str | None:
    """Return the name under which a column of the metadata is saved."""
    if column is None:
        return None
    names = list(corpus.metadata.columns)
    return _saved_names(corpus)[names.index(column)] if column in names else str(column)


def _saved_names(corpus: Corpus) -> list[str]:
    """Return the names of the columns of the metadata; none is one of those beside it."""
    return unique_names([TEXT, ID, STATUS, *corpus.metadata.columns])[3:]


def _read_rows(stream: BinaryIO, about: dict[str, Any]) -> Corpus:
    file = pq.ParquetFile(pa.BufferReader(_mapped(stream)))
    table = mapped_table(file.iter_batches(), file.schema_arrow)
    texts, ids = (held_in_arrow(table.column(name)) for name in (TEXT, ID))
    if texts is None or ids is None or texts.is_missing is not None:
        raise ValueError("it lacks texts")
    frame = table.drop_columns([TEXT, ID]).to_pandas()
    return Corpus.of_fields(
        texts=texts,
        ids=ids,
        status=frame.pop(STATUS).to_numpy(dtype=np.int8),
        metadata=frame,
        notes=tuple(typed(Decision(**note)) for note in about["notes"]),
        source=part_of(about, "source", str),
        **{name: part_of(about, name, str | None) for name in COLUMNS},
    )
