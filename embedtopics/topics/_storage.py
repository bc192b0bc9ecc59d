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
from pydantic import BaseModel
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
from embedtopics._utils.records import parse_record
from embedtopics.clustering.results import NOISE, Clustering, SpanningTree
from embedtopics.corpus._corpus import Corpus, corpus_of_fields
from embedtopics.corpus._table_files import storable, unique_names
from embedtopics.corpus._texts import TEXT, content_ids, read_texts
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.errors import CorruptFileError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray
from embedtopics.results import Decision
from embedtopics.terms.results import TermCounts, TokenStream, WordRules
from embedtopics.topics._describe import LEFT_OUT, TEXTS
from embedtopics.topics._former_edits import current_edit
from embedtopics.topics._records import ResultRecord, ResultWordsRecord
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
PARTS = {
    "documents": "distinct",
    "graph": "graph",
    "clustering": "clustering",
    "tokens": "tokens",
    "tree": "tree",
    "stability": "stability",
    "constraints": "constraints",
}
"""Names of the parts of a result in ``arrays.arrow``, and the fields that hold them."""
SPARSE = ("memberships", "counts", "topic_terms")
PLAIN = ("decisions", "settings", "versions", "timings")
"""Fields of a result that ``result.json`` holds under their names."""
KEYS = {"name": "label", "name_auc": "label_auc"}
"""Fields of topics and of their marks that have another key in files."""
IN_WORDS = ("words", "terms", "stop_words", "function_words")
COLUMNS = ("text_column", "time_column", "group_column")


