"""Word files (.docx): the text of the body, with its tables, text boxes and insertions.

The text of a paragraph consists of all its text nodes in their order, whatever surrounds them:
fields, links, content controls, directions, equations. What is no text of the document is removed
before: deletions, instructions of fields, readings of characters, and copies for old programs.
Notes at the foot, comments and headers stand in other parts of the file and are not read.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from typing import Any, BinaryIO
from zipfile import ZipFile

from embedtopics.corpus.readers._documents import FileText
from embedtopics.corpus.readers._markup import local_name
from embedtopics.corpus.readers._opening import File, open_member, open_package, read_markup
from embedtopics.corpus.readers._symbols import SYMBOL_FONT
from embedtopics.corpus.readers._tei import parse_xml
from embedtopics.errors import InputError

_MAIN_PART = "/officeDocument"
"""End of the type of the relationship that names the part with the body."""

# Deletions, what was moved elsewhere, and readings; deleted text outside of a deletion.
_NO_TEXT = ("del", "moveFrom", "rt", "delText", "instrText", "delInstrText")

# Elements that stand for characters. A soft hyphen is no part of a word.
_CHARACTERS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}

# What equations show by the place of their parts.
_EQUATIONS = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/math}",
    "{http://purl.oclc.org/ooxml/officeDocument/math}",
)
_BEFORE_PART = {"den": "/", "sup": "^", "sub": "_", "rad": "\u221a"}

# What is in other parts of the file.
_ELSEWHERE = {
    "footnoteReference": "Notes are not read",
    "endnoteReference": "Notes are not read",
    "altChunk": "Embedded files are not read",
    "subDoc": "Embedded files are not read",
    "chart": "Charts and diagrams are not read",
    "relIds": "Charts and diagrams are not read",
}

_PRIVATE = range(0xE000, 0xF900)
"""Codes of characters that only their font knows."""


def read_docx(etree: Any, file: File, stream: BinaryIO, encoding: str) -> list[FileText]:
    """Read the body, without notes, comments and headers."""
    with open_package(file, stream) as archive:
        root = _main_part(etree, file, archive)
    remarks = {_ELSEWHERE[name]: "" for name in map(local_name, root.iter()) if name in _ELSEWHERE}
    _keep_one_alternative(root)
    _remove_all(root, _NO_TEXT)

    n_symbols: Counter[str] = Counter()
    paragraphs = list(filter(None, _paragraphs(etree, root, n_symbols)))
    if n_symbols:
        fonts = ", ".join(sorted(n_symbols))
        remarks["Symbols of some fonts have no letter"] = f" ({fonts}: {n_symbols.total():,})"
    return [FileText(paragraphs, {}, remarks)]


def _main_part(etree: Any, file: File, archive: ZipFile) -> Any:
    """Return the root of the part that holds the body, which the package names."""
    relations = _part(etree, file, archive, "_rels/.rels")
    for relation in relations:
        if str(relation.get("Type")).endswith(_MAIN_PART):
            name = posixpath.normpath(relation.get("Target").lstrip("/"))
            return _part(etree, file, archive, name)
    raise InputError(f"{file.name}: is damaged (it names no text); save it again")


def _part(etree: Any, file: File, archive: ZipFile, name: str) -> Any:
    """Return the root of a part of the package."""
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise InputError(f"{file.name}: is damaged (no part {name!r}); save it again") from None

    with open_member(archive, info, file.name, file.unpacked) as part:
        content = read_markup(file.name, part, is_packed=True)
    root = parse_xml(etree, content)
    if root.getroottree().docinfo.internalDTD is not None:
        raise InputError(
            f"{file.name}: declares entities of its own, which no office program does; "
            "save it again"
        )
    return root


def _remove_all(root: Any, names: tuple[str, ...]) -> None:
    for node in list(root.iter(*(f"{{*}}{name}" for name in names))):
        parent = node.getparent()
        if local_name(parent) != "rPr":  # the end of a paragraph is deleted, see `_paragraphs`
            parent.remove(node)


def _keep_one_alternative(root: Any) -> None:
    """Keep one of several forms of a drawing: the first with text, else the first."""
    for alternatives in list(root.iter("{*}AlternateContent")):
        forms = list(alternatives)
        with_text = [form for form in forms if next(form.iter("{*}t"), None) is not None]
        kept = next(iter(with_text or forms), None)
        for form in forms:
            if form is not kept:
                alternatives.remove(form)


def _paragraphs(etree: Any, root: Any, n_symbols: Counter[str]) -> list[str]:
    """Return the paragraphs in the order of their beginnings; a text box follows its paragraph."""
    parts_of: dict[Any, list[str]] = {}
    paragraphs: list[list[str]] = []
    for node in root.iter("{*}p"):
        # Where the end of a paragraph was deleted, the next one continues it.
        before = node.getprevious()
        if before in parts_of and before.find("{*}pPr/{*}rPr/{*}del") is not None:
            parts_of[node] = parts_of[before]
            continue
        parts_of[node] = []
        paragraphs.append(parts_of[node])

    instructions = _instructions(root)
    for event, node in etree.iterwalk(root, ("start", "end")):
        text = _sign(node, event)
        if event == "start":
            text += _characters(node, n_symbols)
        paragraph = next(node.iterancestors("{*}p"), None) if text else None
        if paragraph is not None and node not in instructions:
            parts_of[paragraph].append(text)
    return ["".join(parts).strip() for parts in paragraphs]


def _characters(node: Any, n_symbols: Counter[str]) -> str:
    """Return the characters for which an element stands; count symbols that have none."""
    name = local_name(node)
    if name == "t":
        return node.text or ""
    if name == "sym":
        return _symbol(node, n_symbols)
    if name in _CHARACTERS and local_name(node.getparent()) in ("r", "p"):  # no stop of a tab
        return _CHARACTERS[name]
    return ""


def _sign(node: Any, event: str) -> str:
    """Return the sign that an equation shows by the place or the kind of one of its parts.

    So a fraction of 1 and 2 is not read as 12, nor a square of 10 as 102.
    """
    if not node.tag.startswith(_EQUATIONS):
        return ""

    name = local_name(node)
    if name == "d":
        if event == "start":
            return _value(node, "dPr/begChr", "(")
        return _value(node, "dPr/endChr", ")")

    if event == "end" or next(node.iter("{*}t"), None) is None:
        return ""
    if name == "nary":
        return _value(node, "naryPr/chr", "\u222b")

    parent = local_name(node.getparent())
    before = node.getprevious()
    if name in ("e", "mr") and before is not None and local_name(before) == name:
        if parent == "d":
            return _value(node.getparent(), "dPr/sepChr", "|")
        return " "  # the next cell or row of a matrix
    return _BEFORE_PART.get(name, "")


def _value(node: Any, path: str, usual: str) -> str:
    """Return the value of a property of an equation, or the usual one."""
    property_node = node.find("/".join(f"{{*}}{name}" for name in path.split("/")))
    if property_node is None:
        return usual
    return str(next(iter(property_node.attrib.values()), ""))


def _symbol(node: Any, n_symbols: Counter[str]) -> str:
    """Return the character of a code in a font."""
    values = {name.rpartition("}")[2]: value for name, value in node.attrib.items()}
    code = int(values.get("char", "20"), 16)
    font = values.get("font", "")
    if font == "Symbol":
        return SYMBOL_FONT.get(code & 0xFF, " ")
    if code in _PRIVATE:
        n_symbols[font] += 1
    return chr(code)


def _instructions(root: Any) -> set[Any]:
    """Return the text nodes between the beginning of a field and its result.

    Such a node is the result of a field within the instruction. A beginning without an end counts
    for nothing, so that the text after it is not lost.
    """
    nodes: list[Any] = []
    open_fields: list[int] = []
    inside: set[Any] = set()

    for node in root.iter("{*}t", "{*}sym", "{*}fldChar"):
        name = local_name(node)
        if name != "fldChar":
            nodes.append(node)
            continue

        kind = next((v for k, v in node.attrib.items() if k.endswith("fldCharType")), "")
        if kind == "begin":
            open_fields.append(len(nodes))
        elif kind == "separate" and open_fields:
            start = open_fields[-1]
            if start >= 0:
                inside.update(nodes[start:])
            open_fields[-1] = -1  # what follows is its result
        elif kind == "end" and open_fields:
            start = open_fields.pop()
            if start >= 0:
                inside.update(nodes[start:])

    return inside
