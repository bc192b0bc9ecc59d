"""The report of a training run, as the commands of ``train`` print it: warnings first."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from embedtopics.cli._display import (
    print_lines,
    print_notes,
    print_table,
    printable,
    say,
    spell_interval,
    spell_seconds,
)

if TYPE_CHECKING:
    from embedtopics.training.results import Change, Diagnosis, TrainingReport


GOOD = ("just right", "could learn more")
"""Verdicts after which there is nothing to warn of."""


def print_report(
    report: TrainingReport,
    folder: Path,
    *,
    page: Path | None = None,
    documents: Path | None = None,
    text: str | None = None,
) -> None:
    """Print a report on stdout and its decisions on stderr, and write its page."""
    if page is not None:
        from embedtopics.report import write_report

        write_report(report, page)
    print_notes([note.message for note in report.decisions], stderr=True)
    warnings = _warnings(report)
    for warning in warnings:
        say(f"WARNING: {printable(warning)}", style="bold red", soft_wrap=True)
    if warnings:
        say()
    print_lines(_of_training(report))
    say()
    _print_diagnosis(report.diagnosis)
    if report.before_after:
        say("\nbefore and after:", style="bold")
        print_changes(report.before_after)
    say(f"\nencoder written to {printable(str(folder))}:", soft_wrap=True)
    say("  training-report   this report; print it with embedtopics train read")
    say("  README.md         the model card")
    if page is not None:
        say(f"report written to {printable(str(page))}", soft_wrap=True)
    if report.stopped != "loss not finite":
        column = [] if documents is None or text is None else ["--text", text]
        command = ["embedtopics", "topics", str(documents or "articles.csv"), *column]
        command += ["--out", "topics", "--encoder", str(folder)]
        say(f"\nnext: {printable(shlex.join(command))}", soft_wrap=True)


def _warnings(report: TrainingReport) -> list[str]:
    """Return the reasons not to trust this run."""
    warnings, verdict = [], report.diagnosis.verdict
    if report.stopped == "loss not finite":
        warnings.append(
            f"training failed: the loss was not finite after step "
            f"{report.n_steps:,}; the encoder has the weights of step {report.best_step:,}"
        )
    if verdict == "uncertain":
        warnings.append("the learning curves are inconclusive")
    elif verdict not in GOOD:
        warnings.append(f"the learning curves show a problem: {verdict}")
    worse = [
        f"worse than before on {change.task}: {change.metric} {change.before:.3f} to "
        f"{change.after:.3f}"
        for change in report.before_after
        if change.verdict == "worse"
    ]
    if report.best_step:
        return warnings + worse
    nothing = "training brought no improvement on the validation examples: the encoder is unchanged"
    return [*warnings, nothing, *worse]


def _of_training(report: TrainingReport) -> dict[str, str]:
    data = report.data
    learned = f"{data['n_train']:,} examples of {data['train'] or 'the input'}"
    if (n_used := data.get("n_learned_from", data["n_train"])) != data["n_train"]:
        learned += f"; {n_used:,} after conversion for the objective"
    validated = f"{data['n_validation']:,} examples of {data['validation'] or 'the input'}"
    if shared := data.get("n_texts_shared_with_validation"):
        validated += f"; {shared:,} of their texts are also training texts"
    rate = f"{report.examples_per_second:,.0f} examples per second"
    return {
        "objective": f"{report.objective}, from {report.base}",
        "learned from": learned,
        "validated on": validated,
        "steps": f"{report.n_steps:,} ({report.stopped}); step {report.best_step:,} kept",
        "time": f"{spell_seconds(report.seconds)} of training, {rate}",
    }


def _print_diagnosis(diagnosis: Diagnosis) -> None:
    confidence = diagnosis.confidence
    sure = f" (confidence {confidence:.0%})" if confidence == confidence else ""
    say(f"verdict: {printable(diagnosis.verdict)}{sure}", style="bold")
    for evidence in diagnosis.evidence:
        say(f"  - {printable(evidence.says)}", soft_wrap=True)
    for number, advice in enumerate(diagnosis.advice):
        heading = "" if number else "\nadvice:\n"
        say(f"{heading}  - {printable(advice)}", soft_wrap=True)


def print_changes(changes: Sequence[Change]) -> None:
    from rich.text import Text

    columns = [("", "words"), ("before", "figure"), ("after", "figure")]
    columns += [("difference, 95 %", "line"), ("", "words")]
    rows: list[list[str | Text]] = []
    notes: list[str] = []
    task = ""
    for change in changes:
        if change.task != task:
            task, n_times = change.task, change.n_test_evaluations
            times = f" (scored {n_times} times so far)" if n_times > 1 else ""
            rows.append([Text(printable(f"{task}{times}"), style="bold")])
        notes = list(dict.fromkeys([*notes, *filter(None, [change.note])]))
        mark = f" ({notes.index(change.note) + 1})" if change.note else ""
        style = {"worse": "red", "better": "green"}.get(change.verdict, "")
        metric = f"  {change.metric}, n = {change.n:,}"
        verdict = Text(printable(f"{change.verdict}{mark}"), style=style)
        figures = [f"{x:.3f}" if x == x else "-" for x in (change.before, change.after)]
        rows.append(
            [
                metric,
                *figures,
                spell_interval(change.difference, change.low, change.high, form="+.3f"),
                verdict,
            ]
        )
    print_table(columns, rows)
    for number, note in enumerate(notes, 1):
        say(f"({number}) {printable(note)}", soft_wrap=True)
