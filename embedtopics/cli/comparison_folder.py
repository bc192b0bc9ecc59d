"""What ``compare`` writes: a page alone, or a folder with the page and its tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from embedtopics._files import check_output_folder, replacing_folder, write_manifest
from embedtopics._spreadsheets import write_csv
from embedtopics.cli.files import PAGE, check_target
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.results import Comparison

__all__ = ["check_output", "write_output"]

KIND = "embedtopics comparison folder"
FORMAT = 1
CONTENT = {
    "comparison.html": "the page: linked maps, scores, what moved (opens offline)",
    "scores.csv": "a measure of an encoder a row, with its interval",
    "differences.csv": "every encoder against the first, with paired intervals",
    "overlaps.csv": "how many neighbours every two encoders share",
    "moved.csv": "the texts whose neighbours change most, and the words of the change",
}


def check_output(out: Path) -> None:
    """Make sure, before the work, that the page or the folder can be written."""
    if _is_page(out):
        check_target(out, PAGE)
    else:
        check_output_folder(out, KIND)


def write_output(result: Comparison, out: Path) -> dict[str, str]:
    """Write a page, or everything, all or nothing.

    Parameters
    ----------
    result : Comparison
    out : Path
        A page where it ends in ".html", else a folder.

    Returns
    -------
    dict of str to str
        What each written file is.

    Raises
    ------
    InputError
        Where something cannot be written; what was there before is whole.
    """
    from embedtopics.report import write_comparison

    if _is_page(out):
        try:
            write_comparison(result, out)
        except OSError as error:
            raise InputError(
                f"could not write {out}: {error.strerror or error}; free some space or name "
                "another file"
            ) from error
        return {out.name: CONTENT["comparison.html"]}
    with replacing_folder(out, KIND) as fresh:
        write_comparison(result, fresh / "comparison.html")
        _write_tables(result, fresh)
        write_manifest(fresh, KIND, FORMAT)
    return CONTENT


def _write_tables(result: Comparison, folder: Path) -> None:
    from embedtopics.comparison import difference_table, move_table, overlap_table

    tables: dict[str, pd.DataFrame] = {
        "scores.csv": result.scores,
        "differences.csv": difference_table(result),
        "overlaps.csv": overlap_table(result),
        "moved.csv": move_table(result, n_characters=300),
    }
    for name, frame in tables.items():
        write_csv(folder / name, frame)


def _is_page(out: Path) -> bool:
    return out.suffix.lower() in PAGE
