"""What people have: files, folders and archives of them, datasets of the hub."""

from __future__ import annotations

import logging
import os
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path, PurePosixPath
from statistics import median
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import pandas as pd

from embedtopics._utils.checks import require
from embedtopics._utils.display import one_line, progress_bar
from embedtopics.corpus._columns import guess_text_column
from embedtopics.corpus._readers import (
    TABLES,
    DocumentTable,
    File,
    Member,
    as_table,
    check_package,
    check_path,
    open_binary,
    open_text,
    suffix_of,
)
from embedtopics.decisions import Decision
from embedtopics.errors import EmbedTopicsError, InputError, Remedy


class FileText(NamedTuple):
    """One document; `remarks` are sentences on its file, with details."""

    paragraphs: list[str]
    metadata: dict[str, str]
    remarks: dict[str, str]


def read_documents(file: File, encoding: str) -> list[FileText]:
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


_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_AROUND_RUNS = tuple(_W + name for name in ("ins", "moveTo", "sdt", "sdtContent", "smartTag"))


def _read_docx(docx: Any, file: File, stream: BinaryIO, encoding: str) -> list[FileText]:
    """Read the body with its tables, text boxes and insertions, without notes and deletions."""
    check_package(file, stream)
    etree = require("lxml.etree", "reading .docx files", "files")
    body = docx.Document(stream).element.body
    etree.strip_elements(body, "{*}Fallback")  # copies of text boxes for old readers
    etree.strip_tags(body, *_AROUND_RUNS)
    texts = (paragraph.text.strip() for paragraph in body.iter(f"{_W}p"))
    return [FileText(list(filter(None, texts)), {}, {})]


class _Line(NamedTuple):
    """A line of a page and the place of its first character, in points from the lower left."""

    text: str
    x: float
    y: float


