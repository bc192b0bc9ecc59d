"""The explorer: one page to search, select and compare the documents of a result."""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import require
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.errors import InputError
from embedtopics.plots._colors import topic_colors
from embedtopics.report._documents import Section, asset, fill, html_page, html_sections, text
from embedtopics.report._page_data import Content, Panel, corpus_title, page_data
from embedtopics.report._study import Checks, encoder_name, study_sections
from embedtopics.topics.results import NO_TOPIC, TopicResult

if TYPE_CHECKING:
    import pandas as pd

HEIGHT = 760
_PARTS = ("_data", "_map", "_view", "_selection", "_lists", "")
_SCRIPTS = ("scatter.js", *(f"explorer{part}.js" for part in _PARTS))
"""The scripts of the page, in the order of their dependencies."""


@dataclass(frozen=True)
class InlinePage:
    """A page that a notebook shows in a frame."""

    page: str

    @property
    def selected(self) -> Any:
        """Refused: the selection stays in the browser."""
        return require("anywidget", "a selection that Python reads", "notebook")

    select = selected

    def _repr_html_(self) -> str:
        return fill("explorer_frame.html", page=html.escape(self.page), height=HEIGHT)


def explore(result: FittedTopics) -> Any:
    """Show the page of `write_report` in a notebook, and read its selection.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel

    Returns
    -------
    widget
        ``view.selected`` is a frame of the selected rows, with the index of the input: id, text,
        its other columns, topic (-1 for none) and topic_name; a column of the input with such a
        name is renamed ``<name>_given``. ``view.select(ids)`` selects rows with text by their ids
        in the page; an empty list selects nothing. Without the extra notebook, the page in a frame.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> view = et.report.explore(model)
    >>> "Topics of" in view.page
    True
    """
    result = result_of(result)
    page = explorer_html(result)
    try:
        widget = _widget()
    except ImportError:
        return InlinePage(page)
    return widget(result, page)


@functools.cache
def _widget() -> Any:
    """Return the class of the widget; anywidget is imported when it is needed."""
    import anywidget
    import traitlets

    class Explorer(anywidget.AnyWidget):  # type: ignore[misc, unused-ignore]
        _esm = asset("widget.js")
        page = traitlets.Unicode().tag(sync=True)
        height = traitlets.Int(HEIGHT).tag(sync=True)
        rows = traitlets.CBytes().tag(sync=True)  # selected rows, uint32; a memoryview arrives

        def __init__(self, result: TopicResult, page: str) -> None:
            super().__init__(page=page)
            self._result = result

        @property
        def selected(self) -> pd.DataFrame:
            rows, result = np.frombuffer(self.rows, "<u4").astype(np.int64), self._result
            names = [*(topic.name for topic in result.topics), NO_TOPIC]
            reserved = {name: f"{name}_given" for name in ("topic", "topic_name")}
            frame = result.corpus.to_frame().rename(columns=reserved).iloc[rows]
            labels = result.labels[rows]
            return frame.assign(topic=labels, topic_name=[names[label] for label in labels])

        def select(self, ids: Iterable[Any]) -> None:
            row_of = {
                id: row
                for row, id in enumerate(self._result.corpus.ids)
                if self._result.distinct.of_row[row] >= 0
            }
            rows = set()
            for place, id in enumerate(map(str, ids)):
                if id not in row_of:
                    raise InputError("ids", "ids of rows with text", id, row=place)
                rows.add(row_of[id])
            self.rows = np.array(sorted(rows), "<u4").tobytes()

    return Explorer


def explorer_html(
    result: TopicResult, *, title: str | None = None, checks: Checks | None = None
) -> str:
    """Return the explorer of a result as a self-contained HTML page."""
    sections, _ = study_sections(result, checks or Checks())
    content = Content(
        result,
        title or corpus_title("Topics of", result),
        panels=[Panel("", result.map)],
        labels=result.clustering.labels,
        names=[(topic.name, topic.size) for topic in result.topics],
        colors=topic_colors(result),
        themes=result._themes if len(result._themes) < result.n_topics else (),
    )
    figures = [("Topics", f"{result.n_topics:,}"), ("In a topic", f"{result.coverage:.1%}")]
    if result.stability is not None and len(result.stability.adjusted_rand):
        index = float(result.stability.adjusted_rand.mean())
        figures.append(("Agreement of replicates (ARI)", f"{index:.2f}"))
    if encoder := encoder_name(result):
        figures.append(("Encoder", text(encoder, 60)))
    if (times := result.corpus.time) is not None and times.notna().any():
        first, last = (time.date().isoformat() for time in (times.min(), times.max()))
        period = f'<span class="nowrap">{first}</span> &ndash; <span class="nowrap">{last}</span>'
        figures.append(("Period", period))
    return linked_page(content, figures, sections)


def linked_page(
    content: Content, figures: Sequence[tuple[str, str]], sections: Sequence[Section]
) -> str:
    """Return a page of linked maps; below them figures (names and markup) and sections."""
    documents = content.result.distinct
    body = fill(
        "explorer.html",
        n_rows=len(documents.of_row),
        n_documents=len(documents),
        tiles="\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures),
        sections=html_sections(sections),
        data="\n".join(page_data(content)),
    )
    return html_page(content.heading, asset("explorer.css"), body, [*map(asset, _SCRIPTS)])
