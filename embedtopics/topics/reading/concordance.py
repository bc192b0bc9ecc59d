"""A term where it stands: each occurrence with the words around it, as they were written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._checks import checked_count, optional_count
from embedtopics.errors import InputError
from embedtopics.results import TopicResult
from embedtopics.terms.spans import word_spans
from embedtopics.topics.reading.columns import string_column
from embedtopics.topics.reading.occurrences import find_occurrences
from embedtopics.topics.reading.selecting import (
    BoolArray,
    Period,
    drawn,
    rows_of_topics,
    selected_rows,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["concordance", "document_weights"]

COLUMNS = ("id", "left", "keyword", "right", "topic", "start", "stop", "rows")
SORTS = ("left", "right", "document")
UNITS = ("words", "characters")


def concordance(
    result: TopicResult,
    term: str,
    *,
    topic: int | Sequence[int] | None = None,
    window: int = 8,
    unit: str = "words",
    n: int | None = 20,
    seed: int = 0,
    sort: str = "right",
    regex: bool = False,
    period: Period = None,
    group: Any = None,
    where: Any = None,
) -> pd.DataFrame:
    """Show a term where it stands in the documents: key words in context.

    The occurrences are found by the word ids of the fit, and only the texts that are shown are
    read. A term is found wherever the fit counted it: ``tax cut`` also as *Tax-cut*, ``café`` also
    where the text has ``caf&eacute;``.

    Parameters
    ----------
    result : TopicResult
    term : str
        A word, or several that follow each other.
    topic : int or sequence of int, optional
        Only documents of these topics; -1 for those in none.
    window : int
        How much is shown on each side.
    unit : {"words", "characters"}
        What `window` counts.
    n : int or None
        Occurrences shown; they are drawn where there are more. None for all.
    seed : int
        Of the draw, which depends on the texts alone and not on the order of the rows.
    sort : {"right", "left", "document"}
        By the words that follow; by those before, the nearest first; or as the rows come.
    regex : bool
        Whether the term is a regular expression, such as ``"tax(es|ation)? cuts?"``: what stands
        between spaces must match a whole word each, case ignored.
    period, group, where
        Only rows of a period, of a group or of a mask, as in `read`.

    Returns
    -------
    DataFrame
        With the index labels of the rows. Columns id, left, keyword, right (as written, but for
        runs of whitespace, of which one space is left), topic, start, stop (place of the keyword
        in the row's text, in characters) and rows (how many of the rows have the same text, which
        is shown once). Without rows where nothing that was asked for holds the term.

    Raises
    ------
    InputError
        If no document of the result holds the term (close ones are named), or an argument is bad.
    """
    import pandas as pd

    optional_count(n, "n")
    checked_count(window, "window")
    for value, name, known in ((unit, "unit", UNITS), (sort, "sort", SORTS)):
        if value not in known:
            raise InputError(f"expected {name} among {', '.join(known)}; got {value!r}")
    rows = selected_rows(result, period=period, group=group, where=where)
    if topic is not None:
        rows &= rows_of_topics(result, topic)
    weights, first_rows = document_weights(result, rows)
    found = find_occurrences(result, term, regex=regex, within=weights > 0)
    inside = found.places - result.tokens.offsets[found.documents]
    keys = drawn(result.documents.hashes[found.documents], seed, inside)
    chosen = np.sort(np.argsort(keys, kind="stable")[:n])
    lines = []
    spans: list[tuple[str, int, int]] = []
    read = -1
    for document, place in zip(
        found.documents[chosen].tolist(), inside[chosen].tolist(), strict=True
    ):
        if document != read:
            spans, read = _checked_spans(result, document, int(first_rows[document])), document
        row = int(first_rows[document])
        text = result.corpus.texts[row]
        line = _line(text, spans, place, place + found.n_words, window, unit)
        line |= {"row": row, "rows": int(weights[document])}
        lines.append(line)
    lines.sort(key=lambda line: (line["words"][sort], line["row"], line["start"]))
    at = [line["row"] for line in lines]
    index = result.corpus.index[at]
    columns = {
        "id": string_column([result.corpus.ids[row] for row in at], index),
        **{name: string_column([line[name] for line in lines], index) for name in COLUMNS[1:4]},
        "topic": result.labels[at] if at else np.empty(0, dtype=np.int32),
        **{name: np.array([line[name] for line in lines], np.int64) for name in COLUMNS[5:]},
    }
    return pd.DataFrame(columns, index=index)


def document_weights(result: TopicResult, rows: BoolArray) -> tuple[Any, Any]:
    """Return how many of some rows hold each document, and the first that does (else -1)."""
    at = np.flatnonzero(rows)
    of_row, n_documents = result.documents.of_row[at], len(result.documents)
    first_rows = np.full(n_documents, -1, dtype=np.int64)
    first_rows[of_row[::-1]] = at[::-1]
    return np.bincount(of_row, minlength=n_documents).astype(np.int64), first_rows


def _checked_spans(result: TopicResult, document: int, row: int) -> list[tuple[str, int, int]]:
    """Return the words of a row with their places, which must be those that the fit counted."""
    spans = word_spans(result.corpus.texts[row])
    tokens = result.tokens
    counted = tokens.ids[tokens.offsets[document] : tokens.offsets[document + 1]]
    if [word for word, _, _ in spans] != [tokens.words[i] for i in counted.tolist()]:
        raise InputError(
            f"the words of row {row + 1} are not those that were counted in it: the result was "
            "made by another version of embedtopics; fit again to see words in their context"
        )
    return spans


def _line(
    text: str, spans: list[tuple[str, int, int]], first: int, last: int, window: int, unit: str
) -> dict[str, Any]:
    """Return one occurrence, of the words `first` to `last`, with what is around it."""
    start, stop = spans[first][1], spans[last - 1][2]
    if unit == "characters":
        begin, end = max(start - window, 0), stop + window
    else:
        begin = spans[first - window][1] if first > window else 0
        end = spans[last + window - 1][2] if last + window < len(spans) else len(text)
    before = [word for word, _, _ in spans[max(first - window, 0) : first]]
    after = [word for word, _, _ in spans[last : last + window]]
    return {
        "left": _spaced(text[begin:start]),
        "keyword": _spaced(text[start:stop]),
        "right": _spaced(text[stop:end]),
        "start": start,
        "stop": stop,
        "words": {
            "left": before[::-1],
            "right": after,
            "document": [],
        },
    }


def _spaced(text: str) -> str:
    """Return a text on one line."""
    return re.sub(r"\s+", " ", text)
