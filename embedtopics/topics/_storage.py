"""A result as a folder: arrays in Arrow files, rows in parquet, the rest in JSON; never pickle.

::

    manifest.json     kind, format version, size and SHA-256 of every file
    result.json       topics, settings, versions, timings, decisions, history
    rows.parquet      texts, ids and the input's other columns, with the caller's index
    arrays.arrow      documents, graph, coordinates, map, hierarchy, labels, stability, token ids,
                      sparse matrices
    embeddings.npy    unit vectors, float32
    words.json        words of the token stream, terms, stop words

Formats 1 and 2 had the arrays in ``arrays.npz``, not compressed, and edits of which nothing but a
sentence was kept; format 1 had no hierarchy, no reasons, no memory and no stability. All are read.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.folders import MANIFEST, read_manifest, replacing_folder, write_manifest
from embedtopics._utils.table_files import storable, unique_names
from embedtopics.clustering.results import NOISE, Clustering, SpanningTree
from embedtopics.corpus._corpus import Corpus, recall_hashes
from embedtopics.corpus.results import Decision, DistinctDocuments
from embedtopics.errors import CorruptFileError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray
from embedtopics.terms.results import TermCounts, TokenStream
from embedtopics.topics.results import (
    Edit,
    Stability,
    Topic,
    TopicConstraints,
    TopicMark,
    TopicResult,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


# Whether the parts of a result that was read belong together.
#
# Compiled functions trust the numbers of documents and terms that they are given: one out of range
# would make them read, or write, memory that is not theirs. A folder may come from anybody.

KINDS = {"u": "uint", "i": "int", "f": "float", "b": "bool"}
"""Of any width: stages of the user's own may give wider ones."""

Expected = tuple[str, npt.NDArray[Any] | None, str, tuple[int, ...]]


def check_parts(result: TopicResult) -> None:
    """Make sure that every array has its kind and shape, and every number in it is of something."""
    n_rows, n, n_topics = len(result.corpus), len(result.documents), result.n_topics
    if [topic.topic_id for topic in result.topics] != list(range(n_topics)):
        raise ValueError("topics are not numbered from 0")
    documents, graph, tokens = result.documents, result.graph, result.tokens
    clustering, counts, k = result.clustering, result.term_counts, result.graph.k
    expected: list[Expected] = [
        ("hashes", documents.hashes, "u", (n, 2)),
        ("first_rows", documents.first_rows, "i", (n,)),
        ("of_row", documents.of_row, "i", (n_rows,)),
        ("weights", documents.weights, "i", (n,)),
        ("embeddings", result.embeddings, "f", (n, *result.embeddings.shape[1:2])),
        ("neighbours", graph.indices, "i", (n, k)),
        ("similarities", graph.similarities, "f", (n, k)),
        ("coordinates", result.coordinates, "f", (n, *result.coordinates.shape[1:2])),
        ("map", result.map, "f", (n, 2)),
        ("labels", clustering.labels, "i", (n,)),
        ("probabilities", clustering.probabilities, "f", (n,)),
        ("persistence", clustering.persistence, "f", (n_topics,)),
        ("reasons", clustering.reasons, "i", (n,)),
        ("tokens", tokens.ids, "i", (int(tokens.offsets[-1]),)),
        ("offsets", tokens.offsets, "i", (n + 1,)),
        ("lengths of terms", counts.lengths, "i", (len(counts.terms),)),
        ("added", result.added, "b", (n,)),
        *_parts_that_may_lack(result),
    ]
    for name, array, kind, shape in expected:
        if array is not None and (array.dtype.kind != kind or array.shape != shape):
            found = f"{array.dtype} of shape {array.shape}"
            raise ValueError(f"{name}: {found}, expected {KINDS[kind]} of shape {shape}")
    if documents.hashes.dtype != np.uint64:
        raise ValueError(f"hashes: {documents.hashes.dtype}, expected uint64")
    _within("first_rows", documents.first_rows, 0, n_rows)
    _within("of_row", documents.of_row, NOISE, n)
    _within("neighbours", graph.indices, 0, n)
    _within("labels", clustering.labels, NOISE, n_topics)
    _within("reasons", clustering.reasons, 0, 127)
    _within("tokens", tokens.ids, 0, len(tokens.words))
    _within("lengths of tokens", np.diff(tokens.offsets, prepend=0), 0, len(tokens.ids) + 1)
    n_terms = len(counts.terms)
    _check_sparse("memberships", result.memberships, (n, n_topics))
    _check_sparse("counts", counts.counts, (n, n_terms))
    _check_sparse("topic_terms", result.topic_terms, (n_topics, n_terms))
    for topic in result.topics:
        _within("representatives", np.array(topic.representatives, dtype=np.int64), 0, n_rows)
    if result.tree is not None:
        _within("hierarchy", result.tree.edges, 0, n)
    if result.constraints is not None:
        _within(
            "groups of the constraints",
            result.constraints.groups,
            NOISE,
            len(result.constraints.names),
        )
        _within("pairs of the constraints", result.constraints.cannot_link, 0, n)


