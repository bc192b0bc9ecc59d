"""The data of the explorer: facts as JSON, and packed columns of rows, texts and words."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics.clustering.results import NOISE
from embedtopics.corpus._windows import PASSAGE_COLUMNS
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.plots._colors import NOISE_COLOR
from embedtopics.plots._labels import densest_points
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.report._documents import data_script
from embedtopics.terms.results import TermCounts, TokenStream
from embedtopics.topics.results import Theme

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

    from embedtopics.corpus._corpus import Corpus

_CHARACTERS = 40_000_000
"""Maximum of the characters of all texts; longer ones are cut, for pages of at most 20 MB."""

_NO_TIME = -(2**31)
_GENERATED_ID = re.compile(r"[0-9a-f]{16}(-\d+)?(#\d+)?")
_MIN_COUNT = 5
"""Minimum count of a term that is compared, as in `embedtopics.topics.keyness`."""

_NEIGHBORS = 10
"""Listed neighbours of a document."""


class Panel(NamedTuple):
    """One of the linked maps, (n_documents, 2), with the topics or groups named on it."""

    name: str
    map: FloatArray
    labels: Int32Array  # (n_documents,), positions in `names`, -1 for none
    names: Sequence[tuple[str, int]]  # each with its number of rows
    graph: NeighborGraph | None = None


@dataclass(frozen=True)
class Content:
    """The content of a page of linked maps; colours are those of the first map's names."""

    corpus: Corpus
    documents: DistinctDocuments
    panels: Sequence[Panel]
    colors: Sequence[str]
    tokens: TokenStream | None
    term_counts: TermCounts | None
    heading: str
    units: tuple[str, str] = ("topic", "Topics")  # noun of a name, and the heading of their list
    themes: Sequence[Theme] = ()  # over the topics of the first map


class _PageRows(NamedTuple):
    """The rows with text in their order, and their documents in the order of their first rows."""

    rows: Int64Array
    documents: Int64Array  # numbers in the result
    first: Int64Array  # (n_rows,), position of the first row with the same text


def page_data(content: Content) -> list[str]:
    """Return everything that the page knows, as script elements."""
    n_rows, page_rows = len(content.documents.of_row), _page_rows(content.documents)
    frame = _frame(np.vstack([panel.map for panel in content.panels]))
    named = zip(content.panels[0].names, content.colors, strict=True)
    facts: dict[str, Any] = {
        "title": content.heading,
        "rows": len(page_rows.rows),
        "documents": len(page_rows.documents),
        "withoutText": n_rows - len(page_rows.rows),
        "span": frame.span,
        "unit": content.units[0],
        "topicsTitle": content.units[1],
        "topics": [{"label": label, "color": color} for (label, _), color in named],
        "noise": NOISE_COLOR,
        "themes": [
            {"label": theme.label, "topics": [topic + 1 for topic in theme.topics]}
            for theme in content.themes
        ],
        "minCount": _MIN_COUNT,
        "panels": [],
    }
    scripts: list[str] = []
    for number in range(len(content.panels)):
        scripts += _panel_scripts(content.panels, number, page_rows, frame, facts)
    scripts += _column_scripts(content.corpus, page_rows, n_rows, facts)
    scripts += _text_scripts(content, page_rows, facts)
    scripts += _index_scripts(content, page_rows, facts)
    return [data_script("about", json.dumps(facts, separators=(",", ":"))), *scripts]


def _page_rows(documents: DistinctDocuments) -> _PageRows:
    of_row = documents.of_row
    rows = np.flatnonzero(of_row >= 0)
    numbers, first, inverse = np.unique(of_row[rows], return_index=True, return_inverse=True)
    return _PageRows(rows, numbers[np.argsort(first)], first[inverse])


def _panel_scripts(
    panels: Sequence[Panel], number: int, page_rows: _PageRows, frame: _Frame, facts: dict[str, Any]
) -> list[str]:
    """Pack the positions, labels and neighbours of the documents on one map."""
    panel, documents = panels[number], page_rows.documents
    facts["panels"].append({"name": panel.name, "names": _names_on(panel, frame)})
    positions = np.clip(np.rint(frame.steps(panel.map[documents])), 0, 65535)
    scripts = [packed(f"places-{number}", positions.astype(np.uint16), deflate=False)]
    if number == 0 or panel.labels is not panels[0].labels:
        labels = panel.labels[documents] - NOISE
        scripts.append(packed(f"labels-{number}", labels.astype(np.uint16)))
    if panel.graph is not None:
        near = panel.graph.indices[documents, :_NEIGHBORS]
        is_neighbor = (near >= 0) & (panel.graph.similarities[documents, :_NEIGHBORS] > 0)
        position_of = np.argsort(documents)
        listed = np.where(is_neighbor, position_of[near], len(position_of))
        scripts.append(packed(f"neighbors-{number}", listed.astype(np.uint32)))
        facts["panels"][-1]["depth"] = near.shape[1]
    return scripts


