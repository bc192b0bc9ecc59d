"""The explorer: one page on which a reader asks a result questions."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._texts import rows_of
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.errors import InputError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.plots._colors import NOISE_COLOR, topic_colors
from embedtopics.plots._labels import densest_points
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.report._markup import (
    asset,
    checked_place,
    data_script,
    html_page,
    text,
    write_page,
)
from embedtopics.report._packing import packed, packed_lines, packed_strings, packed_texts, postings
from embedtopics.report._report import default_title, encoder_name, study_parts
from embedtopics.terms.results import TermCounts, TokenStream
from embedtopics.topics.results import TopicResult

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

    from embedtopics.corpus._corpus import Corpus

_CHARACTERS = 40_000_000
"""Characters of all texts together; where there are more, each is cut so that the page stays
below some 20 MB."""

_NO_TIME = -(2**31)
_MINUTE = np.timedelta64(1, "m")
_MADE_ID = re.compile(r"[0-9a-f]{16}(-\d+)?")
_MIN_COUNT = 5
"""Least count of a term that is compared, as in `embedtopics.topics.keyness`."""

_NEIGHBORS = 10
"""Neighbours that are listed of a document."""

_ENTRIES = 1 << 21
"""Entries of posting lists that are written at a time."""

_SCRIPTS = ("scatter.js", "explorer_data.js", "explorer_map.js", "explorer.js")


class Panel(NamedTuple):
    """One of the linked maps, (n_documents, 2), and the topics or groups that are named on it."""

    name: str
    map: FloatArray
    labels: Int32Array  # (n_documents,), places in `names`, -1 for none
    names: Sequence[tuple[str, int]]  # each with its rows
    graph: NeighborGraph | None = None


@dataclass(frozen=True)
class Content:
    """What a page of linked maps holds; colours are those of the first map's topics or groups."""

    corpus: Corpus
    documents: DistinctDocuments
    panels: Sequence[Panel]
    colors: Sequence[str]
    tokens: TokenStream | None
    term_counts: TermCounts | None
    heading: str
    units: tuple[str, str] = ("topic", "Topics")  # what a name stands for, and a heading


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
    beside: TopicResult | None = None,
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
    beside : TopicResult, optional
        Another result of the same documents, of another encoder or of other settings. Its map,
        turned and scaled as near to the first as it goes, stands beside with its own names and
        the colours of the first; what is selected or pointed at in one map is lit up in both.

    Returns
    -------
    Path
        The file written: about 0.1 MB, and 110 bytes for a text of 250 characters.

    Raises
    ------
    InputError
        If `result` is none, a level or `beside` is of other documents, the folder does not exist,
        or `path` is a folder.
    OSError
        If the folder cannot be written to, or the disk is full.
    """
    return write_page(
        explorer_html(result, title=title, levels=levels, beside=beside),
        checked_place(path, "explorer.html"),
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
    beside: TopicResult | None = None,
    height: int = 760,
) -> InlinePage:
    """Show the page of `write_explorer` inside a notebook.

    Parameters
    ----------
    result, title, levels, beside
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
    page = explorer_html(result, title=title, levels=levels, beside=beside)
    return InlinePage(page, height)


def explorer_html(
    result: TopicResult,
    *,
    title: str | None = None,
    levels: Sequence[TopicResult] = (),
    beside: TopicResult | None = None,
) -> str:
    """Return the explorer of a result as a self-contained HTML page."""
    if not isinstance(result, TopicResult):
        raise InputError("result", "a TopicResult", result)
    others = {"levels": levels, "beside": () if beside is None else (beside,)}
    for name, given in others.items():
        for one in given:
            if not isinstance(one, TopicResult) or not np.array_equal(
                one.documents.hashes, result.documents.hashes
            ):
                raise InputError(name, "results of the same documents", one)
    panels = [_panel(result)]
    if beside is not None:
        named = [f"{encoder_name(r)}, {r.n_topics:,} topics" for r in (result, beside)]
        panels = [
            panels[0]._replace(name=f"A: {named[0]}"),
            _panel(beside)._replace(name=f"B: {named[1]}", map=_fitted(beside.map, result.map)),
        ]
    content = Content(
        result.corpus, result.documents, panels, topic_colors(result), result.tokens,
        result.term_counts, title if title is not None else default_title(result),
    )  # fmt: skip
    return linked_page(content, study_parts(result), levels)


def linked_page(
    content: Content, sections: Sequence[str], levels: Sequence[TopicResult] = ()
) -> str:
    """Return a page of linked maps, with these sections below them."""
    about, columns = _about(content, levels)
    return html_page(
        text(content.heading, 160),
        asset("explorer.css"),
        [asset("explorer.html").replace("{maps}", _maps(content.panels)), *sections],
        [data_script("about", json.dumps(about, separators=(",", ":"))), *columns],
        [asset(name) for name in _SCRIPTS],
        inline_styles=False,
    )


def _panel(result: TopicResult) -> Panel:
    names = [(topic.label, topic.size) for topic in result.topics]
    return Panel("", result.map, result.clustering.labels, names)


