"""A result as a folder: arrays in Arrow files, rows in parquet, the rest in JSON; never pickle.

::

    manifest.json     kind, format version, size and SHA-256 of every file
    result.json       topics, settings, versions, timings, decisions, history
    rows.parquet      texts, ids and the input's other columns, with the caller's index
    arrays.arrow      documents, graph, coordinates, map, hierarchy, labels, stability, token ids,
                      sparse matrices
    embeddings.npy    unit vectors, float32
    words.json        words of the token stream, terms, stop words
"""

from __future__ import annotations

import dataclasses
import json
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
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

from embedtopics._utils.display import one_line
from embedtopics._utils.folders import (
    MANIFEST,
    SavedFolder,
    open_saved,
    parse_json,
    replacing_folder,
    write_manifest,
)
from embedtopics.clustering.results import NOISE, Clustering, SpanningTree
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._table_files import storable, unique_names
from embedtopics.corpus._texts import read_texts
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.decisions import Decision
from embedtopics.errors import CorruptFileError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray
from embedtopics.terms.results import TermCounts, TokenStream, WordRules
from embedtopics.topics.results import (
    Edit,
    Stability,
    Topic,
    TopicConstraints,
    TopicMark,
    TopicResult,
)

KIND = "embedtopics topic result"
FORMAT = 1
FILES = ("arrays.arrow", "embeddings.npy", "result.json", "rows.parquet", "words.json")
SPARSE = ("memberships", "counts", "topic_terms")
PLAIN = ("topics", "decisions", "settings", "versions", "timings", "history")
"""Fields of a result that ``result.json`` holds under their names."""
IN_RESULT = ("corpus", "graph", "word_rules", "n_replicates", "constraints", *PLAIN)
IN_WORDS = ("words", "terms", "stop_words", "function_words")
COLUMNS = ("text_column", "time_column", "group_column")


def save_result(result: TopicResult, folder: str | Path) -> Path:
    """Save a result.

    The files are written to a temporary folder, which then replaces `folder`. If anything fails,
    the earlier content of `folder` stays whole.

    Parameters
    ----------
    result : TopicResult
    folder : str or Path
        A new folder, an empty one, or a saved result to replace.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InputError
        If the folder holds other files or cannot be written.
    """
    with replacing_folder(folder, KIND) as fresh:
        write_result(result, fresh)
    return Path(folder)


def write_result(result: TopicResult, folder: Path) -> None:
    """Write the files of a result into an empty folder."""
    # Compressing texts and compressing arrays each keep one core busy.
    with ThreadPoolExecutor(2) as threads:
        tasks = [
            threads.submit(_write_rows, result.corpus, folder / "rows.parquet"),
            threads.submit(write_arrays, folder / "arrays.arrow", _arrays_of(result)),
        ]
        np.save(folder / "embeddings.npy", result.embeddings, allow_pickle=False)
        _write_json(result, folder)
        for task in tasks:
            task.result()
    write_manifest(folder, KIND, FORMAT)


def _write_json(result: TopicResult, folder: Path) -> None:
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
        **{name: getattr(result, name) for name in PLAIN},
        "word_rules": result.tokens.rules.to_json(),
        "n_replicates": None if stability is None else stability.n_replicates,
        "constraints": None
        if result.constraints is None
        else {
            name: value
            for name, value in vars(result.constraints).items()
            if not isinstance(value, np.ndarray)
        },
    }
    for name, values in (("words.json", words), ("result.json", content)):
        with (folder / name).open("w", encoding="utf-8") as stream:
            stream.write(json.dumps(as_json(values), allow_nan=False))
            stream.flush()
            os.fsync(stream.fileno())