def _column_scripts(
    corpus: Corpus, page_rows: _PageRows, n_rows: int, facts: dict[str, Any]
) -> list[str]:
    """Pack the times, groups, ids and web addresses of the rows."""
    rows, scripts = page_rows.rows, []
    columns = {"time": corpus.time_column, "group": corpus.group_column}
    facts["columns"] = columns
    if len(rows) != len(page_rows.documents):
        back = np.arange(len(rows)) - page_rows.first
        scripts.append(packed("repeats", back.astype(np.uint32)))
    if len(rows) != n_rows:
        scripts.append(packed("rows", rows.astype(np.uint32)))
    if corpus.time is not None:
        moments = corpus.time.iloc[rows].to_numpy(dtype="datetime64[m]")  # since 1970, in UTC
        minutes = moments.astype(np.int64)
        is_missing = np.isnat(moments) | (np.abs(minutes) >= 2**31)
        scripts.append(packed("times", np.where(is_missing, _NO_TIME, minutes).astype(np.int32)))
    if corpus.group is not None:
        numbers, facts["groups"] = _groups(corpus.group.iloc[rows])
        scripts.append(packed("groups", numbers))
    if not all(_GENERATED_ID.fullmatch(name) for name in corpus.ids):
        facts["hasIds"] = True
        scripts += packed_lines("ids", [corpus.ids[row] for row in rows.tolist()])
    if PASSAGE_COLUMNS[0] in corpus.metadata:
        wholes = np.unique(corpus.metadata[PASSAGE_COLUMNS[0]].iloc[rows], return_inverse=True)[1]
        scripts.append(packed("wholes", wholes.astype(np.uint32)))
    for name, column in corpus.metadata.items():
        urls = [value if isinstance(value, str) else "" for value in column.iloc[rows]]
        if any(urls) and all(re.match(r"https?://", url) for url in urls if url):
            columns["url"] = str(name)
            scripts += packed_lines("urls", urls)
            break
    return scripts


class _Frame(NamedTuple):
    """The integer grid of the maps: lower left corner, size of a step, and steps of each side."""

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


def _names_on(panel: Panel, frame: _Frame) -> list[tuple[str, list[int] | None, int]]:
    """Return name, position and number of rows of each topic or group."""
    anchors = densest_points(panel.map, panel.labels, len(panel.names))
    positions = [
        np.rint(frame.steps(anchor)).astype(int).tolist() if np.isfinite(anchor).all() else None
        for anchor in anchors
    ]
    pairs = zip(panel.names, positions, strict=True)
    return [(label, position, n) for (label, n), position in pairs]


def _groups(values: Any) -> tuple[npt.NDArray[np.uint32], list[str]]:
    """Return the group of each row, 0 for none, and the names, the largest group first."""
    present = values[values.notna()].astype(str)
    names = present.value_counts().sort_index().sort_values(ascending=False, kind="stable").index
    number_of = {name: i + 1 for i, name in enumerate(names)}
    pairs = zip(values, values.notna(), strict=True)
    numbers = [number_of[str(value)] if has_group else 0 for value, has_group in pairs]
    return np.array(numbers, dtype=np.uint32), list(number_of)


def _text_scripts(content: Content, page_rows: _PageRows, facts: dict[str, Any]) -> list[str]:
    """Pack the texts, cut to one length if there are too many characters."""
    first_rows = content.documents.first_rows[page_rows.documents]
    texts = [content.corpus.texts[row] for row in first_rows.tolist()]
    lengths = np.sort(np.fromiter(map(len, texts), dtype=np.int64))
    if not lengths.any():
        return []
    facts["hasTexts"] = True
    if lengths.sum() > _CHARACTERS:
        # The largest limit that keeps the total below the maximum.
        totals = np.cumsum(lengths) + lengths * np.arange(len(lengths) - 1, -1, -1)
        limit = int(lengths[max(int(np.searchsorted(totals, _CHARACTERS)) - 1, 0)])
        facts["cutAt"] = limit
        texts = [one[:limit] for one in texts]
    return packed_lines("texts", texts, TEXTS_PER_BLOCK)


