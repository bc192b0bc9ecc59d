"""From the options of a training command to a run, and from its report to what is printed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from embedtopics.cli._display import PAGE, check_target
from embedtopics.cli._errors import options_named
from embedtopics.cli._options import names_in
from embedtopics.cli._train_options import HeldOutOptions, RunOptions, columns_of, numbers_in
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.decisions import Decision
    from embedtopics.training._examples import Examples


Read = Callable[[Path], "Examples"]

LOSS_NOT_FINITE = 1
TERMINATED = 143


def prepared(options: RunOptions) -> dict[str, Any]:
    """Return the settings of a run, once it is clear that its results can be written."""
    from embedtopics._utils.folders import check_output_folder, is_kind
    from embedtopics.encoders.static._files import KIND as STATIC
    from embedtopics.training.objectives._trainable import KIND as TRAINED
    from embedtopics.training.trainer._checkpoints import refuse_finished

    if options.classes is not None and options.corpus is None:
        raise InputError("--classes names a column of --corpus; give the corpus, too")
    settings = options.settings()
    check_target(options.figure, PAGE, "--figure")
    # Which of the two kinds of encoder it becomes is not known yet; either may replace its like.
    out = options.out.expanduser()
    refuse_finished(out, options.overwrite, options.resume)
    check_output_folder(out, STATIC if is_kind(out, STATIC) else TRAINED)
    return settings


def starting_encoder(options: RunOptions) -> str:
    """Return the name or folder of the encoder that training starts from."""
    from embedtopics.encoders.sentence._loading import DEFAULT_MODEL

    return options.encoder or DEFAULT_MODEL


def reader(options: RunOptions, kind: str, columns: Sequence[str] | None, **more: Any) -> Read:
    """Return what reads a file as the training examples are read."""

    def read(path: Path) -> Examples:
        from embedtopics.training._examples import read_examples

        given: dict[str, Any] = {"columns": columns, "drop_invalid": options.drop_invalid, **more}
        return read_examples(path, kind, encoding=options.encoding, **given)

    return read


def train_on(
    file: Path,
    options: HeldOutOptions,
    kind: str,
    fit: str,
    objective: str,
    columns: Mapping[str, str | None],
    more_columns: Sequence[str] = (),
    **more: Any,
) -> None:
    """Train on a file of examples, whose columns are named by options."""
    *flags, last = columns
    named_columns = f"{', '.join(flags)} and {last}"
    label = "--score" if kind == "graded" else "--label"
    with options_named(columns=named_columns, label=label):
        settings = prepared(options)
        named = columns_of(columns)
        read = reader(options, kind, None if named is None else [*named, *more_columns], **more)
        learned = starting_encoder(options), read(file)
        run_and_tell(options, settings, fit, learned, read, objective=objective)


def run_and_tell(
    options: RunOptions,
    settings: dict[str, Any],
    fit: str | Callable[..., Any],
    learned: Sequence[Any],
    read: Read | None,
    *,
    validation: Examples | None = None,
    documents: Path | None = None,
    notes: Sequence[Decision] = (),
    **more: Any,
) -> None:
    """Train, draw, print."""
    from embedtopics.cli._train_display import print_report
    from embedtopics.training import _fit

    held = _held_out(options, read)
    if validation is not None:
        held["validation"] = validation
    given = {**held, **more, **settings, "resume": options.resume, "overwrite": options.overwrite}
    with _decisions_shown_later(), _ended_politely(options.out):
        function = getattr(_fit, fit) if isinstance(fit, str) else fit
        report = function(*learned, out=options.out, **given)
    shown: dict[str, Any] = {"documents": options.corpus or documents, "text": options.text}
    print_report(report, Path(report.folder), notes=notes, figure=options.figure, **shown)
    if report.stopped == "loss not finite":
        raise typer.Exit(LOSS_NOT_FINITE)


def _held_out(options: RunOptions, read: Read | None) -> dict[str, Any]:
    from embedtopics.corpus._corpus import Corpus

    graded = _graded_reader(options)
    test_reader = graded if read is None else read
    found: dict[str, Any] = {}
    if isinstance(options, HeldOutOptions):
        found["allow_overlap"] = options.allow_overlap
        if options.validation is not None:
            found["validation"] = (read or graded)(options.validation)
    if options.test is not None:
        with options_named(**(_GRADED if read is None else {})):
            found["test"] = test_reader(options.test)
    if options.general:
        names = [path.stem for path in options.general]
        if len(set(names)) < len(names):
            raise InputError("expected --general files of different names, to tell them apart")
        with options_named(**_GRADED):
            found["general"] = {path.stem: graded(path) for path in options.general}
    if options.corpus is not None:
        found["corpus"] = Corpus.from_file(
            options.corpus, text=options.text, encoding=options.encoding
        )
        found["classes"] = options.classes
    return found


_GRADED = {"columns": "--graded-columns", "label": "--graded-columns", "scale": "--graded-scale"}


def _graded_reader(options: RunOptions) -> Read:
    columns = None if options.graded_columns is None else names_in(options.graded_columns)
    if columns is not None and len(columns) != 3:
        raise InputError(
            "expected --graded-columns to name three columns with commas, both texts and the "
            f"score; got {options.graded_columns!r}"
        )
    scale = numbers_in(options.graded_scale, "--graded-scale")
    if columns is None:
        return reader(options, "graded", None, scale=scale)
    return reader(options, "graded", columns[:2], label=columns[2], scale=scale)


@contextmanager
def _decisions_shown_later() -> Iterator[None]:
    """Keep the warnings of a run off the terminal: they are decisions, printed at its end."""
    logger = logging.getLogger("embedtopics.training")
    handler, passed_on = logging.NullHandler(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = passed_on
        logger.removeHandler(handler)


@contextmanager
def _ended_politely(out: Path) -> Iterator[None]:
    """Say how to go on where a run is asked to end."""
    try:
        yield
    except SystemExit as end:
        if end.code == TERMINATED:
            typer.echo(
                f"ended early, as asked; a checkpoint lies in {out}.training, and the same command "
                "goes on from it",
                err=True,
            )
        raise
