"""Readers of labelled words: treebanks in CoNLL-U, and tables of one word a line.

The `conllu` library is four times as slow, loses the line numbers, and accepts rows with missing
columns, words out of order, heads that are no tree and incomplete multi-word tokens.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from embedtopics.corpus._readers import check_path, open_binary
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.probing.results import Sentence, Treebank

COLUMNS = ("lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""Names of the columns after the number and the form of a word."""
FORM, HEAD, MISC = 1, 6, 9
NUMBER = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
RANGE = re.compile(r"([1-9]\d{0,8})-([1-9]\d{0,8})", re.ASCII)

WORD_NAMES = ("form", "token", "word")
SENTENCE_NAMES = ("sent_id", "sentence_id", "sentence")
NUMBER_NAMES = ("tok_id", "token_id", "id")

Row = tuple[int, list[str]]
"""The number of a line in the file, from 1, and its fields; none for an empty line."""


def read_conllu(path: str | Path) -> Treebank:
    """Read a treebank in the CoNLL-U format of Universal Dependencies.

    The units are syntactic words. A multi-word token, such as the French "du" with the words "de"
    and "le", gives its words its place in the text. Empty nodes (8.1) are left out.

    Parameters
    ----------
    path : str or Path
        A .conllu file, or one that ends in .gz.

    Returns
    -------
    Treebank
        Its columns are lemma, upos, xpos, feats, head, deprel, deps and misc.

    Raises
    ------
    InputError
        With the line: where it is not UTF-8, has not ten columns or an empty form, where words
        are not numbered in order, and where heads are not those of a tree with one root.

    Notes
    -----
    The text of a sentence is that of its comment ``# text``; where there is none, or it does not
    match the words, it is made from the words and ``SpaceAfter=No``.

    References
    ----------
    https://universaldependencies.org/format.html; de Marneffe, Manning, Nivre and Zeman,
    "Universal Dependencies", Computational Linguistics 47(2), 2021.
    """
    file = _checked_file(path)
    sentences: list[Sentence] = []
    counts: Counter[str] = Counter()
    for block in _blocks((number, [line] if line else []) for number, line in _lines(file)):
        comments: dict[str, str] = {}
        draft = _Draft(file.name)
        for number, [line] in block:
            key, sign, value = line[1:].partition("=")
            if not line.startswith("#"):
                draft.add(number, line.split("\t"))
            elif sign:
                comments.setdefault(key.strip(), value.strip())
        if not draft.rows or (draft.ranges and draft.ranges[-1][1] > len(draft.rows)):
            expected = "all words of its multi-word tokens" if draft.rows else "words"
            found = f"{len(draft.rows)} words"
            raise InputError(f"a sentence of {file.name}", expected, found=found, row=block[-1][0])
        heads = _heads([row[HEAD] for row in draft.rows], draft.numbers, file.name)
        text, spans, fits = _located(draft.tokens, comments.get("text"))
        words, *columns = zip(*(map(sys.intern, row[FORM:]) for row in draft.rows), strict=True)
        sentence = Sentence(
            id=comments.get("sent_id") or str(len(sentences) + 1),
            text=text,
            words=words,
            columns=dict(zip(COLUMNS, columns, strict=True)),
            heads=heads,
            spans=tuple(spans[token] for token in draft.token_of_word),
            ranges=tuple(draft.ranges),
        )
        sentences.append(sentence)
        counts["multiword_tokens"] += len(draft.ranges)
        counts["empty_nodes"] += draft.n_empty
        counts["texts_made"] += not fits
        counts["without_heads"] += not heads
    if not sentences:
        raise InputError(file.name, "sentences in CoNLL-U", found="an empty file")
    messages = {
        "multiword_tokens": "{:,} multi-word tokens are read as their syntactic words.",
        "empty_nodes": "{:,} empty nodes, which were not written, are left out.",
        "texts_made": "The text of {:,} sentences does not match their words, and was made anew.",
        "without_heads": "{:,} sentences have no heads.",
    }
    decisions = tuple(
        Decision("probing", name, counts[name], f"{file.name}: {message.format(counts[name])}")
        for name, message in messages.items()
        if counts[name]
    )
    return Treebank(file.name, tuple(sentences), COLUMNS, decisions)


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
        others a quote is a word like any other.
    word : str, optional
        Column of the words; by default "form", "token" or "word".
    sentence : str, optional
        Column of the sentences' ids; by default "sent_id", "sentence_id" or "sentence", where
        there is one. A sentence ends where the id changes, too.
    header : sequence of str, optional
        Names of the columns of a file whose first line does not name them, such as CoNLL-2003.
    delimiter : str, optional
        By default a comma for .csv, and a tab otherwise.

    Returns
    -------
    Treebank
        With all other columns; texts are the words, joined by spaces. A column "tok_id",
        "token_id" or "id" numbers the words of each sentence from 1, and "head" refers to these
        numbers; both are checked.

    Raises
    ------
    InputError
        With the line: where it is not UTF-8, has not as many fields as the header, or no word;
        where words are not numbered in order or heads are no tree; and where a column is missing.
    """
    file = _checked_file(path)
    is_csv = file.name.lower().removesuffix(".gz").endswith(".csv")
    sign = delimiter if delimiter is not None else "," if is_csv else "\t"
    if len(sign) != 1:
        raise InputError("delimiter", "one character", sign)
    plain = ((number, line.split(sign) if line else []) for number, line in _lines(file))
    rows = _quoted_rows(file, sign) if is_csv else plain
    first = next((fields for _, fields in rows if fields), []) if header is None else header
    names = tuple(str(one).strip() for one in first)
    if not names or len(set(names)) < len(names):
        raise InputError("header", "different names of columns", list(names))
    of_word = _column(names, word, WORD_NAMES)
    if of_word is None:
        remedy = "name one of these, or all columns with header="
        raise InputError("word", "a column of the file", word, remedy, found=", ".join(names))
    of_sentence = _column(names, sentence, SENTENCE_NAMES)
    if sentence is not None and of_sentence is None:
        raise InputError("sentence", f"one of {', '.join(names)}", sentence)
    of_number = _column(names, None, NUMBER_NAMES)
    others = [n for n in range(len(names)) if n not in (of_word, of_sentence, of_number)]
    sentences: list[Sentence] = []
    for block in _blocks(rows, of_sentence):
        for place, (number, fields) in enumerate(block, start=1):
            if len(fields) != len(names):
                _refuse(f"a line of {file.name}", f"{len(names)} fields", len(fields), number)
            if not fields[of_word].strip():
                _refuse(f"{names[of_word]} in {file.name}", "a word", fields[of_word], number)
            if of_number is not None and fields[of_number] != str(place):
                _refuse(f"{names[of_number]} in {file.name}", str(place), fields[of_number], number)
        columns = list(zip(*(map(sys.intern, fields) for _, fields in block), strict=True))
        heads: tuple[int, ...] = ()
        if "head" in names:
            heads = _heads(columns[names.index("head")], [n for n, _ in block], file.name)
        text, spans, _ = _located([(form, True) for form in columns[of_word]], None)
        made = Sentence(
            id=str(len(sentences) + 1) if of_sentence is None else columns[of_sentence][0],
            text=text,
            words=columns[of_word],
            columns={names[n]: columns[n] for n in others},
            heads=heads,
            spans=spans,
        )
        sentences.append(made)
    if not sentences:
        raise InputError(file.name, "words below the header", found="none")
    return Treebank(file.name, tuple(sentences), tuple(names[n] for n in others))


def _refuse(parameter: str, expected: str, got: Any, row: int) -> NoReturn:
    raise InputError(parameter, expected, got, "correct the line", row=row)


def _checked_file(path: str | Path) -> Path:
    file = Path(path).expanduser()
    check_path(file)
    if file.is_dir():
        raise InputError("path", "a file", str(path), "name one of the files in the folder")
    return file


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yield the lines of a UTF-8 file; only "\n" and "\r\n" end one, U+2028 may be in a word."""
    with open_binary(path) as stream:
        for number, raw in enumerate(stream, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                found = f"the byte 0x{raw[error.start]:02x}"
                raise InputError(path.name, "UTF-8", found=found, row=number) from None
            yield number, line.removesuffix("\n").removesuffix("\r")


def _quoted_rows(file: Path, delimiter: str) -> Iterator[Row]:
    lines = (line + "\n" for _, line in _lines(file))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    begin = 1
    try:
        for fields in reader:
            yield begin, fields
            begin = reader.line_num + 1
    except csv.Error as error:
        remedy = 'write a quote inside a quoted field twice ("")'
        raise InputError(file.name, "closed quotes", str(error), remedy, row=begin) from None


def _blocks(rows: Iterator[Row], of_sentence: int | None = None) -> Iterator[list[Row]]:
    """Yield the rows between empty ones, and between changes of a sentence's id."""
    block: list[Row] = []
    for number, fields in rows:
        is_new = not fields
        if block and of_sentence is not None:
            previous = block[-1][1][of_sentence : of_sentence + 1]
            is_new = fields[of_sentence : of_sentence + 1] != previous
        if block and is_new:
            yield block
            block = []
        if fields:
            block.append((number, fields))
    if block:
        yield block


def _column(names: Sequence[str], given: str | None, usual: Sequence[str]) -> int | None:
    wanted = usual if given is None else (given,)
    return next((names.index(one) for one in wanted if one in names), None)


@dataclass
class _Draft:
    """What has been read of a sentence: its words, and the tokens that were written."""

    source: str
    rows: list[list[str]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    tokens: list[tuple[str, bool]] = field(default_factory=list)
    token_of_word: list[int] = field(default_factory=list)
    ranges: list[tuple[int, int]] = field(default_factory=list)
    n_empty: int = 0
    n_since_word: int = 0

    def add(self, number: int, fields: list[str]) -> None:
        """Add a word, a multi-word token or an empty node, or refuse it."""
        if len(fields) != 2 + len(COLUMNS):
            _refuse(f"a line of {self.source}", "10 columns between tabs", len(fields), number)
        if not fields[FORM].strip():
            _refuse(f"form in {self.source}", "a word", fields[FORM], number)
        n, is_inside = len(self.rows), bool(self.ranges) and self.ranges[-1][1] > len(self.rows)
        token = fields[FORM], "SpaceAfter=No" not in fields[MISC].split("|")
        bounds = RANGE.fullmatch(fields[0])
        if fields[0] == str(n + 1):
            if not is_inside:
                self.tokens.append(token)
            self.rows.append(fields)
            self.numbers.append(number)
            self.token_of_word.append(len(self.tokens) - 1)
            self.n_since_word = 0
        elif fields[0] == f"{n}.{self.n_since_word + 1}":
            self.n_since_word += 1
            self.n_empty += 1
        elif bounds and int(bounds[1]) == n + 1 <= int(bounds[2]) and not is_inside:
            self.ranges.append((n, int(bounds[2])))
            self.tokens.append(token)
        else:
            expected = f"{n + 1}, a multi-word token from it, or {n}.{self.n_since_word + 1}"
            _refuse(f"id in {self.source}", expected, fields[0], number)


def _heads(cells: Sequence[str], numbers: Sequence[int], source: str) -> tuple[int, ...]:
    """Return the heads of a sentence, refused if they are no tree; none where all are "_"."""
    if set(cells) == {"_"}:
        return ()
    name, n = f"head in {source}", len(cells)
    for place, (cell, number) in enumerate(zip(cells, numbers, strict=True), start=1):
        if not NUMBER.fullmatch(cell) or int(cell) > n or int(cell) == place:
            _refuse(name, f"another word, 1 to {n}, or 0 for the root", cell, number)
    heads = tuple(map(int, cells))
    roots = [number for head, number in zip(heads, numbers, strict=True) if head == 0]
    if len(roots) > 1:
        _refuse(name, f"0 for one word, not for that of row {roots[0]}", 0, roots[1])
    for start, head in enumerate(heads):
        steps = 0
        while head and steps < n:
            head, steps = heads[head - 1], steps + 1
        if head:
            _refuse(name, "on a path to the root, not in a cycle", cells[start], numbers[start])
    return heads


def _located(
    tokens: Sequence[tuple[str, bool]], text: str | None
) -> tuple[str, tuple[tuple[int, int], ...], bool]:
    """Return the text and the spans of its tokens, and whether a given text matches them."""
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
    for form, is_spaced in tokens:
        spans.append((at, at + len(form)))
        parts.append(form + " " * is_spaced)
        at += len(parts[-1])
    made = "".join(parts)
    return made[: spans[-1][1]], tuple(spans), text is None
