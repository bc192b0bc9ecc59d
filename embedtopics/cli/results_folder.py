"""The folder that ``topics`` and ``demo`` write: tables, report, and the saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from embedtopics._files import check_output_folder, replacing_folder, write_manifest

if TYPE_CHECKING:
    from embedtopics.results import TopicResult

__all__ = ["CONTENT", "check_results_folder", "write_results_folder"]

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