def as_json(value: Any) -> Any:
    """Convert a value to JSON types; NaN and infinities become null."""
    if dataclasses.is_dataclass(value):
        value = vars(value)
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
        "constraints": result.constraints,
    }
    for name, part in parts.items():
        for field, value in {} if part is None else vars(part).items():
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
        Where `save_result`, or ``embedtopics topics`` on the command line, wrote.

    Returns
    -------
    TopicResult
        Equal to the saved one, bit for bit. Columns of the input that Parquet cannot hold come
        back as text.

    Raises
    ------
    InputError
        If the folder does not exist.
    CorruptFileError
        If it is not a saved result, was damaged, or has a newer format.
    """
    inner = Path(folder) / "model"
    with open_saved(inner if os.path.isdir(inner) else folder, KIND, FORMAT) as saved:
        for name in FILES:
            if name not in saved.streams:
                unlisted = f"{saved.folder / MANIFEST} does not list {name}"
                raise CorruptFileError(f"{unlisted}; save again")
        content = _read(saved, "result.json", partial(_read_json, names=IN_RESULT))
        with ThreadPoolExecutor(1) as thread:
            unpacking = thread.submit(_read, saved, "arrays.arrow", read_arrays)
            words = _read(saved, "words.json", partial(_read_json, names=IN_WORDS))
            embeddings = _read(saved, "embeddings.npy", partial(np.load, allow_pickle=False))
            rows = _read(saved, "rows.parquet", partial(_read_rows, about=content["corpus"]))
            arrays = unpacking.result()
    try:
        result = _result_of(content, words, arrays, embeddings, rows)
        check_parts(result)
        return result
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise CorruptFileError(
            f"{saved.folder / 'result.json'} does not match the arrays and words in the same "
            f"folder ({one_line(error)}); save the result again"
        ) from error


def _read(saved: SavedFolder, name: str, reader: Callable[[BinaryIO], Any]) -> Any:
    """Read one file of the folder, and name it in every error."""
    try:
        return reader(saved.streams[name])
    # The checksum matches, so another program or a person wrote this content. Five libraries
    # raise their own errors here.
    except Exception as error:
        raise CorruptFileError(
            f"{saved.folder / name} cannot be read ({one_line(error)}); save the result again, or "
            "restore the file from a copy"
        ) from error


def _read_json(stream: BinaryIO, names: tuple[str, ...]) -> dict[str, Any]:
    content = parse_json(stream.read())
    if not isinstance(content, dict):
        raise ValueError("expected a JSON object")
    if missing := [name for name in names if name not in content]:
        raise ValueError(f"missing keys: {', '.join(missing)}")
    return content


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
    tree, constraints = _part(arrays, "tree"), content["constraints"]
    n_replicates = content["n_replicates"]
    return TopicResult(
        corpus=recall_hashes(rows, documents),
        documents=documents,
        embeddings=embeddings,
        graph=NeighborGraph(**_part(arrays, "graph"), **content["graph"]),
        coordinates=arrays["coordinates"],
        map=arrays["map"],
        clustering=Clustering(**_part(arrays, "clustering")),
        memberships=sparse["memberships"],
        tokens=TokenStream(
            **_part(arrays, "tokens"),
            words=tuple(words["words"]),
            rules=WordRules.from_json(content["word_rules"]),
        ),
        term_counts=TermCounts(
            counts=sparse["counts"],
            lengths=arrays["lengths"],
            **{name: tuple(words[name]) for name in IN_WORDS[1:]},
        ),
        topic_terms=sparse["topic_terms"],
        topics=tuple(
            Topic(**{**_with_tuples(topic), "persistence": _number(topic["persistence"])})
            for topic in content["topics"]
        ),
        decisions=tuple(Decision(**one) for one in content["decisions"]),
        settings=content["settings"],
        versions=content["versions"],
        timings=content["timings"],
        history=tuple(_edit(edit) for edit in content["history"]),
        tree=SpanningTree(**tree) if tree else None,
        stability=None
        if n_replicates is None
        else Stability(**_part(arrays, "stability"), n_replicates=n_replicates),
        constraints=None
        if constraints is None
        else TopicConstraints(**_part(arrays, "constraints"), **_with_tuples(constraints)),
        added=arrays.get("added"),
    )


def _part(arrays: dict[str, Any], name: str) -> dict[str, Any]:
    start = f"{name}."
    return {k.removeprefix(start): value for k, value in arrays.items() if k.startswith(start)}


def _sparse(part: dict[str, Any]) -> csr_matrix:
    matrix = csr_matrix(
        (part["data"], part["indices"], part["indptr"]), shape=tuple(part["shape"].tolist())
    )
    # SciPy narrows the indices where it can; the saved types are restored.
    matrix.indices, matrix.indptr = part["indices"], part["indptr"]
    return matrix


def _with_tuples(content: dict[str, Any]) -> dict[str, Any]:
    """Convert the lists of JSON back to tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
    }