def _fitted(moving: FloatArray, target: FloatArray) -> FloatArray:
    """Return a map turned, mirrored and scaled as near as it goes to another (Procrustes)."""
    from scipy.spatial import procrustes

    if min(np.ptp(moving), np.ptp(target)) == 0:
        return moving
    middle = target.mean(axis=0)
    _, fitted, _ = procrustes(target, moving)
    scale = np.linalg.norm(target - middle) / np.linalg.norm(fitted)
    return np.asarray(fitted * scale + middle, dtype=np.float32)


def _maps(panels: Sequence[Panel]) -> str:
    """Return the places of the maps."""
    columns = len(panels) if len(panels) < 4 else 2 if len(panels) == 4 else 3
    held = ""
    for i, panel in enumerate(panels):
        name = text(panel.name, 60)
        caption = f"<figcaption><bdi>{name}</bdi></figcaption>" if name else ""
        held += (
            f'<figure class="panel">{caption}<div {"" if i else "id=map "}class="map" tabindex="0" '
            f'role="application" aria-label="Map of the documents{": " if name else ""}{name}" '
            'aria-describedby="map-help"><canvas></canvas><canvas></canvas><canvas></canvas>'
            f"{'' if i else '<p id=busy>Reading &hellip;</p>'}</div></figure>"
        )
    return f'<div id="maps" data-columns="{columns}">{held}</div>'


def _rows_of(documents: DistinctDocuments) -> _Rows:
    of_row = documents.of_row
    rows = np.flatnonzero(of_row >= 0)
    numbers, first, inverse = np.unique(of_row[rows], return_index=True, return_inverse=True)
    return _Rows(rows, numbers[np.argsort(first)], first[inverse])


def _about(content: Content, levels: Sequence[TopicResult]) -> tuple[dict[str, Any], list[str]]:
    """Return what the page knows as JSON, and its columns as script elements."""
    corpus, documents = content.corpus, content.documents
    n_rows, held, first = len(documents.of_row), _rows_of(documents), content.panels[0]
    frame = _frame(np.vstack([panel.map for panel in content.panels]))
    about: dict[str, Any] = {
        "title": content.heading,
        "rows": len(held.rows),
        "documents": len(held.documents),
        "withoutText": n_rows - len(held.rows),
        "span": frame.span,
        "unit": content.units[0],
        "topicsTitle": content.units[1],
        "topics": [
            {"label": label, "color": color}
            for (label, _), color in zip(first.names, content.colors, strict=True)
        ],
        "panels": [{"name": one.name, "names": _named(one, frame)} for one in content.panels],
        "noise": NOISE_COLOR,
        "levels": [
            _named(_panel(level), frame)
            for level in sorted(levels, key=lambda level: level.n_topics)
        ],
        "columns": {"time": corpus.time_column, "group": corpus.group_column},
        "minCount": _MIN_COUNT,
    }
    columns = _panel_columns(content.panels, held, frame, about)
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
    if (urls := _urls(corpus, held)) is not None:
        about["columns"]["url"], lines = urls
        columns += packed_lines("urls", lines)
    columns += _texts(content, held, about)
    columns += _index(content, held, about)
    return about, columns


def _panel_columns(
    panels: Sequence[Panel], held: _Rows, frame: _Frame, about: dict[str, Any]
) -> list[str]:
    """Return where documents lie on each map, their topics or groups, and their neighbours."""
    columns = []
    for i, panel in enumerate(panels):
        places = np.clip(np.rint(frame.steps(panel.map[held.documents])), 0, 65535)
        columns.append(packed(f"places-{i}", places.astype(np.uint16), deflate=False))
        if i == 0 or panel.labels is not panels[0].labels:
            labels = panel.labels[held.documents] - NOISE
            columns.append(packed(f"labels-{i}", labels.astype(np.uint16)))
        if panel.graph is not None:
            near = panel.graph.indices[held.documents, :_NEIGHBORS]
            known = (near >= 0) & (panel.graph.similarities[held.documents, :_NEIGHBORS] > 0)
            place = np.argsort(held.documents)  # of a document on the page
            listed = np.where(known, place[near], len(place))
            columns.append(packed(f"neighbors-{i}", listed.astype(np.uint32)))
            about["panels"][i]["depth"] = near.shape[1]
    return columns