def _index_scripts(content: Content, page_rows: _PageRows, facts: dict[str, Any]) -> list[str]:
    """Pack the inverted index of words and terms, without stop words."""
    counted, tokens = content.term_counts, content.tokens
    if counted is None or tokens is None:
        return []
    terms, lengths, counts = indexed_terms(counted, tokens, content.documents.weights)
    if not terms:
        return []
    position_of = np.argsort(page_rows.documents).astype(counts.indices.dtype)
    counts.indices = position_of[counts.indices]
    counts.has_sorted_indices = False
    counts.sort_indices()
    # Steps from the previous document of the list, -1 at first, deflate better than documents.
    steps = np.diff(counts.indices, prepend=-1)
    starts = counts.indptr[:-1][np.diff(counts.indptr) > 0]
    steps[starts] = counts.indices[starts] + 1
    n_words = np.diff(tokens.offsets)[page_rows.documents]
    words = {*counted.stop_words, *counted.function_words}
    facts["notIndexed"] = sorted(words & {*tokens.words})
    return [
        packed_strings("terms", terms),
        packed("lengths", lengths),
        packed("starts", counts.indptr.astype(np.uint32)),
        packed("steps", steps.astype(np.uint32)),
        packed("occurrences", np.minimum(counts.data, 65535).astype(np.uint16)),
        packed("n-words", np.minimum(n_words, 2**32 - 1).astype(np.uint32)),
    ]


def indexed_terms(
    counted: TermCounts, tokens: TokenStream, weights: Int64Array
) -> tuple[list[str], npt.NDArray[np.uint8], csc_matrix]:
    """Return the terms of the index, their lengths in words, and counts (n_documents, n_terms).

    A length of 0 marks words that can be searched but not compared, because they are rare or were
    excluded by another rule. Rare terms of several words are left out.
    """
    from scipy.sparse import csc_matrix, csr_matrix, hstack

    totals = np.asarray(counted.counts.T @ weights).ravel()
    compared = np.flatnonzero(totals >= _MIN_COUNT)
    terms = [counted.terms[i] for i in compared.tolist()]
    listed = {*terms, *counted.stop_words, *counted.function_words}
    others = np.array([i for i, word in enumerate(tokens.words) if word not in listed], np.int64)
    if not counted.counts.shape[0]:
        return [], np.zeros(0, np.uint8), csc_matrix((0, 0))
    number = np.full(len(tokens.words), -1)
    number[others] = np.arange(len(others))
    tokens_at = np.flatnonzero(number[tokens.ids] >= 0)
    documents = np.searchsorted(tokens.offsets, tokens_at, side="right") - 1
    cells = documents, number[tokens.ids[tokens_at]]
    words = csr_matrix((np.ones(len(tokens_at), np.int32), cells), (len(tokens), len(others)))
    has_all = len(terms) == len(counted.terms)
    of_terms = counted.counts if has_all else counted.counts[:, compared]
    counts = hstack([of_terms, words], format="csr")
    terms += [tokens.words[i] for i in others.tolist()]
    lengths = np.concatenate([counted.lengths[compared], np.zeros(len(others), np.int8)])
    # JavaScript compares strings by UTF-16 code units.
    order = sorted(range(len(terms)), key=lambda i: terms[i].encode("utf-16-be", "surrogatepass"))
    counts.indices = np.argsort(order).astype(counts.indices.dtype)[counts.indices]
    counts.has_sorted_indices = False
    return [terms[i] for i in order], lengths[order].astype(np.uint8), counts.tocsc()


TEXTS_PER_BLOCK, LINES_PER_BLOCK = 1000, 20_000
"""Texts, and ids or addresses, of a block: enough to compress well, and inflated in a few ms."""


def packed(name: str, content: bytes | npt.NDArray[Any], *, deflate: bool = True) -> str:
    """Return bytes, or a little-endian array, as an inert script element."""
    if isinstance(content, np.ndarray):
        content = content.astype(content.dtype.newbyteorder("<")).tobytes()
    if deflate:
        content = zlib.compress(content, 9)
    how = " data-deflated" if deflate else ""
    body = base64.b64encode(content).decode()
    return f'<script type="application/octet-stream" id="packed-{name}"{how}>{body}</script>'


def packed_strings(name: str, strings: Sequence[str]) -> str:
    """Return strings separated by NUL, which is replaced in them."""
    clean = "\0".join(one.replace("\0", "\ufffd") for one in strings)
    return packed(name, clean.encode("utf-8", "replace"))


def packed_lines(name: str, lines: Sequence[str], per_block: int = LINES_PER_BLOCK) -> list[str]:
    """Return strings as numbered blocks."""
    blocks = (lines[i : i + per_block] for i in range(0, len(lines), per_block))
    return [packed_strings(f"{name}-{number}", block) for number, block in enumerate(blocks)]
