"""``tokens``: how an encoder reads the words of a file; ``pretrain``: what it learns from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from embedtopics.cli import _options as opt
from embedtopics.cli._display import (
    check_outputs,
    make_console,
    print_table,
    printable,
    write_outputs,
)
from embedtopics.cli._errors import options_named
from embedtopics.cli._train_options import RunOptions, takes
from embedtopics.cli._train_running import prepared, run_and_tell, starting_encoder
from embedtopics.errors import InputError


def tokens(
    file: opt.DocumentsFile,
    text: opt.TextColumn = None,
    encoder: opt.Checkpoint = "all-MiniLM-L6-v2",
    words: Annotated[int, typer.Option(min=1, help="Words to print, the costliest.")] = 15,
    figure: opt.OutFigure = None,
    out: opt.OutTable = None,
    encoding: opt.FileEncoding = "utf-8",
    limit: opt.RowLimit = None,
) -> None:
    """Show into how many pieces an encoder cuts the words of a file."""
    from embedtopics import plots
    from embedtopics.corpus import Corpus
    from embedtopics.pretraining import tokenizer_report

    check_outputs(out, figure)
    corpus = Corpus.from_file(file, text=text, encoding=encoding, limit=limit)
    report = tokenizer_report(corpus, encoder)
    write_outputs(out, report.to_frame, figure, lambda: plots.tokens(report))
    console = make_console()
    console.print(printable(report._summary()) + "\n")
    columns = [(name, "figure") for name in ("texts", "pieces a word", "in 3+")]
    rows = [
        [str(code), f"{n:,}", f"{fertility:.2f}", f"{share:.1%}"]
        for code, n, fertility, share in report.by_language.iloc[:, :4].itertuples(index=False)
    ]
    print_table(console, [("language", "words"), *columns], rows)
    console.print()
    columns = [("word", "words"), ("times", "figure"), ("texts", "figure"), ("pieces", "words")]
    rows = [
        [str(word), f"{n:,}", f"{n_documents:,}", str(cut)]
        for word, n, n_documents, _, cut, *_ in report.words.head(words).itertuples(index=False)
    ]
    print_table(console, columns, rows)
    for path in filter(None, (figure, out)):
        typer.echo(f"written to {path}")


@takes(RunOptions)
def pretrain(
    file: opt.DocumentsFile,
    masking: Annotated[
        str, typer.Option(help="random, whole-word, span or selective: which tokens are hidden.")
    ] = "random",
    terms: Annotated[
        str | None,
        typer.Option(
            help="Of selective: a file with a word a line, or a column of classes, whose own terms "
            "by class-TF-IDF are hidden."
        ),
    ] = None,
    objective: Annotated[
        str, typer.Option(help="mlm, mlm+nsp, mlm+sop or rtd: what is learned.")
    ] = "mlm",
    keep_geometry: Annotated[
        bool | None,
        typer.Option(
            "--keep-geometry/--free",
            help="Keep vectors near those of before; if left out, for sentence encoders.",
        ),
    ] = None,
    add_words: Annotated[
        int,
        typer.Option(min=0, help="First add so many words that the encoder cuts into pieces."),
    ] = 0,
    *,
    options: RunOptions,
) -> None:
    """Let an encoder predict hidden words of your texts, which need no labels.

    --test has pairs with scores, --corpus texts with --classes: they show whether it helped.
    """
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.pretraining._pretrain import pretrain as go_on
    from embedtopics.pretraining._vocabulary import extend_vocabulary

    def learn(encoder: Any, texts: Any, *, corpus: Any = None, **given: Any) -> Any:
        return go_on(encoder, texts, chosen, compare_on=corpus, **given).report

    with options_named(columns="--text"):
        settings = prepared(options)
        texts = Corpus.from_file(file, text=options.text, encoding=options.encoding)
        chosen = _masking(masking.replace("-", "_"), terms, texts)
        more: dict[str, Any] = {
            "documents": file, "keep_geometry": keep_geometry, "objective": objective
        }  # fmt: skip
        encoder = starting_encoder(options)
        if add_words:
            folder = f"{options.out}-words"
            added = extend_vocabulary(encoder, corpus=texts, out=folder, n_words=add_words)
            encoder = folder
            some = ", ".join(added.words["word"].head(5))
            typer.echo(printable(f"{added._summary()} ({some}, ...)"), err=True)
        run_and_tell(options, settings, learn, (encoder, texts), None, **more)


def _masking(name: str, terms: str | None, corpus: Any) -> Any:
    """Return a masking by its name, or that of terms: of a file, or of a column of classes."""
    from embedtopics.pretraining import SelectiveMasking

    if (name == "selective") != (terms is not None):
        wanted = "a file or a column with --masking selective, and with it alone"
        raise InputError("terms", wanted, terms)
    if terms is None:
        return name
    file = Path(terms).expanduser()
    if not file.is_file():
        return SelectiveMasking.of_corpus(corpus, terms)
    return SelectiveMasking(list(filter(None, file.read_text("utf-8").split("\n"))))
