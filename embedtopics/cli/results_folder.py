"""Where commands write: the folder of ``topics`` and ``demo``, and single pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from embedtopics._files import (
    MANIFEST,
    changed_files,
    check_output_folder,
    is_kind,
    replacing_folder,
    write_manifest,
)
from embedtopics.errors import EmbedTopicsError, InputError

if TYPE_CHECKING:
    from embedtopics.results import TopicResult

__all__ = [
    "CONTENT", "LABELS", "check_column", "check_results_folder", "is_results_folder", "open_result",
    "read_results_folder", "write_results_folder",
]  # fmt: skip

KIND = "embedtopics results folder"
FORMAT = 1
LABELS = "labels.csv"
CONTENT = {
    "report.html": "the report: map, topics, what was decided (opens offline)",
    "topics.csv": "a topic a row",
    "labels.csv": "the topics' names, to be edited and read back by embedtopics label",
    "documents.parquet": "every input row, with its topic and map position",
    "terms.parquet": "the terms of every topic",
    "model": "the saved model, for embedtopics.TopicModel.load",
}


def is_results_folder(folder: Path) -> bool:
    """Tell whether a folder holds results of ``topics``."""
    return is_kind(folder, KIND)


def check_results_folder(folder: Path, *, reads_labels: bool = False) -> None:
    """Make sure, before the work, that results can be written there and nothing is lost.

    Parameters
    ----------
    folder : Path
    reads_labels : bool
        Whether labels that were edited there are about to be read.
    """
    if is_results_folder(folder):
        known = {"model", MANIFEST, *CONTENT}
        others = sorted(path.name for path in folder.iterdir() if path.name not in known)
        if others:
            raise InputError(
                f"{folder} also holds {others[0]}, which would be lost; move it elsewhere, or name "
                "another folder with --out"
            )
        if not reads_labels and LABELS in changed_files(folder):
            raise InputError(
                f"{folder / LABELS} was edited and has not been read; run embedtopics label "
                f"{folder} first, or delete that file"
            )
    check_output_folder(folder, KIND)


def open_result(folder: Path) -> TopicResult:
    """Load the result in a folder of ``topics``, or a saved one.

    Raises
    ------
    InputError
        Where there is none.
    """
    from embedtopics.topics import load_result

    model = folder / "model"
    place = model if model.is_dir() else folder
    try:
        return load_result(place)
    except EmbedTopicsError as error:
        if (place / MANIFEST).is_file():
            raise
        raise InputError(
            f"expected a folder that embedtopics topics or demo wrote; {folder} holds no saved "
            "model; name that which was given as --out"
        ) from error


def read_results_folder(folder: Path) -> TopicResult:
    """Load the result in a folder of ``topics`` that is to be written anew.

    Raises
    ------
    InputError
        Where it is no such folder: a saved model alone is not replaced by one.
    """
    if not is_results_folder(folder):
        raise InputError(
            f"expected a folder that embedtopics topics or demo wrote; got {folder}; name that "
            "which was given as --out"
        )
    return open_result(folder)


def write_results_folder(
    result: TopicResult, folder: Path, *, title: str | None = None, labels: bytes | None = None
) -> None:
    """Write everything, all or nothing.

    Parameters
    ----------
    result : TopicResult
    folder : Path
    title : str, optional
        Heading of the report; by default it names the source of the texts.
    labels : bytes, optional
        Taken as the file of labels as it is, with whatever else a user wrote there.
    """
    from embedtopics.report import write_report
    from embedtopics.topics import write_result, write_tables

    with replacing_folder(folder, KIND) as fresh:
        (fresh / "model").mkdir()
        write_result(result, fresh / "model")
        write_tables(result, fresh)
        if labels is not None:
            (fresh / LABELS).write_bytes(labels)
        title = title or f"Topics of {result.corpus.source}"
        write_report(result, fresh / "report.html", title=title)
        write_manifest(fresh, KIND, FORMAT)


def check_column(result: TopicResult, column: str | None, known: str | None, option: str) -> None:
    """Make sure that there is a column, and speak of the option that names it.

    Parameters
    ----------
    result : TopicResult
    column : str or None
        As given with the option; without it the one that was named when the texts were read.
    known : str or None
        The latter.
    option : str

    Raises
    ------
    InputError
    """
    columns = [str(name) for name in result.corpus.metadata.columns]
    there = f"its columns are: {', '.join(map(repr, columns))}" if columns else "it has no columns"
    if column is not None and column not in columns:
        raise InputError(f"{option}: there is no column {column!r} beside the texts; {there}")
    if column is None and known is None:
        remedy = f"name one with {option}" if columns else "run embedtopics topics on a table"
        raise InputError(
            f"no column was named when the texts were read, and none with {option}; {there}: "
            f"{remedy}"
        )
