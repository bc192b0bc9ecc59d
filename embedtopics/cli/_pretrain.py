"""``tokens``: how an encoder reads the words of a file."""

from __future__ import annotations

from typing import Annotated

import typer

from embedtopics.cli._display import (
    FIGURE,
    PAGE,
    TABLE,
    WORDS,
    check_target,
    guarded,
    make_console,
    print_table,
    printable,
    write_figure,
)
from embedtopics.cli._options import (
    Checkpoint,
    DocumentsFile,
    FileEncoding,
    OutFigure,
    OutTable,
    RowLimit,
    TextColumn,
)


@guarded
def tokens(
    file: DocumentsFile,
    text: TextColumn = None,
    encoder: Checkpoint = "all-MiniLM-L6-v2",
    words: Annotated[int, typer.Option(min=1, help="Words to print, the costliest.")] = 15,
    figure: OutFigure = None,
    out: OutTable = None,
    encoding: FileEncoding = "utf-8",
    limit: RowLimit = None,
) -> None:
    """Show into how many pieces an encoder cuts the words of a file."""
    from embedtopics import plots
    from embedtopics._utils.table_files import write_table
    from embedtopics.corpus import Corpus
    from embedtopics.pretraining import tokenizer_report

    check_target(figure, PAGE, "--figure")
    check_target(out, TABLE)
    corpus = Corpus.from_file(file, text=text, encoding=encoding, limit=limit)
    report = tokenizer_report(corpus, encoder)
    if figure is not None:
        write_figure(plots.tokens(report), figure)
    if out is not None:
        write_table(report.to_frame(), out)
    console = make_console()
    console.print(printable(report._summary()) + "\n")
    languages = report.by_language
    print_table(
        console,
        [("language", WORDS), *((name, FIGURE) for name in ("texts", "pieces a word", "in 3+"))],
        [
            [str(code), f"{n:,}", f"{fertility:.2f}", f"{share:.1%}"]
            for code, n, fertility, share in languages.iloc[:, :4].itertuples(index=False)
        ],
    )
    console.print()
    print_table(
        console,
        [("word", WORDS), ("times", FIGURE), ("texts", FIGURE), ("pieces", WORDS)],
        [
            [str(word), f"{n:,}", f"{n_documents:,}", str(cut)]
            for word, n, n_documents, _, cut, *_ in report.words.head(words).itertuples(index=False)
        ],
    )
    for path in filter(None, (figure, out)):
        typer.echo(f"written to {path}")
