"""Pages (.html): their main parts, without menus, forms, scripts and deletions."""

from __future__ import annotations

from typing import Any, BinaryIO

from embedtopics.corpus.readers._documents import FileText
from embedtopics.corpus.readers._markup import ElementKinds, paragraphs_of
from embedtopics.corpus.readers._opening import File, read_markup
from embedtopics.errors import InputError

_NO_TEXT = (
    "script", "style", "noscript", "template", "nav", "footer", "aside", "form", "button", "svg",
    "iframe", "object", "annotation", "annotation-xml",
)  # fmt: skip

_MORE_BLOCKS = (
    "article", "section", "main", "header", "figure", "figcaption", "details", "summary", "hgroup",
    "dialog", "search",
)  # fmt: skip
"""Blocks of HTML 5, which lxml does not list."""

_READINGS = ("rt", "rp", "rtc")
"""How characters are pronounced, and the brackets around it."""

DELETED = "Deleted passages were left out"


def read_html(lxml: Any, file: File, stream: BinaryIO, encoding: str) -> list[FileText]:
    """Read the main parts of a page, or all of it except menus, forms and scripts."""
    root = _parse(lxml, file, read_markup(file.name, stream, is_packed=file.is_packed), encoding)
    etree = lxml.etree
    title = " ".join(root.findtext(".//title", "").split())

    remarks = {}
    if next(root.iter("del"), None) is not None:
        remarks[DELETED] = ""
    etree.strip_elements(root, *_NO_TEXT, "del", with_tail=False)
    _keep_bases(root)
    etree.strip_elements(root, *_READINGS, with_tail=False)

    blocks = {*lxml.defs.block_tags, *_MORE_BLOCKS} - {"td", "th", "del", "ins"}
    markup = ElementKinds(frozenset(blocks), spaces=frozenset(("td", "th", "s", "strike")))
    paragraphs = []
    for main in root.xpath("//main[not(ancestor::main)]"):
        paragraphs += paragraphs_of(etree, main, markup)
    if not paragraphs:
        body = next(iter(root.xpath("//body")), root)
        paragraphs = paragraphs_of(etree, body, markup)
    return [FileText(paragraphs, {"title": title} if title else {}, remarks)]


def _parse(lxml: Any, file: File, data: bytes, encoding: str) -> Any:
    """Return the root of a page."""
    # "ignore" shortens what is no text of this encoding; then the page names its own.
    is_text = len(data.decode(encoding, "ignore").encode(encoding)) == len(data)
    parser = lxml.HTMLParser(
        encoding=encoding if is_text else None,
        remove_comments=True,
        remove_pis=True,
        huge_tree=True,  # else all of what is nested more than 256 times is left out
    )
    root = lxml.document_fromstring(data, parser=parser)

    for problem in parser.error_log:
        # The parser stops there, and returns what came before.
        if problem.level_name == "FATAL" and "depth" in problem.message.lower():
            raise InputError(f"{file.name}: has too many levels of elements; simplify the page")
    return root


def _keep_bases(root: Any) -> None:
    """Move characters out of the readings of others, where a page leaves out the end tags."""
    is_reading = " or ".join(f"self::{name}" for name in _READINGS)
    is_inside = " or ".join(f"ancestor::{name}" for name in _READINGS)
    for reading in root.xpath(f"//ruby//*[{is_reading}][not({is_inside})]"):
        for base in reversed(list(reading.iter("rb"))):
            reading.addnext(base)
