"""What the commands print: tables that fit 80 columns, estimates, next steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from embedtopics.results import TopicResult
    from embedtopics.topics import Inspection

__all__ = ["make_console", "print_inspection", "print_topics", "spell_seconds"]


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that never reads markup in what it prints."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)


def spell_seconds(seconds: float) -> str:
    """Return a duration for people.

    Examples
    --------
    >>> [spell_seconds(s) for s in (0.4, 41, 700, 9000)]
    ['1 s', '41 s', '12 min', '2.5 h']
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def print_topics(
    console: Console, result: TopicResult, *, most: int = 25, names: bool = False
) -> None:
    """Print the topic table.

    Parameters
    ----------
    console : Console
    result : TopicResult
    most : int
        Topics shown; the rest are counted in the last line.
    names : bool
        Whether names that were given stand before the terms.
    """
    from rich.table import Table
    from rich.text import Text

    from embedtopics.topics import table

    given = {t.topic_id: t.label for t in result.topics if t.is_named or t.is_anchor}

    frame = table(result, n_terms=6)
    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    shown.add_column("topic", justify="right")
    shown.add_column("texts", justify="right")
    shown.add_column("share", justify="right")
    recurs = "recurrence" in frame
    if recurs:
        shown.add_column("recurs", justify="right")
    shown.add_column("terms", overflow="fold")
    topics = frame[frame["topic"] >= 0]
    rows: list[Any] = list(topics.head(most).itertuples())
    rows += list(frame[frame["topic"] < 0].itertuples())
    for row in rows:
        terms = ", ".join(row.terms) if row.topic >= 0 else row.label
        if names and row.topic in given:
            terms = f"{given[row.topic]}: {terms}"
        style = "dim" if row.topic < 0 else ""
        topic = str(row.topic) if row.topic >= 0 else "-"
        cells = [topic, f"{row.size:,}", f"{row.share:.1%}"]
        if recurs:
            cells.append(f"{row.recurrence:.2f}" if row.topic >= 0 else "")
        cells.append(terms)
        shown.add_row(*(Text(printable(cell), style=style) for cell in cells))
    console.print(shown)
    if len(topics) > most:
        console.print(f"... and {len(topics) - most} smaller topics")


def print_inspection(console: Console, seen: Inspection, *, given: bool = False) -> None:
    """Print what a corpus holds and what a fit will cost.

    Parameters
    ----------
    console : Console
    seen : Inspection
    given : bool
        Whether embeddings are given, so that nothing has to be encoded.
    """
    from rich.table import Table

    rows = [
        ("rows", f"{seen.n_rows:,}"),
        ("distinct texts", f"{seen.n_documents:,} ({seen.n_repeated:,} rows repeat another)"),
        ("without text", f"{seen.n_missing:,} missing, {seen.n_empty:,} empty"),
        ("languages", _spell_languages(seen)),
        ("length", _spell_length(seen)),
    ]
    if seen.mean_tokens == seen.mean_tokens and not given:
        rows += [
            ("cut by the encoder", f"{seen.truncated_share:.1%} of the texts; "
             f"{seen.unseen_share:.1%} of the tokens are not read"),
            ("time", f"about {spell_seconds(seen.seconds_to_encode)} to encode "
             f"({seen.tokens_per_second:,.0f} tokens/s here), "
             f"{spell_seconds(seen.seconds_after)} for the topics"),
        ]  # fmt: skip
    else:
        rows.append(("time", f"about {spell_seconds(seen.seconds_after)} for the topics"))
    rows.append(("memory", f"about {seen.memory / 1e9:.1f} GB"))
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, value)
    console.print(grid)
    for warning in seen.warnings:
        console.print(f"note: {warning}", style="yellow")


def _spell_languages(seen: Inspection) -> str:
    shares = list(seen.languages.shares.items())[:4]
    if not shares:
        return "could not be told"
    return ", ".join(f"{code} {share:.0%}" for code, share in shares)


def _spell_length(seen: Inspection) -> str:
    characters = f"{seen.mean_characters:,.0f} characters on average"
    if seen.mean_tokens != seen.mean_tokens:
        return characters
    return f"{characters}, {seen.mean_tokens:,.0f} tokens"


def printable(text: str) -> str:
    """Return a text without control characters, which a terminal would obey.

    Examples
    --------
    >>> printable("a" + chr(27) + "[31mb")
    'a [31mb'
    """
    return "".join(c if c.isprintable() else " " for c in text)
