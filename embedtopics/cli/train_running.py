"""From the options of a training command to a run, and from its report to what is printed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from embedtopics.cli.train_options import HeldOutOptions, RunOptions, names_in, numbers_in
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.results import Decision
    from embedtopics.training import Examples

__all__ = ["Read", "prepared", "reader", "run_and_tell", "spoken", "starting_encoder"]

Read = Callable[[Path], "Examples"]

LOSS_NOT_FINITE = 1
TERMINATED = 143

_SPOKEN = {
    "name it with columns=": "name the columns with {columns}",
    "name it with label=": "name it with {label}",
    "label_order, such as label_order=('entailment', 'neutral', 'contradiction')":
        "--label-order, such as --label-order entailment,neutral,contradiction",
    "expected label_order": "expected --label-order",
    "such as scale=(0, 5)": "such as {scale} 0,5",
    "or give the scale that was used": "or give the scale that was used with {scale}",
    "drop_invalid=True": "--drop-invalid",
    "pass resume=False": "add --fresh",
    "take them out of the training set with without_examples_of(train, held_out), or, where it is "
    "meant, allow it (allow=True; allow_overlap=True of a fit)":
        "take them out of the training set, or, where it is meant, add --allow-overlap",
    "give more, or allow fewer with least=": "give more",
    "give more examples, a larger share, or examples that are held out already":
        "give more examples{held}",
    'learn from these examples with objective="softmax"':
        "learn from these examples with --objective softmax",
    "expected objective to be": "expected --objective to be",
    "expected method to be": "expected --method to be",
    "expected keep to be": "expected --keep-layers to be",
    "when the corpus is made (id=)": "with --id",
    "give candidates, raise share or depth, or lower skip_top":
        "give more pairs, or ask for fewer with --hard-negatives",
    "without lora_rank": "without --lora-rank",
    "a larger max_length": "a larger --max-length",
}  # fmt: skip
"""What the remedies of Python are called on the command line."""


def prepared(options: RunOptions) -> dict[str, Any]:
    """Return the settings of a run, once it is clear that its results can be written.

    Raises
    ------
    InputError
        If a setting is out of range, or what would be written could not be, or would replace
        something else.
    """
    from embedtopics._files import check_output_folder, is_kind
    from embedtopics.cli.files import PAGE, check_target
    from embedtopics.encoders.static_files import KIND as STATIC
    from embedtopics.training.objectives.trainee import KIND as TRAINED

    if options.classes is not None and options.corpus is None:
        raise InputError("--classes names a column of --corpus; give the corpus, too")
    settings = options.settings()
    check_target(options.figure, PAGE, "--figure")
    # Which of the two kinds of encoder it becomes is not known yet; either may replace its like.
    out = options.out.expanduser()
    check_output_folder(out, STATIC if is_kind(out, STATIC) else TRAINED)
    return settings


def starting_encoder(options: RunOptions) -> str:
    """Return the name or folder of the encoder that training starts from."""
    from embedtopics.encoders.resolve import DEFAULT_MODEL

    return options.encoder or DEFAULT_MODEL


def reader(options: RunOptions, kind: str, columns: Sequence[str] | None, **more: Any) -> Read:
    """Return what reads a file as the training examples are read.

    Parameters
    ----------
    options : RunOptions
    kind : str
        See `Examples`.
    columns : sequence of str or None
    **more
        For `read_examples`.
    """

    def read(path: Path) -> Examples:
        from embedtopics.training import read_examples

        return read_examples(
            path, kind, columns=columns, drop_invalid=options.drop_invalid,
            encoding=options.encoding, **more,
        )  # fmt: skip

    return read


def run_and_tell(
    options: RunOptions,
    settings: dict[str, Any],
    fit: Callable[..., Any],
    learned: Sequence[Any],
    read: Read | None,
    *,
    validation: Examples | None = None,
    documents: Path | None = None,
    notes: Sequence[Decision] = (),
    **more: Any,
) -> None:
    """Train, draw, print.

    Parameters
    ----------
    options : RunOptions
    settings : dict
        Of `prepared`.
    fit : callable
        Of `embedtopics.training`.
    learned : sequence
        Its arguments by place.
    read : callable or None
        Reads validation and test files; None where they are not of the kind that is learned from,
        and test examples are pairs with scores.
    validation : Examples, optional
        In place of the file that the options name.
    documents : Path, optional
        File of texts that was learned from, for the next command; by default ``--corpus``.
    notes : sequence of Decision
        About the examples, where these are given to `fit` as plain texts.
    **more
        For `fit`.
    """
    held = _held_out(options, read)
    if validation is not None:
        held["validation"] = validation
    with _decisions_told_later(), _ended_politely(options.out):
        report = fit(
            *learned, out=options.out, resume=options.resume, **held, **more, **settings
        )  # fmt: skip
    from embedtopics.cli.train_display import draw_curves, print_training

    # Drawn before anything is printed: a closed pipe must not cost the figure.
    if options.figure is not None:
        draw_curves(report, options.figure)
    print_training(
        report, notes=notes, figure=options.figure, documents=options.corpus or documents,
        text=options.text,
    )  # fmt: skip
    if report.stopped == "loss not finite":
        raise typer.Exit(LOSS_NOT_FINITE)


def _held_out(options: RunOptions, read: Read | None) -> dict[str, Any]:
    from embedtopics.corpus import Corpus

    graded = _graded_reader(options)
    test_reader = graded if read is None else read
    found: dict[str, Any] = {}
    if isinstance(options, HeldOutOptions):
        found["allow_overlap"] = options.allow_overlap
        if options.validation is not None:
            found["validation"] = (read or graded)(options.validation)
    if options.test is not None:
        with spoken(*(_GRADED if read is None else ())):
            found["test"] = test_reader(options.test)
    if options.general:
        names = [path.stem for path in options.general]
        if len(set(names)) < len(names):
            raise InputError("expected --general files of different names, to tell them apart")
        with spoken(*_GRADED):
            found["general"] = {path.stem: graded(path) for path in options.general}
    if options.corpus is not None:
        found["corpus"] = Corpus.from_file(
            options.corpus, text=options.text, encoding=options.encoding
        )
        found["classes"] = options.classes
    return found


_GRADED = ("--graded-columns", "--graded-columns", "--graded-scale")


def _graded_reader(options: RunOptions) -> Read:
    columns = None if options.graded_columns is None else names_in(options.graded_columns)
    if columns is not None and len(columns) != 3:
        raise InputError(
            "expected --graded-columns to name three columns with commas, both texts and the "
            f"score; got {options.graded_columns!r}"
        )
    return reader(
        options, "graded", None if columns is None else columns[:2],
        label=None if columns is None else columns[2],
        scale=numbers_in(options.graded_scale, "--graded-scale"),
    )  # fmt: skip


@contextmanager
def spoken(
    columns: str = "",
    label: str = "--label",
    scale: str = "--scale",
    held: str = ", or a file of held-out ones with --validation",
) -> Iterator[None]:
    """Let errors name the options of the command line, not the parameters of Python.

    Parameters
    ----------
    columns, label, scale : str
        Options for these.
    held : str
        What can be done, besides, where there are too few examples to hold some out.

    Notes
    -----
    An error passes through several of these contexts; the inner one, which knows what was read,
    speaks first.
    """
    try:
        yield
    except InputError as error:
        message = str(error)
        for said, option in _SPOKEN.items():
            message = message.replace(
                said, option.format(columns=columns, label=label, scale=scale, held=held)
            )
        if message == str(error):
            raise
        raise InputError(message) from None


@contextmanager
def _decisions_told_later() -> Iterator[None]:
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
    """Say how to go on where a run is told to end."""
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
