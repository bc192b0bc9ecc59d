"""What people have: files, folders and archives of them, datasets of the hub."""

from __future__ import annotations

import os
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeAlias

import pandas as pd

from embedtopics._utils.checks import require
from embedtopics._utils.display import one_line, progress_bar
from embedtopics._utils.folders import demo_path
from embedtopics.corpus._columns import guess_text_column
from embedtopics.corpus._readers import DocumentTable, as_table
from embedtopics.corpus.readers._delimited import read_csv, read_lines, read_tsv
from embedtopics.corpus.readers._documents import FileText
from embedtopics.corpus.readers._docx import read_docx
from embedtopics.corpus.readers._html import read_html
from embedtopics.corpus.readers._json import read_json, read_json_lines
from embedtopics.corpus.readers._opening import (
    File,
    Unpacked,
    check_path,
    open_binary,
    open_text,
    suffix_of,
)
from embedtopics.corpus.readers._parquet import read_parquet
from embedtopics.corpus.readers._pdf import read_pdf
from embedtopics.corpus.readers._tei import read_xml
from embedtopics.corpus.readers._workbook import read_workbook
from embedtopics.errors import EmbedTopicsError, InputError, Remedy
from embedtopics.results import Decision

TABLES: dict[str, Callable[[File, str, int | None], DocumentTable]] = {
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".parquet": read_parquet,
    ".xlsx": read_workbook,
    ".txt": read_lines,
}
"""Readers of files that hold a document in each row or line."""

DOCUMENTS: dict[str, tuple[str, Callable[[Any, File, BinaryIO, str], list[FileText]]]] = {
    ".docx": ("lxml.etree", read_docx),
    ".pdf": ("pypdf", read_pdf),
    ".html": ("lxml.html", read_html),
    ".htm": ("lxml.html", read_html),
    ".xml": ("lxml.etree", read_xml),
}
"""Libraries and readers of files that hold a document each."""

DEMO = "embedtopics:demo"
"""Name of the English texts of the bundled corpus."""
DEMO_COLUMNS = {"text": "text", "id": "id", "time": "date", "group": "source"}

SUFFIXES = (*TABLES, *DOCUMENTS, ".zip")
"""Suffixes of files that can be read."""


def is_path(text: str) -> bool:
    """Return whether a string names files, by its beginning or ending or because they exist."""
    if "\n" in text or len(text) > 1000:
        return False
    folder, pattern = _split(Path(text))
    is_named = text == DEMO or text.startswith("hub:") or suffix_of(text) in SUFFIXES
    # A sentence with braces is no pattern for the current folder.
    return is_named or (os.path.exists(folder) and not (pattern and folder == Path()))


def read_file(path: Path, encoding: str = "utf-8", limit: int | None = None) -> DocumentTable:
    """Read a file of documents, a folder or an archive of files, or a dataset of the hub."""
    if limit is not None and limit < 1:
        raise InputError("limit", "None or at least 1", limit)
    try:
        return _read_path(path, encoding, limit)
    except MemoryError:
        raise InputError(
            "path", "files that fit into memory", str(path), "read the first rows with limit"
        ) from None


def _read_path(path: Path, encoding: str, limit: int | None) -> DocumentTable:
    if str(path) == DEMO:
        return _read_demo(encoding, limit)
    if str(path).startswith("hub:"):
        return _read_hub(str(path), limit)
    path, pattern = _split(path)
    check_path(path)
    suffix = suffix_of(path.name)

    if path.is_file() and suffix in TABLES:
        return TABLES[suffix](File.on_disk(path), encoding, limit)

    if path.is_file() and suffix not in SUFFIXES:
        raise InputError(
            f"{path.name}: expected a file that ends in {', '.join(SUFFIXES)} (or one of these and "
            f".gz) or a folder of them, got {suffix or 'no suffix'!r}; convert or rename the file"
        )

    if path.is_file() and suffix in DOCUMENTS:
        return _read_document(File.on_disk(path), encoding, limit)
    with _members(path) as members:
        return _read_members(path, members, pattern, encoding, limit)


def _split(path: Path) -> tuple[Path, str]:
    """Split a path such as ``talks/{speaker}_{date}.txt`` into a folder and a pattern."""
    if "{" not in str(path) or os.path.exists(path):
        return path, ""
    n = next(n for n, part in enumerate(path.parts) if "{" in part)
    return Path(*path.parts[:n]), "/".join(path.parts[n:])


