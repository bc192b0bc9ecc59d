"""``embedtopics hierarchy``: how the topics of a folder of results belong together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics.cli.guard import guarded

if TYPE_CHECKING:
    from embedtopics.results import TopicHierarchy

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
    from embedtopics import topics
    from embedtopics.cli.display import make_console, printable
    from embedtopics.cli.results_folder import check_page

    if figure is not None:
        check_page(figure)
    if out is not None:
        _check_table(out)
    branching = None if levels is None else _numbers(levels)
    model = results / "model"
    result = topics.load_result(model if model.is_dir() else results)
    tree = topics.hierarchy(result, by=by, linkage=linkage)
    if branching is None:
        branching = _readable_levels(tree.n_topics)
    text = topics.tree_text(tree, levels=branching)
    # Written before anything is printed: a closed pipe must not cost the results.
    if figure is not None:
        _write_figure(tree, figure)
    if out is not None:
        _write_table(tree, branching, out)
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


def _check_table(path: Path) -> None:
    """Make sure, before the work, that the table can be written and replaces none but a table."""
    import os

    from embedtopics.errors import InputError

    folder = path.absolute().parent
    if path.is_dir() or path.suffix.lower() != ".csv":
        raise InputError(f"expected a file NAME.csv for the table; got {path}; name one with --out")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {path}: no such folder, or no permission; use --out")


def _write_figure(tree: TopicHierarchy, path: Path) -> None:
    from embedtopics.plots import hierarchy as draw

    _write(draw(tree).to_html(include_plotlyjs=True), path)


def _write_table(tree: TopicHierarchy, levels: tuple[int, ...], path: Path) -> None:
    from embedtopics._files import spreadsheet_safe

    frame = tree.to_frame(levels)
    frame["terms"] = frame["terms"].map(", ".join)
    for name in ("label", "terms"):
        frame[name] = frame[name].map(spreadsheet_safe)
    _write(frame.to_csv(index=False), path)


def _write(text: str, path: Path) -> None:
    """Write a file, complete or not at all."""
    from embedtopics.errors import InputError
    from embedtopics.report.document import write_page

    try:
        write_page(text, path)
    except OSError as error:
        raise InputError(
            f"could not write {path}: {error.strerror or error}; free some space or name another "
            "file"
        ) from error