def _number(value: float | None) -> float:
    """Convert null back to NaN."""
    return float("nan") if value is None else float(value)


def _edit(content: dict[str, Any]) -> Edit:
    marks = tuple(TopicMark(**_with_tuples(mark)) for mark in content["marks"])
    return Edit(**{**_with_tuples(content), "marks": marks})


# The arrays are in one compressed file that any Arrow library reads. Each array is one row: name,
# type, shape, and bytes in C order. Counts and word ids are small numbers in wide integers:
# Zstandard compresses them to a third in a tenth of a second; zlib is slower than the whole save.

LEVEL = 1
"""Zstandard's compression level; higher levels take twice the time and save a tenth."""


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays of numbers."""
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", LEVEL))
    schema = _schema()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as file:
        # One batch per array: at most one array is in memory twice.
        for name, array in arrays.items():
            contiguous = np.ascontiguousarray(array)
            if contiguous.dtype.kind not in "biuf":
                raise TypeError(f"{name} is an array of {contiguous.dtype}, not of numbers")
            ordered = contiguous.astype(contiguous.dtype.newbyteorder("<"), copy=False)
            content = [
                pa.array([name]),
                pa.array([ordered.dtype.str]),
                pa.array([list(array.shape)], type=schema.field("shape").type),
                _bytes_of(ordered),
            ]
            file.write_batch(pa.record_batch(content, schema=schema))


def read_arrays(stream: BinaryIO) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays that `write_arrays` wrote, with the same types, shapes and bits."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    with pa.BufferReader(_mapped(stream)) as source:
        file = pa.ipc.open_file(source)
        if file.schema != _schema():
            raise ValueError("the columns are not those of a file of arrays")
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            batch.validate(full=True)  # a forged file may hold offsets beyond its end
            name, dtype, shape, content = batch.columns
            kind = np.dtype(dtype[0].as_py())
            if kind.kind not in "biuf":
                raise ValueError(f"expected arrays of numbers, got one of {kind}")
            flat = np.frombuffer(content[0].as_buffer(), dtype=kind)
            # A copy: compiled functions need writable arrays.
            array = flat.reshape(shape[0].as_py()).astype(kind.newbyteorder("="), copy=True)
            arrays[name[0].as_py()] = array
    return arrays


def _schema() -> Any:
    return pa.schema(
        [
            ("name", pa.string()),
            ("dtype", pa.string()),
            ("shape", pa.list_(pa.int64())),
            ("bytes", pa.large_binary()),
        ]
    )


def _bytes_of(array: npt.NDArray[Any]) -> Any:
    """Return the bytes of an array as the one value of an Arrow column, without a copy."""
    offsets = np.array([0, array.nbytes], dtype=np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(array)]
    return pa.Array.from_buffers(pa.large_binary(), 1, buffers)


TEXT, ID, STATUS = "__text__", "__id__", "__status__"


def _write_rows(corpus: Corpus, path: Path) -> None:
    """Write the rows; columns that Parquet cannot hold are written as text."""
    frame, _ = storable(corpus.metadata)
    frame.columns = pd.Index(_saved_names(corpus))
    frame.insert(0, STATUS, corpus.status)
    others = pa.Table.from_pandas(frame)
    text_fields = [pa.field(name, pa.large_string()) for name in (TEXT, ID)]
    schema = pa.schema([*text_fields, *others.schema], metadata=others.schema.metadata)
    # A dictionary would hash all texts, and hardly any repeats.
    columns = [name for name in schema.names if name not in (TEXT, ID)]
    strings = [pa.array(some, pa.large_string()) for some in (corpus.texts, corpus.ids)]
    table = pa.table([*strings, *others.columns], schema=schema)
    pq.write_table(table, path, compression="zstd", use_dictionary=columns)


def _saved_name(corpus: Corpus, column: Any) -> str | None:
    """Return the saved name of a column of the metadata."""
    if column is None:
        return None
    names = list(corpus.metadata.columns)
    return _saved_names(corpus)[names.index(column)] if column in names else str(column)


def _saved_names(corpus: Corpus) -> list[str]:
    """Return unique saved names of the metadata's columns, different from the reserved ones."""
    return unique_names([TEXT, ID, STATUS, *corpus.metadata.columns])[3:]


