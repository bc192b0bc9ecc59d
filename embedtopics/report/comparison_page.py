"""The page of a comparison: linked maps, scores, and where the encoders differ."""

from __future__ import annotations

import os
from pathlib import Path

from embedtopics.report import comparison_sections as parts
from embedtopics.report.comparison_data import comparison_json
from embedtopics.report.document import asset, checked_place, data_script, html_page, write_page
from embedtopics.report.markup import text
from embedtopics.report.sections import decisions_section, settings_section, timings_section
from embedtopics.results import Comparison

__all__ = ["comparison_html", "write_comparison"]


def write_comparison(
    result: Comparison, path: str | os.PathLike[str], *, title: str | None = None
) -> Path:
    """Write a comparison to one HTML file with linked maps.

    The file is complete or not there: it is written beside its place and then moved.

    Parameters
    ----------
    result : Comparison
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
    return write_page(comparison_html(result, title=title), path)


def comparison_html(result: Comparison, *, title: str | None = None) -> str:
    """Return a comparison as a self-contained HTML page.

    The maps are linked: a document that is pointed at, selected or hidden in one is so in all.
    They are drawn by the page's own script and not by Plotly, which would cost 5 MB, the right to
    compile strings, and a redraw of every map at each selection. The page loads nothing, and its
    content security policy allows no connection and no script but its own. Text of the corpus is
    escaped wherever it goes. The same comparison gives the same page, byte for byte.

    Parameters
    ----------
    result : Comparison
    title : str, optional
        Heading of the page; by default it names the source of the corpus.

    Returns
    -------
    str
        A page of some 40 kB and, for each document, up to 300 characters of its text and 32 bytes
        for each encoder.
    """
    heading = text(title if title is not None else parts.default_title(result), 160)
    return html_page(
        heading,
        asset("page.css") + asset("comparison.css"),
        [
            parts.summary(result),
            parts.maps_section(result),
            parts.scores_section(result),
            parts.differences_section(result),
            parts.overlaps_section(result),
            parts.moves_section(result),
            decisions_section(result.decisions),
            settings_section(result.settings, result.versions),
            timings_section(result.timings),
        ],
        [data_script("comparison", comparison_json(result))],
        [asset("scatter.js"), asset("comparison.js")],
    )
