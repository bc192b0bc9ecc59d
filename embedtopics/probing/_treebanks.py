"""Readers of labelled words: treebanks in CoNLL-U, and tables with one word per line."""

from __future__ import annotations

import csv
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from embedtopics._utils.checks import require
from embedtopics.corpus.readers._opening import File, check_path, open_binary
from embedtopics.errors import InputError
from embedtopics.probing.results import Sentence, Treebank
from embedtopics.results import Decision

COLUMNS = ("lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""Names of the columns after the number and the form of a word."""
NUMBER = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)

WORD_NAMES = ("form", "token", "word")
SENTENCE_NAMES = ("sent_id", "sentence_id", "sentence")
NUMBER_NAMES = ("tok_id", "token_id", "id")


TABLE_SUFFIXES = (".tsv", ".csv", ".txt")
"""Tables of words; other files are CoNLL-U."""


def read_treebank(path: str | os.PathLike[str]) -> Treebank:
    r"""Read sentences with labels of their words: a treebank in CoNLL-U, or a table of words.

    Parameters
    ----------
    path : str or path
        In UTF-8, possibly compressed (.gz). The ending says what it is.

        .tsv, .csv, .txt : one word per line, with empty lines between sentences. The first line
        names the columns, between commas in a .csv file, where fields may be quoted, and between
        tabs in others. That of the words is "form", "token" or "word". Where a column "sent_id",
        "sentence_id" or "sentence" changes, a sentence ends. A column "tok_id", "token_id" or "id"
        numbers the words of each sentence from 1, and "head" refers to these numbers.

        .conllu and others : the CoNLL-U format of Universal Dependencies. The units are syntactic
        words. The words of a multi-word token, such as "de" and "le" of the French "du", share its
        place in the text. Empty nodes (8.1) are left out.

    Returns
    -------
    Treebank
        Of CoNLL-U, its columns are lemma, upos, xpos, feats, head, deprel, deps and misc; of a
        table, all but those of words, sentences and numbers.

    Raises
    ------
    InputError
        If the file is not UTF-8, a line has other columns or lacks its form, words are not
        numbered in order, heads do not form a tree with one root, or a column is missing. The error
        names the line, or that in which the sentence begins.

    Notes
    -----
    The text of a sentence in CoNLL-U is that of its comment ``# text``. If there is none, or it
    does not match the words, the text is made from the words and ``SpaceAfter=No``. The text of a
    table is the words, joined by spaces.

    References
    ----------
    https://universaldependencies.org/format.html; de Marneffe, Manning, Nivre and Zeman,
    "Universal Dependencies", Computational Linguistics 47(2), 2021.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import embedtopics as et
    >>> temporary = tempfile.TemporaryDirectory()
    >>> path = Path(temporary.name) / "words.tsv"
    >>> lines = ["form\tupos", "Cats\tNOUN", "sleep\tVERB", "", "Dogs\tNOUN", "bark\tVERB"]
    >>> _ = path.write_text("\n".join(lines), "utf-8")
    >>> bank = et.probing.read_treebank(path)
    >>> bank
    Treebank(words.tsv: 2 sentences, 4 words)
    >>> bank.sentences[0].words
    ('Cats', 'sleep')
    >>> temporary.cleanup()
    """
    return _read_token_table(path) if is_table_of_words(path) else _read_conllu(path)


def has_suffix(path: str | os.PathLike[str], suffixes: tuple[str, ...]) -> bool:
    """Return whether a name has one of some endings, possibly before .gz."""
    return Path(path).name.lower().removesuffix(".gz").endswith(suffixes)


def is_table_of_words(path: str | os.PathLike[str]) -> bool:
    """Return whether a treebank is a table with one word per line, by its name."""
    return has_suffix(path, TABLE_SUFFIXES)


def first_line(path: str | os.PathLike[str]) -> str:
    """Return the first line of a file in UTF-8."""
    return next(_lines(_checked_file(path)), "")