def _read_pdf(pypdf: Any, file: File, stream: BinaryIO, encoding: str) -> list[FileText]:
    """Read the text layer, without running headers and footers."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs each of its repairs
    try:
        pages = [_page_lines(page) for page in pypdf.PdfReader(stream).pages]
    except (pypdf.errors.FileNotDecryptedError, pypdf.errors.DependencyError):
        raise InputError(f"{file.name}: is encrypted; save a copy without a password") from None
    if not any(pages):
        raise InputError(f"{file.name}: has no text, only images; recognize its text (OCR) first")
    remarks = {}
    if blank := [str(number) for number, page in enumerate(pages, 1) if not page]:
        remarks["Some pages have no text"] = f" (pages {', '.join(blank)})"
    body = _without_running_lines(pages)
    if not any(body):  # of equal pages
        body = pages
    if body != pages:
        remarks["Running headers and footers were left out"] = ""
    return [FileText(_paragraphs(list(chain(*body))), {}, remarks)]


def _page_lines(page: Any) -> list[_Line]:
    lines = [_Line("", 0, 0)]

    def visit(text: str, cm: list[float], tm: list[float], font: Any, size: float) -> None:
        if lines[-1].text.strip():
            lines[-1] = lines[-1]._replace(text=lines[-1].text + text)
        else:
            x, y = tm[4:]
            lines[-1] = _Line(text, x * cm[0] + y * cm[2] + cm[4], x * cm[1] + y * cm[3] + cm[5])
        if text.endswith("\n"):
            lines.append(_Line("", 0, 0))

    page.extract_text(visitor_text=visit)
    texts = (" ".join(line.text.translate(_LIGATURES).split()) for line in lines)
    return [line._replace(text=text) for line, text in zip(lines, texts, strict=True) if text]


_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl"}

_EDGE_LINES = 3
"""Lines at the top and at the bottom of a page among which headers and footers are sought."""


def _without_running_lines(pages: list[list[_Line]]) -> list[list[_Line]]:
    """Leave out edge lines that, numbers apart, are on a third of the pages: left, right or all."""
    edges: list[dict[_Line, str]] = []
    for page in pages:
        lines = sorted(page, key=lambda line: line.y)
        lines = lines[:_EDGE_LINES] + lines[-_EDGE_LINES:]
        edges.append({line: re.sub(r"\d+", "0", line.text).casefold() for line in lines})
    counts = Counter(chain(*({*edge.values()} for edge in edges)))
    return [
        [line for line in page if counts[edge.get(line, "")] < max(2, len(pages) / 3)]
        for page, edge in zip(pages, edges, strict=True)
    ]


_WIDEST_GAP, _INDENT = 1.2, (4, 60)
"""Distance of two lines in usual distances, and points of an indentation, that end a paragraph."""

_HYPHENATED = re.compile(r"\w[-\xad\u2010]$")
_AFTER_HYPHEN = re.compile(r"(und|oder|and|or|et|ou)\b|\W")
_ENDS = re.compile(r"[.!?:;\u2026\u3002\uff01\uff1f]['\"\u2019\u201d\xbb)\]]*$")


def _paragraphs(lines: list[_Line]) -> list[str]:
    """Join lines to paragraphs; a hyphen between small letters is no part of the word."""
    gaps = [upper.y - lower.y for upper, lower in pairwise(lines)]
    usual = median([gap for gap in gaps if 4 < gap < 40] or [12])
    paragraphs = [lines[0].text] if lines else []
    for (upper, lower), gap in zip(pairwise(lines), gaps, strict=True):
        ends = bool(_ENDS.search(upper.text))
        # Higher or far below: in the next column or on the next page.
        is_apart = gap > _WIDEST_GAP * usual if -usual / 2 < gap < 3 * usual else ends
        if is_apart or (ends and _INDENT[0] < lower.x - upper.x < _INDENT[1]):
            paragraphs.append(lower.text)
        elif _HYPHENATED.search(upper.text) and not _AFTER_HYPHEN.match(lower.text):
            n_removed = lower.text[0].islower()
            paragraphs[-1] = paragraphs[-1][: -n_removed or None] + lower.text
        else:
            paragraphs[-1] += f" {lower.text}"
    return paragraphs


_NO_TEXT = (
    "script", "style", "noscript", "template", "nav", "footer", "aside", "form", "button", "svg",
    "iframe", "object",
)  # fmt: skip


def _read_html(lxml: Any, file: File, stream: BinaryIO, encoding: str) -> list[FileText]:
    """Read the main part of a page, or all of it except menus, forms and scripts."""
    data = stream.read()
    # "ignore" shortens what is no text of this encoding; then the page names its own.
    is_text = len(data.decode(encoding, "ignore").encode(encoding)) == len(data)
    named = encoding if is_text else None
    parser = lxml.HTMLParser(encoding=named, remove_comments=True, remove_pis=True)
    root = lxml.document_fromstring(data, parser=parser)
    title = " ".join(root.findtext(".//title", "").split())
    lxml.etree.strip_elements(root, *_NO_TEXT, with_tail=False)
    blocks = {*lxml.defs.block_tags, "article", "section", "main", "header", "figcaption"}
    main = next(iter(root.xpath("//main") or root.xpath("//body")), root)
    paragraphs = _texts(lxml.etree, main, blocks - {"td", "th", "del", "ins"})
    return [FileText(paragraphs, {"title": title} if title else {}, {})]


_TEI_BLOCKS = frozenset((
    "ab argument byline cell closer dateline desc div docTitle epigraph head item l label lg "
    "opener p postscript quote row salute signed sp speaker stage titlePart trailer u"
).split())  # fmt: skip
_TEI_FIELDS = (
    ("title", "titleStmt/{*}title"), ("author", "titleStmt/{*}author"),
    # The date of the text precedes that of the file.
    ("date", "profileDesc//{*}date"), ("date", "sourceDesc//{*}date"),
    ("date", "publicationStmt//{*}date"), ("language", "langUsage/{*}language"),
)  # fmt: skip


def _read_xml(etree: Any, file: File, stream: BinaryIO, encoding: str) -> list[FileText]:
    """Read each text of TEI with the fields of its header, or the elements of another file.

    Nothing is fetched and no entity expanded: a file could name others, or exhaust memory.
    """
    options = {"resolve_entities": False, "no_network": True, "load_dtd": False}
    parser = etree.XMLParser(remove_comments=True, remove_pis=True, **options)
    root = etree.fromstring(stream.read(), parser)
    etree.strip_elements(root, etree.Entity, with_tail=False)
    documents = []
    for tei in root.iter("{*}TEI"):
        metadata: dict[str, str] = {}
        for field, path in _TEI_FIELDS:
            for node in tei.iterfind(f"{{*}}teiHeader//{{*}}{path}"):
                values = (*map(node.get, ("when", "from", "ident")), "".join(node.itertext()))
                metadata.setdefault(field, " ".join(next(filter(None, values), "").split()))
        etree.strip_elements(tei, "{*}note", "{*}fw", "{*}teiHeader", with_tail=False)
        documents.append(FileText(_texts(etree, tei, _TEI_BLOCKS), metadata, {}))
    return documents or [FileText(_texts(etree, root), {}, {})]


def _texts(etree: Any, root: Any, blocks: Any = None) -> list[str]:
    """Return the paragraphs of a tree; elements that are no blocks run on."""
    parts = []
    for event, node in etree.iterwalk(root, ("start", "end")):
        tag = node.tag.rpartition("}")[2]
        if blocks is None or tag in blocks:
            parts.append("\n\n")
        elif event == "start" and tag in ("br", "lb") and node.get("break") != "no":
            parts.append("\n")
        elif event == "end" and tag in ("td", "th", "s"):
            parts.append(" ")
        parts.append(re.sub(r"\s+", " ", (node.text if event == "start" else node.tail) or ""))
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return list(filter(None, (part.strip() for part in "\n".join(lines).split("\n\n"))))


DOCUMENTS: dict[str, tuple[str, Callable[[Any, File, BinaryIO, str], list[FileText]]]] = {
    ".docx": ("docx", _read_docx),
    ".pdf": ("pypdf", _read_pdf),
    ".html": ("lxml.html", _read_html),
    ".htm": ("lxml.html", _read_html),
    ".xml": ("lxml.etree", _read_xml),
}
"""Libraries and readers of files that hold a document each."""

SUFFIXES = (*TABLES, *DOCUMENTS, ".zip")
"""Suffixes of files that can be read."""


def is_path(text: str) -> bool:
    """Return whether a string names files, by its beginning or ending or because they exist."""
    if "\n" in text or len(text) > 1000:
        return False
    folder, pattern = _split(Path(text))
    is_named = text.startswith("hub:") or suffix_of(text) in SUFFIXES
    # A sentence with braces is no pattern for the current folder.
    return is_named or (os.path.exists(folder) and not (pattern and folder == Path()))


def read_file(path: Path, encoding: str = "utf-8", limit: int | None = None) -> DocumentTable:
    """Read a file of documents, a folder or an archive of files, or a dataset of the hub."""
    if limit is not None and limit < 1:
        raise InputError("limit", "None or at least 1", limit)
    if str(path).startswith("hub:"):
        return _read_hub(str(path), limit)
    path, pattern = _split(path)
    check_path(path)
    suffix = suffix_of(path.name)
    if path.is_file() and suffix in TABLES:
        return TABLES[suffix](path, encoding, limit)
    if path.is_file() and suffix not in SUFFIXES:
        raise InputError(
            f"{path.name}: expected a file that ends in {', '.join(SUFFIXES)} (or one of these and "
            f".gz) or a folder of them, got {suffix or 'no suffix'!r}; convert or rename the file"
        )
    if path.is_file() and suffix in DOCUMENTS:
        return _read_document(path, encoding, limit)
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
        names = sorted(one.relative_to(path).as_posix() for one in path.rglob("*") if one.is_file())
        yield {_plain(name): path / name for name in names if not hidden.search(name)}
        return
    try:
        with zipfile.ZipFile(path) as archive:
            infos = {info.filename: info for info in archive.infolist() if not info.is_dir()}
            names = [name for name in sorted(infos) if not hidden.search(name)]
            yield {_plain(name): Member(archive, infos[name]) for name in names}
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


def _read_document(path: Path, encoding: str, limit: int | None) -> DocumentTable:
    """Read each paragraph of a document as a row, or each document of a file of several."""
    remarks: _Remarks = defaultdict(list)
    rows = _rows(path, path.name, encoding, None, False, remarks)
    if len(rows) == 1:
        rows = [{"text": text} for text in rows[0]["text"].split("\n\n")]
        remarks["paragraphs", "Each row is a paragraph of"].append(path.name)
    frame = pd.DataFrame(rows[:limit], dtype=object)
    return DocumentTable(frame, path.name, _notes(remarks), untyped=True)


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
                if isinstance(error.remedy, Remedy):  # such as another encoding
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
    documents = read_documents(file, encoding)
    for remark, detail in (pair for one in documents for pair in one.remarks.items()):
        remarks["pages", remark].append(name + detail)
    return [{**one.metadata, "text": "\n\n".join(one.paragraphs)} for one in documents]


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