def _matcher(pattern: str) -> re.Pattern[str]:
    """Return an expression with a group for each field; dates hold digits, dots and hyphens."""
    parts = re.split(r"\{([^\W\d]\w*)\}", pattern)
    fields = parts[1::2]
    if not fields or len({*fields, "text", "file", "folder"}) < len(fields) + 3:
        expected = "a path with names in braces, such as talks/{speaker}_{date}.txt"
        raise InputError("path", expected, pattern, "use each name once, not text, file or folder")
    dates = dict.fromkeys(("date", "year", "month", "day"), r"[0-9][0-9.-]*?")
    parts[::2] = map(re.escape, parts[::2])
    parts[1::2] = [f"(?P<{field}>{dates.get(field, '[^/]+?')})" for field in fields]
    return re.compile(rf"{''.join(parts)}(\.\w+)?(\.gz)?", re.IGNORECASE)


@contextmanager
def _members(path: Path) -> Iterator[dict[str, File]]:
    """Yield the files of a folder or an archive by name; nothing is unpacked to disk."""
    # What operating systems and offices leave.
    hidden = re.compile(r"(^|/)(\.(?!\.?/)|~\$|__MACOSX/)")

    if path.is_dir():
        entries = [entry for entry in path.rglob("*") if entry.is_file()]
        names = sorted(entry.relative_to(path).as_posix() for entry in entries)
        names = [name for name in names if not hidden.search(name)]
        n_packed = sum((path / name).stat().st_size for name in names)
        unpacked = Unpacked(path.name or str(path), n_packed)
        yield {_plain(name): File.on_disk(path / name, unpacked) for name in names}
        return

    try:
        with zipfile.ZipFile(path) as archive:
            infos = {info.filename: info for info in archive.infolist() if not info.is_dir()}
            names = [name for name in sorted(infos) if not hidden.search(name)]
            unpacked = Unpacked(path.name, path.stat().st_size)
            yield {_plain(name): File.in_archive(archive, infos[name], unpacked) for name in names}
    except zipfile.BadZipFile as error:
        raise InputError(f"{path.name}: is damaged ({error}); pack the files again") from None


def _plain(name: str) -> str:
    """Return a name as valid UTF-8; other bytes of file systems are escaped."""
    return name.encode("utf-8", "backslashreplace").decode()


_Remarks: TypeAlias = defaultdict[tuple[str, str], list[str]]  # names by kind and text


def _notes(remarks: _Remarks) -> tuple[Decision, ...]:
    """Return a decision for each remark, which names at most five files."""
    notes = []
    for (kind, remark), names in remarks.items():
        more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
        notes.append(Decision("files", kind, names, f"{remark}: {', '.join(names[:5])}{more}."))
    return tuple(notes)


