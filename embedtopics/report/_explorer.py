"""The explorer: one page to search, select and compare the documents of a result."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embedtopics.errors import InputError
from embedtopics.plots._colors import topic_colors
from embedtopics.report._markup import asset, checked_place, html_page, text, write_page
from embedtopics.report._page_data import Content, Panel, page_data
from embedtopics.report._sections import default_title, study_sections
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


def write_explorer(
    result: TopicResult,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    levels: Sequence[TopicResult] = (),
) -> Path:
    """Write a page to search, select and compare the documents of a result.

    Sections below the map show citable methods, topics with representative documents, decisions,
    settings and versions.

    The page is one file without external resources. Its content security policy allows no script
    except its own. It draws with WebGL 2 on a graphics card, otherwise on the CPU.

    Parameters
    ----------
    result : TopicResult
    path : str or path
        File to write, in an existing folder. An existing file is replaced.
    title : str, optional
        Heading of the page; by default the source of the corpus.
    levels : sequence of TopicResult
        Results of the same documents with fewer or more topics, such as those of
        `embedtopics.topics.at_resolution`. The whole map shows the names of fewer topics; names of
        more topics appear when a reader zooms in.

    Returns
    -------
    Path
        The file: about 0.1 MB plus 110 bytes for each text of 250 characters.

    Raises
    ------
    InputError
        Another type of result, a level with other documents, a folder that does not
        exist, or a path that is a folder.
    OSError
        The folder is not writable, or the disk is full.
    """
    return write_page(
        explorer_html(result, title=title, levels=levels), checked_place(path, "explorer.html")
    )


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
    """Show the page of `write_explorer` in a notebook.

    Returns
    -------
    InlinePage
        Shown by notebooks in a frame.
    """
    return InlinePage(explorer_html(result), 760)


def explorer_html(
    result: TopicResult, *, title: str | None = None, levels: Sequence[TopicResult] = ()
) -> str:
    """Return the explorer of a result as a self-contained HTML page."""
    if not isinstance(result, TopicResult):
        raise InputError("result", "a TopicResult", result)
    for level in levels:
        if not np.array_equal(level.documents.hashes, result.documents.hashes):
            raise InputError("levels", "results of the same documents", level)
    content = Content(
        corpus=result.corpus,
        documents=result.documents,
        panels=[_panel(result)],
        colors=topic_colors(result),
        tokens=result.tokens,
        term_counts=result.term_counts,
        heading=title if title is not None else default_title(result),
    )
    ordered = sorted(levels, key=lambda level: level.n_topics)
    return linked_page(content, study_sections(result), [_panel(level) for level in ordered])


def linked_page(content: Content, sections: Sequence[str], levels: Sequence[Panel] = ()) -> str:
    """Return a page of linked maps, with sections below them."""
    return html_page(
        text(content.heading, 160),
        asset("explorer.css"),
        [asset("explorer.html").replace("{maps}", _maps(content.panels)), *sections],
        page_data(content, levels),
        [asset(name) for name in _SCRIPTS],
        inline_styles=False,
    )


def _panel(result: TopicResult) -> Panel:
    names = [(topic.label, topic.size) for topic in result.topics]
    return Panel("", result.map, result.clustering.labels, names)


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