def _read_conllu(path: str | os.PathLike[str]) -> Treebank:
    """Read a treebank in CoNLL-U."""
    file = _checked_file(path)
    sentences: list[Sentence] = []
    counts: Counter[str] = Counter()
    block: list[str] = []
    for row, line in enumerate(chain(_lines(file), [""]), start=1):
        if line:
            block.append(line)
        elif block:
            number = str(len(sentences) + 1)
            begin = row - len(block)
            sentences.append(_parse_sentence(block, file.name, begin, number, counts))
            block = []

    if not sentences:
        raise InputError(file.name, "sentences in CoNLL-U", found="an empty file")
    messages = {
        "multiword_tokens": "{:,} multi-word tokens are read as their syntactic words.",
        "empty_nodes": "{:,} empty nodes are left out.",
        "texts_made": "The text of {:,} sentences did not match their words and was replaced.",
        "without_heads": "{:,} sentences have no heads.",
    }
    decisions = tuple(
        Decision("probing", name, counts[name], f"{file.name}: {message.format(counts[name])}")
        for name, message in messages.items()
        if counts[name]
    )
    return Treebank(file.name, tuple(sentences), COLUMNS, decisions)


def _parse_sentence(
    lines: Sequence[str], source: str, row: int, number: str, counts: Counter[str]
) -> Sentence:
    """Parse the lines of one sentence, and count what was made or left out."""
    conllu = require("conllu", "reading CoNLL-U", "torch")
    from conllu.exceptions import ParseException

    names = ("id", "form", *COLUMNS)
    as_written = {name: lambda fields, place: fields[place] for name in names[1:]}
    try:
        [parsed] = conllu.parse("\n".join(lines), names, as_written)
    except (ParseException, ValueError) as error:
        raise InputError(source, "a sentence in CoNLL-U", found=str(error), line=row) from None
    if not all(len(token) == len(names) and token["form"] for token in parsed):
        raise InputError(source, "ten columns and a form in each line of a sentence", line=row)

    words = [token for token in parsed if isinstance(token["id"], int)]
    if not words or [token["id"] for token in words] != [*range(1, len(words) + 1)]:
        ids = ", ".join(str(token["id"]) for token in words) or "none"
        raise InputError(f"id in {source}", "words numbered from 1", found=ids, line=row)

    others = [token for token in parsed if isinstance(token["id"], tuple)]
    multiword = {token["id"][0] - 1: token for token in others if token["id"][1] == "-"}

    tokens: list[tuple[str, bool]] = []
    token_of_word: list[int] = []
    n_multiword = 0
    while (begin := len(token_of_word)) < len(words):
        token = multiword.get(begin, words[begin])
        n_multiword += begin in multiword
        n_words = token["id"][2] - begin if begin in multiword else 1
        token_of_word += [len(tokens)] * n_words
        tokens.append((token["form"], "SpaceAfter=No" not in token["misc"].split("|")))

    n_empty = sum(token["id"][1] == "." for token in others)
    if len(token_of_word) != len(words) or n_multiword + n_empty != len(others):
        expected = "multi-word tokens that do not overlap or exceed the sentence"
        raise InputError(f"id in {source}", expected, line=row)

    text, spans, is_as_written = _located(tokens, parsed.metadata.get("text"))
    heads = _heads([token["head"] for token in words], f"head in {source}", row)
    counts.update(multiword_tokens=n_multiword, empty_nodes=n_empty)
    counts.update(texts_made=not is_as_written, without_heads=not heads)

    return Sentence(
        id=parsed.metadata.get("sent_id") or number,
        text=text,
        words=tuple(sys.intern(token["form"]) for token in words),
        columns={name: tuple(sys.intern(token[name]) for token in words) for name in COLUMNS},
        heads=heads,
        spans=tuple(spans[place] for place in token_of_word),
    )


