"""Text layers of .pdf files, as paragraphs, without running headers and footers."""

from __future__ import annotations

import logging
import re
from collections import Counter
from itertools import chain, pairwise
from statistics import median
from typing import Any, BinaryIO, NamedTuple

from embedtopics.corpus.readers._documents import FileText
from embedtopics.corpus.readers._opening import File, seekable
from embedtopics.errors import InputError


class _Line(NamedTuple):
    """A line of a page and the place of its first character, in points from the lower left."""

    text: str
    x: float
    y: float


def read_pdf(pypdf: Any, file: File, stream: BinaryIO, encoding: str) -> list[FileText]:
    """Read the text layer, without running headers and footers."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs each of its repairs
    try:
        pages = [_page_lines(page) for page in pypdf.PdfReader(seekable(stream)).pages]
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
