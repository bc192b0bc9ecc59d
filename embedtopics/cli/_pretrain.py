"""``tokens``: how an encoder cuts the words of a file; ``pretrain``: train it on these texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from embedtopics.cli import _display as show
from embedtopics.cli import _options as opt
from embedtopics.cli._train import TrainOptions, print_changes, read_test, run_training, takes
from embedtopics.errors import InputError


def tokens(
    file: opt.DocumentsFile,
    text: opt.TextColumn = None,
    encoder: opt.Checkpoint = "all-MiniLM-L6-v2",
    words: Annotated[int, Option(min=1, help="Words to print.")] = 15,
    figure: opt.OutFigure = None,
    out: opt.OutTable = None,
    encoding: opt.FileEncoding = "utf-8",
) -> None:
    """Show how the tokenizer of an encoder splits the words of a file."""
    from embedtopics import plots
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.pretraining import tokenizer_report

    show.check_outputs(out, figure)
    corpus = Corpus.from_file(file, text=text, encoding=encoding)
    report = tokenizer_report(corpus, encoder)
    show.write_outputs(out, report.to_frame, figure, lambda: plots.tokens(report))
    show.say(show.printable(report._summary()) + "\n")
    columns = [("word", "words"), ("times", "figure"), ("texts", "figure"), ("pieces", "words")]
    rows = [
        [str(word), f"{n:,}", f"{n_documents:,}", str(cut)]
        for word, n, n_documents, _, cut, *_ in report.words.head(words).itertuples(index=False)
    ]
    show.print_table(columns, rows)
    for path in filter(None, (figure, out)):
        typer.echo(f"written to {path}")


@takes()
def pretrain(
    file: opt.DocumentsFile,
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
    *,
    options: TrainOptions,
) -> None:
    """Pre-train an encoder further on texts without labels.

    To measure whether it improved, give pairs with scores as --test, or documents with classes as
    --corpus and --classes.
    """
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.pretraining import extend_vocabulary
    from embedtopics.pretraining import pretrain as pretrain_encoder
    from embedtopics.training import compare_before_after
    from embedtopics.training.trainer._checkpoints import refuse_finished

    refuse_finished(options.out, options.overwrite, options.resume)
    corpus = Corpus.from_file(file, text=options.text, encoding=options.encoding)
    strategy = _masking(masking.replace("-", "_"), terms, corpus)
    encoder = options.encoder
    if add_words:
        encoder = f"{options.out}-words"
        extended = extend_vocabulary(options.encoder, corpus=corpus, out=encoder, n_words=add_words)
        examples = f"({', '.join(extended.words['word'].head(5))}, ...)"
        typer.echo(show.printable(f"{extended._summary()} {examples}"), err=True)

    def fit(*learned: Any, corpus: Any = None, **keywords: Any) -> Any:
        sets = {"test": keywords.get("test"), "corpus": corpus, "labels": options.classes}
        if add_words and not (sets["test"] is None and corpus is None):
            show.say("the words alone, before and after:", style="bold")
            print_changes(compare_before_after(options.encoder, extended.encoder, **sets))
            show.say()
        named = {"compare_on": corpus, "before": options.encoder, **keywords}
        return pretrain_encoder(*learned, **named).report

    run_training(
        options, fit, encoder, corpus, strategy, objective=objective, documents=file,
        **read_test(options),
    )  # fmt: skip


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