def save_result(result: TopicResult, folder: str | Path) -> Path:
    """Save a result, see `TopicResult.save`.

    The files are written to a temporary folder, which then replaces `folder`. If anything fails,
    the earlier content of `folder` stays whole.
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
    words = {"words": result.tokens.words} | {name: getattr(counts, name) for name in IN_WORDS[1:]}
    saved_as = dict(zip(corpus.metadata.columns, _saved_names(corpus), strict=True))
    roles = {name: getattr(corpus, name) for name in COLUMNS}
    content = {
        "corpus": {
            **{name: saved_as.get(c, c and str(c)) for name, c in roles.items()},
            "source": corpus.source,
            "notes": corpus.decisions,
        },
        "graph": {"method": result.graph.method, "recall": result.graph.recall},
        "topics": [_with_keys(topic) for topic in result.topics],
        **{name: getattr(result, name) for name in PLAIN},
        "history": [
            {**vars(edit), "marks": [_with_keys(mark) for mark in edit.marks]}
            for edit in result.history
        ],
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


def _with_keys(topic: Topic | TopicMark) -> dict[str, Any]:
    """Return the fields of a topic or a mark by their keys in files."""
    return {KEYS.get(field, field): value for field, value in vars(topic).items()}


def _with_fields(content: dict[str, Any]) -> dict[str, Any]:
    """Return what a file holds on a topic or a mark by its fields, with tuples for lists."""
    field_of_key = {key: field for field, key in KEYS.items()}
    return _with_tuples({field_of_key.get(key, key): value for key, value in content.items()})


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
    lengths, added = result.term_counts.lengths, result.added
    arrays: dict[str, Any] = {
        "coordinates": result.coordinates,
        "map": result.map,
        "lengths": lengths,
    }
    arrays |= {} if added is None else {"added": added}
    for name, field_of_part in PARTS.items():
        part = getattr(result, field_of_part)
        for field, value in ({} if part is None else vars(part)).items():
            if isinstance(value, np.ndarray):
                arrays[f"{name}.{field}"] = value
    matrices = (result.memberships, result.term_counts.counts, result.topic_terms)
    for name, matrix in zip(SPARSE, matrices, strict=True):
        for field in ("data", "indices", "indptr"):
            arrays[f"{name}.{field}"] = getattr(matrix, field)
        arrays[f"{name}.shape"] = np.array(matrix.shape, dtype=np.int64)
    return arrays


def load_result(folder: str | Path) -> TopicResult:
    """Load a saved result, see `TopicResult.load`; every file is checked against its checksum."""
    inner = Path(folder) / "model"
    with open_saved(inner if os.path.isdir(inner) else folder, KIND, FORMAT) as saved:
        for name in FILES:
            if name not in saved.streams:
                unlisted = f"{saved.folder / MANIFEST} does not list {name}"
                raise CorruptFileError(f"{unlisted}; save again")

        content = _read(saved, "result.json", partial(_read_json, record=ResultRecord))
        with ThreadPoolExecutor(1) as thread:
            unpacking = thread.submit(_read, saved, "arrays.arrow", read_arrays)
            words = _read(saved, "words.json", partial(_read_json, record=ResultWordsRecord))
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


def _read_json(stream: BinaryIO, record: type[BaseModel]) -> dict[str, Any]:
    """Return a JSON object after checking all its fields."""
    content = stream.read()
    parse_record(record, content)
    read: dict[str, Any] = parse_json(content)
    return read


def _mapped(stream: BinaryIO) -> Any:
    return pa.py_buffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))


def _result_of(
    content: dict[str, Any],
    words: dict[str, Any],
    arrays: dict[str, npt.NDArray[Any]],
    embeddings: FloatArray,
    rows: Corpus,
) -> TopicResult:
    sparse: dict[str, Any] = {name: _sparse(_part(arrays, name)) for name in SPARSE}
    part = {name: _part(arrays, name) for name in PARTS}
    documents, constraints = DistinctDocuments(**part["documents"]), content["constraints"]
    word_tuples = {name: tuple(words[name]) for name in IN_WORDS}
    stream, rules = word_tuples.pop("words"), WordRules.from_json(content["word_rules"])
    n_replicates, measured = content["n_replicates"], part["stability"]
    return TopicResult(
        corpus=recall_hashes(rows, documents),
        distinct=documents,
        embeddings=embeddings,
        graph=NeighborGraph(**part["graph"], **content["graph"]),
        clustering=Clustering(**part["clustering"]),
        tokens=TokenStream(**part["tokens"], words=stream, rules=rules),
        term_counts=TermCounts(sparse.pop("counts"), lengths=arrays["lengths"], **word_tuples),
        topics=tuple(map(_topic, content["topics"])),
        decisions=tuple(Decision(**one) for one in content["decisions"]),
        history=tuple(map(_edit, content["history"])),
        tree=SpanningTree(**part["tree"]) if part["tree"] else None,
        stability=Stability(**measured, n_replicates=n_replicates) if n_replicates else None,
        constraints=constraints
        and TopicConstraints(**part["constraints"], **_with_tuples(constraints)),
        **sparse,
        coordinates=arrays["coordinates"],
        map=arrays["map"],
        added=arrays.get("added"),
        **{name: content[name] for name in ("settings", "versions", "timings")},
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


def _topic(content: dict[str, Any]) -> Topic:
    number = content["persistence"]  # JSON has no NaN
    persistence = float("nan") if number is None else float(number)
    return Topic(**{**_with_fields(content), "persistence": persistence})


def _edit(content: dict[str, Any]) -> Edit:
    marks = tuple(TopicMark(**_with_fields(mark)) for mark in content["marks"])
    return current_edit(Edit(**{**_with_tuples(content), "marks": marks}))


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
            ends = np.array([0, ordered.nbytes], dtype=np.int64)
            content = [
                pa.array([name]),
                pa.array([ordered.dtype.str]),
                pa.array([list(array.shape)], type=schema.field("shape").type),
                pa.Array.from_buffers(  # without a copy
                    pa.large_binary(), 1, [None, pa.py_buffer(ends), pa.py_buffer(ordered)]
                ),
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
    types = pa.string(), pa.string(), pa.list_(pa.int64()), pa.large_binary()
    return pa.schema(list(zip(("name", "dtype", "shape", "bytes"), types, strict=True)))


_TEXT, _ID, _STATUS = "__text__", "__id__", "__status__"


def _write_rows(corpus: Corpus, path: Path) -> None:
    """Write the rows; columns that Parquet cannot hold are written as text."""
    frame, _ = storable(corpus.metadata)
    frame.columns = pd.Index(_saved_names(corpus))
    frame.insert(0, _STATUS, corpus.status)
    others = pa.Table.from_pandas(frame)
    text_fields = [pa.field(name, pa.large_string()) for name in (_TEXT, _ID)]
    schema = pa.schema([*text_fields, *others.schema], metadata=others.schema.metadata)
    # A dictionary would hash all texts, and hardly any repeats.
    columns = [name for name in schema.names if name not in (_TEXT, _ID)]
    strings = [pa.array(some, pa.large_string()) for some in (corpus.texts, corpus.ids)]
    table = pa.table([*strings, *others.columns], schema=schema)
    pq.write_table(table, path, compression="zstd", use_dictionary=columns)


def _saved_names(corpus: Corpus) -> list[str]:
    """Return unique saved names of the metadata's columns, different from the reserved ones."""
    return unique_names([_TEXT, _ID, _STATUS, *corpus.metadata.columns])[3:]


