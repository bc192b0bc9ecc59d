"""``embedtopics evaluate``: how good the topics of a results folder are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics.cli._display import (
    TABLE,
    check_target,
    guarded,
    make_console,
    open_result,
    printable,
)
from embedtopics.cli._options import OutTable, RandomState, ResultsFolder

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from embedtopics.evaluation.results import CodingScore, IntrusionScore


COVERED = "_covered"


@guarded
def evaluate(
    results: ResultsFolder,
    labels: Annotated[
        str | None, typer.Option(help="Column of known labels to compare the topics with.")
    ] = None,
    by_topic: Annotated[bool, typer.Option("--by-topic", help="A topic a row.")] = False,
    replicates: Annotated[
        int, typer.Option(min=0, help="Measure stability anew, with so many replicates.")
    ] = 0,
    out: OutTable = None,
    sheets: Annotated[
        Path | None, typer.Option(help="Write sheets for people, and their keys, to this folder.")
    ] = None,
    questions: Annotated[
        int | None, typer.Option(min=1, help="Questions on each sheet of intruders.")
    ] = None,
    texts: Annotated[
        int, typer.Option(min=1, help="Texts of each topic on the sheet for coding.")
    ] = 10,
    answers: Annotated[
        list[Path] | None,
        typer.Option(help="Score a sheet that was filled in (repeatable: a file for each coder)."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="Key of the answers; looked for in keys/ beside them.")
    ] = None,
    random_state: RandomState = 42,
) -> None:
    """Measure the topics of a results folder, write sheets for people, or score their answers."""
    console = make_console()
    if answers:
        _score(console, results, answers, key, random_state)
        return
    _measure(
        console, results, labels, by_topic, replicates, out, sheets, questions, texts, random_state
    )


def _measure(
    console: Console,
    results: Path,
    labels: str | None,
    by_topic: bool,
    replicates: int,
    out: Path | None,
    sheets: Path | None,
    questions: int | None,
    texts: int,
    random_state: int,
) -> None:
    from embedtopics._utils.table_files import write_table
    from embedtopics.topics._report_card import report_card
    from embedtopics.topics._stability import with_stability
    from embedtopics.topics._tables import validation_sheets

    check_target(out, TABLE)
    result = open_result(results)
    if replicates and result.topics:
        result = with_stability(result, replicates, random_state=random_state)
    card = report_card(result, labels=labels, by_topic=by_topic, random_state=random_state)
    # Written before anything is printed: a closed pipe must not cost the results.
    made = []
    if sheets is not None:
        made = [
            (sheet, sheet.write(sheets))
            for sheet in validation_sheets(
                result,
                n_questions=questions,
                n_per_topic=texts,
                n_decoys=max(1, texts // 2),
                random_state=random_state,
            )
        ]
    if out is not None:
        write_table(card, out)
    _print_topics(console, card) if by_topic else _print_card(console, card)
    for sheet, (path, solution) in made:
        console.print(f"{path}: {len(sheet)} questions (key: {solution})", soft_wrap=True)
    if made:
        first = made[0][1][0]
        console.print(
            "\nnext: let people fill in the column answer of copies, without the keys; then: "
            f"embedtopics evaluate {results} --answers {first}",
            soft_wrap=True,
        )


def _print_card(console: Console, card: pd.DataFrame) -> None:
    from rich.table import Table
    from rich.text import Text

    from embedtopics.plots._scores import spell

    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    shown.add_column("measure", no_wrap=True)
    shown.add_column("value", justify="right", no_wrap=True)
    shown.add_column("95 %", no_wrap=True)
    shown.add_column("n", justify="right", no_wrap=True)
    shown.add_column("meaning", overflow="fold")
    for row in card.to_dict("records"):
        has_interval = not math.isnan(row["low"])
        cells = [
            row["measure"],
            f"{row['value']:,.0f}" if row["measure"] == "topics" else spell(row["value"]),
            f"{spell(row['low'])} to {spell(row['high'])}" if has_interval else "",
            f"{row['n']:,}",
            "" if row["measure"].endswith(COVERED) else row["meaning"],
        ]
        shown.add_row(*(Text(cell) for cell in cells))
    console.print(shown)
    if card["measure"].str.endswith(COVERED).any():
        console.print("\n..._covered: on the texts in a topic alone; read beside label_coverage")


def _print_topics(console: Console, card: pd.DataFrame) -> None:
    from rich.table import Table
    from rich.text import Text

    from embedtopics.plots._scores import spell

    columns = ["npmi", "c_v", "uniqueness", "persistence", "recurrence"]
    columns = [name for name in columns if name in card]
    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for name in ("topic", "texts", *columns):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("label", overflow="fold")
    for row in card.to_dict("records"):
        cells = [str(row["topic"]), f"{row['size']:,}", *(spell(row[name]) for name in columns)]
        shown.add_row(*(Text(cell) for cell in (*cells, printable(row["label"]))))
    console.print(shown)


def _score(
    console: Console, results: Path, answers: list[Path], key: Path | None, random_state: int
) -> None:
    """Find the key by the task that the answers name, and print their scores."""
    from embedtopics.errors import InputError
    from embedtopics.evaluation._human_scores import read_sheet, score_coding, score_intrusion
    from embedtopics.evaluation._intrusion import KEYS

    frame = read_sheet(answers[0])
    tasks = sorted(set(frame["task"])) if "task" in frame else []
    if len(tasks) != 1:
        raise InputError(
            f"expected answers to one sheet, with its column task; {answers[0]} names "
            f"{', '.join(tasks) or 'none'}; fill in the sheet as it was written"
        )
    if key is None:
        key = answers[0].parent / KEYS / f"{tasks[0]}.csv"
        if not key.is_file():
            raise InputError(f"the key is not at {key}; name it with --key")
    labels = {topic.topic_id: topic.label for topic in open_result(results).topics}
    if tasks[0] == "coding":
        _print_coding(console, score_coding(answers, key), labels)
    else:
        _print_intrusion(console, score_intrusion(answers, key, random_state=random_state), labels)


def _print_intrusion(console: Console, score: IntrusionScore, labels: dict[int, str]) -> None:
    console.print(
        f"{score.task}: model precision {score.precision:.2f} [{score.low:.2f}, {score.high:.2f}], "
        f"{score.chance:.2f} by chance; {_spell_n(score.n_answers, score.n_coders)} to "
        f"{score.n_questions:,} questions",
        soft_wrap=True,
    )
    if not math.isnan(score.log_odds):
        console.print(f"topic log odds {score.log_odds:.2f} (0 at best)")
    _print_frame(console, score.by_topic, labels)
    _print_alpha(console, score.alpha)


def _print_coding(console: Console, score: CodingScore, labels: dict[int, str]) -> None:
    console.print(
        f"coding: {score.precision:.2f} [{score.low:.2f}, {score.high:.2f}] of the texts in topics "
        f"belong there; so do, people say, {score.decoys:.2f} of the decoys; "
        f"{_spell_n(score.n_answers, score.n_coders)}",
        soft_wrap=True,
    )
    _print_frame(console, score.by_topic, labels)
    _print_alpha(console, score.alpha)


def _spell_n(n_answers: int, n_coders: int) -> str:
    return f"{n_answers:,} answers of {n_coders} coder{'s' * (n_coders != 1)}"


def _print_alpha(console: Console, alpha: float) -> None:
    if not math.isnan(alpha):
        console.print(f"\nKrippendorff's alpha of the coders: {alpha:.2f}")


def _print_frame(console: Console, frame: pd.DataFrame, labels: dict[int, str]) -> None:
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for name in frame.columns:
        shown.add_column(str(name), justify="right", no_wrap=True)
    shown.add_column("label", overflow="fold")
    for row in frame.to_dict("records"):
        cells = [f"{v:.3f}" if isinstance(v, float) else f"{v:,}" for v in row.values()]
        label = printable(labels.get(int(row["topic"]), ""))
        shown.add_row(*(Text(cell) for cell in (*cells, label)))
    console.print()
    console.print(shown)
