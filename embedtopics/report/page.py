"""The study report: one HTML file that holds everything it shows."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from embedtopics.errors import InputError
from embedtopics.plots import map as document_map
from embedtopics.plots import sizes
from embedtopics.report import sections
from embedtopics.report.markup import text
from embedtopics.results import TopicResult

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

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
    path = Path(path)
    if path.is_dir():
        raise InputError(f"the report needs a file name; got the folder {path}; add report.html")
    if not path.parent.is_dir():
        raise InputError(f"the report's folder must exist; got {path.parent}; create it first")
    page = report_html(result, title=title)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


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
    plotly, script = get_plotlyjs(), _asset("page.js")
    heading = text(title if title is not None else sections.default_title(result), 160)
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(plotly, script)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{heading}</title>\n<style>\n{_asset('page.css')}</style>\n</head>\n<body>",
            f"<header><h1>{heading}</h1></header>\n<main>",
            sections.summary(result),
            sections.map_section(result, hover_characters, _HOVER_CHARACTERS),
            sections.sizes_section(),
            sections.topics_section(result),
            sections.decisions_section(result),
            sections.history_section(result),
            sections.settings_section(result),
            sections.timings_section(result),
            "</main>",
            _figure("map", chart),
            _figure("sizes", bars),
            f"<script>{plotly}</script>",
            f"<script>{script}</script>\n</body>\n</html>\n",
        ]
    )


def hover_length(n_documents: int) -> int:
    """Return how many characters of each text the map of so many documents shows.

    Examples
    --------
    >>> hover_length(20_000), hover_length(50_000)
    (200, 80)
    """
    return max(20, min(_HOVER_CHARACTERS, _HOVER_BUDGET // max(n_documents, 1)))


def _asset(name: str) -> str:
    """Return a file that lies beside this one."""
    return resources.files("embedtopics.report").joinpath(name).read_text(encoding="utf-8")


def _policy(*scripts: str) -> str:
    """Return a content security policy that lets these scripts run and no others.

    Plotly compiles its WebGL programs from strings, hence 'unsafe-eval': it opens nothing to a
    text, which would need a script of its own first.
    """
    digests = (hashlib.sha256(script.encode("utf-8")).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _figure(name: str, figure: Figure) -> str:
    """Return a figure as data that the page's script reads; no markup can end it early."""
    json = figure.to_json(engine="json")
    for character in "<>&":
        json = json.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{name}-figure">{json}</script>'
