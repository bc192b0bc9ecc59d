"""Treebanks in the CoNLL-U format of Universal Dependencies."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from embedtopics.errors import InputError
from embedtopics.probing.tasks.lines import (
    Lines,
    blocks,
    numbered_lines,
    placed,
    read_heads,
    readable_path,
)
from embedtopics.results import Decision, Sentence, Treebank

__all__ = ["COLUMNS", "read_conllu"]

COLUMNS = ("lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""Names of the columns behind the number and the form of a word."""

_FORM, _HEAD, _MISC = 1, 6, 9
_ID = re.compile(r"([1-9]\d{0,8})(?:-([1-9]\d{0,8}))?|(0|[1-9]\d{0,8})\.([1-9]\d{0,8})", re.ASCII)


@dataclass
class _Draft:
    """What has been read of a sentence."""

    rows: list[list[str]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    tokens: list[tuple[str, bool]] = field(default_factory=list)
    of_word: list[int] = field(default_factory=list)
    ranges: list[tuple[int, int]] = field(default_factory=list)
    n_empty: int = 0
    since_word: int = 0


def read_conllu(path: str | Path) -> Treebank:
    """Read a treebank.

    The units are syntactic words. A multi-word token, such as the French "du" with the words "de"
    and "le", gives its words its place in the text. Empty nodes (8.1), which stand for words that
    were not written, are left out.

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
    The text of a sentence is that of its comment ``# text``; where there is none, or it is not the
    text of the words, it is made from the words and ``SpaceAfter=No``.

    References
    ----------
    https://universaldependencies.org/format.html; de Marneffe, Manning, Nivre and Zeman,
    "Universal Dependencies", Computational Linguistics 47(2), 2021.
    """
    file = readable_path(path)
    sentences: list[Sentence] = []
    n_empty, misfits = 0, []
    for block in blocks(numbered_lines(file)):
        comments = [line for _, line in block if line.startswith("#")]
        lines = [(number, line) for number, line in block if not line.startswith("#")]
        if not lines:
            raise InputError(
                f"{file.name}, line {block[0][0]}: expected words below the comments, got an empty "
                "line; remove the comments, or the empty line"
            )
        draft = _read_words(lines, file.name)
        name = _comment(comments, "sent_id") or str(len(sentences) + 1)
        sentence, fits = _finished(draft, name, _comment(comments, "text"), file.name)
        sentences.append(sentence)
        n_empty += draft.n_empty
        misfits += [] if fits else [sentence.id]
    if not sentences:
        raise InputError(f"{file.name}: expected sentences in CoNLL-U, got an empty file")
    decisions = _told(sentences, n_empty, misfits, file.name)
    return Treebank(file.name, tuple(sentences), COLUMNS, decisions)


def _comment(comments: list[str], key: str) -> str | None:
    """Return the value of "# key = value"."""
    for line in comments:
        name, sign, value = line[1:].partition("=")
        if sign and name.strip() == key:
            return value.strip()
    return None


def _read_words(lines: Lines, name: str) -> _Draft:
    draft = _Draft()
    for number, line in lines:
        fields = line.split("\t")
        if len(fields) != 2 + len(COLUMNS):
            raise InputError(
                f"{name}, line {number}: expected 10 columns parted by tabs, got {len(fields)}; "
                "correct the line, or put an empty line between sentences"
            )
        found = _ID.fullmatch(fields[0])
        if found is None:
            raise InputError(
                f"{name}, line {number}: expected the number of a word such as 3, 3-4 or 3.1; got "
                f"{fields[0]!r:.40}; correct the line"
            )
        if not fields[_FORM].strip():
            raise InputError(f"{name}, line {number}: expected a word in column 2, got none")
        word, end, before, nth = (None if part is None else int(part) for part in found.groups())
        if before is not None:
            expected = (len(draft.rows), draft.since_word + 1)
            _check_order((before, nth), expected, ".", number, name)
            draft.since_word += 1
            draft.n_empty += 1
        elif end is not None:
            _add_range(draft, (int(word or 0), end), fields, number, name)
        else:
            _add_word(draft, int(word or 0), fields, number, name)
    if draft.ranges and draft.ranges[-1][1] > len(draft.rows):
        begin, end = draft.ranges[-1]
        raise InputError(
            f"{name}, line {lines[-1][0]}: expected the words of the multi-word token "
            f"{begin + 1}-{end}, got {len(draft.rows)} words in all; add them or correct its number"
        )
    if not draft.rows:
        raise InputError(f"{name}, line {lines[0][0]}: expected words, got empty nodes alone")
    return draft


def _check_order(
    got: tuple[int | None, ...], expected: tuple[int, ...], sign: str, number: int, name: str
) -> None:
    if got != expected:
        raise InputError(
            f"{name}, line {number}: expected the number {sign.join(map(str, expected))}, got "
            f"{sign.join(map(str, got))}; number the words of a sentence in order, from 1"
        )


def _add_range(
    draft: _Draft, ids: tuple[int, int], fields: list[str], number: int, name: str
) -> None:
    begin, end = ids
    first = len(draft.rows) + 1
    inside = draft.ranges and draft.ranges[-1][1] >= first
    if begin != first or end < begin or inside:
        raise InputError(
            f"{name}, line {number}: expected a multi-word token that begins with the word "
            f"{first}, right before it and in no other; got {begin}-{end}; correct its number"
        )
    draft.ranges.append((begin - 1, end))
    draft.tokens.append((fields[_FORM], _is_spaced(fields[_MISC])))


def _add_word(draft: _Draft, word: int, fields: list[str], number: int, name: str) -> None:
    _check_order((word,), (len(draft.rows) + 1,), "", number, name)
    draft.rows.append(fields)
    draft.numbers.append(number)
    draft.since_word = 0
    if not draft.ranges or draft.ranges[-1][1] < word:
        draft.tokens.append((fields[_FORM], _is_spaced(fields[_MISC])))
    draft.of_word.append(len(draft.tokens) - 1)


def _is_spaced(misc: str) -> bool:
    return "SpaceAfter=No" not in misc.split("|")


def _finished(draft: _Draft, id: str, text: str | None, name: str) -> tuple[Sentence, bool]:
    heads = read_heads([row[_HEAD] for row in draft.rows], draft.numbers, name)
    text, spans, fits = placed(draft.tokens, text)
    words, *columns = zip(*(map(sys.intern, row[_FORM:]) for row in draft.rows), strict=True)
    made = Sentence(
        id=id, text=text, words=words, columns=dict(zip(COLUMNS, columns, strict=True)),
        heads=heads, spans=tuple(spans[token] for token in draft.of_word),
        ranges=tuple(draft.ranges),
    )  # fmt: skip
    return made, fits


def _told(
    sentences: list[Sentence], n_empty: int, misfits: list[str], name: str
) -> tuple[Decision, ...]:
    told = []
    n_multi = sum(len(sentence.ranges) for sentence in sentences)
    if n_multi:
        message = (
            f"{name}: {n_multi:,} multi-word tokens are read as their syntactic words, which are "
            "not always written so."
        )
        told.append(Decision("probing", "multiword_tokens", n_multi, message))
    if n_empty:
        message = f"{name}: {n_empty:,} empty nodes, which were not written, are left out."
        told.append(Decision("probing", "empty_nodes", n_empty, message))
    if misfits:
        message = (
            f"{name}: the text of {len(misfits):,} sentences, such as {misfits[0]}, is not that of "
            "their words, and was made from these."
        )
        told.append(Decision("probing", "texts_made", len(misfits), message))
    bare = sum(not sentence.heads for sentence in sentences)
    if bare:
        message = f"{name}: {bare:,} of {len(sentences):,} sentences have no heads."
        told.append(Decision("probing", "without_heads", bare, message))
    return tuple(told)
