"""Token tables: one word a line with its labels in columns, empty lines between sentences."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from embedtopics.errors import InputError
from embedtopics.probing.tasks.lines import (
    numbered_lines,
    placed,
    read_heads,
    readable_path,
)
from embedtopics.results import Sentence, Treebank

__all__ = ["read_token_table"]

_WORD = ("form", "token", "word")
_SENTENCE = ("sent_id", "sentence_id", "sentence")
_NUMBER = ("tok_id", "token_id", "id")
_HEAD = "head"

Row = tuple[int, list[str]]


@dataclass(frozen=True)
class _Layout:
    """Where the columns of a table are; None for what it has not."""

    name: str
    header: tuple[str, ...]
    word: int
    sentence: int | None
    number: int | None

    @property
    def others(self) -> tuple[int, ...]:
        known = (self.word, self.sentence, self.number)
        return tuple(place for place in range(len(self.header)) if place not in known)


def read_token_table(
    path: str | Path,
    *,
    word: str | None = None,
    sentence: str | None = None,
    header: Sequence[str] | None = None,
    delimiter: str | None = None,
) -> Treebank:
    """Read words with any labels: one word a line, empty lines between sentences.

    Parameters
    ----------
    path : str or Path
        In UTF-8, possibly ending in .gz. In a file that ends in .csv, fields may be quoted; in
        others a quote is a word as any other.
    word : str, optional
        Column of the words; by default "form", "token" or "word".
    sentence : str, optional
        Column of the sentences' ids; by default "sent_id", "sentence_id" or "sentence", where
        there is one. Where the id changes, a sentence ends, too.
    header : sequence of str, optional
        Names of the columns of a file without a first line that names them, such as those of
        CoNLL-2003.
    delimiter : str, optional
        By default a comma for .csv, and a tab otherwise.

    Returns
    -------
    Treebank
        With all other columns; texts are the words, with a blank between any two. A column
        "tok_id", "token_id" or "id" numbers the words of each sentence from 1, and "head" points
        at these numbers; both are checked.

    Raises
    ------
    InputError
        With the line: where it is not UTF-8, has not as many fields as the header, or no word;
        where words are not numbered in order or heads are no tree; and where a column is missing.
    """
    file = readable_path(path)
    stem = file.name.lower().removesuffix(".gz")
    sign = delimiter if delimiter is not None else "," if stem.endswith(".csv") else "\t"
    if len(sign) != 1:
        raise InputError(f"expected one character as delimiter, got {sign!r}")
    rows = _rows(file, sign, quoted=stem.endswith(".csv"))
    layout = _layout(file.name, header, rows, word, sentence)
    sentences = []
    for block in _sentences(rows, layout):
        sentences.append(_finished(block, layout, len(sentences) + 1))
    if not sentences:
        raise InputError(f"{file.name}: expected words below the header, got none")
    columns = tuple(layout.header[place] for place in layout.others)
    return Treebank(file.name, tuple(sentences), columns)


def _rows(file: Path, delimiter: str, quoted: bool) -> Iterator[Row]:
    """Yield the fields of each line; none for an empty line."""
    if not quoted:
        for number, line in numbered_lines(file):
            yield number, line.split(delimiter) if line else []
        return
    reader = csv.reader(
        (line + "\n" for _, line in numbered_lines(file)), delimiter=delimiter, strict=True
    )
    begin = 1
    try:
        for fields in reader:
            yield begin, fields
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{file.name}, line {begin}: expected closed quotes, got {error}; write a quote inside "
            'a quoted field twice ("")'
        ) from None


def _layout(
    name: str,
    header: Sequence[str] | None,
    rows: Iterator[Row],
    word: str | None,
    sentence: str | None,
) -> _Layout:
    first = next((fields for _, fields in rows if fields), []) if header is None else header
    names = tuple(str(one).strip() for one in first)
    if not names:
        raise InputError(f"{name}: expected a line that names the columns, got an empty file")
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise InputError(
            f"{name}: expected columns with different names, got {twice!r} twice; name all columns "
            "with header="
        )
    found = _place(names, word, _WORD)
    if found is None:
        raise InputError(
            f"{name}: expected a column {repr(word) if word else ' or '.join(map(repr, _WORD))} of "
            f"the words; its columns are {', '.join(map(repr, names))}; name one of these with "
            "word=, or all columns with header= if the first line holds no names"
        )
    of_sentence = _place(names, sentence, _SENTENCE)
    if sentence is not None and of_sentence is None:
        raise InputError(
            f"{name}: expected a column {sentence!r} of the sentences' ids; its columns are "
            f"{', '.join(map(repr, names))}"
        )
    return _Layout(name, names, found, of_sentence, _place(names, None, _NUMBER))


def _place(names: tuple[str, ...], given: str | None, usual: Sequence[str]) -> int | None:
    wanted = usual if given is None else (given,)
    return next((names.index(one) for one in wanted if one in names), None)


def _sentences(rows: Iterator[Row], layout: _Layout) -> Iterator[list[Row]]:
    block: list[Row] = []
    for number, fields in rows:
        if not fields:
            if block:
                yield block
            block = []
            continue
        if len(fields) != len(layout.header):
            raise InputError(
                f"{layout.name}, line {number}: expected {len(layout.header)} fields as in the "
                f"header, got {len(fields)}; correct the line"
            )
        if not fields[layout.word].strip():
            raise InputError(
                f"{layout.name}, line {number}: expected a word in the column "
                f"{layout.header[layout.word]!r}, got none; correct or remove the line"
            )
        at = layout.sentence
        if block and at is not None and fields[at] != block[-1][1][at]:
            yield block
            block = []
        block.append((number, fields))
    if block:
        yield block


def _finished(block: list[Row], layout: _Layout, nth: int) -> Sentence:
    numbers = [number for number, _ in block]
    columns = list(zip(*(map(sys.intern, fields) for _, fields in block), strict=True))
    if layout.number is not None:
        for place, (number, got) in enumerate(
            zip(numbers, columns[layout.number], strict=True), start=1
        ):
            if got != str(place):
                raise InputError(
                    f"{layout.name}, line {number}: expected the number {place} in the column "
                    f"{layout.header[layout.number]!r}, got {got!r:.40}; number the words of a "
                    "sentence in order, from 1"
                )
    heads: tuple[int, ...] = ()
    if _HEAD in layout.header:
        heads = read_heads(columns[layout.header.index(_HEAD)], numbers, layout.name)
    words = columns[layout.word]
    text, spans, _ = placed([(form, True) for form in words], None)
    return Sentence(
        id=columns[layout.sentence][0] if layout.sentence is not None else str(nth),
        text=text, words=words, heads=heads, spans=spans,
        columns={layout.header[place]: columns[place] for place in layout.others},
    )  # fmt: skip
