"""``embedtopics hierarchy``: how the topics of a folder of results belong together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedtopics.cli.guard import guarded

__all__ = ["hierarchy"]

READABLE = 30
"""Topics up to which every merge is printed where no levels are asked for."""


@guarded
def hierarchy(
    results: Annotated[
        Path, typer.Argument(help="Folder written by 'embedtopics topics'.", readable=False)
    ],
    by: Annotated[
        str, typer.Option(help="What makes topics alike: terms or embeddings.")
    ] = "terms",
    linkage: Annotated[
        str, typer.Option(help="ward, average, complete, single or weighted.")
    ] = "ward",
    levels: Annotated[
        str | None,
        typer.Option(help="Numbers of groups at which the tree branches, such as 5,20."),
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Write a dendrogram, NAME.html.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the table of merges, NAME.csv.")] = None,
) -> None:
    """Print how the topics belong together, as a tree."""
    from embedtopics import plots, topics
    from embedtopics.cli.display import make_console, printable
    from embedtopics.cli.files import PAGE, TABLE, check_target, write_figure, write_table
    from embedtopics.cli.results_folder import open_result

    check_target(figure, PAGE, "--figure")
    check_target(out, TABLE)
    branching = None if levels is None else _numbers(levels)
    tree = topics.hierarchy(open_result(results), by=by, linkage=linkage)
    if branching is None:
        branching = _readable_levels(tree.n_topics)
    text = topics.tree_text(tree, levels=branching)
    # Written before anything is printed: a closed pipe must not cost the results.
    if figure is not None:
        write_figure(plots.hierarchy(tree), figure)
    if out is not None:
        table = tree.to_frame(branching)
        write_table(table.assign(terms=table["terms"].map(", ".join)), out)
    console = make_console()
    for line in text.splitlines():
        console.print(printable(line), soft_wrap=True)
    for path in (figure, out):
        if path is not None:
            console.print(f"\nwritten to {path}", soft_wrap=True)


def _numbers(levels: str) -> tuple[int, ...]:
    """Return the numbers in a list such as "5,20"."""
    from embedtopics.errors import InputError

    parts = [part.strip() for part in levels.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts):
        raise InputError(f"expected numbers of groups, such as --levels 5,20; got {levels!r}")
    return tuple(sorted({int(part) for part in parts}))


def _readable_levels(n_topics: int) -> tuple[int, ...]:
    """Return levels between which every branch parts into about as many, where that is needed."""
    if n_topics <= READABLE:
        return ()
    return (round(n_topics ** (1 / 3)), round(n_topics ** (2 / 3)))
