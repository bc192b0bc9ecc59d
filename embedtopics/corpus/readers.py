"""Reading files: which reader a file's name calls for, and the formats that are not tabular."""

from __future__ import annotations

import io
import itertools
import json
from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from embedtopics.corpus.hashing import replace_surrogates
from embedtopics.corpus.opening import check_path, describe_encoding, open_binary, open_text
from embedtopics.corpus.tables import Table, name_row, note
from embedtopics.corpus.tabular import read_csv, read_tsv
from embedtopics.errors import InputError
from embedtopics.results import Decision

__all__ = ["SUFFIXES", "read_file"]


def read_file(path: Path, encoding: str = "utf-8", limit: int | None = None) -> Table:
    """Read a file of documents, or a folder of text files.

    Parameters
    ----------
    path : Path
        A file with one of `SUFFIXES`, which may be followed by ``.gz``, or a folder that holds
        .txt files at any depth.
    encoding : str
    limit : int, optional
        Read only this many rows, the first.

    Raises
    ------
    InputError
        There is nothing to read, the format is not known, or the content is broken.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit must be None or at least 1, got {limit}")
    check_path(path)
    if path.is_dir():
        return _read_folder(path, encoding, limit)
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in _READERS:
        raise InputError(
            f"{path.name}: expected a file that ends in {', '.join(SUFFIXES)} (or one of these "
            f"and .gz) or a folder of .txt files, got {suffix or 'no suffix'!r}; convert or "
            "rename the file"
        )
    return _READERS[suffix](path, encoding, limit)


def _read_folder(folder: Path, encoding: str, limit: int | None) -> Table:
    """Read each .txt file below a folder as one document, in the order of their names."""
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.name.lower().endswith((".txt", ".txt.gz")) and path.is_file()
    )
    # Names with a leading dot are what systems leave behind, not documents.
    visible = [n for n in names if not any(part.startswith(".") for part in n.split("/"))]
    if not visible:
        raise InputError(
            f"{folder}: expected a file, or a folder that holds .txt files, got a folder without "
            "any; give the path of a file"
        )
    notes: list[Decision] = []
    if len(visible) < len(names):
        n_hidden = len(names) - len(visible)
        notes.append(note("hidden_files", n_hidden, f"{n_hidden} hidden files were left out."))
    texts = []
    for name in visible[:limit]:
        with open_text(folder / name, encoding) as handle:
            texts.append(handle.read())
        notes.extend(describe_encoding(folder / name, encoding))
    visible = visible[:limit]
    columns = {"text": texts, "file": visible}
    if any("/" in name for name in visible):
        columns["folder"] = [name.rpartition("/")[0] for name in visible]
    frame = pd.DataFrame(columns, dtype=object)
    return Table(frame, folder.name or str(folder), tuple(notes), untyped=True, id_column="file")


def _read_lines(path: Path, encoding: str, limit: int | None) -> Table:
    """Read each line as one document; blank lines stay as rows without text."""
    with open_text(path, encoding) as handle:
        texts = [line.removesuffix("\n") for line in itertools.islice(handle, limit)]
    if not texts:
        raise InputError(f"{path.name}: expected one document a line, got an empty file")
    frame = pd.DataFrame({"text": texts}, dtype=object)
    return Table(frame, path.name, describe_encoding(path, encoding), untyped=True)


def _read_json_lines(path: Path, encoding: str, limit: int | None) -> Table:
    """Read one JSON object a line; blank lines are skipped."""
    lines = array("q")
    with open_text(path, encoding) as handle:
        records = itertools.islice(_parse_lines(handle, path, lines), limit)
        frame = _frame_of_records(records, path, lambda row: name_row(row, lines))
    return Table(frame, path.name, describe_encoding(path, encoding), lines, untyped=True)


def _parse_lines(handle: Iterable[str], path: Path, lines: array[int]) -> Iterator[object]:
    """Yield the value on each line that is not blank, and add its number to `lines`."""
    for number, line in enumerate(handle, start=1):
        if line.strip():
            lines.append(number)
            yield _parse_json(line, path, name_row(len(lines) - 1, lines))


def _read_json(path: Path, encoding: str, limit: int | None) -> Table:
    """Read a JSON array of objects; anything else must be JSON Lines under another name."""
    with open_text(path, encoding) as handle:
        content = handle.read()
    if not content.lstrip().startswith("["):
        return _read_json_lines(path, encoding, limit)
    records = _parse_json(content, path, "")
    frame = _frame_of_records(records[:limit], path, name_row)
    return Table(frame, path.name, describe_encoding(path, encoding), untyped=True)


def _parse_json(text: str, path: Path, where: str) -> Any:
    place = f"{path.name}, {where}" if where else path.name
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = "" if where else f"line {error.lineno}, "
        raise InputError(
            f"{place}: expected valid JSON, got a fault at {line}column {error.colno} "
            f"({error.msg}); write one complete JSON object a line"
            + (", or one array of objects" if not where else "")
        ) from None
    except (RecursionError, ValueError) as error:
        raise InputError(
            f"{place}: expected a plain JSON object, got one that Python cannot hold ({error})"
        ) from None


def _frame_of_records(
    records: Iterable[object], path: Path, name: Callable[[int], str]
) -> pd.DataFrame:
    """Turn objects into columns in the order in which their keys appear; strings into texts."""
    columns: dict[str, list[object]] = {}
    n_rows = 0
    for record in records:
        if isinstance(record, str):
            record = {"text": record}
        if not isinstance(record, dict):
            raise InputError(
                f"{path.name}, {name(n_rows)}: expected a JSON object with named fields, got a "
                f"{type(record).__name__}; write documents as objects such as "
                '{"text": "..."}'
            )
        record = {replace_surrogates(key): value for key, value in record.items()}
        for key in record:
            if key not in columns:
                columns[key] = [None] * n_rows
        for key, column in columns.items():
            column.append(record.get(key))
        n_rows += 1
    if n_rows == 0:
        raise InputError(f"{path.name}: expected JSON objects, got an empty file")
    return pd.DataFrame(columns, dtype=object, index=pd.RangeIndex(n_rows))


def _read_parquet(path: Path, encoding: str, limit: int | None) -> Table:
    """Read a Parquet file; its text has an encoding of its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_binary(path) as stream:
        data = io.BytesIO(stream.read()) if path.suffix.lower() == ".gz" else stream
        try:
            file = pq.ParquetFile(data)
            table = file.read() if limit is None else _first_rows(file, limit)
            frame = table.to_pandas()
        except pa.ArrowException as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{path.name}: expected a Parquet file, got data that cannot be read as one "
                f"({reason}); write the file again"
            ) from None
    if not len(frame):
        raise InputError(f"{path.name}: expected rows, got an empty file (no rows)")
    return Table(frame, path.name)


def _first_rows(file: Any, limit: int) -> Any:
    """Return the first rows of a Parquet file, without reading the others."""
    import pyarrow as pa

    batches: list[Any] = []
    for batch in file.iter_batches(batch_size=min(limit, 65536)):
        batches.append(batch)
        if sum(map(len, batches)) >= limit:
            break
    return pa.Table.from_batches(batches, schema=file.schema_arrow).slice(0, limit)


_READERS: dict[str, Callable[[Path, str, int | None], Table]] = {
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".json": _read_json,
    ".parquet": _read_parquet,
    ".txt": _read_lines,
}
SUFFIXES = tuple(_READERS)
"""What the name of a file that can be read ends in."""