def _read_document(file: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read each paragraph of a document as a row, or each document of a file of several."""
    remarks: _Remarks = defaultdict(list)
    rows = _rows(file, file.name, encoding, None, False, remarks)
    if len(rows) == 1:
        rows = [{"text": text} for text in rows[0]["text"].split("\n\n")]
        remarks["paragraphs", "Each row is a paragraph of"].append(file.name)
    frame = pd.DataFrame(rows[:limit], dtype=object)
    return DocumentTable(frame, file.name, _notes(remarks), untyped=True)


def _read_members(
    path: Path, members: Mapping[str, File], pattern: str, encoding: str, limit: int | None
) -> DocumentTable:
    """Read each row of a table, and each other file, as a document."""
    problems: list[str] = []
    remarks: _Remarks = defaultdict(list)
    matcher = _matcher(pattern) if pattern else re.compile(".*", re.DOTALL)
    matches = {
        name: matcher.fullmatch(name) for name in members if suffix_of(name) in SUFFIXES[:-1]
    }
    files = {name: {**match.groupdict(), "file": name} for name, match in matches.items() if match}

    if others := [name for name in members if name not in files]:
        remarks["other_files", "Files of other kinds or names were left out"] = others
    if not files:
        names = f"names that match {pattern}" if pattern else f"files of {', '.join(SUFFIXES[:-1])}"
        raise InputError(f"{path} must hold {names}; got {', '.join(others[:3]) or 'no file'}")
    is_mixed = not all(suffix_of(name) in _ROWS for name in files)
    rows: list[dict[str, Any]] = []
    with progress_bar(total=len(files), unit="file", description="reading", show=None) as bar:
        for name in files:
            if limit is not None and len(rows) >= limit:
                break
            bar.update(1)
            try:
                records = _rows(members[name], name, encoding, limit, is_mixed, remarks)
            except InputError as error:
                # Another encoding, or the limit of all files, concerns the files that follow too.
                if isinstance(error.remedy, Remedy) or members[name].unpacked.is_too_much:
                    raise
                problems.append(str(error))
                reason = str(error).removeprefix(f"{members[name].name}: ")
                remarks["unreadable_files", f"Not read ({reason})"].append(name)
                records = [{"text": None}]
            rows += [{**record, **files[name]} for record in records]

    if len(problems) == len(rows):
        raise InputError(f"no text could be read: {', '.join(problems[:3])}")

    frame = pd.DataFrame(rows, dtype=object)
    folders = frame["file"].map(lambda name: str(PurePosixPath(name).parent))
    if (folders != ".").any():
        frame["folder"] = folders
    counts = (frame.groupby("file").cumcount() + 1).map(str)
    ids = frame["file"].where(~frame["file"].duplicated(False), frame["file"] + "#" + counts)
    frame = frame.where(frame.notna(), None)[:limit]

    return DocumentTable(
        frame, path.name or str(path), _notes(remarks), None, True, True, ids[:limit].tolist()
    )


def _read_documents(file: File, encoding: str) -> list[FileText]:
    """Read a file; an .xml file may hold several documents."""
    suffix = suffix_of(file.name)
    module, read = DOCUMENTS[suffix]
    library = require(module, f"reading {suffix} files", "files")
    try:
        with open_binary(file) as stream:
            return read(library, file, stream, encoding)
    except EmbedTopicsError:
        raise
    except Exception as error:  # the libraries raise anything for a damaged file
        raise InputError(f"{file.name}: is damaged ({one_line(error)}); save it again") from None


_ROWS = {*TABLES} - {".txt"}
"""Suffixes of files that hold a document in each row."""


def _rows(
    file: File, name: str, encoding: str, limit: int | None, is_mixed: bool, remarks: _Remarks
) -> list[dict[Any, Any]]:
    """Return the rows of a table or the documents of another file, with their metadata."""
    suffix = suffix_of(name)
    if suffix in _ROWS:
        table = TABLES[suffix](file, encoding, limit)
        for note in table.notes:
            remarks[note.name, note.message.rstrip(".")].append(name)
        if not is_mixed:
            return table.frame.to_dict("records")
        frame = table.frame.rename(columns={guess_text_column(table)[0]: "text"})
        return frame.to_dict("records")

    if suffix == ".txt":
        with open_text(file, encoding) as handle:
            return [{"text": handle.read()}]

    documents = _read_documents(file, encoding)
    for document in documents:
        for remark, detail in document.remarks.items():
            remarks["pages", remark].append(name + detail)
    return [
        {**document.metadata, "text": "\n\n".join(document.paragraphs)} for document in documents
    ]


def _read_demo(encoding: str, limit: int | None) -> DocumentTable:
    """Read the English texts of the bundled corpus."""
    table = read_csv(File.on_disk(demo_path()), encoding, None)
    english = table.frame[table.frame["language"] == "en"][:limit]
    return replace(table, frame=english.reset_index(drop=True), source=DEMO, lines=None)


def _read_hub(name: str, limit: int | None) -> DocumentTable:
    """Download a dataset: ``hub:org/dataset/split``; the split is "train" if left out."""
    datasets = require("datasets", f"reading {name}", "datasets")
    org, dataset, split = (*name.removeprefix("hub:").split("/", 2), "", "")[:3]
    try:
        part = f"{split or 'train'}[:{limit or ''}]"
        rows = datasets.load_dataset(f"{org}/{dataset}".rstrip("/"), split=part)
    except Exception as error:  # of the name, the network or the files
        raise InputError(f"{name}: expected hub:org/dataset/split ({one_line(error)})") from None
    return DocumentTable(as_table(rows).frame, name)