def _read_rows(stream: BinaryIO, about: dict[str, Any]) -> Corpus:
    file = pq.ParquetFile(pa.BufferReader(_mapped(stream)))
    table = file.read()
    table.validate(full=True)  # offsets of a damaged file could point anywhere
    texts, ids = (tuple(table.column(name).to_pylist()) for name in (_TEXT, _ID))
    if not all(isinstance(text, str) for text in (*texts, *ids)):
        raise ValueError("the texts or ids are missing")
    frame = table.drop_columns([_TEXT, _ID]).to_pandas()
    return corpus_of_fields(
        texts=texts,
        ids=ids,
        status=frame.pop(_STATUS).to_numpy(dtype=np.int8),
        metadata=frame,
        decisions=tuple(Decision(**note) for note in about["notes"]),
        source=about["source"],
        **{name: about[name] for name in COLUMNS},
    )


# Compiled functions do not check indices: a number out of range would read or write foreign
# memory, and a folder may come from anybody.

SHAPES = {
    "documents.hashes": ("u", "n", 2), "documents.first_rows": ("i", "n"),
    "documents.of_row": ("i", "rows"), "documents.weights": ("i", "n"),
    "embeddings": ("f", "n", "any"), "coordinates": ("f", "n", "any"), "map": ("f", "n", 2),
    "graph.indices": ("i", "n", "k"), "graph.similarities": ("f", "n", "k"),
    "clustering.labels": ("i", "n"), "clustering.probabilities": ("f", "n"),
    "clustering.persistence": ("f", "topics"), "clustering.reasons": ("i", "n"),
    "tokens.ids": ("i", "words"), "tokens.offsets": ("i", "ends"),
    "term_counts.lengths": ("i", "terms"), "added": ("b", "n"), "tree.edges": ("i", "edges", 2),
    "tree.distances": ("f", "edges"), "tree.core_distances": ("f", "n"),
    "stability.recurrence": ("f", "topics"), "stability.low": ("f", "topics"),
    "stability.high": ("f", "topics"), "stability.chance": ("f", "topics"),
    "stability.agreement": ("f", "n"), "constraints.groups": ("i", "n"),
    "constraints.probabilities": ("f", "n"),
}  # fmt: skip
"""Kind (of any width: custom stages may return wider types) and shape of every array."""


