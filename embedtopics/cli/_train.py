"""``embedtopics train``: a better encoder from labelled examples, and whether it became one."""

from pathlib import Path
from typing import Annotated

import typer

from embedtopics.cli._display import PAGE, check_target
from embedtopics.cli._errors import Commands
from embedtopics.cli._options import OutFigure, names_in
from embedtopics.cli._train_options import ExamplesFile, HeldOutOptions, numbers_in, takes
from embedtopics.cli._train_running import train_on
from embedtopics.cli._train_texts import distill, pairs, student, unsupervised

app = Commands(
    help="Make a better encoder for your texts, and see whether it became one.",
    no_args_is_help=True,
)

First = Annotated[str | None, typer.Option(help="Column of the first texts.")]
Second = Annotated[str | None, typer.Option(help="Column of the second texts.")]
Label = Annotated[str | None, typer.Option(help="Column of labels; found by its name.")]


@app.command()
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
    columns = {"--premise": premise, "--hypothesis": hypothesis}
    order = None if label_order is None else names_in(label_order)
    train_on(file, options, "nli", "fit_nli", objective, columns, label=label, label_order=order)


@app.command()
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
    """Learn from pairs of texts with a score of their similarity."""
    columns = {"--first": first, "--second": second}
    ends = numbers_in(scale, "--scale")
    train_on(file, options, "graded", "fit_sts", objective, columns, label=score, scale=ends)


@app.command()
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
    one, others = (negative[0], negative[1:]) if negative else (None, [])
    columns = {"--anchor": anchor, "--positive": positive, "--negative": one}
    train_on(file, options, "triplets", "fit_triplets", objective, columns, others)


@app.command()
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
    columns = {"--first": first, "--second": second}
    train_on(file, options, "binary", "fit", objective, columns, label=label)


for command in (pairs, unsupervised, distill, student):
    app.command()(command)


@app.command(name="read")
def read_folder(
    folder: Annotated[Path, typer.Argument(help="Of an encoder that train wrote.")],
    figure: OutFigure = None,
) -> None:
    """Print the report of a run again."""
    from embedtopics.cli._train_display import print_report
    from embedtopics.training._report import read_report

    check_target(figure, PAGE, "--figure")
    print_report(read_report(folder), folder, figure=figure)
