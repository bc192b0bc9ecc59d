"""``embedtopics train``: train an encoder on examples or texts, and report whether it improved."""

from __future__ import annotations

import functools
import inspect
import logging
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer import Argument, Option

from embedtopics.cli import _display as show
from embedtopics.cli import _options as opt
from embedtopics.cli._errors import Commands, options_named
from embedtopics.errors import InputError
from embedtopics.training._settings import TrainingSettings

if TYPE_CHECKING:
    from rich.text import Text

    from embedtopics.training import Examples
    from embedtopics.training.results import Change, Diagnosis, TrainingReport

app = Commands(
    help="Train an encoder on your examples or texts, and report whether it improved.",
    no_args_is_help=True,
)

MEASURED, TRAINED = "Evaluation", "Training"
"""Headings of the options in a help text."""

ExamplesFile = Annotated[Path, Argument(readable=False, help="csv, tsv, jsonl, json or parquet.")]


def _option(text: str, panel: str | None = None) -> Any:
    return Option(help=text, rich_help_panel=panel)


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Options of the training commands; each command declares those that it uses."""

    out: Annotated[Path, _option("Folder for the encoder and its report.")]
    encoder: opt.Checkpoint = "all-MiniLM-L6-v2"
    columns: Annotated[str | None, _option("Columns of texts; found by their names.")] = None
    label: Annotated[str | None, _option("Column of labels or scores; found by its name.")] = None
    label_order: Annotated[
        str | None, _option("Classes of the labels 0, 1, 2: entailment,neutral,contradiction.")
    ] = None
    scale: Annotated[str | None, _option("Lowest and highest possible score: 0,5.")] = None
    objective: Annotated[str | None, _option("Objective; see the description above.")] = None
    text: opt.TextColumn = None
    encoding: opt.FileEncoding = "utf-8"
    validation: Annotated[
        Path | None, _option("Examples that select the weights; default: a tenth.", MEASURED)
    ] = None
    test: Annotated[Path | None, _option("Examples scored before and after.", MEASURED)] = None
    corpus: Annotated[Path | None, _option("Documents to compare.", MEASURED)] = None
    classes: Annotated[
        str | None, _option("Column of --corpus with the classes of its documents.", MEASURED)
    ] = None
    report: Annotated[Path | None, _option("Write a report with the curves, NAME.html.")] = None
    drop_invalid: Annotated[
        bool, Option("--drop-invalid", help="Leave out rows with a missing text or label.")
    ] = False
    resume: Annotated[bool, Option("--resume/--fresh", help="Continue a run.")] = True
    overwrite: opt.Overwrite = False
    settings: dict[str, Any] = field(default_factory=dict)


COMMON = (
    "out", "text", "encoder", "test", "corpus", "classes", "encoding", "report", "resume",
    "overwrite",
)  # fmt: skip
HELD_OUT = ("validation", "drop_invalid")
TUNED = (
    "epochs", "batch_size", "learning_rate", "max_seq_length", "precision", "validations_per_epoch",
    "random_state", "keep", "metric",
)  # fmt: skip
"""Fields of `TrainingSettings` that are options."""


def takes(names: Iterable[str] = COMMON) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options `names` and those of `TrainingSettings`, as `options`."""
    hints = get_type_hints(TrainOptions, include_extras=True)
    defaults = {one.name: one.default for one in fields(TrainOptions)}
    shared = [_parameter(name, hints[name], defaults[name]) for name in names]
    tuning = _settings_parameters()

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        of_command = inspect.signature(command, eval_str=True).parameters
        first = [one for name, one in of_command.items() if name != "options"]

        @functools.wraps(command)
        def run(**values: Any) -> None:
            settings = {one.name: values.pop(one.name) for one in tuning}
            TrainingSettings(**settings)  # checked before any file is read
            options = {one.name: values.pop(one.name) for one in shared}
            show.check_target(options["report"], show.PAGE, "--report")
            if options.get("classes") is not None and options["corpus"] is None:
                raise InputError("--classes names a column of --corpus; give both")
            command(**values, options=TrainOptions(settings=settings, **options))

        return opt.with_parameters(run, [*first, *shared, *tuning])

    return decorate


