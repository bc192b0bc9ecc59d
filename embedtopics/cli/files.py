"""Single files that commands write: tables, figures and pages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["PAGE", "TABLE", "check_target", "write_figure", "write_table"]

PAGE = (".html", ".htm")
TABLE = (".csv",)


def check_target(path: Path | None, suffixes: tuple[str, ...], option: str = "--out") -> None:
    """Make sure, before the work, that a file can be written and replaces none of another kind.

    Parameters
    ----------
    path : Path or None
        Nothing is checked where there is none.
    suffixes : tuple of str
        `PAGE` or `TABLE`.
    option : str
        Which names the file.

    Raises
    ------
    InputError
    """
    if path is None:
        return
    if path.suffix.lower() not in suffixes or path.is_dir():
        raise InputError(f"{option} must be a file whose name ends in {suffixes[0]}; got {path}")
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(
            f"cannot write {path}: no such folder, or no permission; name another with {option}"
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"cannot write {path}: no permission; name another with {option}")


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table that no spreadsheet takes for formulas, whole or not at all."""
    from embedtopics._files import replacing_file
    from embedtopics._spreadsheets import write_csv

    with replacing_file(path) as fresh:
        write_csv(fresh, frame)


def write_figure(figure: Figure, path: Path) -> None:
    """Write a page that opens offline, whole or not at all."""
    from embedtopics._files import replacing_file

    with replacing_file(path) as fresh:
        fresh.write_text(figure.to_html(include_plotlyjs=True, full_html=True), encoding="utf-8")
