"""``embedtopics by-group``: how groups, such as sources, share the topics of a result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics.cli.guard import guarded

if TYPE_CHECKING:
    from rich.console import Console

    from embedtopics.results import TopicGroups

__all__ = ["by_group"]

COLUMNS = 5
"""Groups in a printed table, so that it fits 80 columns."""


@guarded
def by_group(
    results: Annotated[Path, typer.Argument(help="Folder written by embedtopics topics.")],
    group: Annotated[
        str | None,
        typer.Option(help="Column of groups, if not the one given to topics as --group."),
    ] = None,
    topic: Annotated[
        int | None, typer.Option(help="Show what each group says within this topic.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Topics to print and to draw.")] = 25,
    out: Annotated[Path | None, typer.Option(help="Table of all topics and groups, .csv.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Figure, .html.")] = None,
) -> None:
    """Compare groups: how much of each topic they have, and what they say in it."""
    from embedtopics import plots, topics
    from embedtopics.cli.display import make_console, printable
    from embedtopics.cli.files import PAGE, TABLE, check_target, write_figure, write_table
    from embedtopics.cli.results_folder import check_column, open_result
    from embedtopics.topics.relabeling import checked_topic_id

    console = make_console()
    check_target(out, TABLE)
    check_target(figure, PAGE, "--figure")
    result = open_result(results)
    check_column(result, group, result.corpus.group_column, "--group")
    chosen = None if topic is None else checked_topic_id(result, topic)
    groups = topics.by_group(result, group)
    # Written before anything is printed: a closed pipe must not cost the results.
    if out is not None:
        write_table(groups.to_frame(), out)
    if figure is not None:
        write_figure(plots.by_group(groups, max_topics=most), figure)
    if chosen is None:
        _print_shares(console, groups, most)
    else:
        _print_topic(console, groups, chosen)
    for decision in groups.decisions:
        console.print(f"note: {printable(decision.message)}", style="yellow")
    for path in (out, figure):
        if path is not None:
            console.print(f"written to {path}", soft_wrap=True)


def _print_shares(console: Console, groups: TopicGroups, most: int) -> None:
    """Print the share of each topic in each of the largest groups."""
    from rich.table import Table
    from rich.text import Text

    from embedtopics.cli.display import printable

    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    shown.add_column("topic", justify="right")
    shown.add_column("name", overflow="fold")
    for name in groups.names[:COLUMNS]:
        shown.add_column(Text(_short(printable(name))), justify="right", no_wrap=True)
    labels = {**dict(enumerate(groups.labels[:most])), -1: "(no topic)"}
    shown.add_row("", Text("texts", style="dim"), *(
        Text(f"{total:,}", style="dim") for total in groups.totals[:COLUMNS].tolist()
    ))  # fmt: skip
    for topic, label in labels.items():
        shares = groups.shares[topic, :COLUMNS]
        cells = [str(topic) if topic >= 0 else "-", printable(label)]
        cells += [f"{share:.1%}" if share == share else "" for share in shares]
        shown.add_row(*(Text(cell, style="" if topic >= 0 else "dim") for cell in cells))
    console.print(shown)
    if groups.n_topics > most:
        console.print(f"... and {groups.n_topics - most} smaller topics")
    if len(groups.names) > COLUMNS:
        console.print(f"... and {len(groups.names) - COLUMNS} more groups; --out writes all")
    console.print("\nnext: --topic ID shows what each group says within a topic")


def _print_topic(console: Console, groups: TopicGroups, topic: int) -> None:
    """Print what each group says within a topic."""
    from embedtopics.cli.display import printable

    console.print(f"topic {topic}: {printable(groups.labels[topic])}\n")
    for place, name in enumerate(groups.names):
        share, low, high = (
            values[topic, place] for values in (groups.shares, groups.low, groups.high)
        )
        console.print(printable(name), style="bold")
        if share != share:
            console.print("  no texts")
            continue
        console.print(
            f"  {share:.1%} of its texts ({low:.1%} to {high:.1%}), "
            f"{groups.counts[topic, place]:,} in all"
        )
        for what, terms in (("about", groups.terms), ("more than others", groups.distinctive)):
            found = ", ".join(terms.of(topic, place))
            if found:
                console.print(f"  {what}: {printable(found)}")


def _short(name: str) -> str:
    return name if len(name) <= 10 else name[:9] + "…"