def _settings_parameters() -> list[inspect.Parameter]:
    """Return fields of settings as options, with their defaults and help texts."""
    hints = get_type_hints(TrainingSettings)
    settings = {one.name: one for one in fields(TrainingSettings)}
    annotated: Any = Annotated
    parameters = []
    for name in TUNED:
        hint = annotated[hints[name], _option(settings[name].metadata["help"], TRAINED)]
        hint = opt.RandomState if name == "random_state" else hint
        parameters.append(_parameter(name, hint, settings[name].default))
    return parameters


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


FAMILIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "nli": (
        "nli",
        "Train on inference pairs: premise, hypothesis, class.\n\nObjectives: ranking, softmax.",
        ("columns", "label", "label_order", "objective"),
    ),
    "sts": (
        "graded",
        "Train on pairs of texts with a similarity score.\n\nObjectives: cosine, cosent.",
        ("columns", "label", "scale", "objective"),
    ),
    "triplets": (
        "triplets",
        "Train on triplets: an anchor, a similar text, and dissimilar texts.\n\n"
        "Objectives: ranking, triplet.",
        ("columns", "objective"),
    ),
    "pairs": ("pairs", "Train on pairs of texts that belong together.", ("columns",)),
}
"""Kind of examples, help and own options of each command that learns from examples."""


def _add_family(name: str) -> None:
    kind, text, names = FAMILIES[name]

    @takes((*names, *COMMON, *HELD_OUT))
    def command(file: ExamplesFile, *, options: TrainOptions) -> None:
        read = functools.partial(_read, options=options, kind=kind)
        held_out: dict[str, Any] = {
            part: read(path)
            for part, path in (("validation", options.validation), ("test", options.test))
            if path is not None
        }
        run_training(
            options, "fit", options.encoder, read(file), options.objective,
            kind=kind, **held_out,
        )  # fmt: skip

    app.command(name, help=text)(command)


for _name in FAMILIES:
    _add_family(_name)


@app.command()
@takes((*COMMON, *HELD_OUT))
def unsupervised(file: ExamplesFile, *, options: TrainOptions) -> None:
    """Train on texts without labels, by SimCSE; --test takes pairs with scores."""
    validation = options.validation and _read_texts(options.validation, options)
    run_training(
        options, "fit", options.encoder, _read_texts(file, options), "simcse",
        kind="texts", validation=validation, documents=file, **read_test(options),
    )  # fmt: skip


@app.command(name="read")
def read_folder(
    folder: Annotated[Path, Argument(help="Folder of an encoder that train wrote.")],
    report: Annotated[Path | None, Option(help="Write the report, NAME.html.")] = None,
) -> None:
    """Print the report of a training run again."""
    from embedtopics import training

    show.check_target(report, show.PAGE, "--report")
    print_report(training.TrainingReport.load(folder), folder, page=report)


def _read(path: Path, options: TrainOptions, kind: str) -> Examples:
    """Read examples in the columns that the options name."""
    from embedtopics import training

    columns = None if options.columns is None else opt.names_in(options.columns)
    label_order = None if options.label_order is None else opt.names_in(options.label_order)
    return training.read_examples(
        path, kind, columns=columns, label=options.label, label_order=label_order,
        scale=_scale(options.scale), drop_invalid=options.drop_invalid, encoding=options.encoding,
    )  # fmt: skip


