"""Where commands write: the folder of ``topics`` and ``demo``, and single pages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from embedtopics._files import check_output_folder, replacing_folder, write_manifest
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.results import TopicResult

__all__ = ["CONTENT", "check_page", "check_results_folder", "write_results_folder"]

KIND = "embedtopics results folder"
FORMAT = 1
CONTENT = {
    "report.html": "the report: map, topics, what was decided (opens offline)",
    "topics.csv": "a topic a row",
    "documents.parquet": "every input row, with its topic and map position",
    "terms.parquet": "the terms of every topic",
    "model": "the saved model, for embedtopics.TopicModel.load",
}


def check_results_folder(folder: Path) -> None:
    """Make sure, before the work, that results can be written there."""
    check_output_folder(folder, KIND)


def check_page(page: Path) -> Path:
    """Make sure, before the work, that the page can be written and replaces none but a page."""
    folder = page.absolute().parent
    if page.is_dir() or (page.exists() and page.suffix.lower() != ".html"):
        raise InputError(f"expected an HTML file for the page; got {page}; name another with --out")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {page}: no such folder, or no permission; use --out")
    return page


def write_results_folder(result: TopicResult, folder: Path, *, title: str) -> None:
    """Write everything, all or nothing."""
    from embedtopics.report import write_report
    from embedtopics.topics import write_result, write_tables

    with replacing_folder(folder, KIND) as fresh:
        (fresh / "model").mkdir()
        write_result(result, fresh / "model")
        write_tables(result, fresh)
        write_report(result, fresh / "report.html", title=title)
        write_manifest(fresh, KIND, FORMAT)