def _within(name: str, numbers: npt.NDArray[Any] | None, low: int, high: int) -> None:
    """Refuse whole numbers below the low or not below the high."""
    if numbers is not None and numbers.size:
        least, most = int(numbers.min()), int(numbers.max())
        if least < low or most >= high:
            raise ValueError(f"{name}: from {least} to {most}, expected {low} to {high - 1}")


def _parts_that_may_lack(
    result: TopicResult,
) -> Iterable[Expected]:
    n, n_topics = len(result.documents), result.n_topics
    tree, stability, constraints = result.tree, result.stability, result.constraints
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
        yield (
            "pairs of the constraints",
            constraints.cannot_link,
            "i",
            (len(constraints.cannot_link), 2),
        )


def _check_sparse(name: str, matrix: Any, shape: tuple[int, int]) -> None:
    if matrix.shape != shape:
        raise ValueError(f"{name} has the shape {matrix.shape}, expected {shape}")
    starts, columns = matrix.indptr, matrix.indices
    if starts.dtype.kind != "i" or columns.dtype.kind != "i":
        raise ValueError(f"{name} has places that are not whole numbers")
    if matrix.data.dtype.kind not in "if" or len(columns) != len(matrix.data):
        raise ValueError(f"{name} has {len(matrix.data)} values in {len(columns)} places")
    if len(starts) != shape[0] + 1 or starts[0] != 0 or starts[-1] != len(columns):
        raise ValueError(f"{name} has rows that do not hold its values")
    _within(f"rows of {name}", np.diff(starts), 0, len(columns) + 1)
    _within(f"columns of {name}", columns, 0, shape[1])


KIND = "embedtopics topic result"
FORMAT = 3
SPARSE = ("memberships", "counts", "topic_terms")
IN_RESULT = (
    "corpus", "graph", "topics", "decisions", "settings", "versions", "timings", "history",
)  # fmt: skip
IN_WORDS = ("words", "terms", "stop_words", "function_words")

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
            threads.submit(write_rows, result.corpus, folder / "rows.parquet"),
            threads.submit(write_arrays, folder / "arrays.arrow", _arrays(result)),
        ]
        np.save(folder / "embeddings.npy", result.embeddings, allow_pickle=False)
        _write_texts(result, folder)
        for one in written:
            one.result()
    write_manifest(folder, KIND, FORMAT)


