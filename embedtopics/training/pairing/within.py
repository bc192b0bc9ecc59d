"""Pairs within a document: its title with its text, and sentences that follow one another."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from typing import Any

from embedtopics._checks import checked_count
from embedtopics._randomness import resolve_seed
from embedtopics._windows import sentence_starts
from embedtopics.corpus import TEXT, normalize_text
from embedtopics.corpus.hashing import read_texts
from embedtopics.corpus.tables import name_row
from embedtopics.errors import InputError
from embedtopics.training.examples import Examples
from embedtopics.training.pairing.making import (
    Pair,
    checked_corpus,
    counted,
    make_pairs,
    metadata_column,
)
from embedtopics.training.splitting import text_key

__all__ = ["sentence_pairs", "title_pairs"]

_JOINTS = " \t\n:.,;|-\u2013\u2014!?"
_WORD = re.compile(r"\w+")


def title_pairs(
    corpus: Any, title: str, body: str | None = None, *, most_bodies: int = 3
) -> Examples:
    """Pair each title with its text: a summary that somebody wrote for readers.

    Where a text begins with its title, as pages often do, the title is cut off there: otherwise
    the pair teaches to look for equal words.

    Parameters
    ----------
    corpus : Corpus, frame or path
    title : str
        Column of the titles.
    body : str, optional
        Column of what is paired with them, such as an abstract; by default the texts.
    most_bodies : int
        A title that stands over more different texts than this, such as "Letters", says little
        of any of them, and its pairs are left out.

    Returns
    -------
    made : Examples
        Of the kind "pairs"; the anchor is the title. Rows without a title or a text, and those
        whose title holds the whole text, give none; they are counted in `decisions`.

    Raises
    ------
    InputError
        A column is missing or holds no strings, or there is no pair.
    """
    checked_count(most_bodies, "most_bodies")
    corpus = checked_corpus(corpus)
    titles, bodies = _texts_of(corpus, title, "title"), list(corpus.texts)
    has_body = (corpus.status == TEXT).tolist()
    if body is not None:
        bodies = _texts_of(corpus, body, "body")
        has_body = [bool(text) for text in bodies]
    found: list[Pair] = []
    n_missing = n_whole = n_cut = n_inside = 0
    bodies_of: dict[str, set[str]] = defaultdict(set)
    for row, (heading, text) in enumerate(zip(titles, bodies, strict=True)):
        if not heading or not has_body[row]:
            n_missing += 1
            continue
        rest = _without_start(normalize_text(text), heading)
        n_cut += rest != normalize_text(text)
        if not _WORD.search(rest) or text_key(rest) in text_key(heading):
            n_whole += 1
            continue
        inside = rf"(?<!\w){re.escape(text_key(heading))}(?!\w)"
        n_inside += re.search(inside, text_key(rest)) is not None
        bodies_of[text_key(heading)].add(text_key(rest))
        found.append((heading, rest, row))
    kept = [pair for pair in found if len(bodies_of[text_key(pair[0])]) <= most_bodies]
    decisions = [
        *counted("rows_without_pair", n_missing, "rows have no title or no text and give no pair."),
        *counted("titles_cut", n_cut, "texts begin with their title, which was cut off there."),
        *counted("title_is_text", n_whole, "rows hold no text besides the title and give no pair."),
        *counted("titles_in_text", n_inside, "texts hold their title further on; they are kept."),
        *counted(
            "common_titles",
            len(found) - len(kept),
            f"rows have a title that stands over more than {most_bodies} texts and give no pair.",
        ),
    ]
    return make_pairs(corpus, kept, decisions, "titles with texts")


def sentence_pairs(
    corpus: Any, *, most_per_document: int = 5, least_words: int = 5, seed: int = 42
) -> Examples:
    """Pair sentences that follow one another in a document.

    What is said next is about the same thing most of the time, which is weak and free
    supervision: "An efficient framework for learning sentence representations" (Logeswaran and Lee
    2018) learns from it alone.

    Parameters
    ----------
    corpus : Corpus, frame, list or path
    most_per_document : int
        Pairs of one document, so that long ones do not drown the others; drawn by the seed and
        the pair's words, whatever the order of the rows.
    least_words : int
        Both sentences must have as many words; a shorter one breaks the chain.
    seed : int

    Returns
    -------
    made : Examples
        Of the kind "pairs".

    Raises
    ------
    InputError
        There is no text, or no document has two such sentences on end.
    """
    checked_count(most_per_document, "most_per_document")
    checked_count(least_words, "least_words")
    seed = resolve_seed(seed)
    corpus = checked_corpus(corpus)
    documents = corpus.distinct()
    texts: dict[int, str] = {}
    for row, document in enumerate(documents.of_row.tolist()):
        # Rows of one document may differ in their white space, which can end a sentence.
        if document >= 0:
            texts[document] = min(corpus.texts[row], texts.get(document, corpus.texts[row]))
    found: list[Pair] = []
    n_without = n_more = 0
    for document, row in enumerate(documents.first_rows.tolist()):
        pairs = _neighbors(texts[document], least_words)
        n_without += not pairs
        n_more += max(0, len(pairs) - most_per_document)
        drawn = sorted(pairs, key=lambda pair: _digest(seed, *pair))[:most_per_document]
        found += [(first, second, row) for first, second in drawn]
    decisions = [
        *counted(
            "documents_without_pair",
            n_without,
            f"documents have no two sentences of {least_words} words on end and give no pair.",
        ),
        *counted(
            "pairs_beyond_limit",
            n_more,
            f"pairs were left out, so that no document gives more than {most_per_document}.",
        ),
    ]
    return make_pairs(corpus, found, decisions, "neighbouring sentences")


def _texts_of(corpus: Any, column: str, role: str) -> list[str]:
    """Return a column of texts, "" where a row has none."""
    if column == corpus.text_column:
        values: list[object] = list(corpus.texts)
    else:
        values = metadata_column(corpus, column, role)
    rows = read_texts(values, f"{corpus.source}: column {column!r}", name_row)
    if not (rows.status == TEXT).any():
        raise InputError(f"{corpus.source}: expected texts in column {column!r}, got none")
    return [
        normalize_text(text) if status == TEXT else ""
        for text, status in zip(rows.texts, rows.status.tolist(), strict=True)
    ]


def _without_start(text: str, heading: str) -> str:
    """Return a text without the title that it begins with, as whole words."""
    start = text[: len(heading)]
    rest = text[len(heading) :]
    if start.casefold() != heading.casefold() or (rest and rest[0].isalnum()):
        return text
    return rest.lstrip(_JOINTS)


def _neighbors(text: str, least_words: int) -> list[tuple[str, str]]:
    starts = sentence_starts(text)
    sentences = [
        normalize_text(text[a:b]) for a, b in zip(starts, [*starts[1:], len(text)], strict=True)
    ]
    is_long = [len(_WORD.findall(sentence)) >= least_words for sentence in sentences]
    return [
        (sentences[place], sentences[place + 1])
        for place in range(len(sentences) - 1)
        if is_long[place] and is_long[place + 1]
    ]


def _digest(seed: int, *texts: str) -> bytes:
    content = "\n".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=16, key=str(seed).encode()).digest()
