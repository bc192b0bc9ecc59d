"""Concordance: each occurrence of a term with the words around it, as written."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from embedtopics._utils.checks import resolve_seed
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
    """Return up to five terms of a result with a similar spelling."""
    vocabulary = result.term_counts.terms if " " in term else result.tokens.words
    # Comparing all words would take seconds. Few misspellings change the first letter.
    same_letter = [name for name in vocabulary if name[:1] == term[:1] and name != term]
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
) -> pd.DataFrame:
    """Show the occurrences of a term in the documents: key words in context.

    An occurrence is one that the fit counted: ``tax cut`` includes *Tax-cut*, and ``café`` includes
    ``caf&eacute;``.

    Parameters
    ----------
    result : TopicResult
    term : str
        One word, or several consecutive words.
    topic : int or sequence of int, optional
        Restricts the documents to these topics; -1 stands for no topic.
    where : mapping or mask, optional
        Restricts the rows, as in `sample_documents`.
    window : int
        Words on each side.
    n_occurrences : int or None
        Maximum number of occurrences, which are a random sample; None for all.
    random_state : int, Generator or None
        Seed of the sample. It depends on the texts and not on the order of the rows.

    Returns
    -------
    DataFrame
        Table with the index labels of the rows, ordered by the words after the term. Columns id,
        left, keyword, right (as written, with single spaces), topic, start, stop (position of the
        keyword in the text, in characters) and rows (number of selected rows with this text, which
        occurs once in the table). Empty if no selected row holds the term.

    Raises
    ------
    InputError
        If no document holds the term (the error lists similar terms).
    """
    words = words_of(normalize_text(term), result.tokens.rules)
    positions, documents = find_phrase(result.tokens, words)
    if not len(positions):
        near = similar_terms(result, " ".join(words))
        remedy = f"similar terms are {', '.join(map(repr, near))}" if near else ""
        raise InputError("term", "a term of some document", term, remedy)
    rows = rows_where(result, where)
    rows = rows if topic is None else rows & rows_of_topics(result, topic)
    weights, first_rows = document_weights(result, rows)
    positions, documents = positions[weights[documents] > 0], documents[weights[documents] > 0]
    inside = positions - result.tokens.offsets[documents]
    keys = random_keys(result.documents.hashes[documents], resolve_seed(random_state), inside)
    sample = np.sort(np.argsort(keys, kind="stable")[:n_occurrences])
    lines = []
    spans: list[tuple[str, int, int]] = []
    read = -1
    places = inside[sample].tolist()
    for document, place in zip(documents[sample].tolist(), places, strict=True):
        row = int(first_rows[document])
        if document != read:
            spans, read = _checked_spans(result, document, row), document
        line = _line(result.corpus.texts[row], spans, place, place + len(words), window)
        lines.append(line | {"row": row, "rows": weights[document], "id": result.corpus.ids[row]})
    lines.sort(key=lambda line: (line["after"], line["row"], line["start"]))
    row_numbers = np.array([line["row"] for line in lines], dtype=np.int64)
    index = result.corpus.index[row_numbers]
    columns: dict[str, Any] = {
        name: string_column([line[name] for line in lines], index)
        for name in ("id", "left", "keyword", "right")
    }
    columns["topic"] = result.labels[row_numbers]
    for name in ("start", "stop", "rows"):
        columns[name] = np.array([line[name] for line in lines], np.int64)
    return pd.DataFrame(columns, index=index)


def _checked_spans(result: TopicResult, document: int, row: int) -> list[tuple[str, int, int]]:
    """Return the words of a row with their positions; check that the fit counted these words."""
    tokens = result.tokens
    spans = word_spans(result.corpus.texts[row], tokens.rules)
    counted = tokens.ids[tokens.offsets[document] : tokens.offsets[document + 1]]
    if [word for word, _, _ in spans] != [tokens.words[i] for i in counted.tolist()]:
        raise InputError(
            f"the words of row {row} differ from those that the fit counted, because another "
            "version of embedtopics made the result; fit again to see words in context"
        )
    return spans


def _line(
    text: str, spans: list[tuple[str, int, int]], first: int, last: int, window: int
) -> dict[str, Any]:
    """Return one occurrence, the words `first` to `last`, with its context."""
    start, stop = spans[first][1], spans[last - 1][2]
    begin = spans[first - window][1] if first > window else 0
    end = spans[last + window - 1][2] if last + window < len(spans) else len(text)
    after = [word for word, _, _ in spans[last : last + window]]
    left, keyword, right = (
        re.sub(r"\s+", " ", part) for part in (text[begin:start], text[start:stop], text[stop:end])
    )
    return dict(left=left, keyword=keyword, right=right, start=start, stop=stop, after=after)