def _write_texts(result: TopicResult, folder: Path) -> None:
    """Write what is kept as JSON."""
    _write_json(folder / "words.json", {
        "words": result.tokens.words,
        "terms": result.term_counts.terms,
        "stop_words": result.term_counts.stop_words,
        "function_words": result.term_counts.function_words,
    })  # fmt: skip
    _write_json(folder / "result.json", {
        "corpus": {
            "text_column": saved_name(result.corpus, result.corpus.text_column),
            "time_column": saved_name(result.corpus, result.corpus.time_column),
            "group_column": saved_name(result.corpus, result.corpus.group_column),
            "source": result.corpus.source,
            "notes": [dataclasses.asdict(note) for note in result.corpus.notes],
        },
        "graph": {"method": result.graph.method, "recall": result.graph.recall},
        "topics": [_stored(dataclasses.asdict(topic)) for topic in result.topics],
        "decisions": [dataclasses.asdict(decision) for decision in result.decisions],
        "settings": dict(result.settings),
        "versions": dict(result.versions),
        "timings": dict(result.timings),
        "history": [dataclasses.asdict(edit) for edit in result.history],
        "peak_memory": result.peak_memory,
        "n_replicates": None if result.stability is None else result.stability.n_replicates,
        "guide": _constraints_content(result.constraints),
    })  # fmt: skip


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
    folder = Path(folder)
    files = read_manifest(folder, KIND, FORMAT)["files"]
    in_arrays = "arrays.npz" if "arrays.npz" in files else "arrays.arrow"
    for name in (in_arrays, "embeddings.npy", "result.json", "rows.parquet", "words.json"):
        if name not in files:
            raise CorruptFileError(f"{folder / MANIFEST} does not list {name}; save again")
    content = _read(folder / "result.json", lambda path: _read_json(path, IN_RESULT))
    read_all = _read_npz if in_arrays == "arrays.npz" else read_arrays
    with ThreadPoolExecutor(1) as thread:
        unpacked = thread.submit(_read, folder / in_arrays, read_all)
        words = _read(folder / "words.json", lambda path: _read_json(path, IN_WORDS))
        embeddings = _read(
            folder / "embeddings.npy", lambda path: np.load(path, allow_pickle=False)
        )
        rows = _read(folder / "rows.parquet", lambda path: read_rows(path, content["corpus"]))
        arrays = unpacked.result()
    try:
        result = _result_of(content, words, arrays, embeddings, rows)
        check_parts(result)
        return result
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise CorruptFileError(
            f"{folder / 'result.json'} does not fit the arrays and words beside it "
            f"({_one_line(error)}); save the result again"
        ) from error


def _read(path: Path, reader: Callable[[Path], Any]) -> Any:
    """Read a file of the folder; whatever a library says of a broken one, it is named."""
    try:
        return reader(path)
    # Its checksum is right, so that it was written so: by another program, or by hand. The errors
    # of five libraries are possible here.
    except Exception as error:
        raise CorruptFileError(
            f"{path} cannot be read ({_one_line(error)}); save the result again, or restore the "
            "file from a copy"
        ) from error


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _read_json(path: Path, names: tuple[str, ...]) -> dict[str, Any]:
    content = json.loads(path.read_text("utf-8"))
    if not isinstance(content, dict):
        raise ValueError("it holds no object")
    if missing := [name for name in names if name not in content]:
        raise ValueError(f"it lacks {', '.join(missing)}")
    return content


def _read_npz(path: Path) -> dict[str, npt.NDArray[Any]]:
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _result_of(
    content: dict[str, Any],
    words: dict[str, Any],
    arrays: dict[str, npt.NDArray[Any]],
    embeddings: FloatArray,
    rows: Corpus,
) -> TopicResult:
    sparse = {name: _sparse(arrays, name) for name in SPARSE}
    documents = DistinctDocuments(**_part(arrays, "documents"))
    return TopicResult(
        corpus=recall_hashes(rows, documents),
        documents=documents,
        embeddings=embeddings,
        graph=NeighborGraph(**_part(arrays, "graph"), **content["graph"]),
        coordinates=arrays["coordinates"],
        map=arrays["map"],
        clustering=Clustering(**_part(arrays, "clustering")),
        memberships=sparse["memberships"],
        tokens=TokenStream(**_part(arrays, "tokens"), words=tuple(words["words"])),
        term_counts=TermCounts(
            counts=sparse["counts"],
            terms=tuple(words["terms"]),
            lengths=arrays["lengths"],
            stop_words=tuple(words["stop_words"]),
            function_words=tuple(words["function_words"]),
        ),
        topic_terms=sparse["topic_terms"],
        topics=tuple(_topic(topic) for topic in content["topics"]),
        decisions=tuple(Decision(**decision) for decision in content["decisions"]),
        settings=content["settings"],
        versions=content["versions"],
        timings=content["timings"],
        history=tuple(_edit(edit) for edit in content["history"]),
        tree=_read_tree(arrays),
        peak_memory=_number(content.get("peak_memory")),
        stability=_read_stability(arrays, content.get("n_replicates")),
        constraints=_read_constraints(arrays, content.get("guide")),
        added=arrays.get("added"),
    )


