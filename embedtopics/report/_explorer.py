"""The explorer: one page to search, select and compare the documents of a result."""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError, MissingExtraError
from embedtopics.plots._colors import topic_colors
from embedtopics.report._documents import html_sections
from embedtopics.report._markup import asset, corpus_title, html_page, text
from embedtopics.report._page_data import Content, Panel, page_data
from embedtopics.report._sections import summary
from embedtopics.report._study import Checks, study_sections
from embedtopics.topics.results import TopicResult
from embedtopics.topics.trends.results import NO_TOPIC

if TYPE_CHECKING:
    import pandas as pd

HEIGHT = 760
STAYS = (
    "The selection of this page stays in the browser; for one that Python reads, run: "
    'pip install "embedtopics[notebook]", and show et.report.explore(result)'
)

_PARTS = ("_data", "_map", "_view", "_selection", "_lists", "")
_SCRIPTS = ("scatter.js", *(f"explorer{part}.js" for part in _PARTS))
"""The scripts of the page, in the order of their dependencies."""


@dataclass(frozen=True)
class InlinePage:
    """A page of HTML that a notebook shows in a frame of some height in pixels."""

    page: str
    height: int

    @property
    def selected(self) -> pd.DataFrame:
        """Refused: the selection stays in the browser."""
        raise MissingExtraError(STAYS)

    def select(self, ids: object) -> None:
        """Refused, as `selected` is."""
        raise MissingExtraError(STAYS)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" width="100%" height="{self.height}" '
            'sandbox="allow-scripts allow-downloads" allow="clipboard-write" title="Explorer" '
            'style="border:0"></iframe>'
        )


def explore(result: TopicResult) -> Any:
    """Show the page of `write_report` in a notebook, and read its selection.

    Parameters
    ----------
    result : TopicResult

    Returns
    -------
    widget
        ``view.selected`` is a frame of the selected rows, with the index of the input: id, text,
        its other columns, topic (-1 for none) and label; a column of the input with such a name is
        renamed ``<name>_given``. ``view.select(ids)`` selects rows with text by their ids in the
        page; an empty list selects nothing. Without the extra notebook, the page in a frame.
    """
    page = explorer_html(result)
    try:
        widget = _widget()
    except ImportError:
        return InlinePage(page, HEIGHT)
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
            names = [*(topic.label for topic in result.topics), NO_TOPIC]
            reserved = {name: f"{name}_given" for name in ("topic", "label")}
            frame = result.corpus.to_frame().rename(columns=reserved).iloc[rows]
            labels = result.labels[rows]
            return frame.assign(topic=labels, label=[names[label] for label in labels])

        def select(self, ids: Iterable[Any]) -> None:
            row_of = {
                id: row
                for row, id in enumerate(self._result.corpus.ids)
                if self._result.documents.of_row[row] >= 0
            }
            names = [str(id) for id in ids]
            for place, name in enumerate(names):
                if name not in row_of:
                    raise InputError("ids", "ids of rows with text", name, row=place)
            rows = sorted({row_of[name] for name in names})
            self.rows = np.array(rows, "<u4").tobytes()

    return Explorer


def explorer_html(
    result: TopicResult, *, title: str | None = None, checks: Checks | None = None
) -> str:
    """Return the explorer of a result as a self-contained HTML page."""
    parts, _ = study_sections(result, checks or Checks())
    names = [(topic.label, topic.size) for topic in result.topics]
    content = Content(
        corpus=result.corpus,
        documents=result.documents,
        panels=[Panel("", result.map, result.clustering.labels, names)],
        colors=topic_colors(result),
        tokens=result.tokens,
        term_counts=result.term_counts,
        heading=title or corpus_title("Topics of", result.corpus.source, len(result.corpus)),
        themes=result.themes if len(result.themes) < result.n_topics else (),
    )
    sections = ['<div id="study">', summary(result), *html_sections(parts), "</div>"]
    return linked_page(content, sections)


def linked_page(content: Content, sections: Sequence[str]) -> str:
    """Return a page of linked maps, with sections below them."""
    return html_page(
        text(content.heading, 160),
        asset("explorer.css"),
        [asset("explorer.html").replace("{maps}", _maps(content.panels)), *sections],
        page_data(content),
        [asset(name) for name in _SCRIPTS],
        inline_styles=False,
    )


def _maps(panels: Sequence[Panel]) -> str:
    """Return the elements of the maps."""
    columns = len(panels) if len(panels) < 4 else 2 if len(panels) == 4 else 3
    figures = ""
    for i, panel in enumerate(panels):
        name = text(panel.name, 60)
        caption = f"<figcaption><bdi>{name}</bdi></figcaption>" if name else ""
        figures += (
            f'<figure class="panel">{caption}<div {"" if i else "id=map "}class="map" tabindex="0" '
            f'role="application" aria-label="Map of the documents{": " if name else ""}{name}" '
            'aria-describedby="map-help"><canvas></canvas><canvas></canvas><canvas></canvas>'
            f"{'' if i else '<p id=busy>Loading &hellip;</p>'}</div></figure>"
        )
    return f'<div id="maps" data-columns="{columns}">{figures}</div>'
