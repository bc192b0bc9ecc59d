"""What the commands over time and by group read and write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from embedtopics.results import TopicResult

__all__ = ["check_column", "check_target", "open_result", "write_figure", "write_table"]


def open_result(folder: Path) -> TopicResult:
    """Load the result in a folder that ``embedtopics topics`` wrote, or a saved one.

    Raises
    ------
    InputError
        Where there is none.
    """
    from embedtopics.topics import load_result

    for place in (folder / "model", folder):
        if (place / "manifest.json").is_file() and (place / "result.json").is_file():
            return load_result(place)
    raise InputError(
        f"expected a folder of results; {folder} has no saved model: make one with "
        "embedtopics topics FILE --out FOLDER"
    )


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


def check_target(path: Path | None, suffix: str, option: str) -> None:
    """Make sure, before the work, that a file can be written and replaces none of another kind.

    Raises
    ------
    InputError
    """
    if path is None:
        return
    if path.suffix.lower() != suffix or path.is_dir():
        raise InputError(f"{option} must be a file whose name ends in {suffix}; got {path}")
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(
            f"cannot write {path}: no such folder, or no permission; name another with {option}"
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"cannot write {path}: no permission; name another with {option}")


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table that no spreadsheet takes for formulas."""
    from embedtopics._files import spreadsheet_safe

    safe = frame.copy()
    for name in safe.columns:
        if safe[name].dtype == object or str(safe[name].dtype).startswith("str"):
            safe[name] = safe[name].map(spreadsheet_safe)
    _replace(path, safe.to_csv(index=False))


def write_figure(figure: Figure, path: Path) -> None:
    """Write a page that opens offline."""
    _replace(path, figure.to_html(include_plotlyjs=True, full_html=True))


def _replace(path: Path, text: str) -> None:
    """Write a file beside its place, and move it there when it is whole."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise InputError(f"could not write {path}: {error.strerror or error}") from error
