"""Output of the commands: tables that fit 80 columns, figures, folders of results."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics._utils.display import spell_count
from embedtopics._utils.folders import (
    MANIFEST,
    changed_files,
    check_output_folder,
    is_kind,
    replacing_file,
    replacing_folder,
    write_manifest,
)
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure
    from rich.console import Console
    from rich.text import Text

    from embedtopics._utils.local_server import LocalServer
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.topics.results import Inspection, TopicResult


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that prints markup as plain text."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)


def say(text: Any = "", *, stderr: bool = False, **options: Any) -> None:
    """Print a text, whatever it holds, with the options of a console's ``print``."""
    make_console(stderr=stderr).print(text, **options)


def spell_seconds(seconds: float) -> str:
    """Return a duration for people."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def spell_interval(value: float, low: float, high: float, *, form: str) -> str:
    """Return a number with its interval, if it has one."""
    if math.isnan(low):
        return "-" if math.isnan(value) else f"{value:{form}}"
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"


HOUR = 3600.0
# Numbers are right-aligned; figures also stay on one line; words may be broken.
COLUMNS: dict[str, dict[str, Any]] = {
    "number": {"justify": "right"},
    "figure": {"justify": "right", "no_wrap": True},
    "line": {"no_wrap": True},
    "words": {"overflow": "fold"},
}


def print_table(
    columns: Iterable[tuple[str, str]],
    rows: Iterable[Sequence[str | Text]],
    styles: Iterable[str] = (),
    **options: Any,
) -> None:
    """Print a table: headings with a kind of column each, and rows with a style each."""
    from rich.table import Table
    from rich.text import Text

    columns = list(columns)
    has_names = any(name for name, _ in columns)
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=has_names)
    for name, kind in columns:
        table.add_column(Text(printable(name)), **COLUMNS.get(kind, {}))
    for cells, style in zip_longest(rows, styles, fillvalue=""):
        shown = (c if isinstance(c, Text) else Text(printable(c), style=style) for c in cells)
        table.add_row(*shown)
    say(table, **options)


def print_lines(lines: Mapping[str, str], **options: Any) -> None:
    """Print names and values, one pair per line."""
    from rich.text import Text

    rows = [(Text(name, style="bold"), value) for name, value in lines.items()]
    print_table([("", "line"), ("", "words")], rows, **options)


def print_written(folder: Path, content: Mapping[str, str]) -> None:
    """Print the folder that a command wrote, and what its files hold."""
    say(f"\nwritten to {folder}:", soft_wrap=True)
    for file, meaning in content.items():
        say(f"  {file:<18} {meaning}", soft_wrap=True)


def print_notes(messages: Iterable[str], **options: bool) -> None:
    """Print decisions, each message once."""
    for message in dict.fromkeys(messages):
        say(f"note: {printable(message)}", style="yellow", **{"soft_wrap": True, **options})


def print_topics(result: TopicResult, *, most: int = 25) -> None:
    """Print the topics under their themes, the largest first."""
    from embedtopics.topics import table

    frame = table(result, n_terms=6)
    recurs = "recurrence" in frame
    columns = [(name, "number") for name in ("topic", "texts", "share")]
    columns += [("recurs", "number")] * recurs + [("name and terms", "words")]
    by_id: dict[Any, Any] = {row.topic: row for row in frame.itertuples()}
    shown = {theme.topics[0] for theme in result._themes} | set(range(most))
    rows, styles = [], []
    for theme in result._themes:
        if len(result._themes) < result.n_topics:
            heading = f"{theme.label} ({spell_count(len(theme.topics), 'topic', 'topics')})"
            cells = ["", f"{theme.size:,}", f"{theme.share:.1%}", *[""] * recurs]
            rows.append([*cells, heading])
            styles.append("bold")
        for topic in sorted(shown.intersection(theme.topics)):
            row = by_id[topic]
            others = [term for term in row.terms if term not in row.name]
            cells = [str(topic), f"{row.size:,}", f"{row.share:.1%}"]
            cells += [f"{row.recurrence:.2f}"] if recurs else []
            rows.append([*cells, f"{row.name}: {', '.join(others)}" if others else row.name])
            styles.append("")
    if row := by_id.get(-1):
        rows.append(["-", f"{row.size:,}", f"{row.share:.1%}", *[""] * recurs, row.name])
        styles.append("dim")
    print_table(columns, rows, styles)
    if n_more := result.n_topics - len(shown.intersection(range(result.n_topics))):
        say(f"... and {n_more} smaller topics")
    if recurs:
        say("recurs: overlap with the best match when texts are resampled", style="dim")


def print_inspection(corpus: Corpus, inspection: Inspection, **options: bool) -> None:
    """Print the contents of a corpus and the estimated cost of a fit."""
    has_tokens = not math.isnan(inspection.mean_tokens)
    length = f"{inspection.mean_characters:,.0f} characters on average"
    after = f"{spell_seconds(inspection.seconds_after)} for the topics"
    rows = {
        "rows": f"{inspection.n_rows:,}",
        "distinct texts": f"{inspection.n_documents:,} ({inspection.n_repeated:,} repeated rows)",
        "without text": f"{inspection.n_missing:,} missing, {inspection.n_empty:,} empty",
        "languages": _spell_languages(inspection.languages.shares),
        "length": f"{length}, {inspection.mean_tokens:,.0f} tokens" if has_tokens else length,
    }
    if has_tokens:
        rows["truncated"] = (
            f"{inspection.truncated_share:.1%} of the texts; "
            f"the encoder does not read {inspection.unseen_share:.1%} of the tokens"
        )
        speed = f"{inspection.tokens_per_second:,.0f} tokens/s here, less if vectors are cached"
        after = f"{spell_seconds(inspection.seconds_to_encode)} to encode ({speed}), {after}"
    rows |= {"time": f"about {after}", "memory": f"about {inspection.memory / 1e9:.1f} GB"}
    print_lines(rows, **options)
    of_files = [note.message for note in corpus.decisions if note.stage == "files"]
    notes = [*of_files, *inspection.warnings]
    if inspection.is_long:
        notes.append("Most texts are long: with --passages, a text can have several topics.")
    if inspection.seconds_to_encode > HOUR:
        notes.append(
            "A static encoder takes minutes, and finds nearly as good topics: add --distill 20000."
        )
    print_notes(notes, soft_wrap=False, **options)


def _spell_languages(shares: Mapping[str, float]) -> str:
    if not shares:
        return "not recognized"
    first = list(shares.items())[:4]
    recognized = sum(shares.values())
    others = recognized - sum(share for _, share in first)
    rest = [("others", others), ("not recognized", 1.0 - recognized)]
    first += [(name, share) for name, share in rest if share >= 0.005]
    return ", ".join(f"{name} {share:.0%}" for name, share in first)


def printable(text: str) -> str:
    """Replace control characters, which a terminal would execute."""
    return "".join(c if c.isprintable() else " " for c in text)


PAGE = (".html", ".htm")
TABLE = (".csv",)


def check_target(path: Path | None, suffixes: tuple[str, ...], option: str = "--out") -> None:
    """Refuse, before the work, an output file that cannot be written or has another suffix."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes or path.is_dir():
        ends = " or ".join(suffixes)
        raise InputError(f"{option} must be a file whose name ends in {ends}; got {path}")
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        reason = "no such folder, or no permission"
        raise InputError(f"cannot write {path}: {reason}; choose another {option}")


