"""The explorer: one page on which a reader asks a result questions."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count
from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.plots._colors import NOISE_COLOR, topic_colors
from embedtopics.plots._labels import densest_points
from embedtopics.protocols import Int64Array
from embedtopics.report._markup import (
    asset,
    checked_place,
    data_script,
    html_page,
    text,
    write_page,
)
from embedtopics.report._packing import packed, packed_lines, packed_strings, packed_texts, postings
from embedtopics.report._report import default_title, study_parts
from embedtopics.topics.results import TopicResult

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

_CHARACTERS = 40_000_000
"""Characters of all texts together; where there are more, each is cut so that the page stays
below some 20 MB."""

_NO_TIME = -(2**31)
_MINUTE = np.timedelta64(1, "m")
_MADE_ID = re.compile(r"[0-9a-f]{16}(-\d+)?")
_MIN_COUNT = 5
"""Least count of a term that is compared, as in `embedtopics.topics.keyness`."""

_SCRIPTS = ("scatter.js", "explorer_data.js", "explorer_map.js", "explorer.js")


class _Rows(NamedTuple):
    """The rows with text, in their order, and their documents, numbered by their first row."""

    rows: Int64Array
    documents: Int64Array  # as the result numbers them, in the order of the page
    first: Int64Array  # for each row, the place of the first row with its text


def write_explorer(
    result: TopicResult,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    levels: Sequence[TopicResult] = (),
) -> Path:
    """Write a page on which a reader searches, selects and compares the documents of a result.

    Below lies what a study says of itself: methods to cite, topics with typical texts, decisions,
    settings and versions.

    The page is one file that loads nothing, from a disk as well as from a server; its content
    security policy allows no script but its own. It draws with WebGL 2 where a graphics card plays
    it, and else on the CPU.

    Parameters
    ----------
    result : TopicResult
    path : str or path
        File to write; its folder must exist. An older file is replaced.
    title : str, optional
        Heading of the page; by default it names the source of the corpus.
    levels : sequence of TopicResult
        The same documents in fewer or in more topics, such as `embedtopics.topics.at_resolution`
        gives: names of fewer topics stand above the whole map, names of more appear as a reader
        comes nearer.

    Returns
    -------
    Path
        The file written: about 0.1 MB, and 110 bytes for a text of 250 characters.

    Raises
    ------
    InputError
        If `result` is none, a level is of other documents, the folder does not exist, or `path`
        is a folder.
    OSError
        If the folder cannot be written to, or the disk is full.
    """
    return write_page(
        explorer_html(result, title=title, levels=levels), checked_place(path, "explorer.html")
    )


@dataclass(frozen=True)
class InlinePage:
    """A page that a notebook shows in a frame of its own.

    Parameters
    ----------
    page : str
        HTML.
    height : int
        Pixels.
    """

    page: str
    height: int

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" width="100%" height="{self.height}" '
            'sandbox="allow-scripts allow-downloads" allow="clipboard-write" title="Explorer" '
            'style="border:0"></iframe>'
        )


def explorer(
    result: TopicResult,
    *,
    title: str | None = None,
    levels: Sequence[TopicResult] = (),
    height: int = 760,
) -> InlinePage:
    """Show the page of `write_explorer` inside a notebook.

    Parameters
    ----------
    result, title, levels
        As in `write_explorer`.
    height : int
        Pixels.

    Returns
    -------
    InlinePage
        Notebooks show it in a frame.

    Raises
    ------
    InputError
        As in `write_explorer`.
    """
    checked_count(height, "height", 300)
    return InlinePage(explorer_html(result, title=title, levels=levels), height)


def explorer_html(
    result: TopicResult, *, title: str | None = None, levels: Sequence[TopicResult] = ()
) -> str:
    """Return the explorer of a result as a self-contained HTML page."""
    if not isinstance(result, TopicResult):
        raise InputError("result", "a TopicResult", result)
    for level in levels:
        if not isinstance(level, TopicResult) or not np.array_equal(
            level.documents.hashes, result.documents.hashes
        ):
            raise InputError("levels", "results of the same documents", level)
    held = _rows_of(result)
    heading = title if title is not None else default_title(result)
    about, columns = _about(result, held, heading, levels)
    return html_page(
        text(heading, 160),
        asset("explorer.css"),
        [asset("explorer.html"), *study_parts(result)],
        [data_script("about", json.dumps(about, separators=(",", ":"))), *columns],
        [asset(name) for name in _SCRIPTS],
        inline_styles=False,
    )


def _rows_of(result: TopicResult) -> _Rows:
    of_row = result.documents.of_row
    rows = np.flatnonzero(of_row >= 0)
    documents, first, inverse = np.unique(of_row[rows], return_index=True, return_inverse=True)
    return _Rows(rows, documents[np.argsort(first)], first[inverse])


def _about(
    result: TopicResult, held: _Rows, heading: str, levels: Sequence[TopicResult]
) -> tuple[dict[str, Any], list[str]]:
    """Return what the page knows as JSON, and its columns as script elements."""
    corpus, n_rows = result.corpus, len(result.documents.of_row)
    places, frame = _places(result.map[held.documents])
    about: dict[str, Any] = {
        "title": heading,
        "rows": len(held.rows),
        "documents": len(held.documents),
        "withoutText": n_rows - len(held.rows),
        "span": frame.span,
        "topics": _topics(result, frame),
        "noise": NOISE_COLOR,
        "levels": [
            _level(level, frame) for level in sorted(levels, key=lambda level: level.n_topics)
        ],
        "columns": {"time": corpus.time_column, "group": corpus.group_column},
        "minCount": _MIN_COUNT,
    }
    labels = (result.clustering.labels[held.documents] - NOISE).astype(np.uint16)
    columns = [packed("places", places, deflate=False), packed("labels", labels)]
    if len(held.rows) != len(held.documents):
        back = np.arange(len(held.rows)) - held.first
        columns.append(packed("repeats", back.astype(np.uint32)))
    if len(held.rows) != n_rows:
        columns.append(packed("rows", held.rows.astype(np.uint32)))
    if corpus.time is not None:
        columns.append(packed("times", _minutes(corpus.time.iloc[held.rows])))
    if corpus.group is not None:
        numbers, names = _groups(corpus.group.iloc[held.rows])
        about["groups"] = names
        columns.append(packed("groups", numbers))
    if not all(_MADE_ID.fullmatch(name) for name in corpus.ids):
        about["hasIds"] = True
        columns += packed_lines("ids", [corpus.ids[row] for row in held.rows.tolist()])
    if (urls := _urls(result, held)) is not None:
        about["columns"]["url"], lines = urls
        columns += packed_lines("urls", lines)
    columns += _texts(result, held, about)
    columns += _index(result, held, about)
    return about, columns


class _Frame(NamedTuple):
    """How positions become integers: lower left corner, units a step, and the steps of the map."""

    low: npt.NDArray[np.float64]
    step: float
    span: list[int]

    def steps(self, positions: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        return np.asarray((positions - self.low) / self.step)


def _places(positions: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint16], _Frame]:
    """Return positions (n_documents, 2) in 65,535 steps of the longer side."""
    if not len(positions):
        return np.zeros((0, 2), np.uint16), _Frame(np.zeros(2), 1.0, [1, 1])
    low, high = positions.min(axis=0).astype(float), positions.max(axis=0).astype(float)
    step = float((high - low).max()) / 65535 or 1.0
    span = np.maximum(np.rint((high - low) / step), 1).astype(int).tolist()
    frame = _Frame(low, step, span)
    return np.clip(np.rint(frame.steps(positions)), 0, 65535).astype(np.uint16), frame


def _topics(result: TopicResult, frame: _Frame) -> list[dict[str, Any]]:
    level = _level(result, frame)
    return [
        {"label": label, "anchor": anchor, "color": color, "size": t.size, "terms": t.keywords[:10]}
        for (label, anchor, _), color, t in zip(
            level, topic_colors(result), result.topics, strict=True
        )
    ]


def _level(result: TopicResult, frame: _Frame) -> list[tuple[str, list[int] | None, int]]:
    """Return name, place and rows of each topic."""
    anchors = densest_points(result.map, result.clustering.labels, result.n_topics)
    places = [
        np.rint(frame.steps(anchor)).astype(int).tolist() if np.isfinite(anchor).all() else None
        for anchor in anchors
    ]
    return [
        (topic.label, place, topic.size) for topic, place in zip(result.topics, places, strict=True)
    ]


def _minutes(times: Any) -> npt.NDArray[np.int32]:
    """Return minutes since 1970, in UTC; the least integer where there is no time."""
    moments = times.to_numpy(dtype="datetime64[m]")
    minutes = moments.astype(np.int64)
    missing = np.isnat(moments) | (np.abs(minutes) >= 2**31)
    return np.where(missing, _NO_TIME, minutes).astype(np.int32)


def _groups(values: Any) -> tuple[npt.NDArray[np.uint32], list[str]]:
    """Return the group of each row, 0 for none, and the names, those of most rows first."""
    present = values[values.notna()].astype(str)
    names = present.value_counts().sort_index().sort_values(ascending=False, kind="stable").index
    number = {name: i + 1 for i, name in enumerate(names)}
    given = zip(values, values.notna(), strict=True)
    numbers = [number[str(value)] if known else 0 for value, known in given]
    return np.array(numbers, dtype=np.uint32), list(number)


def _urls(result: TopicResult, held: _Rows) -> tuple[str, list[str]] | None:
    """Return the first column of web addresses, with "" where a row has none."""
    for name, column in result.corpus.metadata.items():
        values = column.iloc[held.rows]
        given = [value if isinstance(value, str) else "" for value in values]
        some = [value for value in given if value]
        if some and all(re.match(r"https?://", value) for value in some):
            return str(name), given
    return None


def _texts(result: TopicResult, held: _Rows, about: dict[str, Any]) -> list[str]:
    first = result.documents.first_rows[held.documents].tolist()
    texts = [result.corpus.texts[row] for row in first]
    if not any(texts):
        return []
    about["hasTexts"] = True
    lengths = np.sort([len(one) for one in texts])
    if lengths.sum() > _CHARACTERS:
        # the longest limit under which all texts fit
        kept = np.cumsum(lengths) + lengths * np.arange(len(lengths) - 1, -1, -1)
        limit = about["cutAt"] = int(lengths[max(int(np.searchsorted(kept, _CHARACTERS)) - 1, 0)])
        texts = [one[:limit] for one in texts]
    return packed_texts(texts)


def _index(result: TopicResult, held: _Rows, about: dict[str, Any]) -> list[str]:
    """Return words, terms and where they stand; those that only fill sentences are left out."""
    terms, lengths, counts = indexed_terms(result)
    if not terms:
        return []
    lists, n_bytes = postings(counts[held.documents].tocsc())
    n_words = np.diff(result.tokens.offsets)[held.documents]
    words = {*result.term_counts.stop_words, *result.term_counts.function_words}
    about["notIndexed"] = sorted(words & {*result.tokens.words})
    return [
        packed_strings("terms", terms),
        packed("lengths", lengths),
        packed("posting-bytes", n_bytes),
        packed("postings", lists),
        packed("n-words", np.minimum(n_words, 2**32 - 1).astype(np.uint32)),
    ]


def indexed_terms(
    result: TopicResult,
) -> tuple[list[str], npt.NDArray[np.uint8], csc_matrix]:
    """Return the terms of the index, their lengths in words, and (n_documents, n_terms) counts.

    The length is 0 for words that are too rare, or were left out by another rule, to be compared:
    these can be searched only. Terms of several words too rare to be compared are not there.
    """
    from scipy.sparse import csc_matrix, csr_matrix, hstack

    counted, tokens = result.term_counts, result.tokens
    totals = np.asarray(counted.counts.T @ result.documents.weights).ravel()
    compared = np.flatnonzero(totals >= _MIN_COUNT)
    terms = [counted.terms[i] for i in compared.tolist()]
    known = {*terms, *counted.stop_words, *counted.function_words}
    others = np.array([i for i, word in enumerate(tokens.words) if word not in known], np.int64)
    ones = np.ones(len(tokens.ids), dtype=np.int32)
    shape = len(tokens), len(tokens.words)
    words = csr_matrix((ones, tokens.ids.copy(), tokens.offsets), shape)  # sorted in place
    words.sum_duplicates()
    if not counted.counts.shape[0]:
        return [], np.zeros(0, np.uint8), csc_matrix((0, 0))
    counts = hstack([counted.counts[:, compared], words[:, others]], format="csc")
    terms += [tokens.words[i] for i in others.tolist()]
    lengths = np.concatenate([counted.lengths[compared], np.zeros(len(others), np.int8)])
    # JavaScript compares strings by UTF-16
    order = sorted(range(len(terms)), key=lambda i: terms[i].encode("utf-16-be", "surrogatepass"))
    at = np.array(order, dtype=np.int64)
    return [terms[i] for i in order], lengths[at].astype(np.uint8), counts[:, at]
