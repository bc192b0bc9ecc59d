"""The study report: one HTML file that holds everything it shows."""

from __future__ import annotations

import os
from pathlib import Path

from embedtopics.plots import map as document_map
from embedtopics.plots import sizes
from embedtopics.report import sections
from embedtopics.report.document import (
    asset,
    checked_place,
    data_script,
    html_page,
    write_page,
)
from embedtopics.report.markup import text
from embedtopics.results import TopicResult

__all__ = ["report_html", "write_report"]

_HOVER_CHARACTERS = 200
# Hover texts are most of a large page; beyond this many characters each is cut shorter.
_HOVER_BUDGET = 4_000_000


def write_report(
    result: TopicResult, path: str | os.PathLike[str], *, title: str | None = None
) -> Path:
    """Write the report of a result to one HTML file.

    The file is complete or not there: it is written beside its place and then moved, so that an
    interrupted or failed write leaves an older report as it was.

    Parameters
    ----------
    result : TopicResult
    path : str or path
        File to write; its folder must exist. An older file is replaced.
    title : str, optional
        Heading of the page; by default it names the source of the corpus.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    InputError
        If the folder does not exist, or `path` is a folder.
    OSError
        If the folder cannot be written to, or the disk is full.
    """
    path = checked_place(path)
    return write_page(report_html(result, title=title), path)


def report_html(result: TopicResult, *, title: str | None = None) -> str:
    """Return the report of a result as a self-contained HTML page.

    The page loads nothing: scripts, style and data are in it, and its content security policy
    allows no connection and no script but its own two, known by their hashes. Text of the corpus
    is escaped wherever it goes. The same result gives the same page, byte for byte.

    Parameters
    ----------
    result : TopicResult
    title : str, optional
        Heading of the page; by default it names the source of the corpus.

    Returns
    -------
    str
        A page of about 5 MB, most of it Plotly, plus the hover texts: 200 characters a document,
        fewer where that would come to more than 4 million in all.
    """
    from plotly.offline import get_plotlyjs

    hover_characters = hover_length(len(result.documents))
    chart = document_map(result, hover_characters=hover_characters)
    bars = sizes(result, max_topics=30).update_layout(margin_t=4)
    heading = text(title if title is not None else sections.default_title(result), 160)
    return html_page(
        heading,
        asset("page.css"),
        [
            sections.summary(result),
            sections.map_section(result, hover_characters, _HOVER_CHARACTERS),
            sections.sizes_section(),
            sections.topics_section(result),
            sections.decisions_section(
                result.decisions,
                {
                    "stop_words": result.term_counts.stop_words,
                    "function_words": result.term_counts.function_words,
                },
            ),
            sections.history_section(result),
            sections.settings_section(result.settings, result.versions),
            sections.timings_section(result.timings, result.peak_memory),
        ],
        [
            data_script("map-figure", chart.to_json(engine="json")),
            data_script("sizes-figure", bars.to_json(engine="json")),
        ],
        [get_plotlyjs(), asset("page.js")],
        compiles=True,
    )


def hover_length(n_documents: int) -> int:
    """Return how many characters of each text the map of so many documents shows.

    Examples
    --------
    >>> hover_length(20_000), hover_length(50_000)
    (200, 80)
    """
    return max(20, min(_HOVER_CHARACTERS, _HOVER_BUDGET // max(n_documents, 1)))
