"""JSON Lines, with an object on each line, and JSON arrays of objects."""

from __future__ import annotations

import itertools
import json
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from embedtopics.corpus._readers import DocumentTable, records_frame
from embedtopics.corpus._texts import replace_surrogates
from embedtopics.corpus.readers._headers import check_width
from embedtopics.corpus.readers._opening import File, open_text
from embedtopics.errors import InputError, name_rows

_PIECE = 1 << 16
"""Characters of an array that are read at once."""

_BETWEEN: Any = re.compile(r"[\s,]*")


def read_json_lines(file: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read one JSON object from each line; skip blank lines."""
    lines = array("q")

    def parsed(handle: Iterable[str]) -> Iterator[object]:
        for number, line in enumerate(handle, start=1):
            if line.strip():
                lines.append(number)
                yield _parse(line, f"{file.name}, line {number}")

    with open_text(file, encoding) as handle:
        frame = _frame_of_records(itertools.islice(parsed(handle), limit), file, lines)
    return DocumentTable(frame, file.name, lines=lines, untyped=True)


def read_json(file: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read a JSON array of objects, or JSON Lines under this suffix."""
    with open_text(file, encoding) as handle:
        head = handle.read(_PIECE)
        while head and not head.strip():
            head = handle.read(_PIECE)
        is_array = head.lstrip().startswith("[")
        if is_array and limit is not None:
            records = list(itertools.islice(_elements(head, handle, file.name), limit))
        elif is_array:
            records = _parse(head + handle.read(), file.name)

    if not is_array:
        return read_json_lines(file, encoding, limit)
    return DocumentTable(_frame_of_records(records, file), file.name, untyped=True)


def _elements(head: str, handle: Any, name: str) -> Iterator[Any]:
    """Yield the elements of an array, and read no more of it than they need."""
    decode = json.JSONDecoder().raw_decode
    text = head.lstrip()[1:]
    place = 0
    size = _PIECE
    while True:
        place = _BETWEEN.match(text, place).end()
        if text.startswith("]", place):
            return

        try:
            element, end = decode(text, place)
        except (RecursionError, ValueError):
            end = len(text)
        if end < len(text):  # a number at the end of the piece could go on
            yield element
            place = end
            continue

        # An element that is long is tried again only when twice as much of it was read.
        more = handle.read(size)
        if not more:
            _parse(f"[{text[place:]}", name)  # raises the error for what is left
            return
        text = text[place:] + more
        place = 0
        size = max(size, len(text))


def _parse(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (RecursionError, ValueError) as error:
        raise InputError(
            f"{place}: expected valid JSON, got a fault ({error}); write one complete JSON object "
            "a line, or one array of objects"
        ) from None


def _frame_of_records(
    records: Iterable[object], file: File, lines: Sequence[int] | None = None
) -> pd.DataFrame:
    """Convert objects to columns, in the order of their keys; a string is a text."""
    rows: list[dict[str, object]] = []
    names: set[str] = set()

    for record in records:
        row = {"text": record} if isinstance(record, str) else record
        if not isinstance(row, dict):
            raise InputError(
                f"{file.name}, {name_rows([len(rows)], lines)}: expected a JSON object with named "
                f"fields, got a {type(record).__name__}; write documents as objects such as "
                '{"text": "..."}'
            )
        rows.append({replace_surrogates(key): value for key, value in row.items()})
        names.update(row)
        check_width(file.name, len(names))

    if not rows:
        raise InputError(f"{file.name}: expected JSON objects, got an empty file")
    return records_frame(rows)
