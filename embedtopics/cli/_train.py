"""``embedtopics train``: a better encoder from labelled examples, and whether it became one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedtopics.cli._display import PAGE, check_target, guarded
from embedtopics.cli._options import OutFigure
from embedtopics.cli._train_options import (
    ExamplesFile,
    HeldOutOptions,
    columns_of,
    names_in,
    numbers_in,
    takes,
)
from embedtopics.cli._train_running import prepared, reader, run_and_tell, spoken, starting_encoder
from embedtopics.cli._train_texts import distill, pairs, student, unsupervised

app = typer.Typer(
    help="Make a better encoder for your texts, and see whether it became one.",
    no_args_is_help=True,
)

First = Annotated[str | None, typer.Option(help="Column of the first texts.")]
Second = Annotated[str | None, typer.Option(help="Column of the second texts.")]
Label = Annotated[str | None, typer.Option(help="Column of labels; found by its name.")]


@app.command()
@guarded
@takes(HeldOutOptions)
def nli(
    file: ExamplesFile,
    premise: Annotated[str | None, typer.Option(help="Column of premises.")] = None,
    hypothesis: Annotated[str | None, typer.Option(help="Column of hypotheses.")] = None,
    label: Label = None,
    label_order: Annotated[
        str | None,
        typer.Option(help="What 0, 1 and 2 mean: entailment,neutral,contradiction, as it may be."),
    ] = None,
    objective: Annotated[str, typer.Option(help="ranking or softmax.")] = "ranking",
    *,
    options: HeldOutOptions,
) -> None:
    """Learn from inference: premise, hypothesis, and how the one bears on the other."""
    with spoken("--premise and --hypothesis"):
        settings = prepared(options)
        columns = columns_of({"--premise": premise, "--hypothesis": hypothesis})
        order = None if label_order is None else names_in(label_order)
        read = reader(options, "nli", columns, label=label, label_order=order)
        from embedtopics.training._fit import fit_nli

        learned = starting_encoder(options), read(file)
        run_and_tell(options, settings, fit_nli, learned, read, objective=objective)


@app.command()
@guarded
@takes(HeldOutOptions)
def sts(
    file: ExamplesFile,
    first: First = None,
    second: Second = None,
    score: Annotated[str | None, typer.Option(help="Column of scores; found by its name.")] = None,
    scale: Annotated[
        str | None, typer.Option(help="Lowest and highest score that could be given, such as 0,5.")
    ] = None,
    objective: Annotated[str, typer.Option(help="cosine or cosent.")] = "cosine",
    *,
    options: HeldOutOptions,
) -> None:
    """Learn from pairs of texts with a score of how alike they are."""
    with spoken("--first and --second", "--score"):
        settings = prepared(options)
        columns = columns_of({"--first": first, "--second": second})
        read = reader(options, "graded", columns, label=score, scale=numbers_in(scale, "--scale"))
        from embedtopics.training._fit import fit_sts

        learned = starting_encoder(options), read(file)
        run_and_tell(options, settings, fit_sts, learned, read, objective=objective)


@app.command()
@guarded
@takes(HeldOutOptions)
def triplets(
    file: ExamplesFile,
    anchor: Annotated[str | None, typer.Option(help="Column of anchors.")] = None,
    positive: Annotated[str | None, typer.Option(help="Column of texts nearer to them.")] = None,
    negative: Annotated[
        list[str] | None, typer.Option(help="Column of texts farther from them (repeatable).")
    ] = None,
    objective: Annotated[str, typer.Option(help="ranking or margin.")] = "ranking",
    *,
    options: HeldOutOptions,
) -> None:
    """Learn from triplets: an anchor, a text nearer to it, and texts farther from it."""
    with spoken("--anchor, --positive and --negative"):
        settings = prepared(options)
        one = negative[0] if negative else None
        columns = columns_of({"--anchor": anchor, "--positive": positive, "--negative": one})
        read = reader(
            options, "triplets",
            None if columns is None else [*columns, *(negative or [])[1:]],
        )  # fmt: skip
        from embedtopics.training._fit import fit_triplets

        learned = starting_encoder(options), read(file)
        run_and_tell(options, settings, fit_triplets, learned, read, objective=objective)


@app.command()
@guarded
@takes(HeldOutOptions)
def labelled(
    file: ExamplesFile,
    first: First = None,
    second: Second = None,
    label: Label = None,
    objective: Annotated[
        str, typer.Option(help="online, from the hard pairs of a batch, or contrastive, from all.")
    ] = "online",
    *,
    options: HeldOutOptions,
) -> None:
    """Learn from pairs that are labelled as belonging together (1) or not (0)."""
    with spoken("--first and --second"):
        settings = prepared(options)
        columns = columns_of({"--first": first, "--second": second})
        read = reader(options, "binary", columns, label=label)
        from embedtopics.training._fit import fit

        learned = starting_encoder(options), read(file)
        run_and_tell(options, settings, fit, learned, read, objective=objective)


app.command()(pairs)
app.command()(unsupervised)
app.command()(distill)
app.command()(student)


@app.command(name="read")
@guarded
def read_folder(
    folder: Annotated[Path, typer.Argument(help="Of an encoder that train wrote.")],
    figure: OutFigure = None,
) -> None:
    """Print the report of a run again."""
    from embedtopics.cli._train_display import draw_curves, print_student, print_training
    from embedtopics.training._report_files import read_report
    from embedtopics.training.results import StudentReport

    check_target(figure, PAGE, "--figure")
    report = read_report(folder)
    if figure is not None:
        draw_curves(report, figure)
    if isinstance(report, StudentReport):
        print_student(report, folder, figure=figure)
    else:
        print_training(report, folder=folder, figure=figure)
