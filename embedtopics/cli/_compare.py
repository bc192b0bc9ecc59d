"""``embedtopics compare``: several encoders on the texts of one file."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics._utils.folders import check_output_folder, replacing_folder, write_manifest
from embedtopics.cli._display import PAGE, check_target, guarded, make_console, printable
from embedtopics.cli._options import (
    DocumentsFile,
    FileEncoding,
    Languages,
    RandomState,
    RowLimit,
    TextColumn,
)
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from embedtopics.comparison.results import Comparison


@guarded
def compare(
    file: DocumentsFile,
    text: TextColumn = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            help="tfidf, fasttext, or the name or folder of a checkpoint (repeatable); tfidf, "
            "fasttext and all-MiniLM-L6-v2 if left out. Differences are from the first."
        ),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Column of labels; topics are found if left out.")
    ] = None,
    k: Annotated[int, typer.Option(min=2, help="Neighbours of each text.")] = 15,
    language: Languages = None,
    encoding: FileEncoding = "utf-8",
    limit: RowLimit = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for page and tables, or a page, NAME.html.")
    ] = None,
    random_state: RandomState = 42,
) -> None:
    """Compare encoders on a file: what they know, what they cost, and where they differ."""
    from embedtopics import comparison
    from embedtopics.comparison._compare import DEFAULT_ENCODERS
    from embedtopics.corpus._corpus import Corpus, require_text

    console = make_console()
    if out is not None:
        check_output(out)
    corpus = Corpus.from_file(file, text=text, encoding=encoding, limit=limit)
    require_text(corpus)
    result = comparison.compare(
        corpus,
        encoder or DEFAULT_ENCODERS,
        labels,
        k=k,
        languages=language or "auto",
        random_state=random_state,
    )
    # Written before anything is printed: a closed pipe must not cost the results.
    written = {} if out is None else write_output(result, out)
    print_comparison(console, result)
    if out is not None:
        console.print(f"\nwritten to {out}:", soft_wrap=True)
        for name, meaning in written.items():
            console.print(f"  {name:<18} {meaning}", soft_wrap=True)
        page = out if out.is_file() else out / "comparison.html"
        console.print(f"\nnext: open {page} in a browser", soft_wrap=True)


def print_comparison(console: Console, result: Comparison, *, most: int = 5) -> None:
    """Print the scores, how much the encoders agree, and where they differ most."""
    from embedtopics.comparison._tables import overlap_table

    console.print(f"{len(result.documents):,} texts, grouped by {printable(result.grouped_by)}\n")
    _print_scores(console, result)
    console.print()
    for row in overlap_table(result).to_dict("records"):
        console.print(
            f"{printable(row['first'])} and {printable(row['second'])} share "
            f"{row['jaccard']:.2f} [{row['jaccard_low']:.2f}, {row['jaccard_high']:.2f}] of their "
            f"neighbours ({row['jaccard_chance']:.3f} by chance); rank-biased overlap "
            f"{row['rank_biased']:.2f}"
        )
    _print_moves(console, result, most)
    for decision in result.decisions:
        console.print(f"note: {printable(decision.message)}", style="yellow")


def _print_scores(console: Console, result: Comparison) -> None:
    from rich.table import Table
    from rich.text import Text

    from embedtopics.comparison._tables import difference_table, spell_figure
    from embedtopics.plots._scores import name_measure

    apart = {
        (row["measure"], row["encoder"]):
            f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"
        for row in difference_table(result).to_dict("records")
    }  # fmt: skip
    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    shown.add_column("", overflow="fold")
    shown.add_column("value", justify="right", no_wrap=True)
    shown.add_column("95 %", no_wrap=True)
    shown.add_column("from the first", no_wrap=True)
    previous = ""
    for row in result.scores.dropna(subset="value").to_dict("records"):
        value, has_interval = row["value"], row["low"] == row["low"]
        measure = row["measure"]
        if measure != previous:
            shown.add_row(Text(name_measure(measure)))
        previous = measure
        cells = [
            f"  {printable(row['encoder'])}",
            f"{value:.3f}" if has_interval else spell_figure(value, math.nan, math.nan),
            f"{row['low']:.3f} to {row['high']:.3f}" if has_interval else "",
            apart.get((row["measure"], row["encoder"]), ""),
        ]
        shown.add_row(*(Text(cell) for cell in cells))
    console.print(shown)


def _print_moves(console: Console, result: Comparison, most: int) -> None:
    from embedtopics.comparison._tables import move_table

    table = move_table(result, n_characters=70)
    for first, second in combinations(result.names, 2):
        moves = table[(table["first"] == first) & (table["second"] == second)]
        names = f"{printable(first)} to {printable(second)}"
        console.print(f"\nneighbours that change most from {names}:", style="bold")
        for move in moves.head(most).to_dict("records"):
            console.print(f"  {printable(move['text'])}")
            console.print(f"    lost:   {printable(move['lost']) or '-'}")
            console.print(f"    gained: {printable(move['gained']) or '-'}")


# What ``compare`` writes: a page alone, or a folder with the page and its tables.

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
    """Write a page, or everything, all or nothing."""
    from embedtopics.report._report import write_report

    if _is_page(out):
        try:
            write_report(result, out)
        except OSError as error:
            raise InputError(
                f"could not write {out}: {error.strerror or error}; free some space or name "
                "another file"
            ) from error
        return {out.name: CONTENT["comparison.html"]}
    with replacing_folder(out, KIND) as fresh:
        write_report(result, fresh / "comparison.html")
        _write_tables(result, fresh)
        write_manifest(fresh, KIND, FORMAT)
    return CONTENT


def _write_tables(result: Comparison, folder: Path) -> None:
    from embedtopics._utils.table_files import write_table
    from embedtopics.comparison._tables import difference_table, move_table, overlap_table

    tables: dict[str, pd.DataFrame] = {
        "scores.csv": result.scores,
        "differences.csv": difference_table(result),
        "overlaps.csv": overlap_table(result),
        "moved.csv": move_table(result, n_characters=300),
    }
    for name, frame in tables.items():
        write_table(frame, folder / name)


def _is_page(out: Path) -> bool:
    return out.suffix.lower() in PAGE
