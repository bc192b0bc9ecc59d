"""The explorer: one page to search, select and compare the documents of a result."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from embedtopics.plots._colors import topic_colors
from embedtopics.report._markup import asset, corpus_title, html_page, text
from embedtopics.report._page_data import Content, Panel, page_data
from embedtopics.report._sections import study_sections
from embedtopics.topics.results import TopicResult

_SCRIPTS = (
    "scatter.js",
    "explorer_data.js",
    "explorer_map.js",
    "explorer_view.js",
    "explorer_selection.js",
    "explorer_lists.js",
    "explorer.js",
)
"""The scripts of the page, in the order of their dependencies."""


@dataclass(frozen=True)
class InlinePage:
    """A page that a notebook shows in a frame.

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


def explorer(result: TopicResult) -> InlinePage:
    """Show the page of `write_report` in a notebook.

    Returns
    -------
    InlinePage
        Shown by notebooks in a frame.
    """
    return InlinePage(explorer_html(result), 760)


def explorer_html(result: TopicResult, *, title: str | None = None) -> str:
    """Return the explorer of a result as a self-contained HTML page."""
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
    return linked_page(content, study_sections(result))


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
