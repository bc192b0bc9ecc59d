"""A term where it stands: each occurrence with the words around it, as they were written."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from embedtopics._utils.checks import checked_choice, checked_count, optional_count, resolve_seed
from embedtopics.corpus._texts import normalize_text
from embedtopics.errors import InputError
from embedtopics.terms._spans import word_spans
from embedtopics.terms._tokens import find_phrase, words_of
from embedtopics.topics.reading._rows import (
    document_weights,
    random_keys,
    rows_of_topics,
    rows_where,
    string_column,
)
from embedtopics.topics.results import TopicResult


def similar_terms(result: TopicResult, term: str) -> list[str]:
    """Return a few terms of a result that are spelled almost like another one."""
    known = result.term_counts.terms if " " in term else result.tokens.words
    # Comparing with all would take seconds; few misspell the first letter, or by many letters.
    same_letter = [name for name in known if name[:1] == term[:1] and name != term]
    similar = [name for name in same_letter if abs(len(name) - len(term)) <= 2]
    return difflib.get_close_matches(term, similar, n=5, cutoff=0.7)


def concordance(
    result: TopicResult,
    term: str,
    *,
    topic: int | Sequence[int] | None = None,
    where: Any = None,
    window: int = 8,
    n_occurrences: int | None = 20,
    random_state: Any = 0,
    sort: str = "right",
) -> pd.DataFrame:
    """Show a term where it stands in the documents: key words in context.

    A term is found wherever the fit counted it: ``tax cut`` also as *Tax-cut*, ``café`` also where
    the text has ``caf&eacute;``.

    Parameters
    ----------
    result : TopicResult
    term : str
        A word, or several that follow each other.
    topic : int or sequence of int, optional
        Only documents of these topics; -1 for those in none.
    where : mapping or mask, optional
        Only some rows, as in `sample_documents`.
    window : int
        Words shown on each side.
    n_occurrences : int or None
        Occurrences shown; a random sample where there are more. None for all.
    random_state : int, Generator or None
        Of the sample, which depends on the texts alone and not on the order of the rows.
    sort : {"right", "left", "document"}
        By the words that follow; by those before, the nearest first; or in the order of the rows.

    Returns
    -------
    DataFrame
        With the index labels of the rows. Columns id, left, keyword, right (as written, but for
        runs of whitespace, of which one space is left), topic, start, stop (place of the keyword
        in the row's text, in characters) and rows (how many of the rows have the same text, which
        is shown once). Without rows where no selected row holds the term.

    Raises
    ------
    InputError
        If no document of the result holds the term (close ones are named), or an argument is bad.
    """
    optional_count(n_occurrences, "n_occurrences")
    checked_count(window, "window")
    checked_choice(sort, "sort", ("left", "right", "document"))
    wanted = words_of(normalize_text(term), result.tokens.rules) if isinstance(term, str) else []
    if not wanted:
        raise InputError("term", "one word or several, such as 'tax cut'", term)
    found, documents = find_phrase(result.tokens, wanted)
    if not len(found):
        near = similar_terms(result, " ".join(wanted))
        remedy = f"close to it are {', '.join(map(repr, near))}" if near else ""
        raise InputError("term", "in some document", term, remedy)
    rows = rows_where(result, where)
    rows = rows if topic is None else rows & rows_of_topics(result, topic)
    weights, first_rows = document_weights(result, rows)
    found, documents = found[weights[documents] > 0], documents[weights[documents] > 0]
    inside = found - result.tokens.offsets[documents]
    keys = random_keys(result.documents.hashes[documents], resolve_seed(random_state), inside)
    chosen = np.sort(np.argsort(keys, kind="stable")[:n_occurrences])
    lines = []
    spans: list[tuple[str, int, int]] = []
    read = -1
    places = inside[chosen].tolist()
    for document, place in zip(documents[chosen].tolist(), places, strict=True):
        row = int(first_rows[document])
        if document != read:
            spans, read = _checked_spans(result, document, row), document
        line = _line(result.corpus.texts[row], spans, place, place + len(wanted), window)
        lines.append(line | {"row": row, "rows": weights[document], "id": result.corpus.ids[row]})
    lines.sort(key=lambda line: (line["words"][sort], line["row"], line["start"]))
    at = np.array([line["row"] for line in lines], dtype=np.int64)
    index = result.corpus.index[at]
    columns: dict[str, Any] = {
        name: string_column([line[name] for line in lines], index)
        for name in ("id", "left", "keyword", "right")
    }
    columns["topic"] = result.labels[at]
    for name in ("start", "stop", "rows"):
        columns[name] = np.array([line[name] for line in lines], np.int64)
    return pd.DataFrame(columns, index=index)


def _checked_spans(result: TopicResult, document: int, row: int) -> list[tuple[str, int, int]]:
    """Return the words of a row with their places, which must be those that the fit counted."""
    tokens = result.tokens
    spans = word_spans(result.corpus.texts[row], tokens.rules)
    counted = tokens.ids[tokens.offsets[document] : tokens.offsets[document + 1]]
    if [word for word, _, _ in spans] != [tokens.words[i] for i in counted.tolist()]:
        raise InputError(
            f"the words of row {row} are not those that were counted in it: the result was "
            "made by another version of embedtopics; fit again to see words in their context"
        )
    return spans


def _line(
    text: str, spans: list[tuple[str, int, int]], first: int, last: int, window: int
) -> dict[str, Any]:
    """Return one occurrence, of the words `first` to `last`, with what is around it."""
    start, stop = spans[first][1], spans[last - 1][2]
    begin = spans[first - window][1] if first > window else 0
    end = spans[last + window - 1][2] if last + window < len(spans) else len(text)
    before = [word for word, _, _ in spans[max(first - window, 0) : first]]
    after = [word for word, _, _ in spans[last : last + window]]
    left, keyword, right = (
        re.sub(r"\s+", " ", part) for part in (text[begin:start], text[start:stop], text[stop:end])
    )
    words = {"left": before[::-1], "right": after, "document": []}
    return dict(left=left, keyword=keyword, right=right, start=start, stop=stop, words=words)