def _scale(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError("scale", "the lowest and the highest score, such as 0,5", text) from None
    return low, high


def _read_texts(path: Path, options: TrainOptions) -> Examples:
    from embedtopics import training

    with options_named(columns="--text"):
        return training.read_examples(
            path, "texts", columns=None if options.text is None else [options.text],
            drop_invalid=options.drop_invalid, encoding=options.encoding,
        )  # fmt: skip


def read_test(options: TrainOptions) -> dict[str, Examples]:
    """Read the scored pairs of --test, for commands that learn from texts alone."""
    from embedtopics import training

    if options.test is None:
        return {}
    with options_named(columns="the columns of --test", label="the column of scores of --test"):
        examples = training.read_examples(options.test, "graded", encoding=options.encoding)
    return {"test": examples}


def run_training(
    options: TrainOptions,
    fit: str | Callable[..., Any],
    *learned: Any,
    documents: Path | None = None,
    **keywords: Any,
) -> None:
    """Train with a function of `embedtopics.training`, draw the curves and print the report."""
    from embedtopics import training
    from embedtopics.corpus._corpus import Corpus

    if (file := options.corpus) is not None:
        keywords["corpus"] = Corpus.from_file(file, text=options.text, encoding=options.encoding)
    keywords |= {"labels": options.classes, "resume": options.resume, "settings": options.settings}
    function = getattr(training, fit) if isinstance(fit, str) else fit
    with _announced(options.out):
        report = function(*learned, out=options.out, overwrite=options.overwrite, **keywords)
    print_report(
        report, Path(report.folder), page=options.report,
        documents=options.corpus or documents, text=options.text,
    )  # fmt: skip
    if report.stopped == "loss not finite":
        raise typer.Exit(1)


@contextmanager
def _announced(out: Path) -> Iterator[None]:
    """Keep the warnings of a run for its report, and say how to resume a run that has to end."""
    logger = logging.getLogger("embedtopics.training")
    handler, propagates = logging.NullHandler(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    except SystemExit as end:
        if end.code == 143:  # SIGTERM
            again = "run the same command again to resume from the checkpoint in"
            typer.echo(f"training was interrupted; {again} {out}.training", err=True)
        raise
    finally:
        logger.propagate = propagates
        logger.removeHandler(handler)


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
    show.print_notes([note.message for note in report.decisions], stderr=True)
    warnings = _warnings(report)
    for warning in warnings:
        show.say(f"WARNING: {show.printable(warning)}", style="bold red", soft_wrap=True)
    if warnings:
        show.say()
    show.print_lines(_of_training(report))
    show.say()
    _print_diagnosis(report.diagnosis)
    if report.before_after:
        show.say("\nbefore and after:", style="bold")
        print_changes(report.before_after)
    show.say(f"\nencoder written to {show.printable(str(folder))}:", soft_wrap=True)
    show.say("  training-report   this report; print it with embedtopics train read")
    show.say("  README.md         the model card")
    if page is not None:
        show.say(f"report written to {show.printable(str(page))}", soft_wrap=True)
    if report.stopped != "loss not finite":
        column = [] if documents is None or text is None else ["--text", text]
        command = ["embedtopics", "topics", str(documents or "articles.csv"), *column]
        command += ["--out", "topics", "--encoder", str(folder)]
        show.say(f"\nnext: {show.printable(shlex.join(command))}", soft_wrap=True)


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
    elif verdict not in ("just right", "could learn more"):
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
        "time": f"{show.spell_seconds(report.seconds)} of training, {rate}",
    }


def _print_diagnosis(diagnosis: Diagnosis) -> None:
    confidence = diagnosis.confidence
    sure = f" (confidence {confidence:.0%})" if confidence == confidence else ""
    show.say(f"verdict: {show.printable(diagnosis.verdict)}{sure}", style="bold")
    for evidence in diagnosis.evidence:
        show.say(f"  - {show.printable(evidence.says)}", soft_wrap=True)
    for number, advice in enumerate(diagnosis.advice):
        heading = "" if number else "\nadvice:\n"
        show.say(f"{heading}  - {show.printable(advice)}", soft_wrap=True)


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
            rows.append([Text(show.printable(f"{task}{times}"), style="bold")])
        notes = list(dict.fromkeys([*notes, *filter(None, [change.note])]))
        mark = f" ({notes.index(change.note) + 1})" if change.note else ""
        style = {"worse": "red", "better": "green"}.get(change.verdict, "")
        metric = f"  {change.metric}, n = {change.n:,}"
        verdict = Text(show.printable(f"{change.verdict}{mark}"), style=style)
        figures = [f"{x:.3f}" if x == x else "-" for x in (change.before, change.after)]
        difference = show.spell_interval(change.difference, change.low, change.high, form="+.3f")
        rows.append([metric, *figures, difference, verdict])
    show.print_table(columns, rows)
    for number, note in enumerate(notes, 1):
        show.say(f"({number}) {show.printable(note)}", soft_wrap=True)
