"""Files of one word a line: their lines, sentence by sentence, and the trees in them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from embedtopics.corpus.opening import check_path, open_binary
from embedtopics.errors import InputError

__all__ = ["Lines", "blocks", "numbered_lines", "placed", "read_heads", "readable_path"]

Lines = list[tuple[int, str]]
"""Lines with their numbers in the file, from 1."""


_HEAD = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)


def readable_path(path: str | Path) -> Path:
    """Return the path of a file that is there, or refuse it."""
    found = Path(path).expanduser()
    check_path(found)
    if found.is_dir():
        raise InputError(f"{found}: expected a file, got a folder; name one of its files")
    return found


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yield the lines of a UTF-8 file without their ends; only "\n" and "\r\n" end a line.

    Unlike str.splitlines, which ends lines at U+0085 and U+2028, too: words may hold these.

    Raises
    ------
    InputError
        Where a line is not UTF-8.
    """
    with open_binary(path) as stream:
        for number, raw in enumerate(stream, start=1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{path.name}, line {number}: expected UTF-8, got the byte "
                    f"0x{raw[error.start]:02x} as byte {error.start + 1} of the line; convert the "
                    "file to UTF-8"
                ) from None
            yield number, line.removesuffix("\n").removesuffix("\r")


def blocks(lines: Iterator[tuple[int, str]]) -> Iterator[Lines]:
    """Yield the lines between empty ones."""
    block: Lines = []
    for number, line in lines:
        if line:
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def read_heads(cells: Sequence[str], numbers: Sequence[int], name: str) -> tuple[int, ...]:
    """Return the heads of a sentence, checked; none where all are "_"."""
    if all(cell == "_" for cell in cells):
        return ()
    for cell, number in zip(cells, numbers, strict=True):
        if not _HEAD.fullmatch(cell):
            raise InputError(
                f"{name}, line {number}: expected the number of a word as head, or 0; got "
                f"{cell!r:.40}; correct the line, or write _ for all heads of the sentence"
            )
    heads = tuple(map(int, cells))
    _check_tree(heads, numbers, name)
    return heads


def _check_tree(heads: Sequence[int], numbers: Sequence[int], name: str) -> None:
    """Refuse heads that are no tree with one root.

    Parameters
    ----------
    heads : sequence of int
        Counted from 1; 0 for the root.
    numbers : sequence of int
        Line of each word.
    name : str
        Of the file.
    """
    n = len(heads)
    for place, head in enumerate(heads):
        if not 0 <= head <= n or head == place + 1:
            raise InputError(
                f"{name}, line {numbers[place]}: expected as head another word of the sentence, 1 "
                f"to {n}, or 0 for the root; got {head}; correct the line"
            )
    roots = [place for place, head in enumerate(heads) if head == 0]
    if len(roots) > 1:
        also = ", ".join(str(numbers[place]) for place in roots)
        raise InputError(
            f"{name}, line {numbers[roots[1]]}: expected one root in a sentence, got "
            f"{len(roots)}, in the lines {also}; correct their heads"
        )
    hangs = [head == 0 for head in heads]
    for start in range(n):
        place, way = start, []
        while not hangs[place]:
            if place in way:
                around = ", ".join(str(one + 1) for one in sorted(way[way.index(place) :]))
                raise InputError(
                    f"{name}, line {numbers[start]}: expected a tree, got a cycle: the words "
                    f"{around} hang on one another; correct their heads"
                )
            way.append(place)
            place = heads[place] - 1
        for one in way:
            hangs[one] = True


def placed(
    tokens: Sequence[tuple[str, bool]], text: str | None
) -> tuple[str, tuple[tuple[int, int], ...], bool]:
    """Find tokens in their text, or make the text from them.

    Parameters
    ----------
    tokens : sequence of (str, bool)
        Each as it is written, and whether a blank follows.
    text : str, optional

    Returns
    -------
    text : str
    spans : tuple of (int, int)
        Of each token.
    fits : bool
        Whether the text given is that of the tokens; if not, the text is made from them.
    """
    if text is not None:
        spans, at = [], 0
        for form, _ in tokens:
            while at < len(text) and text[at].isspace() and not text.startswith(form, at):
                at += 1
            if not text.startswith(form, at):
                break
            spans.append((at, at + len(form)))
            at += len(form)
        if len(spans) == len(tokens) and not text[at:].strip():
            return text, tuple(spans), True
    spans, parts, at = [], [], 0
    for form, spaced in tokens:
        spans.append((at, at + len(form)))
        parts.append(form + " " * spaced)
        at += len(parts[-1])
    made = "".join(parts)
    return made[: spans[-1][1]], tuple(spans), text is None
