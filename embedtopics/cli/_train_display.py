"""What the commands of ``train`` print: first what went wrong, then what a run was and did."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics.cli._display import make_console, printable, spell_seconds, write_figure

if TYPE_CHECKING:
    from rich.console import Console

    from embedtopics.corpus.results import Decision
    from embedtopics.training.results import Change, Diagnosis, StudentReport, TrainingReport


GOOD = ("just right", "could learn more")
"""Verdicts after which there is nothing to warn of."""


def draw_curves(report: TrainingReport | StudentReport, path: Path) -> None:
    """Write the learning curves as a page that opens offline."""
    from embedtopics import plots

    write_figure(plots.learning_curves(report), path)


def print_training(
    report: TrainingReport,
    *,
    folder: Path | None = None,
    notes: Sequence[Decision] = (),
    figure: Path | None = None,
    documents: Path | None = None,
    text: str | None = None,
) -> None:
    """Print the report of a run on stdout, and what was decided on the way on stderr."""
    _print_notes([*notes, *report.decisions])
    console = make_console()
    _print_warnings(console, _warnings(report))
    _print_lines(console, _what_was_done(report))
    console.print()
    _print_diagnosis(console, report.diagnosis)
    if report.before_after:
        console.print("\nbefore and after:", style="bold")
        _print_changes(console, report.before_after)
    place = report.folder if folder is None else str(folder)
    _print_place(console, place)
    _print_figure(console, figure)
    if report.stopped != "loss not finite":
        _print_next(console, place, documents, text)


def print_student(
    report: StudentReport,
    out: Path,
    *,
    figure: Path | None = None,
    documents: Path | None = None,
    text: str | None = None,
) -> None:
    """Print how a static student was made, and how near it came to its teacher."""
    _print_notes(report.decisions)
    console = make_console()
    found = _verdict_warnings(report.diagnosis) + _worse(report.before_after)
    if report.best_step == 0:
        found.append("nothing was learned: the student is the table that training started from")
    _print_warnings(console, found)
    added = f"{report.n_words:,} words and {report.n_phrases:,} phrases were added"
    beside = f" and {report.n_general:,} others" if report.n_general else ""
    _print_lines(
        console,
        {
            "static student of": printable(report.teacher),
            "vectors": f"{report.n_tokens:,} of {report.dimensions} dimensions; {added}",
            "learned from": f"{report.n_texts:,} texts{beside}",
            "validated on": f"{report.n_validation:,} texts",
            "steps": _steps(report.n_steps, report.best_step, report.stopped),
            "time": ", ".join(f"{name} {spell_seconds(s)}" for name, s in report.seconds.items()),
        },
    )
    console.print()
    _print_diagnosis(console, report.diagnosis)
    console.print("\nbeside the table that training started from:", style="bold")
    _print_changes(console, report.before_after)
    _print_place(console, str(out))
    _print_figure(console, figure)
    _print_next(console, str(out), documents, text)


def _warnings(report: TrainingReport) -> list[str]:
    """Return all for which this run must not be taken for a good one."""
    found = []
    if report.stopped == "loss not finite":
        found.append(
            f"this run failed: its loss was no longer a finite number after step "
            f"{report.n_steps:,}; the encoder has the weights of step {report.best_step:,}"
        )
    found += _verdict_warnings(report.diagnosis)
    if report.best_step == 0:
        found.append(
            "no weights did better on the validation examples than those at the start: the "
            "encoder is the one that training started from"
        )
    return found + _worse(report.before_after)


def _verdict_warnings(diagnosis: Diagnosis) -> list[str]:
    if diagnosis.verdict in GOOD:
        return []
    if diagnosis.verdict == "uncertain":
        return ["the learning curves do not tell whether this run is a good one"]
    return [f"this run is not a good one: {diagnosis.verdict}, say its learning curves"]


def _worse(changes: Sequence[Change]) -> list[str]:
    return [
        f"worse than before on {change.task}: {change.metric} {change.before:.3f} to "
        f"{change.after:.3f}"
        for change in changes
        if change.verdict == "worse"
    ]


def _what_was_done(report: TrainingReport) -> dict[str, str]:
    data = report.data
    n_train, n_made = data.get("n_train"), data.get("n_learned_from")
    learned = f"{_count(n_train)} examples of {_source(data, 'train')}"
    if n_made != n_train and n_made is not None:
        learned += f", of which {_count(n_made)} were made for the objective"
    validated = f"{_count(data.get('n_validation'))} examples of {_source(data, 'validation')}"
    shared = data.get("n_texts_shared_with_validation")
    if shared:
        validated += f"; {_count(shared)} of their texts are learned from, too"
    rate = f"{report.examples_per_second:,.0f} examples a second"
    return {
        "objective": f"{report.objective}, from {report.base}",
        "learned from": learned,
        "validated on": validated,
        "steps": _steps(report.n_steps, report.best_step, report.stopped),
        "time": f"{spell_seconds(report.seconds)} of learning, {rate}",
    }


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else "unknown"


def _source(data: Mapping[str, Any], name: str) -> str:
    source = data.get(name)
    return source if isinstance(source, str) and source else "the data given"


def _steps(n_steps: int, best: int, stopped: str) -> str:
    return f"{n_steps:,} ({stopped}); the weights of step {best:,} were kept"


def _print_notes(decisions: Sequence[Decision]) -> None:
    console = make_console(stderr=True)
    for message in dict.fromkeys(decision.message for decision in decisions):
        console.print(f"note: {printable(message)}", style="yellow", soft_wrap=True)


def _print_warnings(console: Console, warnings: Sequence[str]) -> None:
    for warning in warnings:
        console.print(f"WARNING: {printable(warning)}", style="bold red", soft_wrap=True)
    if warnings:
        console.print()


def _print_lines(console: Console, lines: Mapping[str, str]) -> None:
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in lines.items():
        grid.add_row(Text(name), Text(printable(value)))
    console.print(grid)


def _print_diagnosis(console: Console, found: Diagnosis) -> None:
    sure = f" (confidence {found.confidence:.0%})" if found.confidence == found.confidence else ""
    console.print(f"verdict: {printable(found.verdict)}{sure}", style="bold")
    for evidence in found.evidence:
        console.print(f"  - {printable(evidence.says)}", soft_wrap=True)
    if found.advice:
        console.print("\nadvice:", style="bold")
    for advice in found.advice:
        console.print(f"  - {printable(advice)}", soft_wrap=True)


def _print_changes(console: Console, changes: Sequence[Change]) -> None:
    import pandas as pd
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    shown.add_column("", overflow="fold")
    for name in ("before", "after"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("difference, 95 %", no_wrap=True)
    shown.add_column("", overflow="fold")
    notes: list[str] = []
    task = ""
    table = pd.DataFrame(list(changes))
    sizes = {str(name): of_task["n"].nunique() for name, of_task in table.groupby("task")}
    for row in table.to_dict("records"):
        size = f"n = {row['n']:,}"
        if row["task"] != task:
            task = str(row["task"])
            said = [size] if sizes[task] == 1 else []
            if row["n_looks"] > 1:
                said.append(f"scored {row['n_looks']} times so far")
            heading = f"{task} ({', '.join(said)})" if said else task
            shown.add_row(Text(printable(heading), style="bold"))
        mark = ""
        if row["note"]:
            if row["note"] not in notes:
                notes.append(row["note"])
            mark = f" ({notes.index(row['note']) + 1})"
        style = {"worse": "red", "better": "green"}.get(row["verdict"], "")
        cells = [
            f"  {row['metric']}" + (f", {size}" if sizes[task] > 1 else ""),
            _figure(row["before"]),
            _figure(row["after"]),
            _difference(row),
            f"{row['verdict']}{mark}",
        ]
        shown.add_row(*(Text(printable(cell)) for cell in cells[:-1]),
                      Text(printable(cells[-1]), style=style))  # fmt: skip
    console.print(shown)
    for number, note in enumerate(notes, 1):
        console.print(f"({number}) {printable(note)}", soft_wrap=True)


def _figure(value: float) -> str:
    return f"{value:.3f}" if value == value else "-"


def _difference(row: Mapping[Any, Any]) -> str:
    if row["difference"] != row["difference"]:
        return "-"
    if row["low"] != row["low"]:
        return f"{row['difference']:+.3f}"
    return f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"


def _print_place(console: Console, folder: str) -> None:
    console.print(f"\nthe encoder lies in {printable(folder)}", soft_wrap=True)
    console.print("  training-report   this report, for embedtopics train read")
    console.print("  README.md         the model card")


def _print_figure(console: Console, figure: Path | None) -> None:
    if figure is not None:
        console.print(f"the learning curves are drawn in {printable(str(figure))}", soft_wrap=True)


def _print_next(console: Console, folder: str, documents: Path | None, text: str | None) -> None:
    command = ["embedtopics", "topics", str(documents or "articles.csv")]
    if documents is not None and text is not None:
        command += ["--text", text]
    command += ["--out", "topics", "--encoder", folder]
    console.print(f"\nnext: {printable(shlex.join(command))}", soft_wrap=True)