def _read_rows(stream: BinaryIO, about: dict[str, Any]) -> Corpus:
    file = pq.ParquetFile(pa.BufferReader(_mapped(stream)))
    table = file.read()
    table.validate(full=True)  # offsets of a damaged file could point anywhere
    texts, ids = (tuple(table.column(name).to_pylist()) for name in (TEXT, ID))
    if not all(isinstance(text, str) for text in (*texts, *ids)):
        raise ValueError("the texts or ids are missing")
    frame = table.drop_columns([TEXT, ID]).to_pandas()
    return Corpus.of_fields(
        texts=texts,
        ids=ids,
        status=frame.pop(STATUS).to_numpy(dtype=np.int8),
        metadata=frame,
        notes=tuple(Decision(**note) for note in about["notes"]),
        source=about["source"],
        **{name: about[name] for name in COLUMNS},
    )


# Compiled functions do not check indices: a number out of range would read or write foreign
# memory, and a folder may come from anybody.

KINDS = {"u": "uint", "i": "int", "f": "float", "b": "bool"}
"""Kinds of any width: custom stages may return wider types."""


def check_parts(result: TopicResult) -> None:
    """Raise ValueError unless every array has its kind and shape, and every index is in range."""
    n_rows, n, n_topics = len(result.corpus), len(result.documents), result.n_topics
    n_terms = len(result.term_counts.terms)
    if [topic.topic_id for topic in result.topics] != list(range(n_topics)):
        raise ValueError("topics are not numbered from 0")
    for name, array, kind, shape in _expected(result):
        if array is not None and (array.dtype.kind != kind or array.shape != shape):
            expected = f"{KINDS[kind]} of shape {shape}"
            raise ValueError(f"{name}: {array.dtype} of shape {array.shape}, expected {expected}")
    documents, clustering, tokens = result.documents, result.clustering, result.tokens
    if documents.hashes.dtype != np.uint64:
        raise ValueError(f"hashes: {documents.hashes.dtype}, expected uint64")
    if int(documents.weights.clip(0, n_rows + 1).sum()) > n_rows:
        raise ValueError("documents have more rows than there are")
    if result.embeddings.dtype != np.float32:
        raise ValueError(f"embeddings: {result.embeddings.dtype}, expected float32")
    _within("status", result.corpus.status, 0, 3)
    _within("weights", documents.weights, 1, n_rows + 1)
    _within("first_rows", documents.first_rows, 0, n_rows)
    _within("of_row", documents.of_row, NOISE, n)
    _within("neighbors", result.graph.indices, 0, n)
    _within("labels", clustering.labels, NOISE, n_topics)
    _within("reasons", clustering.reasons, 0, 127)
    _within("tokens", tokens.ids, 0, len(tokens.words))
    _within("lengths of tokens", np.diff(tokens.offsets, prepend=0), 0, len(tokens.ids) + 1)
    _within("lengths of segments", np.diff(tokens.parts, prepend=0), 0, len(tokens.ids) + 1)
    _check_sparse("memberships", result.memberships, (n, n_topics))
    _check_sparse("counts", result.term_counts.counts, (n, n_terms))
    _check_sparse("topic_terms", result.topic_terms, (n_topics, n_terms))
    for topic in result.topics:
        if len(topic.weights) != len(topic.keywords):
            raise ValueError(f"topic {topic.topic_id} lacks weights of its keywords")
        _within("representatives", np.array(topic.representatives, dtype=np.int64), 0, n_rows)
    if result.tree is not None:
        _within("hierarchy", result.tree.edges, 0, n)
    constraints = result.constraints
    if constraints is not None:
        _within("groups of the constraints", constraints.groups, NOISE, len(constraints.names))


