"""Options that the commands of ``train`` share, declared once."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer

from embedtopics.cli._options import FileEncoding, RandomState, TextColumn, whole_numbers_in
from embedtopics.encoders.static._settings import StudentSettings
from embedtopics.errors import InputError
from embedtopics.training._settings import TrainingSettings

TABLES = "csv, tsv, jsonl, json or parquet (each also .gz)."
MEASURED, TRAINED = "What is measured", "How it is trained"

ExamplesFile = Annotated[
    Path,
    typer.Argument(
        readable=False,  # a file that cannot be read has an error of its own
        help=f"What to learn from: {TABLES}",
    ),
]


def _option(text: str, panel: str | None = None) -> Any:
    return typer.Option(help=text, rich_help_panel=panel)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a command, those of the fields `names` of its settings among them."""

    kind: ClassVar[type[Any]]
    names: ClassVar[tuple[str, ...]]
    given: dict[str, Any]  # values of the fields `names`, as they are on the command line
    out: Annotated[Path, _option("Folder for the encoder and its report.")]
    text: TextColumn = None
    encoding: FileEncoding = "utf-8"
    figure: Annotated[Path | None, _option("Write the learning curves, NAME.html.")] = None
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a finished encoder in that folder.")
    ] = False

    def settings(self) -> dict[str, Any]:
        """Return fields of the settings, checked before any file is read."""
        found = {**self.given, "patience": self.given["patience"] or None}
        lengths = found.pop("matryoshka", None)
        if lengths is not None:
            found["matryoshka"] = whole_numbers_in(lengths, "--matryoshka")
        self.kind(**found)
        return found


@dataclass(frozen=True, kw_only=True)
class StudentOptions(Options):
    """Options of ``train student``."""

    kind = StudentSettings
    names = (
        "dimensions", "epochs", "batch_size", "learning_rate", "max_length",
        "validations_per_epoch", "patience", "random_state",
    )  # fmt: skip
    general: Annotated[Path | None, _option(f"Other texts to learn from: {TABLES}")] = None
    general_text: Annotated[str | None, _option("Column of texts in that file.")] = None


@dataclass(frozen=True, kw_only=True)
class RunOptions(Options):
    """Options of every training run."""

    kind = TrainingSettings
    names = (
        "epochs", "batch_size", "learning_rate", "max_length", "matryoshka", "lora_rank",
        "precision", "device", "validations_per_epoch", "patience", "random_state",
    )  # fmt: skip
    encoder: Annotated[
        str | None, _option("Name or folder of a checkpoint; all-MiniLM-L6-v2 if left out.")
    ] = None
    test: Annotated[
        Path | None, _option("Held-out examples, scored before and after training.", MEASURED)
    ] = None
    general: Annotated[
        list[Path] | None,
        _option("Scored pairs of another domain (repeatable): was it forgotten?", MEASURED),
    ] = None
    graded_columns: Annotated[
        str | None, _option("Columns of scored pairs, with commas: texts and score.", MEASURED)
    ] = None
    graded_scale: Annotated[
        str | None, _option("Lowest and highest score of them, such as 0,5.", MEASURED)
    ] = None
    corpus: Annotated[
        Path | None, _option("Documents whose neighbors and topics are compared.", MEASURED)
    ] = None
    classes: Annotated[
        str | None, _option("Column of --corpus with classes for the neighbors' vote.", MEASURED)
    ] = None
    drop_invalid: Annotated[
        bool, typer.Option("--drop-invalid", help="Leave out rows with a missing text or label.")
    ] = False
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Continue from a checkpoint of the same run.")
    ] = True


@dataclass(frozen=True, kw_only=True)
class HeldOutOptions(RunOptions):
    """Options of runs whose examples may be validated on a file."""

    validation: Annotated[
        Path | None,
        _option("Held-out examples that choose the weights; a tenth if left out.", MEASURED),
    ] = None
    allow_overlap: Annotated[
        bool, typer.Option("--allow-overlap", help="Allow test examples in the training set.")
    ] = False


def takes(options: type[Options]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that are the fields of a dataclass and of its settings."""
    hints = get_type_hints(options, include_extras=True)
    shared = [
        _parameter(field.name, hints[field.name], field.default)
        for field in fields(options)
        if field.name != "given"
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters.values()

        @functools.wraps(command)
        def run(**values: Any) -> None:
            chosen = {one.name: values.pop(one.name) for one in shared}
            given = {name: values.pop(name) for name in options.names}
            command(**values, options=options(given=given, **chosen))

        kept = [one.replace(kind=one.KEYWORD_ONLY) for one in own if one.name != "options"]
        parameters = [*kept, *shared, *_of_settings(options)]
        run.__dict__["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def _of_settings(options: type[Options]) -> list[inspect.Parameter]:
    """Return the options that are fields of settings, with their defaults and help."""
    types: dict[str, Any] = {
        **get_type_hints(options.kind), "patience": int, "matryoshka": str | None
    }  # fmt: skip
    known = {field.name: field for field in fields(options.kind)}
    annotated: Any = Annotated
    made = []
    for name in options.names:
        text, default = known[name].metadata["help"], known[name].default or None
        if name == "patience":
            text = f"{text[:-1]}; 0 for never."
        option = annotated[types[name], _option(text, TRAINED)]
        made.append(_parameter(name, RandomState if name == "random_state" else option, default))
    return made


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def numbers_in(given: str | None, option: str) -> tuple[float, float] | None:
    """Return the two numbers of an option, such as a scale."""
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


def columns_of(given: Mapping[str, str | None]) -> list[str] | None:
    """Return columns that are named together, or None where all are left to be found."""
    named = [name for name in given.values() if name is not None]
    if not named:
        return None
    missing = [option for option, name in given.items() if name is None]
    if missing:
        raise InputError(f"expected {' and '.join(given)} together; {missing[0]} is left out")
    return named
