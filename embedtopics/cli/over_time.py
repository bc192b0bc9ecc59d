"""``embedtopics over-time``: how the topics of a folder of results change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics.cli.guard import guarded

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd
    from rich.console import Console

    from embedtopics.results import TopicTrends

__all__ = ["over_time", "sparkline"]

BLOCKS, PLAIN = "▁▂▃▄▅▆▇█", "_.-=+*%#"
WIDEST = 24
"""Characters of a sparkline, so that a table fits 80 columns."""
LONGEST = 40
"""Characters of a name."""


@guarded
def over_time(
    results: Annotated[Path, typer.Argument(help="Folder written by embedtopics topics.")],
    every: Annotated[
        str,
        typer.Option(help="auto, day, week, month, quarter, year, decade, or a number of periods."),
    ] = "auto",
    dates: Annotated[
        str | None, typer.Option(help="Column of dates, if not the one given to topics as --time.")
    ] = None,
    smooth: Annotated[
        int, typer.Option(min=1, help="Odd number of periods taken together in a share.")
    ] = 1,
    alpha: Annotated[
        float, typer.Option(help="Share of the changes found that may be wrong.")
    ] = 0.05,
    most: Annotated[int, typer.Option(min=1, help="Topics to print and to draw.")] = 25,
    out: Annotated[Path | None, typer.Option(help="Table of all topics and periods, .csv.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Figure, .html.")] = None,
) -> None:
    """Follow topics over time, and tell which emerge, fade or burst."""
    from embedtopics import plots, topics
    from embedtopics.cli.display import make_console, printable
    from embedtopics.cli.files import PAGE, TABLE, check_target, write_figure, write_table
    from embedtopics.cli.results_folder import check_column, open_result

    console = make_console()
    _check(every, smooth, alpha)
    check_target(out, TABLE)
    check_target(figure, PAGE, "--figure")
    result = open_result(results)
    check_column(result, dates, result.corpus.time_column, "--dates")
    trends = topics.over_time(
        result,
        int(every) if every.isdecimal() else every,
        dates=dates,
        smooth=smooth,
        n_terms=5 if out or figure else 0,
    )
    changes = topics.changes(trends, alpha=alpha)
    # Written before anything is printed: a closed pipe must not cost the results.
    if out is not None:
        verdicts = changes[["topic", "verdict"]]
        write_table(trends.to_frame().merge(verdicts, on="topic", how="left"), out)
    if figure is not None:
        shown = _order(changes)[:most]
        write_figure(plots.over_time(trends, shown, changes=changes), figure)
    _print_trends(console, trends, changes, most)
    for decision in trends.decisions:
        console.print(f"note: {printable(decision.message)}", style="yellow")
    for path in (out, figure):
        if path is not None:
            console.print(f"written to {path}", soft_wrap=True)


def _check(every: str, smooth: int, alpha: float) -> None:
    """Refuse options in their own words, before the results are opened."""
    from embedtopics.errors import InputError
    from embedtopics.topics.trends.periods import MOST_PERIODS, UNITS

    is_number = every.isdecimal() and 1 <= int(every) <= MOST_PERIODS
    if not is_number and every not in ("auto", *UNITS):
        raise InputError(
            f"--every must be auto, {', '.join(UNITS)}, or a number of periods from 1 to "
            f"{MOST_PERIODS:,}; got {every}"
        )
    if smooth % 2 == 0:
        raise InputError(f"--smooth must be an odd number of periods; got {smooth}")
    if not 0 < alpha < 1:
        raise InputError(f"--alpha must be between 0 and 1; got {alpha:g}")


def _order(changes: pd.DataFrame) -> list[int]:
    """Return the topics: those that change first, the surest first, then the largest."""
    stays = changes["verdict"].isin(["steady", "not tested"])
    q = changes[["q", "burst_q"]].min(axis=1).where(~stays, 2.0)
    return [int(topic) for topic in changes.assign(rank=q).sort_values(
        ["rank", "topic"], kind="stable")["topic"]]  # fmt: skip


def _print_trends(console: Console, trends: TopicTrends, changes: pd.DataFrame, most: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from embedtopics.cli.display import printable
    from embedtopics.topics.tables import shorten

    span = f"{trends.names[0]} to {trends.names[-1]}"
    zone = "" if trends.time_zone == "as given" else f", {trends.time_zone}"
    kind = "of equal length" if trends.every == "bin" else f"(every {trends.every}{zone})"
    console.print(
        f"{int(trends.totals.sum()):,} dated texts, {span}, {trends.n_periods} periods {kind}\n"
    )
    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    shown.add_column("topic", justify="right")
    shown.add_column("texts", justify="right")
    shown.add_column("share over time", no_wrap=True)
    shown.add_column("odds", justify="right", no_wrap=True)
    shown.add_column("verdict", no_wrap=True)
    shown.add_column("name", overflow="fold")
    levels = BLOCKS if (console.encoding or "").lower().startswith("utf") else PLAIN
    rows = changes.to_dict("records")
    for topic in _order(changes)[:most]:
        row = rows[topic]
        verdict = row["verdict"]
        when = f" {row['burst_start']}" if verdict == "bursting" else ""
        style = "" if verdict in ("emerging", "fading", "bursting") else "dim"
        cells = [
            str(topic),
            f"{int(trends.counts[topic].sum()):,}",
            sparkline(trends.counts[topic], trends.totals, levels),
            _spell_odds(row["odds_ratio"]),
            verdict + when,
            shorten(printable(trends.labels[topic]), LONGEST),
        ]
        shown.add_row(*(Text(cell, style=style) for cell in cells))
    console.print(shown)
    if len(changes) > most:
        counted = changes["verdict"].value_counts().to_dict()
        console.print("in all: " + ", ".join(f"{n} {verdict}" for verdict, n in counted.items()))


def _spell_odds(ratio: float) -> str:
    """Return how the odds of a topic changed from the first period to the last.

    Examples
    --------
    >>> [_spell_odds(ratio) for ratio in (2.04, 0.031, 1e9, float("nan"))]
    ['x2.0', 'x0.03', 'x>99', '']
    """
    if ratio != ratio:
        return ""
    if ratio > 99:
        return "x>99"
    return "x<0.01" if ratio < 0.01 else f"x{ratio:.1f}" if ratio >= 0.95 else f"x{ratio:.2f}"


def sparkline(
    counts: npt.NDArray[np.int64], totals: npt.NDArray[np.int64], levels: str = BLOCKS
) -> str:
    """Draw shares as a line of blocks; periods without rows are blank.

    More periods than characters are taken together.

    Examples
    --------
    >>> import numpy as np
    >>> sparkline(np.array([0, 2, 0, 8]), np.array([9, 9, 0, 9]))
    '▁▃ █'
    """
    import numpy as np

    n_wide = min(len(counts), WIDEST)
    edges = np.arange(n_wide) * len(counts) // max(n_wide, 1)
    above, below = np.add.reduceat(counts, edges), np.add.reduceat(totals, edges)
    shares = np.divide(above, below, out=np.full(n_wide, np.nan), where=below > 0)
    top = np.nanmax(shares, initial=0.0) or 1.0
    places = np.nan_to_num(np.round(shares / top * (len(levels) - 1))).astype(int)
    return "".join(
        levels[place] if total else " " for place, total in zip(places, below, strict=True)
    )