def _expected(
    result: TopicResult,
) -> Iterator[tuple[str, npt.NDArray[Any] | None, str, tuple[int, ...]]]:
    """Yield the name, array, kind and shape of each part; None for a missing optional one."""
    n, n_topics = len(result.documents), result.n_topics
    documents, graph, clustering = result.documents, result.graph, result.clustering
    tree, stability, constraints = result.tree, result.stability, result.constraints
    yield "hashes", documents.hashes, "u", (n, 2)
    yield "first_rows", documents.first_rows, "i", (n,)
    yield "of_row", documents.of_row, "i", (len(result.corpus),)
    yield "weights", documents.weights, "i", (n,)
    yield "embeddings", result.embeddings, "f", (n, *result.embeddings.shape[1:2])
    yield "neighbors", graph.indices, "i", (n, graph.k)
    yield "similarities", graph.similarities, "f", (n, graph.k)
    yield "coordinates", result.coordinates, "f", (n, *result.coordinates.shape[1:2])
    yield "map", result.map, "f", (n, 2)
    yield "labels", clustering.labels, "i", (n,)
    yield "probabilities", clustering.probabilities, "f", (n,)
    yield "persistence", clustering.persistence, "f", (n_topics,)
    yield "reasons", clustering.reasons, "i", (n,)
    yield "tokens", result.tokens.ids, "i", (int(result.tokens.offsets[-1]),)
    yield "offsets", result.tokens.offsets, "i", (n + 1,)
    yield "lengths of terms", result.term_counts.lengths, "i", (len(result.term_counts.terms),)
    yield "added", result.added, "b", (n,)
    if tree is not None:
        yield "hierarchy", tree.edges, "i", (max(0, n - 1), 2)
        yield "lengths of the hierarchy", tree.distances, "f", (max(0, n - 1),)
        yield "core distances", tree.core_distances, "f", (n,)
    if stability is not None:
        for name in ("recurrence", "low", "high", "chance"):
            yield name, getattr(stability, name), "f", (n_topics,)
        yield "agreement", stability.agreement, "f", (n,)
    if constraints is not None:
        yield "groups of the constraints", constraints.groups, "i", (n,)
        yield "probabilities of the constraints", constraints.probabilities, "f", (n,)


def _within(name: str, numbers: npt.NDArray[Any] | None, low: int, high: int) -> None:
    """Raise ValueError unless all integers are in range(low, high)."""
    if numbers is not None and numbers.size:
        least, most = int(numbers.min()), int(numbers.max())
        if least < low or most >= high:
            raise ValueError(f"{name}: from {least} to {most}, expected {low} to {high - 1}")


def _check_sparse(name: str, matrix: Any, shape: tuple[int, int]) -> None:
    if matrix.shape != shape:
        raise ValueError(f"{name} has the shape {matrix.shape}, expected {shape}")
    if matrix.indptr.dtype.kind != "i" or matrix.indices.dtype.kind != "i":
        raise ValueError(f"{name} has indices that are not integers")
    matrix.check_format(full_check=True)


def recall_hashes(corpus: Corpus, documents: DistinctDocuments) -> Corpus:
    """Return a corpus with its known documents, so that no text is hashed again."""
    if "hashes" not in vars(corpus):
        hashes = documents.hashes[np.maximum(documents.of_row, 0)]
        others = np.flatnonzero(documents.of_row < 0)
        read = read_texts([corpus.texts[row] for row in others.tolist()], "texts")
        hashes[others] = read.hashes
        hashes.flags.writeable = False
        vars(corpus)["hashes"] = hashes
    vars(corpus)["_distinct"] = documents
    return corpus