def _read_tree(arrays: dict[str, Any]) -> SpanningTree | None:
    """Return the hierarchy; None where there was none, and in format 1, which had none."""
    part = _part(arrays, "tree")
    return SpanningTree(**part) if part else None


def _read_stability(arrays: dict[str, Any], n_replicates: int | None) -> Stability | None:
    if n_replicates is None:
        return None
    return Stability(**_part(arrays, "stability"), n_replicates=n_replicates)


def _constraints_content(constraints: TopicConstraints | None) -> dict[str, Any] | None:
    """Return of a constraints what is no array."""
    if constraints is None:
        return None
    values = {
        item.name: getattr(constraints, item.name) for item in dataclasses.fields(constraints)
    }
    return {name: value for name, value in values.items() if not isinstance(value, np.ndarray)}


def _read_constraints(
    arrays: dict[str, Any], content: dict[str, Any] | None
) -> TopicConstraints | None:
    if content is None:
        return None
    return TopicConstraints(
        **_part(arrays, "guide"), **{**content, "names": tuple(content["names"])}
    )


def _number(value: float | None) -> float:
    """Turn null back into NaN."""
    return float("nan") if value is None else float(value)


def _arrays(result: TopicResult) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        "coordinates": result.coordinates,
        "map": result.map,
        "lengths": result.term_counts.lengths,
    }
    parts: dict[str, Any] = {
        "documents": result.documents,
        "graph": result.graph,
        "clustering": result.clustering,
        "tokens": result.tokens,
        "tree": result.tree,
        "stability": result.stability,
        "guide": result.constraints,
    }
    if result.added is not None:
        arrays["added"] = result.added
    for name, part in parts.items():
        for item in dataclasses.fields(part) if part is not None else ():
            value = getattr(part, item.name)
            if isinstance(value, np.ndarray):
                arrays[f"{name}.{ON_DISK.get(item.name, item.name)}"] = value
    matrices = (result.memberships, result.term_counts.counts, result.topic_terms)
    for name, matrix in zip(SPARSE, matrices, strict=True):
        arrays[f"{name}.data"] = matrix.data
        arrays[f"{name}.indices"] = matrix.indices
        arrays[f"{name}.indptr"] = matrix.indptr
        arrays[f"{name}.shape"] = np.array(matrix.shape, dtype=np.int64)
    return arrays


def _part(arrays: dict[str, Any], name: str) -> dict[str, Any]:
    start = f"{name}."
    found = {k.removeprefix(start): value for k, value in arrays.items() if k.startswith(start)}
    return {IN_CODE.get(key, key): value for key, value in found.items()}


def _stored(fields: dict[str, Any]) -> dict[str, Any]:
    return {ON_DISK.get(name, name): value for name, value in fields.items()}


def _sparse(arrays: dict[str, Any], name: str) -> csr_matrix:
    from scipy.sparse import csr_matrix

    part = _part(arrays, name)
    matrix = csr_matrix(
        (part["data"], part["indices"], part["indptr"]), shape=tuple(part["shape"].tolist())
    )
    # It takes narrower indices where they suffice; what was saved comes back as it was.
    matrix.indices, matrix.indptr = part["indices"], part["indptr"]
    return matrix


