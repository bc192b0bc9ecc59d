"""``embedtopics export``: the tables of a result as a workbook, csv, parquet or jsonl."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedtopics.cli.guard import guarded

__all__ = ["export"]


@guarded
def export(
    results: Annotated[Path, typer.Argument(help="The folder that `embedtopics topics` wrote.")],
    out: Annotated[
        Path,
        typer.Option(help="NAME.xlsx, .csv, .tsv, .parquet or .jsonl; or a folder for all tables."),
    ],
    what: Annotated[
        list[str] | None,
        typer.Option(
            help="topics, documents, terms, decisions, history or settings (repeatable); "
            "documents for a file that holds one table, else all."
        ),
    ] = None,
    format: Annotated[str, typer.Option(help="Of a folder: csv, tsv, parquet or jsonl.")] = "csv",
) -> None:
    """Write the tables of a result for a spreadsheet or another program."""
    from embedtopics.cli.display import make_console
    from embedtopics.cli.results_folder import open_result
    from embedtopics.topics import export

    console = make_console()
    done = export(open_result(results), out, what=what or None, format=format)
    for path in done.paths:
        console.print(f"written: {path}", soft_wrap=True)
    for note in done.notes:
        console.print(f"note: {note.message}", style="yellow", soft_wrap=True)