def _read_token_table(path: str | os.PathLike[str]) -> Treebank:
    """Read a table with one word per line."""
    file = _checked_file(path)
    is_csv = has_suffix(file, (".csv",))
    options: dict[str, Any] = {} if is_csv else {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    reader = csv.reader((line + "\n" for line in _lines(file)), strict=True, **options)

    try:
        rows = [(reader.line_num, fields) for fields in reader]
    except csv.Error as error:
        remedy = 'write a quote inside a quoted field twice ("")'
        raise InputError(
            file.name, "closed quotes", str(error), remedy, line=reader.line_num
        ) from None

    header = rows[0][1] if rows else []
    names = tuple(name.strip() for name in header)
    if not names or len(set(names)) < len(names):
        raise InputError(file.name, "a header of different names", found=", ".join(names) or "none")

    word = _first_present(WORD_NAMES, names)
    id = _first_present(SENTENCE_NAMES, names)
    number = _first_present(NUMBER_NAMES, names)

    if not word:
        expected = f"a file with a column {' or '.join(WORD_NAMES)}"
        raise InputError(file.name, expected, found=", ".join(names))

    blocks: list[tuple[int, list[dict[str, str]]]] = []  # the row and the words of each sentence
    last = None
    for row, fields in rows[1:]:
        if not fields:
            last = None
            continue
        cells = dict(zip(names, map(sys.intern, fields), strict=False))

        if cells.get(id, "") != last:
            blocks.append((row, []))
            last = cells.get(id, "")
        words = blocks[-1][1]
        words.append(cells)

        is_numbered = not number or cells.get(number) == str(len(words))
        if len(fields) != len(names) or not cells[word].strip() or not is_numbered:
            expected = f"{len(names)} fields with a word, numbered from 1 in each sentence"
            raise InputError(f"a line of {file.name}", expected, fields, line=row)

    if not blocks:
        raise InputError(file.name, "words below the header", found="none")

    labels = tuple(name for name in names if name not in (word, id, number))
    sentences = []
    for nth, (begin, block) in enumerate(blocks, start=1):
        columns = {name: tuple(cells[name] for cells in block) for name in (word, *labels)}
        forms = columns.pop(word)
        text, spans, _ = _located([(form, True) for form in forms], None)
        heads = columns.get("head")
        tree = _heads(heads, f"head in {file.name}", begin) if heads else ()
        sentences.append(Sentence(block[0].get(id, str(nth)), text, forms, columns, tree, spans))
    return Treebank(file.name, tuple(sentences), labels)


def _first_present(spellings: Sequence[str], names: Sequence[str]) -> str:
    """Return the first spelling that is a name of a column; "" if none is."""
    return next((spelling for spelling in spellings if spelling in names), "")


def _checked_file(path: str | os.PathLike[str]) -> Path:
    file = Path(path).expanduser()
    check_path(file)
    if file.is_dir():
        raise InputError("path", "a file", str(path), "name one of the files in the folder")
    return file


def _lines(path: Path) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file; only "\n" and "\r\n" end one, U+2028 may be in a word."""
    with open_binary(File.on_disk(path)) as stream:
        for number, raw in enumerate(stream, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = f"the byte 0x{raw[error.start]:02x}"
                raise InputError(path.name, "UTF-8", found=byte, line=number) from None
            yield line.removesuffix("\n").removesuffix("\r")


def _heads(cells: Sequence[str], parameter: str, row: int) -> tuple[int, ...]:
    """Return the heads of a sentence, and check that they form a tree; none if all are "_"."""
    if set(cells) == {"_"}:
        return ()

    n = len(cells)
    for place, cell in enumerate(cells, start=1):
        if not NUMBER.fullmatch(cell) or int(cell) > n or int(cell) == place:
            expected = f"another word, 1 to {n}, or 0 for the root, of word {place}"
            raise InputError(parameter, expected, cell, line=row)

    heads = tuple(map(int, cells))
    if heads.count(0) > 1:
        raise InputError(parameter, "0 for one word", found=f"{heads.count(0)} roots", line=row)

    for start, head in enumerate(heads, start=1):
        steps = 0
        while head and steps < n:
            head = heads[head - 1]
            steps += 1
        if head:
            expected = f"on a path to the root, not in a cycle, for word {start}"
            raise InputError(parameter, expected, cells[start - 1], line=row)
    return heads


def _located(
    tokens: Sequence[tuple[str, bool]], text: str | None
) -> tuple[str, tuple[tuple[int, int], ...], bool]:
    """Return the text, the spans of its tokens, and whether the text is not at odds with them."""
    if text is not None:
        spans, place = [], 0
        for form, _ in tokens:
            begin = text.find(form, place)
            if begin < 0 or text[place:begin].strip():
                break
            place = begin + len(form)
            spans.append((begin, place))
        if len(spans) == len(tokens) and not text[place:].strip():
            return text, tuple(spans), True
    spans, parts, place = [], [], 0
    for form, is_spaced in tokens:
        spans.append((place, place + len(form)))
        parts.append(form + " " * is_spaced)
        place += len(parts[-1])
    return "".join(parts)[: spans[-1][1]], tuple(spans), text is None
