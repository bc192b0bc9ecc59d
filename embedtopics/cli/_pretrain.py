"""``tokenizer-report``: how an encoder cuts words; ``pretrain``: train it on texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from embedtopics.cli import _display as show
from embedtopics.cli import _options as opt
from embedtopics.cli._train import (
    announced,
    compared_corpus,
    finish,
    print_changes,
    read_scored_pairs,
)
from embedtopics.errors import InputError


def tokenizer_report(
    file: opt.DocumentsFile,
    text: opt.TextColumn = None,
    encoder: opt.Checkpoint = "all-MiniLM-L6-v2",
    n_words: Annotated[int, Option(min=1, help="Words to print.")] = 15,
    figure: opt.OutFigure = None,
    out: opt.OutTable = None,
    encoding: opt.FileEncoding = "utf-8",
) -> None:
    """Show how the tokenizer of an encoder splits the words of a file."""
    from embedtopics import plots
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.pretraining import tokenizer_report as report_on_tokenizer

    show.check_outputs(out, figure)
    corpus = Corpus(file, text=text, encoding=encoding)
    report = report_on_tokenizer(encoder, corpus)
    show.write_outputs(out, report.to_frame, figure, lambda: plots.tokens(report))
    show.say(show.printable(report._summary()) + "\n")
    columns = [("word", "words"), ("times", "figure"), ("texts", "figure"), ("pieces", "words")]
    rows = [
        [str(word), f"{n:,}", f"{n_documents:,}", str(cut)]
        for word, n, n_documents, _, cut, *_ in report.words.head(n_words).itertuples(index=False)
    ]
    show.print_table(columns, rows)
    for path in filter(None, (figure, out)):
        typer.echo(f"written to {path}")


def pretrain(
    file: opt.DocumentsFile,
    out: Annotated[Path, Option(help="Folder for the encoder and its report.")],
    text: opt.TextColumn = None,
    encoder: opt.Checkpoint = "all-MiniLM-L6-v2",
    masking: Annotated[str, Option(help="random, whole-word, span or selective.")] = "random",
    terms: Annotated[
        str | None,
        Option(
            help="For selective masking: a file with one word per line, or a column of classes; "
            "their distinctive terms are masked."
        ),
    ] = None,
    objective: Annotated[str, Option(help="mlm, mlm+nsp, mlm+sop or rtd.")] = "mlm",
    add_words: Annotated[int, Option(min=0, help="First add N words that the encoder splits.")] = 0,
    encoding: opt.FileEncoding = "utf-8",
    test: opt.TestExamples = None,
    corpus: opt.ComparedCorpus = None,
    labels: opt.CorpusLabels = None,
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
    """Pre-train an encoder further on texts without labels.

    To measure whether it improved, give pairs with scores as --test, or documents with classes as
    --corpus and --labels.
    """
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.pretraining import extend_vocabulary
    from embedtopics.pretraining import pretrain as pretrain_encoder
    from embedtopics.training import TrainingSettings
    from embedtopics.training._compare import compare_before_after
    from embedtopics.training._rows import Change, frame_of
    from embedtopics.training.trainer._checkpoints import refuse_finished

    settings = TrainingSettings(  # checked before any file is read
        epochs=epochs, batch_size=batch_size, learning_rate=learning_rate,
        max_seq_length=max_seq_length, precision=precision,
        validations_per_epoch=validations_per_epoch, keep=keep, metric=metric,
        random_state=random_state,
    )  # fmt: skip
    show.check_target(report, show.PAGE, "--report")
    refuse_finished(out, overwrite, resume)
    documents = Corpus(file, text, encoding=encoding)
    strategy = _masking(masking.replace("-", "_"), terms, documents)
    compared = compared_corpus(corpus, labels, text, encoding)
    scored_pairs = read_scored_pairs(test, encoding)

    start = encoder
    if add_words:
        start = f"{out}-words"
        extended = extend_vocabulary(encoder, corpus=documents, out=start, n_words=add_words)
        examples = f"({', '.join(extended.words['word'].head(5))}, ...)"
        typer.echo(show.printable(f"{extended._summary()} {examples}"), err=True)
        if scored_pairs is not None or compared is not None:
            show.say("the words alone, before and after:", style="bold")
            changes = compare_before_after(
                encoder, extended.encoder, test=scored_pairs, corpus=compared, labels=labels
            )
            print_changes(frame_of(changes, Change))
            show.say()

    with announced(out):
        result = pretrain_encoder(
            start, documents, strategy, objective=objective, out=out, test=scored_pairs,
            compare_on=compared, labels=labels, before=encoder, settings=settings, resume=resume,
            overwrite=overwrite,
        )  # fmt: skip
    finish(result.report, page=report, documents=corpus or file, text=text)


def _masking(name: str, terms: str | None, corpus: Any) -> Any:
    """Return the name of a masking, or selective masking with terms of a file or of classes."""
    from embedtopics.pretraining import SelectiveMasking

    if (name == "selective") != (terms is not None):
        raise InputError("terms", "given with --masking selective, and only with it", terms)
    if terms is None:
        return name
    file = Path(terms).expanduser()
    if not file.is_file():
        return SelectiveMasking.of_corpus(corpus, terms)
    return SelectiveMasking(list(filter(None, file.read_text("utf-8").split("\n"))))
