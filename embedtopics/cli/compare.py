"""``embedtopics compare``: several encoders on the texts of one file."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics.cli.guard import guarded

if TYPE_CHECKING:
    from rich.console import Console

    from embedtopics.results import Comparison

__all__ = ["compare"]


@guarded
def compare(
    file: Annotated[
        Path,
        typer.Argument(
            readable=False,  # a file that cannot be read has an error of its own
            help="csv, tsv, jsonl, parquet (each also .gz), txt, or a folder of txt.",
        ),
    ],
    text: Annotated[str | None, typer.Option(help="Column of texts; guessed if left out.")] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            help="tfidf, fasttext, or the name or folder of a checkpoint (repeatable); tfidf, "
            "fasttext and all-MiniLM-L6-v2 if left out. Differences are from the first."
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Column of labels; topics are found if left out.")
    ] = None,
    k: Annotated[int, typer.Option(min=2, help="Neighbours of each text.")] = 15,
    language: Annotated[
        list[str] | None, typer.Option(help="Language code (repeatable); detected if left out.")
    ] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of the file.")] = "utf-8",
    limit: Annotated[int | None, typer.Option(min=1, help="Read only the first rows.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for page and tables, or a page, NAME.html.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 42,
) -> None:
    """Compare encoders on a file: what they know, what they cost, and where they differ."""
    from embedtopics import comparison
    from embedtopics.cli.comparison_folder import check_output, write_output
    from embedtopics.cli.display import make_console
    from embedtopics.comparison.comparing import DEFAULT_ENCODERS
    from embedtopics.corpus import Corpus, require_text

    console = make_console()
    if out is not None:
        check_output(out)
    corpus = Corpus.from_file(file, text=text, encoding=encoding, limit=limit)
    require_text(corpus)
    result = comparison.compare(
        corpus,
        encoder or DEFAULT_ENCODERS,
        label,
        k=k,
        languages=language or "auto",
        random_state=seed,
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
    """Print the scores, how much the encoders agree, and where they differ most.

    Parameters
    ----------
    console : Console
    result : Comparison
    most : int
        Texts shown for every two encoders.
    """
    from embedtopics.cli.display import printable
    from embedtopics.comparison import overlap_table

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

    from embedtopics.cli.display import printable
    from embedtopics.comparison import difference_table
    from embedtopics.comparison.tables import spell_figure
    from embedtopics.plots.scores import name_measure

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
    from embedtopics.cli.display import printable
    from embedtopics.comparison import move_table

    table = move_table(result, n_characters=70)
    for first, second in combinations(result.names, 2):
        moves = table[(table["first"] == first) & (table["second"] == second)]
        names = f"{printable(first)} to {printable(second)}"
        console.print(f"\nneighbours that change most from {names}:", style="bold")
        for move in moves.head(most).to_dict("records"):
            console.print(f"  {printable(move['text'])}")
            console.print(f"    lost:   {printable(move['lost']) or '-'}")
            console.print(f"    gained: {printable(move['gained']) or '-'}")
