"""``embedtopics compare``: several encoders on the texts of one file."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics._utils.folders import check_output_folder, replacing_folder, write_manifest
from embedtopics.cli._display import (
    FIGURE,
    LINE,
    PAGE,
    WORDS,
    check_target,
    guarded,
    make_console,
    print_notes,
    print_table,
    printable,
)
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
    from rich.console import Console

    from embedtopics.comparison.results import Comparison

MOST_MOVES = 5
"""Moves printed for every two encoders."""


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
    # Before the work: can the page or the folder be written?
    if out is not None and _is_page(out):
        check_target(out, PAGE)
    elif out is not None:
        check_output_folder(out, KIND)
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
    _print_comparison(console, result)
    if out is not None:
        typer.echo(f"\nwritten to {out}:")
        for name, meaning in written.items():
            typer.echo(f"  {name:<18} {meaning}")
        page = out if out.is_file() else out / "comparison.html"
        typer.echo(f"\nnext: open {page} in a browser")


def _print_comparison(console: Console, result: Comparison) -> None:
    """Print the scores, how much the encoders agree, and where they differ most."""
    from embedtopics.comparison._tables import move_table, overlap_table

    console.print(f"{len(result.documents):,} texts, grouped by {printable(result.grouped_by)}\n")
    _print_scores(console, result)
    typer.echo()
    for row in overlap_table(result).to_dict("records"):
        console.print(
            f"{printable(row['first'])} and {printable(row['second'])} share "
            f"{row['jaccard']:.2f} [{row['jaccard_low']:.2f}, {row['jaccard_high']:.2f}] of their "
            f"neighbours ({row['jaccard_chance']:.3f} by chance); rank-biased overlap "
            f"{row['rank_biased']:.2f}"
        )
    moves = move_table(result, n_characters=70)
    for first, second in combinations(result.names, 2):
        names = f"{printable(first)} to {printable(second)}"
        console.print(f"\nneighbours that change most from {names}:", style="bold")
        of_both = moves[(moves["first"] == first) & (moves["second"] == second)]
        for move in of_both.head(MOST_MOVES).to_dict("records"):
            console.print(f"  {printable(move['text'])}")
            console.print(f"    lost:   {printable(move['lost']) or '-'}")
            console.print(f"    gained: {printable(move['gained']) or '-'}")
    print_notes(console, (decision.message for decision in result.decisions), soft_wrap=False)


def _print_scores(console: Console, result: Comparison) -> None:
    from embedtopics.comparison._tables import difference_table, spell_figure
    from embedtopics.plots._comparison import name_measure

    apart = {
        (row["measure"], row["encoder"]):
            f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"
        for row in difference_table(result).to_dict("records")
    }  # fmt: skip
    rows: list[list[str]] = []
    previous = ""
    for row in result.scores.dropna(subset="value").to_dict("records"):
        measure, value = row["measure"], row["value"]
        if measure != previous:
            rows.append([name_measure(measure)])
        previous = measure
        figures = [spell_figure(value, math.nan, math.nan), ""]
        if not math.isnan(row["low"]):
            figures = [f"{value:.3f}", f"{row['low']:.3f} to {row['high']:.3f}"]
        encoder = row["encoder"]
        rows.append([f"  {encoder}", *figures, apart.get((measure, encoder), "")])
    columns = [("", WORDS), ("value", FIGURE), ("95 %", LINE), ("from the first", LINE)]
    print_table(console, columns, rows)


KIND = "embedtopics comparison folder"
FORMAT = 1
CONTENT = {
    "comparison.html": "the page: linked maps, scores, what moved (opens offline)",
    "scores.csv": "a measure of an encoder a row, with its interval",
    "differences.csv": "every encoder against the first, with paired intervals",
    "overlaps.csv": "how many neighbours every two encoders share",
    "moved.csv": "the texts whose neighbours change most, and the words of the change",
}


def write_output(result: Comparison, out: Path) -> dict[str, str]:
    """Write a page, or everything, all or nothing."""
    from embedtopics._utils.table_files import write_table
    from embedtopics.comparison._tables import difference_table, move_table, overlap_table
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
        write_table(result.scores, fresh / "scores.csv")
        write_table(difference_table(result), fresh / "differences.csv")
        write_table(overlap_table(result), fresh / "overlaps.csv")
        write_table(move_table(result, n_characters=300), fresh / "moved.csv")
        write_manifest(fresh, KIND, FORMAT)
    return CONTENT


def _is_page(out: Path) -> bool:
    return out.suffix.lower() in PAGE
