"""The data of the explorer: facts as JSON, and packed columns of rows, texts and words."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.display import spell_count
from embedtopics.clustering.results import NOISE
from embedtopics.comparison.results import Comparison
from embedtopics.corpus._classes import spell_column
from embedtopics.corpus._windows import PASSAGE_COLUMNS
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.plots._colors import NOISE_COLOR
from embedtopics.plots._labels import densest_points
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.report._documents import data_script
from embedtopics.terms.results import TermCounts, TokenStream
from embedtopics.topics.results import Theme, TopicResult

_CHARACTERS = 40_000_000
"""Maximum of the characters of all texts; longer ones are cut, for pages of at most 20 MB."""

_NO_TIME = -(2**31)
_GENERATED_ID = re.compile(r"[0-9a-f]{16}(-\d+)?(#\d+)?")
_MIN_COUNT = 5
"""Minimum count of a term that is compared, as in `embedtopics.topics.keyness`."""

_NEIGHBORS = 10
"""Listed neighbours of a document."""

TEXTS_PER_BLOCK, LINES_PER_BLOCK = 1000, 20_000
"""Texts, and ids or addresses, of a block: enough to compress well, and inflated in a few ms."""


class Panel(NamedTuple):
    """One of the linked maps, (n_documents, 2)."""

    name: str
    map: FloatArray
    graph: NeighborGraph | None = None


class Content(NamedTuple):
    """The content of a page of linked maps, with the topics or groups named on each."""

    result: TopicResult | Comparison
    heading: str
    panels: Sequence[Panel]
    labels: Int32Array  # (n_documents,), positions in `names`, -1 for none
    names: Sequence[tuple[str, int]]  # each with its number of rows
    colors: Sequence[str]
    units: tuple[str, str] = ("topic", "Topics")  # noun of a name, and the heading of their list
    themes: Sequence[Theme] = ()


def corpus_title(what: str, result: TopicResult | Comparison) -> str:
    """Return a heading with the file of a corpus, or its number of rows."""
    source = PurePath(result.corpus.source)
    rows = spell_count(len(result.corpus), "row", "rows")
    return f"{what} {source.name if source.suffix else rows}"


def page_data(content: Content) -> list[str]:
    """Return everything that the page knows, as script elements."""
    page = _PageData(content)
    page.add_panels()
    page.add_columns()
    page.add_texts()
    page.add_index()
    return [data_script("about", json.dumps(page.facts, separators=(",", ":"))), *page.scripts]


class _PageData:
    """The facts and packed columns of a page; its rows are the rows with text, in their order."""

    def __init__(self, content: Content) -> None:
        self.content, self.result = content, content.result
        of_row = self.result.distinct.of_row
        self.rows = np.flatnonzero(of_row >= 0)
        numbers, first, inverse = np.unique(
            of_row[self.rows], return_index=True, return_inverse=True
        )
        self.documents = numbers[np.argsort(first)]  # in the order of their first rows
        self.position_of = np.argsort(self.documents)  # of each document on the page
        self.first_rows = first[inverse]  # (n_rows,), the first row with the same text
        self.scripts: list[str] = []
        named = zip(content.names, content.colors, strict=True)
        self.facts: dict[str, Any] = {
            "title": content.heading,
            "rows": len(self.rows),
            "documents": len(self.documents),
            "withoutText": len(of_row) - len(self.rows),
            "unit": content.units[0],
            "topicsTitle": content.units[1],
            "topics": [{"label": label, "color": color} for (label, _), color in named],
            "noise": NOISE_COLOR,
            "themes": [
                {"label": theme.label, "topics": [topic + 1 for topic in theme.topics]}
                for theme in content.themes
            ],
            "minCount": _MIN_COUNT,
        }

    def add_panels(self) -> None:
        """Add the maps on one grid with 65,535 steps along its longer side, and their labels."""
        panels, labels, named = self.content.panels, self.content.labels, self.content.names
        every = np.vstack([panel.map for panel in panels]).astype(float)
        every = every if len(every) else np.zeros((1, 2))
        low, high = every.min(axis=0), every.max(axis=0)
        step = float((high - low).max()) / 65535 or 1.0
        self.facts["span"] = np.maximum(np.rint((high - low) / step), 1).astype(int).tolist()
        self.pack("labels", (labels[self.documents] - NOISE).astype(np.uint16))
        self.facts["panels"] = []
        for number, panel in enumerate(panels):
            positions = np.clip(np.rint((panel.map[self.documents] - low) / step), 0, 65535)
            self.pack(f"places-{number}", positions.astype(np.uint16), deflate=False)
            anchors = np.rint((densest_points(panel.map, labels, len(named)) - low) / step)
            names = [
                (label, anchor.astype(int).tolist() if np.isfinite(anchor).all() else None, n)
                for (label, n), anchor in zip(named, anchors, strict=True)
            ]
            depth = 0
            if panel.graph is not None:
                near = panel.graph.indices[self.documents, :_NEIGHBORS]
                similarities = panel.graph.similarities[self.documents, :_NEIGHBORS]
                is_neighbor, depth = (near >= 0) & (similarities > 0), near.shape[1]
                listed = np.where(is_neighbor, self.position_of[near], len(self.documents))
                self.pack(f"neighbors-{number}", listed.astype(np.uint32))
            self.facts["panels"].append({"name": panel.name, "names": names, "depth": depth})

    def add_columns(self) -> None:
        """Add the times, groups, ids and web addresses of the rows."""
        corpus = self.result.corpus
        rows = self.rows
        columns = {"time": corpus.time_column, "group": corpus.group_column}
        self.facts["columns"] = columns

        if len(rows) != len(self.documents):
            self.pack("repeats", (np.arange(len(rows)) - self.first_rows).astype(np.uint32))
        if self.facts["withoutText"]:
            self.pack("rows", rows.astype(np.uint32))

        if corpus.time is not None:
            moments = corpus.time.iloc[rows].to_numpy(dtype="datetime64[m]")  # since 1970, in UTC
            minutes = moments.astype(np.int64)
            is_missing = np.isnat(moments) | (np.abs(minutes) >= 2**31)
            self.pack("times", np.where(is_missing, _NO_TIME, minutes).astype(np.int32))

        if corpus.group is not None:
            names = spell_column(corpus.group.iloc[rows])
            sizes = names.value_counts().sort_index().sort_values(ascending=False, kind="stable")
            self.facts["groups"] = sizes.index.tolist()
            numbers = names.map({name: i for i, name in enumerate(sizes.index, 1)}).fillna(0)
            self.pack("groups", numbers.to_numpy(np.uint32))

        if not all(_GENERATED_ID.fullmatch(name) for name in corpus.ids):
            self.facts["hasIds"] = True
            self.pack_lines("ids", [corpus.ids[row] for row in rows.tolist()])

        if PASSAGE_COLUMNS[0] in corpus.metadata:
            texts = corpus.metadata[PASSAGE_COLUMNS[0]].iloc[rows]
            self.pack("wholes", np.unique(texts, return_inverse=True)[1].astype(np.uint32))

        for name, column in corpus.metadata.items():
            urls = [value if isinstance(value, str) else "" for value in column.iloc[rows]]
            if any(urls) and all(re.match(r"https?://", url) for url in urls if url):
                columns["url"] = str(name)
                self.pack_lines("urls", urls)
                break

    def add_texts(self) -> None:
        """Add the texts, cut to one length if there are too many characters."""
        first_rows = self.result.distinct.first_rows[self.documents]
        texts = [self.result.corpus.texts[row] for row in first_rows.tolist()]
        lengths = np.sort(np.fromiter(map(len, texts), dtype=np.int64))
        if not lengths.any():
            return
        self.facts["hasTexts"] = True
        if lengths.sum() > _CHARACTERS:
            # The largest limit that keeps the total below the maximum.
            totals = np.cumsum(lengths) + lengths * np.arange(len(lengths) - 1, -1, -1)
            limit = int(lengths[max(int(np.searchsorted(totals, _CHARACTERS)) - 1, 0)])
            self.facts["cutAt"] = limit
            texts = [one[:limit] for one in texts]
        self.pack_lines("texts", texts, TEXTS_PER_BLOCK)

    def add_index(self) -> None:
        """Add the inverted index of words and terms, without stop words."""
        counted, tokens = self.result.term_counts, self.result.tokens
        if counted is None or tokens is None:
            return
        terms, lengths, counts = indexed_terms(counted, tokens, self.result.distinct.weights)
        if not terms:
            return
        counts.indices = self.position_of.astype(counts.indices.dtype)[counts.indices]
        counts.has_sorted_indices = False
        counts.sort_indices()
        # Steps from the previous document of the list, -1 at first, deflate better than documents.
        steps = np.diff(counts.indices, prepend=-1)
        starts = counts.indptr[:-1][np.diff(counts.indptr) > 0]
        steps[starts] = counts.indices[starts] + 1
        n_words = np.diff(tokens.offsets)[self.documents]
        words = {*counted.stop_words, *counted.function_words}
        self.facts["notIndexed"] = sorted(words & {*tokens.words})
        self.pack_lines("terms", terms, len(terms))
        self.pack("lengths", lengths)
        self.pack("starts", counts.indptr.astype(np.uint32))
        self.pack("steps", steps.astype(np.uint32))
        self.pack("occurrences", np.minimum(counts.data, 65535).astype(np.uint16))
        self.pack("n-words", np.minimum(n_words, 2**32 - 1).astype(np.uint32))

    def pack(self, name: str, content: bytes | npt.NDArray[Any], *, deflate: bool = True) -> None:
        """Add bytes, or a little-endian array, as an inert script element."""
        if isinstance(content, np.ndarray):
            content = content.astype(content.dtype.newbyteorder("<")).tobytes()
        body = base64.b64encode(zlib.compress(content, 9) if deflate else content).decode()
        how = " data-deflated" if deflate else ""
        self.scripts.append(
            f'<script type="application/octet-stream" id="packed-{name}"{how}>{body}</script>'
        )

    def pack_lines(self, name: str, lines: Sequence[str], size: int = LINES_PER_BLOCK) -> None:
        """Add strings as numbered blocks, separated by NUL, which is replaced in them."""
        for number, start in enumerate(range(0, len(lines), size)):
            block = lines[start : start + size]
            joined = "\0".join(line.replace("\0", "\ufffd") for line in block)
            self.pack(f"{name}-{number}", joined.encode("utf-8", "replace"))


def indexed_terms(
    counted: TermCounts, tokens: TokenStream, weights: Int64Array
) -> tuple[list[str], npt.NDArray[np.uint8], Any]:
    """Return the terms of the index, lengths in words, and a csc_matrix (n_documents, n_terms).

    A length of 0 marks words that can be searched but not compared, because they are rare or were
    excluded by another rule. Rare terms of several words are left out.
    """
    from scipy.sparse import csr_matrix, hstack

    totals = np.asarray(counted.counts.T @ weights).ravel()
    compared = np.flatnonzero(totals >= _MIN_COUNT)
    terms = [counted.terms[i] for i in compared.tolist()]
    listed = {*terms, *counted.stop_words, *counted.function_words}
    others = np.array([i for i, word in enumerate(tokens.words) if word not in listed], np.int64)
    number = np.full(len(tokens.words), -1)
    number[others] = np.arange(len(others))
    tokens_at = np.flatnonzero(number[tokens.ids] >= 0)
    documents = np.searchsorted(tokens.offsets, tokens_at, side="right") - 1
    cells = documents, number[tokens.ids[tokens_at]]
    words = csr_matrix((np.ones(len(tokens_at), np.int32), cells), (len(tokens), len(others)))
    counts = hstack([counted.counts[:, compared], words], format="csc")
    terms += [tokens.words[i] for i in others.tolist()]
    lengths = np.concatenate([counted.lengths[compared], np.zeros(len(others), np.int8)])
    # JavaScript compares strings by UTF-16 code units.
    order = sorted(range(len(terms)), key=lambda i: terms[i].encode("utf-16-be", "surrogatepass"))
    return [terms[i] for i in order], lengths[order].astype(np.uint8), counts[:, order]