def check_outputs(out: Path | None, figure: Path | None = None) -> None:
    """Refuse, before the work, a table or a figure that cannot be written."""
    check_target(out, TABLE)
    check_target(figure, PAGE, "--figure")


def write_outputs(
    out: Path | None,
    table: Callable[[], pd.DataFrame],
    figure: Path | None = None,
    draw: Callable[[], Figure] | None = None,
) -> None:
    """Write table and figure, before anything is printed: a closed pipe must not lose them."""
    from embedtopics.corpus._table_files import write_table

    if out is not None:
        write_table(table(), out)
    if figure is not None and draw is not None:
        page = draw().to_html(include_plotlyjs=True, full_html=True)
        with replacing_file(figure) as fresh:
            fresh.write_text(page, encoding="utf-8")


KIND = "embedtopics results folder"
FORMAT = 1
NAMES = "names.csv"
FORMER_NAMES = "labels.csv"
"""File of the names in folders of before; it counts as ours, and --names-from reads it."""
CONTENT = {
    "report.html": "page to search, select and compare documents",
    "topics.csv": "the topics, one per row",
    NAMES: "names of the topics; edit them, then run embedtopics edit --names-from",
    "documents.parquet": "every input row with its topic and map position",
    "terms.parquet": "the terms of every topic",
    "model": "the saved model, for embedtopics.TopicModel.load",
}
SAMPLED = {"assignments.parquet": "the topic of every row; the other files hold the sample"}


