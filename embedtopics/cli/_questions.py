"""Questions about a folder of results, such as ``by-group``, ``over-time`` and ``keyness``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from embedtopics.cli import _display as show
from embedtopics.cli._errors import options_named
from embedtopics.cli._options import OutFigure, OutTable, ResultsFolder, Where
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    from embedtopics.results import Decision
    from embedtopics.topics.results import TopicGroups, TopicTrends


MOST_TOPICS, COLUMNS = 25, 5
"""Topics in a table or a figure, and groups in a printed table of 80 columns."""


def by_group(
    results: ResultsFolder,
    by: Annotated[str | None, Option(help="Column; default: that of topics --group.")] = None,
    out: OutTable = None,
    figure: OutFigure = None,
) -> None:
    """Compare the shares of groups in each topic."""
    from embedtopics import plots, topics

    show.check_outputs(out, figure)
    result = show.open_result(results)
    groups = topics.by_group(result, by)
    show.write_outputs(out, groups.to_frame, figure, lambda: plots.by_group(groups))
    _print_shares(groups)
    _print_end(groups.decisions, out, figure)


def _print_end(decisions: Iterable[Decision], *paths: Path | None) -> None:
    """Print decisions and the files written."""
    show.print_notes((decision.message for decision in decisions), soft_wrap=False)
    for path in filter(None, paths):
        typer.echo(f"written to {path}")


def _print_shares(groups: TopicGroups) -> None:
    places = list(range(min(COLUMNS, len(groups.names))))
    names = [groups.names[place] for place in places]
    columns = [("topic", "number"), ("name", "words")]
    columns += [(name if len(name) <= 10 else name[:9] + "…", "figure") for name in names]
    rows = [["", "texts", *(f"{total:,}" for total in groups.totals[places].tolist())]]
    labels = {**dict(enumerate(groups.topic_names[:MOST_TOPICS])), -1: "(no topic)"}
    for topic, label in labels.items():
        shares = groups.shares[topic, places]
        cells = [f"{share:.1%}" if share == share else "" for share in shares]
        rows.append([str(topic) if topic >= 0 else "-", label, *cells])
    show.print_table(columns, rows, ["dim", *[""] * (len(rows) - 2), "dim"])
    if groups.n_topics > MOST_TOPICS:
        show.say(f"... and {groups.n_topics - MOST_TOPICS} smaller topics")
    if n_more := len(groups.names) - len(places):
        show.say(f"... and {n_more} more groups; --out writes all")


BLOCKS, PLAIN = "▁▂▃▄▅▆▇█", "_.-=+*%#"
WIDEST, LONGEST = 18, 40
"""Characters of a sparkline and of a name, so that a table fits 80 columns."""


def over_time(
    results: ResultsFolder,
    every: Annotated[str, Option(help="auto, day, week, month, quarter, year or decade.")] = "auto",
    out: OutTable = None,
    figure: OutFigure = None,
) -> None:
    """Follow topics over time, and report which rise, fall, peak or vary."""
    from embedtopics import plots, topics

    show.check_outputs(out, figure)
    result = show.open_result(results)
    trends = topics.over_time(result, every, n_terms=5 if out or figure else 0)
    changes = topics.changes(trends)
    show.write_outputs(
        out,
        lambda: trends.to_frame().merge(changes[["topic", "verdict"]], on="topic", how="left"),
        figure,
        lambda: plots.over_time(trends, topics=_order(changes)[:MOST_TOPICS], changes=changes),
    )
    _print_trends(trends, changes)
    _print_end(trends.decisions, out, figure)


def _order(changes: pd.DataFrame) -> list[int]:
    """Return topics that change, by significance, then the others, by size."""
    unchanged = changes["verdict"].isin(["no trend found", "not tested"])
    rank = changes["q"].where(~unchanged, 2.0)
    ordered = changes.assign(rank=rank).sort_values(["rank", "topic"], kind="stable")
    return list(ordered["topic"].tolist())


def _print_trends(trends: TopicTrends, changes: pd.DataFrame) -> None:
    from embedtopics._utils.display import excerpt

    span = f"{trends.names[0]} to {trends.names[-1]}"
    zone = "" if trends.time_zone == "as given" else f", {trends.time_zone}"
    show.say(
        f"{int(trends.totals.sum()):,} dated texts, {span}, {trends.n_periods} periods "
        f"(every {trends.every}{zone})\n"
    )
    columns = [("topic", "number"), ("texts", "number"), ("share over time", "line")]
    columns += [("odds", "figure"), ("verdict", "text"), ("name", "words")]
    levels = BLOCKS if (show.make_console().encoding or "").lower().startswith("utf") else PLAIN
    rows, styles = [], []
    records = changes.to_dict("records")
    for topic in _order(changes)[:MOST_TOPICS]:
        verdict = records[topic]["verdict"]
        cells = [
            str(topic),
            f"{int(trends.counts[topic].sum()):,}",
            sparkline(trends.counts[topic], trends.totals, levels, trends.min_rows),
            _spell_odds(records[topic]["odds_ratio"]),
            verdict,
            excerpt(show.printable(trends.topic_names[topic]), LONGEST),
        ]
        rows.append(cells)
        styles.append("dim" if verdict in ("no trend found", "not tested") else "")
    show.print_table(columns, rows, styles)
    if (trends.totals < trends.min_rows).any():
        show.say(f"blank: periods of fewer than {trends.min_rows:,} rows", style="dim")
    if len(changes) > MOST_TOPICS:
        counted = changes["verdict"].value_counts().to_dict()
        show.say("in all: " + ", ".join(f"{n} {verdict}" for verdict, n in counted.items()))


def _spell_odds(ratio: float) -> str:
    """Return the odds ratio of a topic between the last period and the first."""
    if not ratio <= 99:
        return "x>99" if ratio > 99 else ""
    return "x<0.01" if ratio < 0.01 else f"x{ratio:.1f}" if ratio >= 0.95 else f"x{ratio:.2f}"


def sparkline(
    counts: npt.NDArray[np.int64], totals: npt.NDArray[np.int64], levels: str, least: int = 1
) -> str:
    """Draw shares as a line of blocks, blank where periods have fewer rows than `least`."""
    import numpy as np

    n_wide = min(len(counts), WIDEST)
    edges = np.arange(n_wide) * len(counts) // max(n_wide, 1)
    above, below = np.add.reduceat(counts, edges), np.add.reduceat(totals, edges)
    shares = np.divide(above, below, out=np.full(n_wide, np.nan), where=below >= least)
    top = np.nanmax(shares, initial=0.0) or 1.0
    places = np.nan_to_num(np.round(shares / top * (len(levels) - 1))).astype(int)
    return "".join(
        levels[i] if total >= least else " " for i, total in zip(places, below, strict=True)
    )


def keyness(
    results: ResultsFolder,
    topic: Annotated[int | None, Option(help="Topic whose texts are compared.")] = None,
    where: Where = None,
    n_terms: Annotated[int, Option(min=1, help="Terms to print of each side.")] = 15,
    out: OutTable = None,
) -> None:
    """Find the terms that some texts use more, or less, than the others."""
    from embedtopics import topics

    show.check_outputs(out)
    if (topic is None) == (where is None):
        raise InputError("--topic or --where says which texts are compared; name one of them")
    result = show.open_result(results)
    with options_named(target="--where"):
        terms = topics.keyness(result, where if topic is None else topic)
    show.write_outputs(out, lambda: terms)
    more = terms[terms["low"] > 0].head(n_terms)
    less = terms[terms["high"] < 0].tail(n_terms)[::-1]
    for heading, side in (("used more", more), ("used less", less)):
        rows = [
            [row["term"], f"{row['rate_target']:,.0f}", f"{row['rate_reference']:,.0f}",
             f"{row['effect']:+.2f}", f"{row['low']:+.2f} to {row['high']:+.2f}"]
            for row in side.to_dict("records")
        ]  # fmt: skip
        figures = [(name, "figure") for name in ("here", "elsewhere", "log-odds")]
        show.print_table([(heading, "words"), *figures, ("95 %", "line")], rows)
        typer.echo()
    typer.echo("here, elsewhere: times in a million words; terms whose interval excludes 0")


def concordance(
    results: ResultsFolder,
    term: Annotated[str, Argument(help="A word or a phrase.")],
    topic: Annotated[int | None, Option(help="Only texts of this topic.")] = None,
    where: Where = None,
    n_occurrences: Annotated[int, Option(min=1, help="Occurrences, at random.")] = 20,
    out: OutTable = None,
) -> None:
    """Show a term in its contexts."""
    from embedtopics import topics

    show.check_outputs(out)
    lines = topics.concordance(
        show.open_result(results), term, topics=topic, where=where, n_occurrences=n_occurrences
    )
    show.write_outputs(out, lambda: lines)
    side = max(10, (show.make_console().width - 20) // 2)
    for line in lines.to_dict("records"):
        left, right = show.printable(line["left"])[-side:], show.printable(line["right"])[:side]
        show.say(f"{left:>{side}}  {show.printable(line['keyword'])}  {right}", no_wrap=True)


def effects(
    results: ResultsFolder,
    formula: Annotated[str, Argument(help='Columns, such as "~ date + source".')],
    out: OutTable = None,
    figure: OutFigure = None,
) -> None:
    """Estimate how the shares of topics depend on dates, groups and numbers."""
    from embedtopics import plots, topics

    show.check_outputs(out, figure)
    estimated = topics.effects(show.open_result(results), formula)
    table = estimated.marginal_effects().sort_values("p", kind="stable")
    show.write_outputs(out, lambda: table, figure, lambda: plots.forest(estimated))
    rows, digits = [], 1 if (table["high"] - table["low"]).median() > 0.01 else 2
    for row in table.head(MOST_TOPICS).to_dict("records"):
        change = f"{row['level']}, not {row['reference']}" if row["level"] else f"a {row['unit']}"
        points, low, high = (f"{100 * row[name]:+.{digits}f}" for name in ("effect", "low", "high"))
        p = f"{row['p']:.3f}" if row["p"] >= 0.001 else "<0.001"
        rows.append(
            [row["topic_name"], f"{row['covariate']}: {change}", points, f"{low} to {high}", p]
        )
    columns = [("topic", "words"), ("change", "words"), ("points", "figure"), ("95 %", "line")]
    show.print_table([*columns, ("p", "figure")], rows)
    typer.echo(f"\npoints: change of the share in percentage points; {estimated.carries}")
    _print_end(estimated.decisions, out, figure)


def hierarchy(results: ResultsFolder, figure: OutFigure = None, out: OutTable = None) -> None:
    """Print the hierarchy of the topics as a tree."""
    from embedtopics import plots, topics

    show.check_outputs(out, figure)
    tree = topics.hierarchy(show.open_result(results))
    branching = []
    if tree.n_topics > 30:  # fewer are all printed
        # With these levels every branch divides into about as many.
        branching = [round(tree.n_topics ** (1 / 3)), round(tree.n_topics ** (2 / 3))]
    text = tree.to_text(branching)
    show.write_outputs(
        out,
        lambda: tree.to_frame(branching).assign(terms=lambda table: table["terms"].map(", ".join)),
        figure,
        lambda: plots.hierarchy(tree),
    )
    for line in text.splitlines():
        typer.echo(show.printable(line))
    _print_end((), figure, out)


def find(
    results: ResultsFolder,
    query: Annotated[str, Argument(help="A word, a phrase or a text.")],
    n_topics: Annotated[int, Option(min=1, help="Topics to print.")] = 5,
    space: Annotated[str, Option(help="What is compared: embeddings, terms or auto.")] = "auto",
) -> None:
    """Find the topics nearest to a query."""
    from embedtopics.topics import find

    result = show.open_result(results)
    matches = find(result, query, n_topics=n_topics, space=space)
    if not len(matches):
        show.say("no topic matches")
        return
    rows = []
    for row in matches.to_dict("records"):
        name = f"{row['topic_name']}: " if result.topics[row["topic"]].is_named else ""
        rows.append([str(row["topic"]), f"{row['similarity']:.2f}", name + ", ".join(row["terms"])])
    show.print_table([("topic", "number"), ("similarity", "number"), ("terms", "words")], rows)
    show.say(f"\nby {matches['space'].iloc[0]}")