class _Frame(NamedTuple):
    """How positions become integers: lower left corner, units a step, and the steps of the map."""

    low: npt.NDArray[np.float64]
    step: float
    span: list[int]

    def steps(self, positions: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        return np.asarray((positions - self.low) / self.step)


def _frame(positions: npt.NDArray[Any]) -> _Frame:
    """Return the frame of positions (n, 2): 65,535 steps along the longer side."""
    if not len(positions):
        return _Frame(np.zeros(2), 1.0, [1, 1])
    low, high = positions.min(axis=0).astype(float), positions.max(axis=0).astype(float)
    step = float((high - low).max()) / 65535 or 1.0
    span = np.maximum(np.rint((high - low) / step), 1).astype(int).tolist()
    return _Frame(low, step, span)


def _named(panel: Panel, frame: _Frame) -> list[tuple[str, list[int] | None, int]]:
    """Return name, place and rows of each topic or group."""
    anchors = densest_points(panel.map, panel.labels, len(panel.names))
    places = [
        np.rint(frame.steps(anchor)).astype(int).tolist() if np.isfinite(anchor).all() else None
        for anchor in anchors
    ]
    return [(label, place, n) for (label, n), place in zip(panel.names, places, strict=True)]


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


def _urls(corpus: Corpus, held: _Rows) -> tuple[str, list[str]] | None:
    """Return the first column of web addresses, with "" where a row has none."""
    for name, column in corpus.metadata.items():
        values = column.iloc[held.rows]
        given = [value if isinstance(value, str) else "" for value in values]
        some = [value for value in given if value]
        if some and all(re.match(r"https?://", value) for value in some):
            return str(name), given
    return None


def _texts(content: Content, held: _Rows, about: dict[str, Any]) -> list[str]:
    texts = rows_of(content.corpus.texts, content.documents.first_rows[held.documents])
    lengths = np.sort(np.fromiter(map(len, texts), dtype=np.int64))
    if not lengths.any():
        return []
    about["hasTexts"] = True
    if lengths.sum() > _CHARACTERS:
        # the longest limit under which all texts fit
        kept = np.cumsum(lengths) + lengths * np.arange(len(lengths) - 1, -1, -1)
        limit = about["cutAt"] = int(lengths[max(int(np.searchsorted(kept, _CHARACTERS)) - 1, 0)])
        texts = [one[:limit] for one in texts]
    return packed_texts(texts)


def _index(content: Content, held: _Rows, about: dict[str, Any]) -> list[str]:
    """Return words, terms and where they stand; those that only fill sentences are left out."""
    counted, tokens = content.term_counts, content.tokens
    if counted is None or tokens is None:
        return []
    terms, lengths, counts = indexed_terms(counted, tokens, content.documents.weights)
    if not terms:
        return []
    place = np.empty(len(held.documents), dtype=counts.indices.dtype)
    place[held.documents] = np.arange(len(place))
    counts.indices = place[counts.indices]
    counts.has_sorted_indices = False
    ends = np.searchsorted(counts.indptr, np.arange(0, counts.nnz, _ENTRIES), side="right")
    parts = pairwise(np.unique([0, *ends, len(terms)]).tolist())
    lists, n_bytes = zip(*(postings(counts[:, a:b]) for a, b in parts), strict=True)
    n_words = np.diff(tokens.offsets)[held.documents]
    words = {*counted.stop_words, *counted.function_words}
    about["notIndexed"] = sorted(words & {*tokens.words})
    return [
        packed_strings("terms", terms),
        packed("lengths", lengths),
        packed("posting-bytes", np.concatenate(n_bytes)),
        packed("postings", b"".join(lists)),
        packed("n-words", np.minimum(n_words, 2**32 - 1).astype(np.uint32)),
    ]


def indexed_terms(
    counted: TermCounts, tokens: TokenStream, weights: Int64Array
) -> tuple[list[str], npt.NDArray[np.uint8], csc_matrix]:
    """Return the terms of the index, their lengths in words, and (n_documents, n_terms) counts.

    The length is 0 for words that are too rare, or were left out by another rule, to be compared:
    these can be searched only. Terms of several words too rare to be compared are not there.
    """
    from scipy.sparse import csc_matrix, csr_matrix, hstack

    totals = np.asarray(counted.counts.T @ weights).ravel()
    compared = np.flatnonzero(totals >= _MIN_COUNT)
    terms = [counted.terms[i] for i in compared.tolist()]
    known = {*terms, *counted.stop_words, *counted.function_words}
    others = np.array([i for i, word in enumerate(tokens.words) if word not in known], np.int64)
    if not counted.counts.shape[0]:
        return [], np.zeros(0, np.uint8), csc_matrix((0, 0))
    number = np.full(len(tokens.words), -1)
    number[others] = np.arange(len(others))
    at = np.flatnonzero(number[tokens.ids] >= 0)
    cells = np.searchsorted(tokens.offsets, at, side="right") - 1, number[tokens.ids[at]]
    words = csr_matrix((np.ones(len(at), np.int32), cells), (len(tokens), len(others)))
    kept = counted.counts[:, compared] if len(terms) < len(counted.terms) else counted.counts
    counts = hstack([kept, words], format="csr")
    terms += [tokens.words[i] for i in others.tolist()]
    lengths = np.concatenate([counted.lengths[compared], np.zeros(len(others), np.int8)])
    # JavaScript compares strings by UTF-16
    order = sorted(range(len(terms)), key=lambda i: terms[i].encode("utf-16-be", "surrogatepass"))
    place = np.empty(len(order), dtype=counts.indices.dtype)
    place[order] = np.arange(len(order))
    counts.indices = place[counts.indices]
    counts.has_sorted_indices = False
    return [terms[i] for i in order], lengths[order].astype(np.uint8), counts.tocsc()
