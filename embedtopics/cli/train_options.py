"""Options that the commands of ``train`` share, declared once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from embedtopics.errors import InputError

__all__ = [
    "TABLES", "ExamplesFile", "HeldOutOptions", "RunOptions", "columns_of", "names_in",
    "numbers_in", "takes", "whole_numbers_in",
]  # fmt: skip

TABLES = "csv, tsv, jsonl, json or parquet (each also .gz)."
MEASURED, TRAINED = "What is measured", "How it is trained"

ExamplesFile = Annotated[
    Path,
    typer.Argument(
        readable=False,  # a file that cannot be read has an error of its own
        help=f"What to learn from: {TABLES}",
    ),
]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What every training run can be told.

    Defaults are those of `TrainingSettings`, which help is not to be kept waiting for.
    """

    out: Annotated[Path, typer.Option(help="Folder for the tuned encoder and its report.")]
    encoder: Annotated[
        str | None,
        typer.Option(help="Name or folder of what to start from; all-MiniLM-L6-v2 if left out."),
    ] = None
    test: Annotated[
        Path | None,
        typer.Option(
            help="Held-out examples, scored before and after training.", rich_help_panel=MEASURED
        ),
    ] = None
    general: Annotated[
        list[Path] | None,
        typer.Option(
            help="Pairs of another field with scores (repeatable): was it forgotten?",
            rich_help_panel=MEASURED,
        ),
    ] = None
    graded_columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of pairs with scores: both texts and the score, with commas.",
            rich_help_panel=MEASURED,
        ),
    ] = None
    graded_scale: Annotated[
        str | None,
        typer.Option(
            help="Lowest and highest score of them, such as 0,5.", rich_help_panel=MEASURED
        ),
    ] = None
    corpus: Annotated[
        Path | None,
        typer.Option(
            help="File of documents: what becomes of their neighbours and topics?",
            rich_help_panel=MEASURED,
        ),
    ] = None
    text: Annotated[
        str | None, typer.Option(help="Column of texts; guessed if left out.")
    ] = None  # fmt: skip
    classes: Annotated[
        str | None,
        typer.Option(
            help="Column of --corpus with classes that neighbours vote on.",
            rich_help_panel=MEASURED,
        ),
    ] = None
    epochs: Annotated[
        float, typer.Option(help="How often each example is learned from.", rich_help_panel=TRAINED)
    ] = 3.0
    batch_size: Annotated[
        int, typer.Option(help="Examples of a step.", rich_help_panel=TRAINED)
    ] = 32
    learning_rate: Annotated[
        float, typer.Option(help="At its highest.", rich_help_panel=TRAINED)
    ] = 2e-5
    max_length: Annotated[
        int | None,
        typer.Option(
            help="Most tokens read of a text; as the encoder says.", rich_help_panel=TRAINED
        ),
    ] = None
    matryoshka: Annotated[
        str | None,
        typer.Option(
            help="Shorter lengths of vectors to train as well: 128,64.", rich_help_panel=TRAINED
        ),
    ] = None
    lora_rank: Annotated[
        int | None,
        typer.Option(
            help="Learn low-rank additions alone, at a higher --learning-rate such as 4e-4; needs "
            "peft.",
            rich_help_panel=TRAINED,
        ),
    ] = None
    precision: Annotated[
        str | None,
        typer.Option(
            help="float32, bfloat16 or float16; as suits the device.", rich_help_panel=TRAINED
        ),
    ] = None
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, ...", rich_help_panel=TRAINED)
    ] = None
    validations_per_epoch: Annotated[
        float,
        typer.Option(
            help="Looks at the validation examples; a checkpoint each.", rich_help_panel=TRAINED
        ),
    ] = 4.0
    patience: Annotated[
        int,
        typer.Option(
            help="Validations without a gain that end training; 0 for never.",
            rich_help_panel=TRAINED,
        ),
    ] = 6
    seed: Annotated[int, typer.Option(help="Random seed.", rich_help_panel=TRAINED)] = 42
    drop_invalid: Annotated[
        bool, typer.Option("--drop-invalid", help="Leave out rows with a missing text or label.")
    ] = False
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--fresh",
            help="Go on from a checkpoint of the same run.",
            rich_help_panel=TRAINED,
        ),
    ] = True
    encoding: Annotated[str, typer.Option(help="Encoding of the files.")] = "utf-8"
    figure: Annotated[
        Path | None, typer.Option(help="Draw the learning curves on a page, NAME.html.")
    ] = None

    def settings(self) -> dict[str, Any]:
        """Return the fields of `TrainingSettings`, checked before any file is read."""
        from embedtopics.training.settings import TrainingSettings

        same = (
            "epochs", "batch_size", "learning_rate", "max_length", "lora_rank", "precision",
            "device", "validations_per_epoch", "seed",
        )  # fmt: skip
        found: dict[str, Any] = {name: getattr(self, name) for name in same}
        found["patience"] = self.patience or None
        if self.matryoshka is not None:
            found["matryoshka"] = whole_numbers_in(self.matryoshka, "--matryoshka")
        TrainingSettings(**found)
        return found