def is_results_folder(folder: Path) -> bool:
    """Return whether a folder holds results of ``topics``."""
    return is_kind(folder, KIND)


def check_results_folder(folder: Path, *, reads_names: bool = False) -> None:
    """Refuse, before the work, a folder in which writing results would lose files."""
    if is_results_folder(folder):
        ours = {"model", MANIFEST, FORMER_NAMES, *CONTENT}
        others = sorted(path.name for path in folder.iterdir() if path.name not in ours)
        if others:
            raise InputError(
                f"{folder} also holds {others[0]}, which would be lost; move it, or choose another "
                "folder with --out"
            )
        edited = {NAMES, FORMER_NAMES}.intersection(changed_files(folder))
        if edited and not reads_names:
            file = folder / edited.pop()
            raise InputError(
                f"{file} has edits that were not applied; run embedtopics edit {folder} "
                f"--names-from {file} first, or delete the file"
            )
    check_output_folder(folder, KIND)


def open_result(folder: Path) -> TopicResult:
    """Load the result in a folder of ``topics``, or a saved one."""
    from embedtopics.topics.results import TopicResult

    return TopicResult.load(folder)


def read_results_folder(folder: Path) -> TopicResult:
    """Load the result in a folder of ``topics`` that the command will replace."""
    if not is_results_folder(folder):
        raise InputError(f"expected a folder that embedtopics topics or demo wrote; got {folder}")
    return open_result(folder)


def write_results_folder(
    result: TopicResult,
    folder: Path,
    *,
    title: str | None = None,
    names: bytes | None = None,
    rows: pd.DataFrame | None = None,
) -> None:
    """Write a folder of results atomically; `rows` are the assignments of a sampled fit."""
    from embedtopics.corpus._table_files import write_table
    from embedtopics.report._report import write_report
    from embedtopics.topics._storage import write_result
    from embedtopics.topics._tables import export
    from embedtopics.topics.editing._names_file import write_names

    with replacing_folder(folder, KIND) as fresh:
        (fresh / "model").mkdir()
        write_result(result, fresh / "model")
        for name in ("topics.csv", "documents.parquet", "terms.parquet"):
            export(result, fresh / name, what=name.partition(".")[0])
        if rows is not None:
            write_table(rows, fresh / next(iter(SAMPLED)))
        if names is None:
            write_names(result, fresh / NAMES)
        else:
            (fresh / NAMES).write_bytes(names)
        title = title or f"Topics of {result.corpus.source}"
        write_report(result, fresh / "report.html", title=title)
        write_manifest(fresh, KIND, FORMAT)


def run_server(server: LocalServer) -> None:
    """Print the address of a local page, and serve it until an interrupt."""
    say("Open this address; Ctrl-C ends.", soft_wrap=True)
    say(server.url, soft_wrap=True)
    with closing(server), suppress(KeyboardInterrupt):  # the usual way to end
        server.run()
