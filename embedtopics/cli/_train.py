"""``train``: train an encoder on examples or texts, and report whether it improved."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from embedtopics.cli import _display as show
from embedtopics.cli import _options as opt
from embedtopics.cli._errors import options_named
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from rich.text import Text

    from embedtopics.training import Examples
    from embedtopics.training.results import Diagnosis, TrainingReport

Kind = Literal["nli", "graded", "pairs", "triplets", "texts"]


def train(
    file: Annotated[Path, Argument(readable=False, help="csv, tsv, jsonl, json or parquet.")],
    kind: Annotated[
        Kind,
        Option(
            help="nli: premise, hypothesis, class. graded: two texts and a score. pairs: two texts "
            "that belong together. triplets: an anchor, a similar text, dissimilar texts. texts: "
            "texts without labels."
        ),
    ],
    out: Annotated[Path, Option(help="Folder for the encoder and its report.")],
    encoder: opt.Checkpoint = "all-MiniLM-L6-v2",
    objective: Annotated[
        str | None,
        Option(
            help="Of nli: ranking, softmax. Graded: cosine, cosent. Triplets: ranking, triplet."
        ),
    ] = None,
    columns: Annotated[
        str | None, Option(help="Columns of texts, with commas; found by their names.")
    ] = None,
    label: Annotated[
        str | None, Option(help="Column of classes or scores; found by its name.")
    ] = None,
    label_order: Annotated[
        str | None, Option(help="Classes of the labels 0, 1, 2: entailment,neutral,contradiction.")
    ] = None,
    scale: Annotated[str | None, Option(help="Lowest and highest possible score: 0,5.")] = None,
    drop_invalid: Annotated[
        bool, Option("--drop-invalid", help="Leave out rows with a missing text or label.")
    ] = False,
    encoding: opt.FileEncoding = "utf-8",
    validation: Annotated[
        Path | None,
        Option(
            help="Examples that select the weights; default: a tenth.", rich_help_panel=opt.MEASURED
        ),
    ] = None,
    test: opt.TestExamples = None,
    corpus: opt.ComparedCorpus = None,
    labels: opt.CorpusLabels = None,
    text: opt.CorpusText = None,
    epochs: opt.Epochs = 3.0,
    batch_size: opt.BatchSize = 32,
    learning_rate: opt.LearningRate = 2e-5,
    max_seq_length: opt.MaxSeqLength = None,
    precision: opt.Precision = None,
    validations_per_epoch: opt.ValidationsPerEpoch = 4.0,
    keep: opt.Keep = "best",
    metric: opt.Metric = None,
    random_state: opt.RandomState = 0,
    report: opt.ReportPage = None,
    resume: opt.Resume = True,
    overwrite: opt.Overwrite = False,
) -> None:
    """Train an encoder on examples, and report whether it improved."""
    from embedtopics.training import TrainingSettings, fit

    settings = TrainingSettings(  # checked before any file is read
        epochs=epochs, batch_size=batch_size, learning_rate=learning_rate,
        max_seq_length=max_seq_length, precision=precision,
        validations_per_epoch=validations_per_epoch, keep=keep, metric=metric,
        random_state=random_state,
    )  # fmt: skip
    show.check_target(report, show.PAGE, "--report")
    documents = compared_corpus(corpus, labels, text, encoding)

    def read(path: Path | None, kind: str) -> Examples | None:
        if path is None:
            return None
        return _read(path, kind, columns, label, label_order, scale, drop_invalid, encoding)

    if kind == "texts" and columns is None:
        columns = text
    # Texts have no answers: what they improve is measured on pairs with scores.
    test_examples = read_scored_pairs(test, encoding) if kind == "texts" else read(test, kind)
    with announced(out):
        training_report = fit(
            encoder, read(file, kind), objective, out=out, kind=kind,
            validation=read(validation, kind), test=test_examples, corpus=documents, labels=labels,
            settings=settings, resume=resume, overwrite=overwrite,
        )  # fmt: skip
    next_file = corpus or (file if kind == "texts" else None)
    finish(training_report, page=report, documents=next_file, text=text)


def _read(
    path: Path,
    kind: str,
    columns: str | None,
    label: str | None,
    label_order: str | None,
    scale: str | None,
    drop_invalid: bool,
    encoding: str,
) -> Examples:
    """Read examples in the columns that the options name."""
    from embedtopics.training import read_examples

    return read_examples(
        path, kind,
        columns=None if columns is None else opt.names_in(columns),
        label=label,
        label_order=None if label_order is None else opt.names_in(label_order),
        scale=scale_of(scale), drop_invalid=drop_invalid, encoding=encoding,
    )  # fmt: skip


def scale_of(text: str | None) -> tuple[float, float] | None:
    """Return the ends of a scale such as ``0,5``."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError("scale", "the lowest and the highest score, such as 0,5", text) from None
    return low, high


def read_scored_pairs(path: Path | None, encoding: str) -> Examples | None:
    """Read the scored pairs of --test, for commands that learn from texts alone."""
    from embedtopics.training import read_examples

    if path is None:
        return None
    with options_named(columns="the columns of --test", label="the column of scores of --test"):
        return read_examples(path, "graded", encoding=encoding)


def compared_corpus(
    corpus: Path | None, labels: str | None, text: str | None, encoding: str
) -> Any:
    """Read the documents on which the encoder is compared before and after."""
    from embedtopics.corpus._corpus import Corpus

    if corpus is None:
        if labels is not None:
            raise InputError("--labels names a column of --corpus; give both")
        return None
    return Corpus(corpus, text, encoding=encoding)


def finish(
    report: TrainingReport, *, page: Path | None, documents: Path | None, text: str | None
) -> None:
    """Print the report of a run, and exit with 1 if it failed."""
    print_report(report, Path(report.folder), page=page, documents=documents, text=text)
    if report.stopped == "loss not finite":
        raise typer.Exit(1)


@contextmanager
def announced(out: Path) -> Iterator[None]:
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
    if not report.before_after.empty:
        show.say("\nbefore and after:", style="bold")
        print_changes(report.before_after)
    show.say(f"\nencoder written to {show.printable(str(folder))}:", soft_wrap=True)
    show.say("  training-report   this report; print it with embedtopics report")
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
    from embedtopics.training._rows import Change, rows_of

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
        for change in rows_of(report.before_after, Change)
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
    for says in diagnosis.evidence["says"]:
        show.say(f"  - {show.printable(says)}", soft_wrap=True)
    for number, advice in enumerate(diagnosis.advice):
        heading = "" if number else "\nadvice:\n"
        show.say(f"{heading}  - {show.printable(advice)}", soft_wrap=True)


def print_changes(changes: pd.DataFrame) -> None:
    from rich.text import Text

    from embedtopics.training._rows import Change, rows_of

    columns = [("", "words"), ("before", "figure"), ("after", "figure")]
    columns += [("difference, 95 %", "line"), ("", "words")]
    rows: list[list[str | Text]] = []
    notes: list[str] = []
    task = ""
    for change in rows_of(changes, Change):
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