@dataclass(frozen=True, kw_only=True)
class HeldOutOptions(RunOptions):
    """What runs can be told whose examples may be validated on a file."""

    validation: Annotated[
        Path | None,
        typer.Option(
            help="Held-out examples that choose the weights; a tenth if left out.",
            rich_help_panel=MEASURED,
        ),
    ] = None
    allow_overlap: Annotated[
        bool,
        typer.Option(
            "--allow-overlap",
            help="Measure on examples that are learned from.",
            rich_help_panel=MEASURED,
        ),
    ] = False


def takes(options: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that are the fields of a dataclass.

    Parameters
    ----------
    options : type
        A dataclass whose fields are annotated as parameters of commands are.

    Returns
    -------
    callable
        Decorates a command whose parameter `options` gets the dataclass.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        hints = get_type_hints(options, include_extras=True)
        shared = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=hints[field.name],
            )
            for field in fields(options)
        ]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            chosen = {field.name: given.pop(field.name) for field in fields(options)}
            command(**given, options=options(**chosen))

        kept = [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, one in own.items()
            if name != "options"
        ]
        parameters = [*kept, *shared]
        run.__dict__["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def names_in(given: str) -> list[str]:
    """Return the names in a list with commas.

    Examples
    --------
    >>> names_in("a, b,")
    ['a', 'b']
    """
    return [name.strip() for name in given.split(",") if name.strip()]


def numbers_in(given: str | None, option: str) -> tuple[float, float] | None:
    """Return the two numbers of an option, such as a scale.

    Raises
    ------
    InputError

    Examples
    --------
    >>> numbers_in("0,5", "--scale")
    (0.0, 5.0)
    """
    if given is None:
        return None
    try:
        low, high = (float(part) for part in given.split(","))
    except ValueError:
        low = high = 0.0
    if not low < high:
        raise InputError(
            f"expected {option} to be the lowest and the highest score, such as 0,5; got {given!r}"
        )
    return low, high


def whole_numbers_in(given: str, option: str) -> tuple[int, ...]:
    """Return the whole numbers in a list with commas.

    Raises
    ------
    InputError

    Examples
    --------
    >>> whole_numbers_in("128,64", "--matryoshka")
    (128, 64)
    """
    names = names_in(given)
    if not names or not all(name.isdecimal() for name in names):
        raise InputError(
            f"expected {option} to be whole numbers with commas, such as 128,64; got {given!r}"
        )
    return tuple(int(name) for name in names)


def columns_of(given: Mapping[str, str | None]) -> list[str] | None:
    """Return columns that are named together, or None where all are left to be found.

    Parameters
    ----------
    given : mapping of str to str or None
        Column by option.

    Raises
    ------
    InputError
        If some are named and others not.
    """
    named = [name for name in given.values() if name is not None]
    if not named:
        return None
    missing = [option for option, name in given.items() if name is None]
    if missing:
        raise InputError(f"expected {' and '.join(given)} together; {missing[0]} is left out")
    return named
