"""``embedtopics label``: names that were written into a spreadsheet, given to the topics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedtopics.cli.guard import guarded

__all__ = ["label"]


@guarded
def label(
    results: Annotated[Path, typer.Argument(help="Folder that topics or demo wrote.")],
    labels: Annotated[
        Path | None,
        typer.Option(help="Table of topics and labels; RESULTS/labels.csv if left out."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; RESULTS itself if left out.")
    ] = None,
) -> None:
    """Give topics the names that were written into labels.csv."""
    from embedtopics._files import changed_files
    from embedtopics.cli.display import make_console, print_topics, printable
    from embedtopics.cli.results_folder import (
        LABELS,
        check_results_folder,
        read_results_folder,
        write_results_folder,
    )
    from embedtopics.topics import read_labels, rename

    console = make_console()
    result = read_results_folder(results)
    target = results if out is None else out
    own = results / LABELS
    file = own if labels is None else labels
    # Of the file that is read nothing is lost; another that was edited must not be overwritten.
    check_results_folder(target, reads_labels=labels is None and out is None)
    names = read_labels(file, result)
    # What else was written there is taken over too, or the folder could not be edited again.
    was_edited = labels is None and out is None and LABELS in changed_files(results)
    same = f"no name in {printable(str(file))} differs"
    if not names and not was_edited:
        console.print(f"{same}; nothing was written", soft_wrap=True)
        return
    if names:
        result = rename(result, names)
    content = own.read_bytes() if labels is None else None
    write_results_folder(result, target, labels=content)
    if not names:
        console.print(f"{same}; the file was taken over", soft_wrap=True)
        return
    print_topics(console, result, names=True)
    console.print(f"\n{len(names)} names given; written to {target}", soft_wrap=True)
    console.print(f"next: open {target / 'report.html'} in a browser", soft_wrap=True)