def check_parts(result: TopicResult) -> None:
    """Raise ValueError unless every array has its kind and shape, and every index is in range."""
    n_rows, n, n_topics = len(result.corpus), len(result.distinct), result.n_topics
    documents, tokens, constraints = result.distinct, result.tokens, result.constraints
    n_terms, n_words = len(result.term_counts.terms), len(tokens.ids)
    if [topic.topic_id for topic in result.topics] != list(range(n_topics)):
        raise ValueError("topics are not numbered from 0")
    sizes: dict[Any, int] = {
        "n": n, "rows": n_rows, "topics": n_topics, "terms": n_terms, "k": result.graph.k,
        "words": int(tokens.offsets[-1]), "ends": n + 1, "edges": max(0, n - 1),
    }  # fmt: skip
    for name, (kind, *lengths) in SHAPES.items():
        array: Any = result
        part_name, *inner = name.split(".")
        for field in (PARTS.get(part_name, part_name), *inner):
            array = getattr(array, field, None)
        if array is None:  # a part that not all results have
            continue
        sizes["any"] = array.shape[-1]
        shape = tuple(sizes.get(length, length) for length in lengths)
        if array.dtype.kind != kind or array.shape != shape:
            raise ValueError(f"{name}: {array.dtype} of shape {array.shape}, expected {shape}")
    if documents.hashes.dtype != np.uint64 or result.embeddings.dtype != np.float32:
        raise ValueError("hashes are not uint64, or embeddings not float32")
    if int(documents.weights.clip(0, n_rows + 1).sum()) > n_rows:
        raise ValueError("documents have more rows than there are")
    representatives = [row for topic in result.topics for row in topic.representatives]
    ranges: dict[str, tuple[Any, int, int]] = {
        "status": (result.corpus.status, 0, 3), "weights": (documents.weights, 1, n_rows + 1),
        "first_rows": (documents.first_rows, 0, n_rows), "of_row": (documents.of_row, NOISE, n),
        "neighbors": (result.graph.indices, 0, n), "tokens": (tokens.ids, 0, len(tokens.words)),
        "labels": (result.clustering.labels, NOISE, n_topics),
        "reasons": (result.clustering.reasons, 0, 127),
        "lengths of tokens": (np.diff(tokens.offsets, prepend=0), 0, n_words + 1),
        "lengths of segments": (np.diff(tokens.parts, prepend=0), 0, n_words + 1),
        "representatives": (np.array(representatives, dtype=np.int64), 0, n_rows),
        "hierarchy": (result.tree and result.tree.edges, 0, n),
    }  # fmt: skip
    if constraints is not None:
        ranges["groups"] = constraints.groups, NOISE, len(constraints.names)
    for name, (numbers, low, high) in ranges.items():
        if (
            numbers is not None
            and numbers.size
            and not low <= numbers.min() <= numbers.max() < high
        ):
            raise ValueError(
                f"{name}: {numbers.min()} to {numbers.max()}, expected {low} to {high}"
            )
    _check_sparse("memberships", result.memberships, (n, n_topics))
    _check_sparse("counts", result.term_counts.counts, (n, n_terms))
    _check_sparse("topic_terms", result.topic_terms, (n_topics, n_terms))
    if any(len(topic.weights) != len(topic.keywords) for topic in result.topics):
        raise ValueError("topics lack weights of their keywords")


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


def without_texts(result: TopicResult) -> TopicResult:
    """Return a result without its texts, see `TopicResult.save`; the text of every row is ""."""
    counts = result.term_counts.counts
    offsets = np.zeros(len(result.distinct) + 1, dtype=np.int64)
    tokens = TokenStream(np.empty(0, dtype=np.int32), offsets, (), result.tokens.rules)
    message = "Shared without the texts, their words and the columns of the input."
    notes = {repr(note) for note in result.corpus.decisions}
    decisions = [
        decision
        for decision in result.decisions
        if repr(decision) not in notes and decision.name != "boilerplate"  # which quotes texts
    ]
    return dataclasses.replace(
        result,
        corpus=_blank_corpus(recall_hashes(result.corpus, result.distinct)),
        tokens=tokens,
        term_counts=dataclasses.replace(
            result.term_counts, counts=csr_matrix(counts.shape, dtype=counts.dtype)
        ),
        decisions=(*decisions, Decision("corpus", "texts_left_out", True, message)),
        settings={**result.settings, TEXTS: LEFT_OUT},
        constraints=None,
    )


def _blank_corpus(corpus: Corpus) -> Corpus:
    """Return a corpus of the same rows without texts, ids, labels, notes and columns."""
    is_text = corpus.status == TEXT
    nothing = read_texts([""], "texts").hashes
    hashes = np.where(is_text[:, None], corpus.hashes, nothing)
    hashes.flags.writeable = False
    return corpus_of_fields(
        texts=("",) * len(corpus),
        ids=tuple(content_ids(hashes)),
        status=corpus.status,
        metadata=pd.DataFrame(index=range(len(corpus))),
        source="texts left out",
        hashes=hashes,
        _distinct=corpus.distinct(),
    )
