"""The paragraphs of a tree of markup.

Elements that are no blocks run on, as they are shown. Where markup alone separates words, and the
file has no space between them, a space is added: between the end of a unit of language and the
start of the next, and where a page or a column begins. It is not added within a word: where an
element says so (``break="no"``), before closing marks, and in scripts that put no space between
words.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

# Marks that no text holds, because XML forbids them.
_UNIT_ENDS = "\x1d"
_UNIT_STARTS = "\x1e"
_JOINED = "\x1f"
_MARKS = re.compile("[\x1d-\x1f]")

# Letters and digits of scripts with spaces between words.
_SPACED = r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
_BETWEEN_UNITS = re.compile(
    rf"(?:(?<={_SPACED})|(?<=[.,;:!?\u2026)\]\u201d\xbb]))"
    r"\x1d\x1e"
    rf"(?={_SPACED}|[(\[\u201c\xab])"
)
_UNIT_MARKS = re.compile(r"[\x1d\x1e]{2,}")
_SPACE = re.compile(r"\s+")  # with the marks
_EMPTY_LINES = re.compile(r"\n{4,}")


@dataclass(frozen=True)
class ElementKinds:
    """What the elements of a kind of markup do to the text, by their names without namespace.

    Parameters
    ----------
    blocks : set of str, optional
        Elements that are paragraphs; None if all are.
    lines, spaces : set of str
        Elements before which a line begins, and after which a space stands.
    units : set of str
        Units of language: no word continues from one into the next.
    apart : set of str
        Units that are no part of a word of the text around them either.
    turns : set of str
        Empty elements where a page or a column begins.
    """

    blocks: AbstractSet[str] | None = None
    lines: AbstractSet[str] = frozenset(("br", "lb"))
    spaces: AbstractSet[str] = frozenset(("td", "th", "s"))
    units: AbstractSet[str] = frozenset()
    apart: AbstractSet[str] = frozenset()
    turns: AbstractSet[str] = frozenset()


def local_name(node: Any) -> str:
    """Return the name of an element without its namespace."""
    return str(node.tag).rpartition("}")[2]


def remove(node: Any) -> None:
    """Take an element out of its tree; the text that follows it stays."""
    parent = node.getparent()
    before = node.getprevious()
    if node.tail and before is not None:
        before.tail = (before.tail or "") + node.tail
    elif node.tail:
        parent.text = (parent.text or "") + node.tail
    parent.remove(node)


def paragraphs_of(etree: Any, root: Any, markup: ElementKinds) -> list[str]:
    """Return the paragraphs of a tree."""
    parts = []
    for event, node in etree.iterwalk(root, ("start", "end")):
        parts.append(_around(event, node, markup))
        text = node.text if event == "start" else node.tail
        if node is root and event == "end":
            break
        parts.append(re.sub(r"\s+", " ", _MARKS.sub("", text or "")))

    # A run of marks or spaces is replaced as a whole: a pattern that looks for a mark in it would
    # take quadratic time.
    text = _EMPTY_LINES.sub("\n\n\n", "".join(parts))
    text = _SPACE.sub(_join_at_mark, text)
    text = _UNIT_MARKS.sub(_one_pair, text)
    text = _MARKS.sub("", _BETWEEN_UNITS.sub(" ", text))
    lines = (" ".join(line.split()) for line in text.split("\n"))
    paragraphs = (paragraph.strip() for paragraph in "\n".join(lines).split("\n\n"))
    return list(filter(None, paragraphs))


def _join_at_mark(spaces: re.Match[str]) -> str:
    """Return a run of spaces without those around a mark that joins, up to an empty line."""
    if "\x1f" not in spaces[0]:
        return spaces[0]

    first, *others = spaces[0].split("\n\n")
    joined = "" if "\x1f" in first else first
    for part in others:
        if "\x1f" not in part:
            joined += f"\n\n{part}"
        elif part.startswith("\n"):  # a second empty line, which remains
            joined += "\n\n"
        else:
            joined += "\n"

    return joined


def _one_pair(marks: re.Match[str]) -> str:
    """Return the end and the beginning of a unit that a run of marks holds, or one mark."""
    return "\x1d\x1e" if "\x1d\x1e" in marks[0] else marks[0][:1]


def _around(event: str, node: Any, markup: ElementKinds) -> str:
    """Return what stands before the text of an element, or after its last one."""
    name = local_name(node)
    is_start = event == "start"

    if markup.blocks is None or name in markup.blocks:
        return "\n\n"

    if name in markup.lines or name in markup.turns:
        if not is_start:
            return ""
        if node.get("break") == "no":
            return _JOINED
        return "\n" if name in markup.lines else _UNIT_ENDS + _UNIT_STARTS

    if not is_start and name in markup.spaces:
        return " "
    if name in markup.apart:
        return _UNIT_ENDS + _UNIT_STARTS
    if name in markup.units and not _is_part_of_word(node, is_start):
        return _UNIT_STARTS if is_start else _UNIT_ENDS
    return ""


def _is_part_of_word(node: Any, is_start: bool) -> bool:
    """Return whether a word continues over the start or the end of a unit."""
    if node.get("part") in ("I", "M", "F") or node.get("type", "").startswith("syl"):
        return True
    return node.get("join") in ("both", "left" if is_start else "right")
