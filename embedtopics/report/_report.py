"""Write any result as a self-contained HTML page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from embedtopics.comparison.results import Comparison
from embedtopics.errors import InputError
from embedtopics.report._comparison import comparison_html
from embedtopics.report._explorer import explorer_html
from embedtopics.report._markup import write_page
from embedtopics.report._pages import PAGES, Reported
from embedtopics.topics.results import TopicResult

if TYPE_CHECKING:
    import pandas as pd


def write_report(
    result: TopicResult | Comparison | Reported,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    tables: Mapping[str, pd.DataFrame] = MappingProxyType({}),
) -> Path:
    """Write a result to one HTML file that works offline.

    The page contains its scripts, style and data. Its content security policy allows no connection,
    and no script except its own, identified by hashes. Text of the corpus is escaped. The same
    result gives the same page, byte for byte. The file is replaced atomically, so a failed write
    keeps the old report.

    Parameters
    ----------
    result : TopicResult, Comparison, ClassificationReport, StudyReport, TrainingReport, LayerScores
        A TopicResult gives a page to search, select and compare its documents, with topics, methods
        to cite, decisions and settings below the map. A theme in the list selects its topics. The
        map draws with WebGL 2 on a graphics card, otherwise on the CPU. A Comparison gives linked
        maps: a document that is highlighted or selected on one map is highlighted or selected on
        all.
    path : str or path
        File to write, in an existing folder. An existing file is replaced.
    title : str, optional
        Heading of the page; by default it names the corpus, or what the result is of.
    tables : mapping of str to DataFrame
        Further tables, by heading; topics and comparisons have none.

    Returns
    -------
    Path
        The file: 0.1 MB for topics and 40 kB for a comparison, plus the texts; else 5 MB, most of
        it Plotly.

    Raises
    ------
    InputError
        Another type of result, a folder that does not exist, or a path that is a folder.
    OSError
        The folder is not writable, or the disk is full.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError("path", "the name of a file", path, "add report.html")
    if not path.parent.is_dir():
        raise InputError("path", "in a folder that exists", path, "create the folder first")
    if isinstance(result, TopicResult):
        return write_page(explorer_html(result, title=title), path)
    if isinstance(result, Comparison):
        return write_page(comparison_html(result, title=title), path)
    page = PAGES.get(type(result))
    if page is None:
        types = "TopicResult, Comparison, " + ", ".join(one.__name__ for one in PAGES)
        raise InputError("result", f"one of {types}", result)
    return write_page(page(result, tables, title), path)
