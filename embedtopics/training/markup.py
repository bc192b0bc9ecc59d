"""Text of anybody in Markdown and YAML, as text and never as markup."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["escaped", "number", "one_line", "table", "yaml_text"]

# Controls, and overrides of the direction, which would turn round the words beside the text.
_HIDDEN = {code: " " for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)} | {
    code: "" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF, 0xFFFE, 0xFFFF)
}

# By CommonMark 2.5, a character that is written as a number never is part of the structure.
_STRUCTURE = {ord(mark): f"&#{ord(mark)};" for mark in "&<>*_`[]|~$#!\\{}^"}
_AT_THE_BEGIN = re.compile(r"^(\d*)([-+=.)])")
_ADDRESS = re.compile(r"://|(?i:(?<=\bwww)\.)")


def one_line(text: object, longest: int = 300) -> str:
    """Return text on one line without controls, cut where it is longer."""
    clean = str(text).encode("utf-8", "replace").decode("utf-8").translate(_HIDDEN)
    line = " ".join(clean.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def escaped(text: object, longest: int = 300) -> str:
    """Return text on one line that Markdown shows as it is.

    Examples
    --------
    >>> escaped("a *b* <c>")
    'a &#42;b&#42; &#60;c&#62;'
    """
    line = one_line(text, longest).translate(_STRUCTURE)
    line = _AT_THE_BEGIN.sub(lambda found: f"{found[1]}&#{ord(found[2])};", line)
    return _ADDRESS.sub(lambda found: "".join(f"&#{ord(c)};" for c in found[0]), line)


def yaml_text(text: object) -> str:
    """Return text as a scalar between quotes, which YAML reads as JSON does."""
    return json.dumps(one_line(text), ensure_ascii=False)


def number(value: Any, digits: int = 4) -> str:
    """Return a number for people: separators in large ones, "n/a" for one that is unknown."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return escaped(value)
    if isinstance(value, int):
        return f"{value:,}"
    if value != value:
        return "n/a"
    return f"{value:.{digits}g}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; cells are Markdown already."""
    lines = [list(head), ["---"] * len(head), *map(list, rows)]
    return [f"| {' | '.join(cells)} |" for cells in lines]
