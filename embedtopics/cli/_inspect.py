"""``embedtopics inspect``: what a file holds, before the work."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics.cli._display import (
    PAGE,
    check_target,
    guarded,
    make_console,
    print_inspection,
    print_topics,
    printable,
)
from embedtopics.cli._options import DocumentsFile, EncoderName, FileEncoding, RowLimit, TextColumn

if TYPE_CHECKING:
    from rich.console import Console

    from embedtopics.corpus._corpus import Corpus
    from embedtopics.protocols import Encoder


@guarded
def inspect(
    file: DocumentsFile,
    text: TextColumn = None,
    encoder: EncoderName = None,
    encoding: FileEncoding = "utf-8",
    limit: RowLimit = None,
    sample: Annotated[
        int | None, typer.Option(min=2, help="Also map a sample of so many texts.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Page for the sample's map; FILE-sample.html if left out.")
    ] = None,
) -> None:
    """Look at a file: columns, languages, what would be cut, and the time a fit would take."""
    from embedtopics.corpus._columns import guess_columns
    from embedtopics.corpus._corpus import Corpus, require_text
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.topics._inspection import inspect_corpus
    from embedtopics.topics._model import DEFAULT_ENCODER

    console = make_console()
    page = None
    if sample is not None:
        page = out or Path(f"{file.name.split('.')[0] or 'sample'}-sample.html")
        check_target(page, PAGE)
    corpus = Corpus.from_file(file, text=text, encoding=encoding, limit=limit)
    guessed = {**guess_columns(corpus.metadata), "text": corpus.text_column}
    found = {
        role: f"--{role} {shlex.quote(printable(name))}"
        for role, name in guessed.items() if name is not None
    }  # fmt: skip
    if found:
        console.print(f"columns guessed: {' '.join(found.values())}", soft_wrap=True)
    require_text(corpus)
    loaded = resolve_encoder(encoder or DEFAULT_ENCODER, cached=True)
    print_inspection(console, inspect_corpus(corpus, loaded))
    if page is not None and sample is not None:
        _map_sample(console, corpus, loaded, sample, page)
    options = " ".join(option for role, option in found.items() if role != "id")
    name = shlex.quote(printable(str(file)))
    console.print(f"\nnext: embedtopics topics {name} {options} --out results", soft_wrap=True)


def _map_sample(console: Console, corpus: Corpus, encoder: Encoder, size: int, path: Path) -> None:
    """Find the topics of a sample, print them, and write their map."""
    from embedtopics.report._report import write_report
    from embedtopics.topics._model import TopicModel

    rows = corpus.distinct().first_rows[:size]  # ordered by content hash: a fair sample
    model = TopicModel(encoder, random_state=42).fit(corpus.take(sorted(rows.tolist())))
    console.print(f"\na first look, at {len(rows):,} texts:")
    print_topics(console, model.result_, most=12)
    write_report(model.result_, path, title=f"A sample of {corpus.source}")
    console.print(f"\nmap of the sample: {path}", soft_wrap=True)


# ``embedtopics cache``: what is kept on disk so that no text is encoded twice.

app = typer.Typer(help="Look at the vectors and models kept on disk, or throw them away.",
                  no_args_is_help=True)  # fmt: skip


@app.command()
@guarded
def info() -> None:
    """Say where the cache is, and what it holds."""
    from rich.table import Table

    from embedtopics.encoders._cache import cache_entries, default_folder

    console = make_console()
    entries = cache_entries()
    total = sum(entry.n_bytes for entry in entries)
    console.print(f"{default_folder()}: {_size(total)}", soft_wrap=True)
    if not entries:
        return
    table = Table("what", "encoder", "numbers", "texts", "size")
    for column in table.columns[3:]:
        column.justify = "right"
    for entry in entries:
        texts = f"{entry.n_texts:,}" if entry.kind != "model" else ""
        table.add_row(entry.kind, printable(entry.encoder), entry.variant, texts,
                      _size(entry.n_bytes))  # fmt: skip
    console.print(table)


@app.command()
@guarded
def clear(
    vectors: Annotated[bool, typer.Option("--vectors", help="Only vectors.")] = False,
    models: Annotated[bool, typer.Option("--models", help="Only models made ready.")] = False,
    names: Annotated[
        bool, typer.Option("--names", help="Only names that language models gave.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Throw the cache away; all of it can be made again."""
    from embedtopics.encoders._cache import cache_entries, clear_cache

    wanted = {"vectors": vectors, "model": models, "names": names}
    kinds = [kind for kind, chosen in wanted.items() if chosen] or list(wanted)
    total = sum(entry.n_bytes for entry in cache_entries() if entry.kind in kinds)
    if total and not yes:
        typer.confirm(f"Throw away {_size(total)} of {' and '.join(kinds)}?", abort=True, err=True)
    make_console().print(f"{_size(clear_cache(kinds=kinds))} freed")


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
