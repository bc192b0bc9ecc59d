"""``embedtopics train`` from texts alone, or from what a teacher makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedtopics.cli.guard import guarded
from embedtopics.cli.train_options import (
    TABLES,
    ExamplesFile,
    HeldOutOptions,
    RunOptions,
    names_in,
    takes,
    whole_numbers_in,
)
from embedtopics.cli.train_running import (
    prepared,
    reader,
    run_and_tell,
    spoken,
    starting_encoder,
)
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.training import Examples

__all__ = ["distill", "student", "unsupervised"]

Teacher = Annotated[str, typer.Option(help="Name or folder of the encoder to learn from.")]


@guarded
@takes(HeldOutOptions)
def unsupervised(
    file: ExamplesFile,
    method: Annotated[str, typer.Option(help="simcse or tsdae.")] = "simcse",
    *,
    options: HeldOutOptions,
) -> None:
    """Learn from texts alone; --test has pairs with scores, which say whether it helped."""
    with spoken("--text"):
        settings = prepared(options)
        texts = _texts(options, file)
        validation = None if options.validation is None else _texts(options, options.validation)
        from embedtopics.training import fit_unsupervised

        learned = starting_encoder(options), texts
        run_and_tell(
            options, settings, fit_unsupervised, learned, None, validation=validation,
            documents=file, method=method,
        )  # fmt: skip


@guarded
@takes(RunOptions)
def distill(
    file: ExamplesFile,
    teacher: Teacher,
    keep_layers: Annotated[
        str | None,
        typer.Option(help="Layers that the student keeps: how many (3), or which (0,2,5)."),
    ] = None,
    *,
    options: RunOptions,
) -> None:
    """Make a smaller encoder that gives the vectors of a larger one.

    The student starts from --encoder, or from the teacher with fewer layers.
    """
    with spoken("--text", held=""):
        settings = prepared(options)
        kept: int | tuple[int, ...] | None = None
        if keep_layers is not None:
            kept = whole_numbers_in(keep_layers, "--keep-layers")
            kept = kept[0] if len(names_in(keep_layers)) == 1 else kept
        elif options.encoder in (None, teacher):
            raise InputError(
                "expected a student that differs from its teacher; name one with --encoder, or "
                "say with --keep-layers how many layers of the teacher it keeps"
            )
        examples = _texts(options, file)
        from embedtopics.training import fit_distilled

        learned = options.encoder or teacher, teacher, examples.columns[0]
        run_and_tell(
            options, settings, fit_distilled, learned, None, notes=examples.decisions,
            documents=file, keep_layers=kept,
        )  # fmt: skip


@guarded
def student(
    file: ExamplesFile,
    teacher: Teacher,
    out: Annotated[Path, typer.Option(help="Folder for the student, in model2vec's format.")],
    text: Annotated[str | None, typer.Option(help="Column of texts; guessed if left out.")] = None,
    general: Annotated[
        Path | None, typer.Option(help=f"Other texts to learn from beside these: {TABLES}")
    ] = None,
    general_text: Annotated[str | None, typer.Option(help="Column of texts in that file.")] = None,
    dimensions: Annotated[int, typer.Option(help="Length of its vectors.")] = 256,
    epochs: Annotated[float, typer.Option(help="How often each text is learned from.")] = (5.0),
    batch_size: Annotated[int, typer.Option(help="Texts of a step.")] = 1024,
    learning_rate: Annotated[
        float, typer.Option(help="At its highest, as a share of the table's numbers.")
    ] = 0.05,
    max_length: Annotated[
        int | None, typer.Option(help="Most tokens read of a text; all if left out.")
    ] = None,
    validations_per_epoch: Annotated[
        float, typer.Option(help="Looks at the held-out texts.")
    ] = 4.0,
    patience: Annotated[
        int, typer.Option(help="Validations without a gain that end training; 0 for never.")
    ] = 6,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 42,
    encoding: Annotated[str, typer.Option(help="Encoding of the files.")] = "utf-8",
    figure: Annotated[
        Path | None, typer.Option(help="Draw the learning curves on a page, NAME.html.")
    ] = None,
) -> None:
    """Make a table of token vectors that reads tens of thousands of texts a second.

    It has then read all of these texts: score it on others.
    """
    from embedtopics.cli.files import PAGE, check_target
    from embedtopics.corpus import Corpus
    from embedtopics.training import StudentSettings

    check_target(figure, PAGE, "--figure")
    options: dict[str, Any] = {
        "dimensions": dimensions, "epochs": epochs, "batch_size": batch_size,
        "learning_rate": learning_rate, "max_length": max_length, "seed": seed,
        "validations_per_epoch": validations_per_epoch, "patience": patience or None,
    }  # fmt: skip
    StudentSettings(**options)
    texts = Corpus.from_file(file, text=text, encoding=encoding)
    others = (
        None if general is None else Corpus.from_file(general, text=general_text, encoding=encoding)
    )
    from embedtopics.cli.train_display import draw_curves, print_student
    from embedtopics.training import fit_static_student

    report = fit_static_student(teacher, texts, general=others, out=out, **options).report
    if figure is not None:
        draw_curves(report, figure)
    print_student(report, out, figure=figure, documents=file, text=text)


def _texts(options: RunOptions, path: Path) -> Examples:
    columns = None if options.text is None else [options.text]
    return reader(options, "texts", columns)(path)