def _topic(content: dict[str, Any]) -> Topic:
    lists: dict[str, Any] = {
        IN_CODE.get(key, key): tuple(value) if isinstance(value, list) else value
        for key, value in content.items()
    }
    lists["persistence"] = _number(lists["persistence"])
    return Topic(**lists)


def _edit(content: dict[str, Any] | str) -> Edit:
    """Read an edit; up to format 2 there was only what it said of itself."""
    if isinstance(content, str):
        return Edit("note", message=content)
    marks = tuple(
        TopicMark(
            mark["topic_id"], mark["label"], tuple(mark["keywords"]), tuple(mark["documents"])
        )
        for mark in content["marks"]
    )
    new_ids = content["new_ids"]
    return Edit(
        content["name"],
        content["parameters"],
        content["message"],
        marks,
        None if new_ids is None else tuple(new_ids),
    )


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.write(json.dumps(_plain(content), allow_nan=False))
        stream.flush()
        os.fsync(stream.fileno())


def _plain(value: Any) -> Any:
    """Turn a value into what JSON knows; NaN, which it does not, becomes null."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, (int, float, bool, type(None))):
        return value
    return repr(value)


# Arrays in one compressed file that any Arrow library reads.
#
# One row an array: its name, its type, its shape, and its bytes, the last axis the fastest. Counts
# and word ids are small numbers in wide integers, which Zstandard packs to a third within a tenth
# of a second; zlib would take longer than everything else in a save.

LEVEL = 1
"""Of Zstandard; higher ones take twice the time to save a tenth."""


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays of numbers."""
    import pyarrow as pa

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


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read what `write_arrays` wrote: the same types, shapes and bits."""
    import pyarrow as pa

    arrays: dict[str, npt.NDArray[Any]] = {}
    with pa.memory_map(str(path)) as source:
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
    import pyarrow as pa

    return pa.schema([
        ("name", pa.string()), ("dtype", pa.string()), ("shape", pa.list_(pa.int64())),
        ("bytes", pa.large_binary()),
    ])  # fmt: skip


def _bytes_of(array: npt.NDArray[Any]) -> Any:
    """Return the bytes of an array as the one value of an Arrow column, without a copy."""
    import pyarrow as pa

    offsets = np.array([0, array.nbytes], dtype=np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(array)]
    return pa.Array.from_buffers(pa.large_binary(), 1, buffers)


# The rows of a corpus as a parquet file.

TEXT, ID, STATUS = "__text__", "__id__", "__status__"


def write_rows(corpus: Corpus, path: Path) -> None:
    """Write the rows; columns that parquet cannot hold are written as their text."""
    frame, _ = storable(corpus.metadata)
    frame.insert(0, TEXT, list(corpus.texts))
    frame.insert(1, ID, list(corpus.ids))
    frame.insert(2, STATUS, corpus.status)
    # A dictionary would have to hash all texts, to find that hardly any repeats.
    columns = [name for name in frame.columns if name not in (TEXT, ID)]
    frame.to_parquet(path, engine="pyarrow", compression="zstd", use_dictionary=columns)


def saved_name(corpus: Corpus, column: Any) -> str | None:
    """Return the name under which a column of the metadata is saved."""
    if column is None:
        return None
    names = list(corpus.metadata.columns)
    return unique_names(names)[names.index(column)] if column in names else str(column)


def read_rows(path: Path, about: dict[str, Any]) -> Corpus:
    from pyarrow import parquet

    table = parquet.read_table(path)
    # Straight to strings: a Series of them is several times as slow to go through.
    texts, ids = (tuple(table.column(name).to_pylist()) for name in (TEXT, ID))
    frame = table.drop_columns([TEXT, ID]).to_pandas()
    return Corpus.of_fields(
        texts=texts,
        ids=ids,
        status=frame.pop(STATUS).to_numpy(dtype=np.int8),
        metadata=frame,
        text_column=about["text_column"],
        time_column=about["time_column"],
        group_column=about["group_column"],
        source=about["source"],
        notes=tuple(Decision(**note) for note in about["notes"]),
    )
