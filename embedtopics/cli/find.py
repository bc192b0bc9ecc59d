"""``embedtopics find``: the topics that are nearest to a question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from embedtopics.cli.guard import guarded

__all__ = ["find"]


@guarded
def find(
    results: Annotated[Path, typer.Argument(help="The folder that `embedtopics topics` wrote.")],
    query: Annotated[str, typer.Argument(help="A word, a phrase or a text.")],
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Topics shown.")] = 5,
    by: Annotated[str, typer.Option(help="embeddings, terms or auto.")] = "auto",
) -> None:
    """Find the topics that are nearest to a question."""
    from rich.table import Table
    from rich.text import Text

    from embedtopics.cli.display import make_console, printable
    from embedtopics.cli.results_folder import open_result
    from embedtopics.topics import find

    result = open_result(results)
    found = find(result, query, n=n, by=by)
    console = make_console()
    if not len(found):
        console.print("no topic holds this")
        return
    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    shown.add_column("topic", justify="right")
    shown.add_column("similarity", justify="right")
    shown.add_column("terms", overflow="fold")
    rows: list[Any] = list(found.itertuples())
    for row in rows:
        name = f"{row.label}: " if result.topics[row.topic].is_named else ""
        cells = (str(row.topic), f"{row.similarity:.2f}", name + ", ".join(row.terms))
        shown.add_row(*(Text(printable(cell)) for cell in cells))
    console.print(shown)
    console.print(f"\nby {found['by'].iloc[0]}")
